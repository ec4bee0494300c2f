// RUN: stepwell-opt %s -p graph-order-contractions | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<?x?xf32, #csr>

// Fewer columns go through the sparse product.
// CHECK-LABEL: func.func @widening
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}}, %[[x:[^:]*]]: tensor<?x2xf32>
// CHECK-NEXT: %[[ax:.*]] = graph.spmm %[[a]], %[[x]]
// CHECK-NEXT: %[[y:.*]] = graph.matmul %[[ax]]
// CHECK-NEXT: func.return %[[y]]
func.func @widening(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x2xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> tensor<?x8xf32> {
  %p = graph.matmul %x, %w : (tensor<?x2xf32>, tensor<2x8xf32>) -> tensor<?x8xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @narrowing
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}}, %[[x:[^:]*]]: tensor<?x8xf32>
// CHECK-NEXT: %[[xw:.*]] = graph.dense %[[x]]
// CHECK-NEXT: %[[y:.*]] = graph.spmm %[[a]], %[[xw]]
// CHECK-NEXT: func.return %[[y]]
func.func @narrowing(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> tensor<?x2xf32> {
  %p = graph.spmm %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %p, %w : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @best_already
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.spmm
func.func @best_already(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<8x2xf32>) -> tensor<?x2xf32> {
  %p = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// Which order is better depends on sizes that are not known: m and p are unrelated, so that
// they are taken to be the same.
// CHECK-LABEL: func.func @assumed
// CHECK-NEXT: graph.spmm
// CHECK-NEXT: graph.matmul
func.func @assumed(%a: !csr {graph.dims = ["m", "p"]}, %x: tensor<?x2xf32> {graph.dims = ["p", ""]}, %w: tensor<2x8xf32>) -> tensor<?x8xf32> {
  %p = graph.matmul %x, %w : (tensor<?x2xf32>, tensor<2x8xf32>) -> tensor<?x8xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// A bias is added before the sparse product: not the same thing after it.
// CHECK-LABEL: func.func @bias_in_between
// CHECK-NEXT: graph.dense
// CHECK-NEXT: graph.spmm
func.func @bias_in_between(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x2xf32> {graph.dims = ["n", ""]}, %w: tensor<8x2xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %p = graph.dense %x, %w, %b : (tensor<?x2xf32>, tensor<8x2xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// The inner product is needed by itself, too.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.spmm
func.func @shared(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x2xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %p = graph.matmul %x, %w : (tensor<?x2xf32>, tensor<2x8xf32>) -> tensor<?x8xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y, %p : tensor<?x8xf32>, tensor<?x8xf32>
}

// The bias of the last product goes along.
// CHECK-LABEL: func.func @bias_last
// CHECK-SAME: %[[b:[^:,]*]]: tensor<2xf32>)
// CHECK-NEXT: %[[xw:.*]] = graph.dense %{{[^,]*}}, %{{[^,]*}} :
// CHECK-NEXT: %[[axw:.*]] = graph.spmm %{{.*}}, %[[xw]]
// CHECK-NEXT: graph.add %[[axw]], %[[b]]
func.func @bias_last(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>, %b: tensor<2xf32>) -> tensor<?x2xf32> {
  %p = graph.spmm %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %p, %w, %b : (tensor<?x8xf32>, tensor<2x8xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// A chain of four: the vector on the right makes every product a small one.
// CHECK-LABEL: func.func @four
// CHECK-SAME: (%[[x:[^:]*]]: {{.*}}, %[[a:[^:]*]]: {{.*}}, %[[b:[^:]*]]: {{.*}}, %[[v:[^:]*]]: tensor<30x1xf32>)
// CHECK-NEXT: %[[bv:.*]] = graph.matmul %[[b]], %[[v]]
// CHECK-NEXT: %[[abv:.*]] = graph.matmul %[[a]], %[[bv]]
// CHECK-NEXT: %[[y:.*]] = graph.matmul %[[x]], %[[abv]]
// CHECK-NEXT: func.return %[[y]]
func.func @four(%x: tensor<?x10x30xf32>, %a: tensor<30x20xf32>, %b: tensor<20x30xf32>, %v: tensor<30x1xf32>) -> tensor<?x10x1xf32> {
  %0 = graph.matmul %x, %a : (tensor<?x10x30xf32>, tensor<30x20xf32>) -> tensor<?x10x20xf32>
  %1 = graph.matmul %0, %b : (tensor<?x10x20xf32>, tensor<20x30xf32>) -> tensor<?x10x30xf32>
  %2 = graph.matmul %1, %v : (tensor<?x10x30xf32>, tensor<30x1xf32>) -> tensor<?x10x1xf32>
  func.return %2 : tensor<?x10x1xf32>
}

// Weights that are held the other way round are multiplied the other way round.
// CHECK-LABEL: func.func @weights
// CHECK-SAME: (%[[x:[^:]*]]: {{.*}}, %[[v:[^:]*]]: tensor<90x8xf32>, %[[w:[^:]*]]: tensor<4x90xf32>)
// CHECK-NEXT: %[[wv:.*]] = graph.matmul %[[w]], %[[v]] : {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: graph.dense %[[x]], %[[wv]]
func.func @weights(%x: tensor<100x8xf32>, %v: tensor<90x8xf32>, %w: tensor<4x90xf32>) -> tensor<100x4xf32> {
  %0 = graph.dense %x, %v : (tensor<100x8xf32>, tensor<90x8xf32>) -> tensor<100x90xf32>
  %1 = graph.dense %0, %w : (tensor<100x90xf32>, tensor<4x90xf32>) -> tensor<100x4xf32>
  func.return %1 : tensor<100x4xf32>
}

// An aggregation that sums up rows is a product with a matrix.
// CHECK-LABEL: func.func @aggregate
// CHECK-NEXT: %[[xw:.*]] = graph.dense
// CHECK-NEXT: graph.aggregate mean %{{.*}}, %[[xw]]
func.func @aggregate(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> tensor<?x2xf32> {
  %p = graph.aggregate mean %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %p, %w : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// The largest of the neighbours is none.
// CHECK-LABEL: func.func @largest
// CHECK-NEXT: graph.aggregate max
// CHECK-NEXT: graph.dense
func.func @largest(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> tensor<?x2xf32> {
  %p = graph.aggregate max %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %p, %w : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// Sparse features: the product of two sparse matrices is no operator, so that there is one order.
// CHECK-LABEL: func.func @sparse_features
// CHECK-NEXT: %[[fw:.*]] = graph.spmm
// CHECK-NEXT: graph.spmm %{{.*}}, %[[fw]]
func.func @sparse_features(%a: !csr {graph.dims = ["n", "n"]}, %f: !csr {graph.dims = ["n", "k"]}, %w: tensor<?x9xf32> {graph.dims = ["k", ""]}) -> tensor<?x9xf32> {
  %p = graph.spmm %f, %w : (!csr, tensor<?x9xf32>) -> tensor<?x9xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x9xf32>) -> tensor<?x9xf32>
  func.return %y : tensor<?x9xf32>
}
