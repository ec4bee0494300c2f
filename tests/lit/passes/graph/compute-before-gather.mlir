// RUN: stepwell-opt %s -p graph-compute-before-gather,graph-fold-constant --split-input-file | filecheck %s

// EdgeConv, w [x_i, x_j - x_i]: of each end there is one product, and nodes get the bias.
// CHECK-LABEL: func.func @ends(
// CHECK: %[[m:.*]] = graph.constant dense<{{\[\[}}-1.0{{.*}}], [-2.0
// CHECK-NEXT: %[[p:.*]] = graph.dense %x, %[[m]], %b
// CHECK-NEXT: %[[i:.*]] = graph.at_entries %a, %[[p]] axis = 0
// CHECK-NEXT: %[[v:.*]] = graph.constant dense<{{\[\[}}2.0{{.*}}], [5.0
// CHECK-NEXT: %[[q:.*]] = graph.dense %x, %[[v]] :
// CHECK-NEXT: %[[j:.*]] = graph.at_entries %a, %[[q]] axis = 1
// CHECK-NEXT: %[[y:.*]] = graph.add %[[i]], %[[j]]
// CHECK-NEXT: func.return %[[y]]
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @ends(%a: tensor<?x?xf32, #csr>, %x: tensor<?x1xf32>, %b: tensor<2xf32>) -> tensor<?x2xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 5.0]]> : tensor<2x2xf32>
  %i = graph.at_entries %a, %x axis = 0 : (tensor<?x?xf32, #csr>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %j = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %d = graph.sub %j, %i : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %c = graph.concat %i, %d axis = 1 : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
  %y = graph.dense %c, %w, %b : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// -----

// Where a rounding shows, a concatenation is a sum in another order, and a difference is not.
// CHECK-LABEL: func.func @before_a_jump(
// CHECK: %[[p:.*]] = graph.dense %x, %{{.*}} : (tensor<9x4xf32>
// CHECK: graph.gather %[[p]], %k axis = 0
// CHECK: %[[d:.*]] = graph.sub
// CHECK: graph.dense %[[d]], %v : (tensor<50x4xf32>
func.func @before_a_jump(%x: tensor<9x4xf32>, %k: tensor<50xi64>, %e: tensor<50x4xf32>, %w: tensor<2x8xf32>, %v: tensor<2x4xf32>) -> (tensor<50x2xf32>, tensor<50x2xf32>) {
  %j = graph.gather %x, %k axis = 0 : (tensor<9x4xf32>, tensor<50xi64>) -> tensor<50x4xf32>
  %c = graph.concat %j, %e axis = 1 : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x8xf32>
  %y = graph.dense %c, %w : (tensor<50x8xf32>, tensor<2x8xf32>) -> tensor<50x2xf32>
  %s = graph.floor %y : (tensor<50x2xf32>) -> tensor<50x2xf32>
  %d = graph.sub %j, %e : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x4xf32>
  %z = graph.dense %d, %v : (tensor<50x4xf32>, tensor<2x4xf32>) -> tensor<50x2xf32>
  %t = graph.floor %z : (tensor<50x2xf32>) -> tensor<50x2xf32>
  func.return %s, %t : tensor<50x2xf32>, tensor<50x2xf32>
}

// -----

// Features of edges keep a product; weights that are computed are sliced in the program.
// CHECK-LABEL: func.func @features(
// CHECK: %[[v:.*]] = graph.slice %w starts = [0, 0] ends = [4, 2]
// CHECK-NEXT: %[[p:.*]] = graph.matmul %x, %[[v]]
// CHECK-NEXT: %[[j:.*]] = graph.gather %[[p]], %k axis = 0
// CHECK-NEXT: %[[u:.*]] = graph.slice %w starts = [4, 0] ends = [7, 2]
// CHECK-NEXT: %[[q:.*]] = graph.matmul %e, %[[u]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[j]], %[[q]]
// CHECK-NEXT: func.return %[[y]]
func.func @features(%x: tensor<9x4xf32>, %k: tensor<50xi64>, %e: tensor<50x3xf32>, %w: tensor<7x2xf32>) -> tensor<50x2xf32> {
  %j = graph.gather %x, %k axis = 0 : (tensor<9x4xf32>, tensor<50xi64>) -> tensor<50x4xf32>
  %c = graph.concat %j, %e axis = 1 : (tensor<50x4xf32>, tensor<50x3xf32>) -> tensor<50x7xf32>
  %y = graph.matmul %c, %w : (tensor<50x7xf32>, tensor<7x2xf32>) -> tensor<50x2xf32>
  func.return %y : tensor<50x2xf32>
}

// -----

// Towers: what is cut out of gathered slices is cut out of nodes. An elementwise operator follows,
// and so does a second product.
// CHECK-LABEL: func.func @towers(
// CHECK: %[[r:.*]] = graph.reshape %x shape = [0, 2, 3]
// CHECK-NEXT: %[[s:.*]] = graph.slice %[[r]] starts = [0, 1, 0] ends = [9, 2, 3]
// CHECK-NEXT: %[[t:.*]] = graph.reshape %[[s]] shape = [0, 3]
// CHECK-NEXT: %[[p:.*]] = graph.dense %[[t]], %w
// CHECK-NEXT: %[[f:.*]] = graph.relu %[[p]]
// CHECK-NEXT: %[[q:.*]] = graph.dense %[[f]], %w
// CHECK-NEXT: %[[y:.*]] = graph.gather %[[q]], %k axis = 0
// CHECK-NEXT: func.return %[[y]]
func.func @towers(%x: tensor<9x6xf32>, %k: tensor<50xi64>, %w: tensor<3x3xf32>) -> tensor<50x3xf32> {
  %j = graph.gather %x, %k axis = 0 : (tensor<9x6xf32>, tensor<50xi64>) -> tensor<50x6xf32>
  %r = graph.reshape %j shape = [50, 2, 3] : (tensor<50x6xf32>) -> tensor<50x2x3xf32>
  %s = graph.slice %r starts = [0, 1, 0] ends = [50, 2, 3] steps = [1, 1, 1] : (tensor<50x2x3xf32>) -> tensor<50x1x3xf32>
  %t = graph.reshape %s shape = [50, 3] : (tensor<50x1x3xf32>) -> tensor<50x3xf32>
  %p = graph.dense %t, %w : (tensor<50x3xf32>, tensor<3x3xf32>) -> tensor<50x3xf32>
  %f = graph.relu %p : (tensor<50x3xf32>) -> tensor<50x3xf32>
  %y = graph.dense %f, %w : (tensor<50x3xf32>, tensor<3x3xf32>) -> tensor<50x3xf32>
  func.return %y : tensor<50x3xf32>
}

// -----

// A few rows of a table, a result that is rounded before a comparison, other indices, other slices.
// CHECK-LABEL: func.func @kept(
// CHECK-DAG: graph.gather %x, %k axis = 0
// CHECK-DAG: graph.dense %{{.*}} : (tensor<5x4xf32>, tensor<4x4xf32>)
// CHECK-DAG: graph.matmul %{{.*}} : (tensor<50x4xf32>, tensor<4x4xf32>)
// CHECK-DAG: graph.mul %{{.*}} : (tensor<50x4xf32>, tensor<50x4xf32>)
// CHECK-DAG: graph.exp %{{.*}} : (tensor<5x4xf32>)
// CHECK-DAG: graph.exp %{{.*}} : (tensor<f32>)
func.func @kept(%n: tensor<f32>, %x: tensor<9x4xf32>, %k: tensor<5xi64>, %l: tensor<50xi64>, %m: tensor<50xi64>, %w: tensor<4x4xf32>) -> (tensor<5x4xf32>, tensor<50x4xi1>, tensor<50x4xf32>, tensor<5x4xf32>, tensor<f32>) {
  %number = graph.exp %n : (tensor<f32>) -> tensor<f32>
  %g = graph.gather %x, %k axis = 0 : (tensor<9x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  %i = graph.gather %x, %l axis = 0 : (tensor<9x4xf32>, tensor<50xi64>) -> tensor<50x4xf32>
  %j = graph.gather %x, %m axis = 0 : (tensor<9x4xf32>, tensor<50xi64>) -> tensor<50x4xf32>
  %few = graph.dense %g, %w : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %d = graph.add %i, %i : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x4xf32>
  %r = graph.sub %d, %j : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x4xf32>
  %s = graph.matmul %r, %w : (tensor<50x4xf32>, tensor<4x4xf32>) -> tensor<50x4xf32>
  %less = graph.less %s, %j : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x4xi1>
  %two = graph.mul %i, %j : (tensor<50x4xf32>, tensor<50x4xf32>) -> tensor<50x4xf32>
  %e = graph.exp %g : (tensor<5x4xf32>) -> tensor<5x4xf32>
  func.return %few, %less, %two, %e, %number : tensor<5x4xf32>, tensor<50x4xi1>, tensor<50x4xf32>, tensor<5x4xf32>, tensor<f32>
}

// -----

// The ends of entries have floats, so integers and truth values of them stay where they are.
// CHECK-LABEL: func.func @integers(
// CHECK: %[[i:.*]] = graph.at_entries %a, %x axis = 0
// CHECK: graph.cast %[[i]]
// CHECK: graph.equal %[[i]], %[[i]]
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @integers(%a: tensor<9x9xf32, #csr>, %x: tensor<9xf64>) -> (tensor<?xi64>, tensor<?xi1>) {
  %i = graph.at_entries %a, %x axis = 0 : (tensor<9x9xf32, #csr>, tensor<9xf64>) -> tensor<?xf64>
  %n = graph.cast %i : (tensor<?xf64>) -> tensor<?xi64>
  %e = graph.equal %i, %i : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xi1>
  func.return %n, %e : tensor<?xi64>, tensor<?xi1>
}
