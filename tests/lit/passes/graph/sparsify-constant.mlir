// RUN: stepwell-opt %s -p graph-sparsify-constant | filecheck %s

// CHECK-LABEL: func.func @left
// CHECK-NEXT: %[[a:.*]] = graph.constant nnz = 0 dense_resource<constant.sparse> : tensor<64x512xf32, #csr>
// CHECK-NEXT: graph.spmm %[[a]]
func.func @left(%x: tensor<512x8xf32>) -> tensor<64x8xf32> {
  %a = graph.constant dense<0.0> : tensor<64x512xf32>
  %y = graph.matmul %a, %x : (tensor<64x512xf32>, tensor<512x8xf32>) -> tensor<64x8xf32>
  func.return %y : tensor<64x8xf32>
}

// What is sparse is on the left: x w^T == (w x^T)^T.
// CHECK-LABEL: func.func @right
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x512xf32>, %[[b:[^:]*]]: tensor<512xf32>)
// CHECK-NEXT: %[[w:.*]] = graph.constant nnz = 0
// CHECK-NEXT: %[[t:.*]] = graph.transpose %[[x]]
// CHECK-NEXT: %[[y:.*]] = graph.spmm %[[w]], %[[t]]
// CHECK-NEXT: %[[c:.*]] = graph.reshape %[[b]] shape = [-1, 1]
// CHECK-NEXT: %[[z:.*]] = graph.add %[[y]], %[[c]]
// CHECK-NEXT: graph.transpose %[[z]]
func.func @right(%x: tensor<?x512xf32>, %b: tensor<512xf32>) -> tensor<?x512xf32> {
  %w = graph.constant dense<0.0> : tensor<512x512xf32>
  %y = graph.dense %x, %w, %b : (tensor<?x512xf32>, tensor<512x512xf32>, tensor<512xf32>) -> tensor<?x512xf32>
  func.return %y : tensor<?x512xf32>
}

// Rows are scaled on the stored elements.
// CHECK-LABEL: func.func @scaled
// CHECK-SAME: (%[[r:[^:]*]]: tensor<64x1xf32>, %[[x:[^:]*]]: tensor<512x8xf32>)
// CHECK-NEXT: %[[a:.*]] = graph.constant nnz = 0
// CHECK-NEXT: %[[v:.*]] = graph.reshape %[[r]]
// CHECK-NEXT: %[[e:.*]] = graph.entries %[[a]]
// CHECK-NEXT: %[[f:.*]] = graph.at_entries %[[a]], %[[v]] axis = 0
// CHECK-NEXT: %[[s:.*]] = graph.mul %[[e]], %[[f]]
// CHECK-NEXT: %[[b:.*]] = graph.with_entries %[[a]], %[[s]]
// CHECK-NEXT: graph.spmm %[[b]], %[[x]]
func.func @scaled(%r: tensor<64x1xf32>, %x: tensor<512x8xf32>) -> tensor<64x8xf32> {
  %a = graph.constant dense<0.0> : tensor<64x512xf32>
  %s = graph.mul %a, %r : (tensor<64x512xf32>, tensor<64x1xf32>) -> tensor<64x512xf32>
  %y = graph.matmul %s, %x : (tensor<64x512xf32>, tensor<512x8xf32>) -> tensor<64x8xf32>
  func.return %y : tensor<64x8xf32>
}

// Too small to pay, and full.
// CHECK-LABEL: func.func @kept
// CHECK: graph.matmul
// CHECK: graph.matmul
func.func @kept(%x: tensor<2x8xf32>, %z: tensor<64x8xf32>) -> (tensor<2x8xf32>, tensor<64x8xf32>) {
  %a = graph.constant dense<0.0> : tensor<2x2xf32>
  %b = graph.constant dense<1.0> : tensor<64x64xf32>
  %y = graph.matmul %a, %x : (tensor<2x2xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %w = graph.matmul %b, %z : (tensor<64x64xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  func.return %y, %w : tensor<2x8xf32>, tensor<64x8xf32>
}

// An element that is computed beside it would be lost.
// CHECK-LABEL: func.func @not_zero
// CHECK: graph.exp
// CHECK: graph.matmul
func.func @not_zero(%x: tensor<512x8xf32>) -> tensor<64x8xf32> {
  %a = graph.constant dense<0.0> : tensor<64x512xf32>
  %e = graph.exp %a : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %y = graph.matmul %e, %x : (tensor<64x512xf32>, tensor<512x8xf32>) -> tensor<64x8xf32>
  func.return %y : tensor<64x8xf32>
}
