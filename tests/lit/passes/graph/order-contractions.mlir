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

// Which order is better depends on sizes that are not known: m and p are unrelated.
// CHECK-LABEL: func.func @undecided
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.spmm
func.func @undecided(%a: !csr {graph.dims = ["m", "p"]}, %x: tensor<?x2xf32> {graph.dims = ["p", ""]}, %w: tensor<2x8xf32>) -> tensor<?x8xf32> {
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
