// RUN: stepwell-opt %s -p graph-raise-messages,dce --split-input-file | filecheck %s

// A weighted sum: the weights, in the order of the edges, are brought into that of the entries.
// CHECK-LABEL: func.func @weighted(
// CHECK: %[[p:.*]], %[[j:.*]], %[[order:.*]] = graph.sort_edges %i, %j of %x, %x
// CHECK: %[[a:.*]] = graph.assemble %[[p]], %[[j]]
// CHECK-NEXT: %[[w:.*]] = graph.gather %w, %[[order]] axis = 0
// CHECK: %[[y:.*]] = graph.aggregate sum %[[a]], %x weights
// CHECK-NEXT: func.return %[[y]]
func.func @weighted(%x: tensor<?x32xf32>, %j: tensor<?xi64>, %i: tensor<?xi64>, %w: tensor<?x1xf32>) -> tensor<?x32xf32> {
  %none = graph.reshape %x shape = [-1, 32, 1] : (tensor<?x32xf32>) -> tensor<?x32x1xf32>
  %no = graph.slice %none starts = [0, 0, 0] ends = [9223372036854775807, 9223372036854775807, 0] steps = [1, 1, 1] : (tensor<?x32x1xf32>) -> tensor<?x32x0xf32>
  %z = graph.reduce sum %no axes = [2] keepdims = false : (tensor<?x32x0xf32>) -> tensor<?x32xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<?x32xf32>, tensor<?xi64>) -> tensor<?x32xf32>
  %m = graph.mul %g, %w : (tensor<?x32xf32>, tensor<?x1xf32>) -> tensor<?x32xf32>
  %y = graph.scatter_nd add %z, %m at %i : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi64>) -> tensor<?x32xf32>
  func.return %y : tensor<?x32xf32>
}

// -----

// A mean: two scatters, one of them of ones.
// CHECK-LABEL: func.func @mean(
// CHECK: %[[a:.*]] = graph.assemble
// CHECK: graph.aggregate mean %[[a]], %x
// CHECK-NOT: graph.scatter
func.func @mean(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x32xf32> {
  %zero = graph.constant dense<0.0> : tensor<9x32xf32>
  %none = graph.constant dense<0.0> : tensor<9xf32>
  %ones = graph.constant dense<1.0> : tensor<7xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %k = graph.reshape %i shape = [7, 1] : (tensor<7xi64>) -> tensor<7x1xi64>
  %b = graph.broadcast_to %k shape = [7, 32] : (tensor<7x1xi64>) -> tensor<7x32xi64>
  %s = graph.scatter_elements add %zero, %b, %g axis = 0 : (tensor<9x32xf32>, tensor<7x32xi64>, tensor<7x32xf32>) -> tensor<9x32xf32>
  %c = graph.scatter_nd add %none, %ones at %i : (tensor<9xf32>, tensor<7xf32>, tensor<7xi64>) -> tensor<9xf32>
  %d = graph.clip %c minimum = 1.0 : f64 : (tensor<9xf32>) -> tensor<9xf32>
  %e = graph.reshape %d shape = [9, 1] : (tensor<9xf32>) -> tensor<9x1xf32>
  %y = graph.div %s, %e : (tensor<9x32xf32>, tensor<9x1xf32>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// A softmax over the edges of each row; the second scatter of the maximum leaves out what is there.
// CHECK-LABEL: func.func @softmax(
// CHECK: %[[a:.*]] = graph.assemble
// CHECK: %[[s:.*]] = graph.at_entries %[[a]], %x axis = 1
// CHECK: graph.aggregate softmax %[[a]], %v weights %[[s]]
// CHECK-NOT: graph.scatter
func.func @softmax(%x: tensor<9x8xf32>, %v: tensor<9x8xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x8xf32> {
  %zero = graph.constant dense<0.0> : tensor<9x8xf32>
  %least = graph.constant dense<0xFF800000> : tensor<7x8xf32>
  %small = graph.constant dense<1.0e-16> : tensor<f32>
  %s = graph.gather %x, %j axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %z = graph.scatter_nd none %zero, %least at %i : (tensor<9x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<9x8xf32>
  %m = graph.scatter_nd max %z, %s at %i : (tensor<9x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<9x8xf32>
  %n = graph.gather %m, %i axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %d = graph.sub %s, %n : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  %e = graph.exp %d : (tensor<7x8xf32>) -> tensor<7x8xf32>
  %t = graph.scatter_nd add %zero, %e at %i : (tensor<9x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<9x8xf32>
  %u = graph.add %t, %small : (tensor<9x8xf32>, tensor<f32>) -> tensor<9x8xf32>
  %r = graph.gather %u, %i axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %p = graph.div %e, %r : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  %w = graph.gather %v, %j axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %h = graph.mul %p, %w : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  %y = graph.scatter_nd add %zero, %h at %i : (tensor<9x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<9x8xf32>
  func.return %y : tensor<9x8xf32>
}

// -----

// What is there takes part: rows without entries keep it.
// CHECK-LABEL: func.func @into(
// CHECK: %[[m:.*]] = graph.aggregate max
// CHECK: %[[n:.*]] = graph.max %x, %[[m]]
// CHECK: %[[some:.*]] = graph.less
// CHECK: graph.where %[[some]], %[[n]], %x
func.func @into(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x32xf32> {
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %y = graph.scatter_nd max %x, %g at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// Few numbers for each edge, integers, indices that depend on columns, and updates that take the
// place of others stay scatters.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT: graph.sort_edges
// CHECK: graph.scatter_nd add
// CHECK: graph.scatter_nd add
// CHECK: graph.scatter_elements add
// CHECK: graph.scatter_nd none
func.func @kept(%x: tensor<9x32xf32>, %n: tensor<9x32xi32>, %t: tensor<9xf32>, %i: tensor<7xi64>, %k: tensor<7x32xi64>, %e: tensor<7x32xf32>, %f: tensor<7xf32>, %g: tensor<7x32xi32>) -> (tensor<9xf32>, tensor<9x32xi32>, tensor<9x32xf32>, tensor<9x32xf32>) {
  %a = graph.scatter_nd add %t, %f at %i : (tensor<9xf32>, tensor<7xf32>, tensor<7xi64>) -> tensor<9xf32>
  %b = graph.scatter_nd add %n, %g at %i : (tensor<9x32xi32>, tensor<7x32xi32>, tensor<7xi64>) -> tensor<9x32xi32>
  %c = graph.scatter_elements add %x, %k, %e axis = 0 : (tensor<9x32xf32>, tensor<7x32xi64>, tensor<7x32xf32>) -> tensor<9x32xf32>
  %d = graph.scatter_nd none %x, %e at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  func.return %a, %b, %c, %d : tensor<9xf32>, tensor<9x32xi32>, tensor<9x32xf32>, tensor<9x32xf32>
}

// -----

// A maximum that is 0 where nothing arrives, which a scatter of ones says.
// CHECK-LABEL: func.func @or_zero(
// CHECK: %[[y:.*]] = graph.aggregate max
// CHECK-NEXT: func.return %[[y]]
func.func @or_zero(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x32xf32> {
  %zero = graph.constant dense<0.0> : tensor<9x32xf32>
  %nought = graph.constant dense<0.0> : tensor<f32>
  %least = graph.constant dense<0xFF800000> : tensor<9x32xf32>
  %ones = graph.constant dense<1.0> : tensor<7x32xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %m = graph.scatter_nd max %least, %g at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  %n = graph.scatter_nd add %zero, %ones at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  %some = graph.greater %n, %nought : (tensor<9x32xf32>, tensor<f32>) -> tensor<9x32xi1>
  %y = graph.where %some, %m, %zero : (tensor<9x32xi1>, tensor<9x32xf32>, tensor<9x32xf32>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// Indices that are checked where nodes are updated are so where others are read.
// CHECK-LABEL: func.func @checked(
// CHECK: %[[c:.*]] = graph.check_indices %i of %x
// CHECK: graph.sort_edges %[[c]], %j of
// CHECK: graph.at_entries %{{.*}}, %x axis = 0
// CHECK-NOT: graph.scatter
func.func @checked(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x32xf32> {
  %zero = graph.constant dense<0.0> : tensor<9x32xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %h = graph.gather %x, %i axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %s = graph.sub %g, %h : (tensor<7x32xf32>, tensor<7x32xf32>) -> tensor<7x32xf32>
  %e = graph.exp %s : (tensor<7x32xf32>) -> tensor<7x32xf32>
  %c = graph.check_indices %i of %x axis = 0 : (tensor<7xi64>, tensor<9x32xf32>) -> tensor<7xi64>
  %y = graph.scatter_nd add %zero, %e at %c : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// Messages may be weighted by a constant.
// CHECK-LABEL: func.func @constant_weights(
// CHECK: graph.aggregate sum %{{.*}}, %x weights
// CHECK-NOT: graph.scatter
func.func @constant_weights(%x: tensor<9x32xf32>, %j: tensor<3xi64>, %i: tensor<3xi64>) -> tensor<9x32xf32> {
  %zero = graph.constant dense<0.0> : tensor<9x32xf32>
  %w = graph.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
  %m = graph.mul %w, %g : (tensor<3x1xf32>, tensor<3x32xf32>) -> tensor<3x32xf32>
  %y = graph.scatter_nd add %zero, %m at %i : (tensor<9x32xf32>, tensor<3x32xf32>, tensor<3xi64>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// Checks of one vector against one size are one, and come as soon as the vector is known.
// CHECK-LABEL: func.func @checked_twice(
// CHECK-DAG: %[[d:.*]] = graph.check_indices %j of %x
// CHECK-DAG: %[[c:.*]] = graph.check_indices %i of %x
// CHECK: graph.sort_edges %[[c]], %[[d]] of
// CHECK: graph.degree
// CHECK: graph.aggregate sum
// CHECK-NOT: graph.scatter
func.func @checked_twice(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> (tensor<9xf32>, tensor<9x32xf32>) {
  %zero = graph.constant dense<0.0> : tensor<9x32xf32>
  %none = graph.constant dense<0.0> : tensor<9xf32>
  %ones = graph.constant dense<1.0> : tensor<7xf32>
  %c = graph.check_indices %i of %none axis = 0 : (tensor<7xi64>, tensor<9xf32>) -> tensor<7xi64>
  %n = graph.scatter_nd add %none, %ones at %c : (tensor<9xf32>, tensor<7xf32>, tensor<7xi64>) -> tensor<9xf32>
  %k = graph.check_indices %j of %n axis = 0 : (tensor<7xi64>, tensor<9xf32>) -> tensor<7xi64>
  %g = graph.gather %x, %k axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %d = graph.check_indices %i of %x axis = 0 : (tensor<7xi64>, tensor<9x32xf32>) -> tensor<7xi64>
  %y = graph.scatter_nd add %zero, %g at %d : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  func.return %n, %y : tensor<9xf32>, tensor<9x32xf32>
}

// -----

// A scatter into the result of another one.
// CHECK-LABEL: func.func @one_after_the_other(
// CHECK: %[[low:.*]] = graph.aggregate min
// CHECK: %[[least:.*]] = graph.min %x, %[[low]]
// CHECK: %[[first:.*]] = graph.where %{{.*}}, %[[least]], %x
// CHECK: %[[high:.*]] = graph.aggregate max
// CHECK: graph.max %[[first]], %[[high]]
// CHECK-NOT: graph.scatter
func.func @one_after_the_other(%x: tensor<9x32xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x32xf32> {
  %g = graph.gather %x, %j axis = 0 : (tensor<9x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %m = graph.scatter_nd min %x, %g at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  %y = graph.scatter_nd max %m, %g at %i : (tensor<9x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}

// -----

// Nothing but what rows have is gathered: the columns are the places of the edges in the list.
// CHECK-LABEL: func.func @segments(
// CHECK: %[[p:.*]], %{{.*}}, %[[order:.*]] = graph.sort_edges %i, %i of
// CHECK: %[[a:.*]] = graph.assemble %[[p]], %[[order]], %{{.*}} of %i
// CHECK: graph.at_entries %[[a]], %x axis = 1
// CHECK: %[[mean:.*]] = graph.aggregate sum %[[a]], %x
// CHECK: graph.at_entries %[[a]], %[[mean]] axis = 0
// CHECK: graph.reduce_entries sum %[[a]]
// CHECK-NOT: graph.scatter
func.func @segments(%x: tensor<7x32xf32>, %i: tensor<7xi64>) -> tensor<3x32xf32> {
  %zero = graph.constant dense<0.0> : tensor<3x32xf32>
  %m = graph.scatter_nd add %zero, %x at %i : (tensor<3x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<3x32xf32>
  %g = graph.gather %m, %i axis = 0 : (tensor<3x32xf32>, tensor<7xi64>) -> tensor<7x32xf32>
  %d = graph.sub %x, %g : (tensor<7x32xf32>, tensor<7x32xf32>) -> tensor<7x32xf32>
  %s = graph.abs %d : (tensor<7x32xf32>) -> tensor<7x32xf32>
  %y = graph.scatter_nd add %zero, %s at %i : (tensor<3x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// Updates that are given, and read in their order, stay scatters.
// CHECK-LABEL: func.func @given(
// CHECK: graph.scatter_nd add
func.func @given(%z: tensor<3x32xf32>, %x: tensor<7x32xf32>, %i: tensor<7xi64>) -> tensor<3x32xf32> {
  %y = graph.scatter_nd add %z, %x at %i : (tensor<3x32xf32>, tensor<7x32xf32>, tensor<7xi64>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// Rows for each relation: those of a node are multiplied by weights of their own, and summed.
// CHECK-LABEL: func.func @relations(
// CHECK: %[[a:.*]] = graph.assemble
// CHECK: %[[w:.*]] = graph.reshape %{{.*}} shape = [-1, 8, 4] : (tensor<24x4xf32>) -> tensor<3x8x4xf32>
// CHECK-NEXT: %[[y:.*]] = graph.aggregate_dense sum %[[a]], %x, %[[w]] : (tensor<27x9xf32, #csr>, tensor<9x8xf32>, tensor<3x8x4xf32>) -> tensor<9x4xf32>
// CHECK-NEXT: func.return %[[y]]
func.func @relations(%x: tensor<9x8xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>) -> tensor<9x4xf32> {
  %zero = graph.constant dense<0.0> : tensor<27x8xf32>
  %w = graph.constant dense<2.0> : tensor<24x4xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %s = graph.scatter_nd add %zero, %g at %i : (tensor<27x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<27x8xf32>
  %s3 = graph.reshape %s shape = [3, 9, 8] : (tensor<27x8xf32>) -> tensor<3x9x8xf32>
  %st = graph.transpose %s3 permutation = [1, 0, 2] : (tensor<3x9x8xf32>) -> tensor<9x3x8xf32>
  %h = graph.reshape %st shape = [9, 24] : (tensor<9x3x8xf32>) -> tensor<9x24xf32>
  %y = graph.matmul %h, %w : (tensor<9x24xf32>, tensor<24x4xf32>) -> tensor<9x4xf32>
  func.return %y : tensor<9x4xf32>
}

// -----

// A linear layer has its weights transposed, and a bias.
// CHECK-LABEL: func.func @relations_dense(
// CHECK: %[[t:.*]] = graph.transpose %{{.*}} permutation = [1, 0]
// CHECK: %[[w:.*]] = graph.reshape %[[t]] shape = [-1, 8, 4]
// CHECK-NEXT: %[[p:.*]] = graph.aggregate_dense sum %{{.*}}, %x, %[[w]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[p]], %b
// CHECK-NEXT: func.return %[[y]]
func.func @relations_dense(%x: tensor<9x8xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>, %b: tensor<4xf32>) -> tensor<9x4xf32> {
  %zero = graph.constant dense<0.0> : tensor<27x8xf32>
  %w = graph.constant dense<2.0> : tensor<4x24xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %s = graph.scatter_nd add %zero, %g at %i : (tensor<27x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<27x8xf32>
  %s3 = graph.reshape %s shape = [3, 9, 8] : (tensor<27x8xf32>) -> tensor<3x9x8xf32>
  %st = graph.transpose %s3 permutation = [1, 0, 2] : (tensor<3x9x8xf32>) -> tensor<9x3x8xf32>
  %h = graph.reshape %st shape = [9, 24] : (tensor<9x3x8xf32>) -> tensor<9x24xf32>
  %y = graph.dense %h, %w, %b : (tensor<9x24xf32>, tensor<4x24xf32>, tensor<4xf32>) -> tensor<9x4xf32>
  func.return %y : tensor<9x4xf32>
}

// -----

// Weights that are not finite, or not known, count for rows without messages, too.
// CHECK-LABEL: func.func @relations_kept(
// CHECK-NOT: graph.aggregate_dense
// CHECK: graph.matmul
// CHECK: graph.matmul
func.func @relations_kept(%x: tensor<9x8xf32>, %j: tensor<7xi64>, %i: tensor<7xi64>, %v: tensor<24x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %zero = graph.constant dense<0.0> : tensor<27x8xf32>
  %w = graph.constant dense<0x7F800000> : tensor<24x4xf32>
  %g = graph.gather %x, %j axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %s = graph.scatter_nd add %zero, %g at %i : (tensor<27x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<27x8xf32>
  %s3 = graph.reshape %s shape = [3, 9, 8] : (tensor<27x8xf32>) -> tensor<3x9x8xf32>
  %st = graph.transpose %s3 permutation = [1, 0, 2] : (tensor<3x9x8xf32>) -> tensor<9x3x8xf32>
  %h = graph.reshape %st shape = [9, 24] : (tensor<9x3x8xf32>) -> tensor<9x24xf32>
  %y = graph.matmul %h, %w : (tensor<9x24xf32>, tensor<24x4xf32>) -> tensor<9x4xf32>
  %m = graph.gather %x, %i axis = 0 : (tensor<9x8xf32>, tensor<7xi64>) -> tensor<7x8xf32>
  %t = graph.scatter_nd add %zero, %m at %j : (tensor<27x8xf32>, tensor<7x8xf32>, tensor<7xi64>) -> tensor<27x8xf32>
  %t3 = graph.reshape %t shape = [3, 9, 8] : (tensor<27x8xf32>) -> tensor<3x9x8xf32>
  %tt = graph.transpose %t3 permutation = [1, 0, 2] : (tensor<3x9x8xf32>) -> tensor<9x3x8xf32>
  %k = graph.reshape %tt shape = [9, 24] : (tensor<9x3x8xf32>) -> tensor<9x24xf32>
  %z = graph.matmul %k, %v : (tensor<9x24xf32>, tensor<24x4xf32>) -> tensor<9x4xf32>
  func.return %y, %z : tensor<9x4xf32>, tensor<9x4xf32>
}

// -----

// Messages that are written for a matrix in the first place: a sum by the softmax of scores.
// CHECK-LABEL: func.func @of_a_matrix(
// CHECK-NEXT: %[[y:.*]] = graph.aggregate softmax %a, %x weights %e
// CHECK-NEXT: func.return %[[y]]
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
!a = tensor<9x9xf32, #csr>
!e = tensor<?x32xf32>
func.func @of_a_matrix(%a: !a, %x: tensor<9x32xf32>, %e: tensor<?xf32>) -> tensor<9x32xf32> {
  %j = graph.at_entries %a, %x axis = 1 : (!a, tensor<9x32xf32>) -> !e
  %p = graph.edge_softmax %a, %e : (!a, tensor<?xf32>) -> tensor<?xf32>
  %w = graph.reshape %p shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %m = graph.mul %j, %w : (!e, tensor<?x1xf32>) -> !e
  %y = graph.reduce_entries sum %a, %m : (!a, !e) -> tensor<9x32xf32>
  func.return %y : tensor<9x32xf32>
}
