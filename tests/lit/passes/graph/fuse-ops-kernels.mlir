// RUN: stepwell-opt %s --split-input-file -p "graph-fuse-ops{max-ops=1},convert-graph-to-loop,graph-fuse-ops" | filecheck %s

// Kernels of one operator each are grouped by what their loops say. The name is that of the operators.
// CHECK-LABEL: func.func @epilogue
// CHECK: func.call @fused_dense_add_relu(
// CHECK: loop.kernel @fused_dense(
// CHECK: loop.kernel @fused_add(
// CHECK: loop.kernel @fused_relu(
// CHECK: func.func private @fused_dense_add_relu(
// CHECK: %[[D:.*]] = graph.call_dps @fused_dense(
// CHECK-NEXT: %[[S:.*]] = graph.call_dps @fused_add(%[[D]],
// CHECK-NEXT: graph.call_dps @fused_relu(%[[S]])
func.func @epilogue(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %s = graph.add %d, %b : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %y = graph.relu %s : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// Two products stay two kernels: the second one would compute rows of the first one many times.
// CHECK-LABEL: func.func @products
// CHECK: graph.call_dps @fused_dense(
// CHECK: func.call @fused_dense_1_relu(
func.func @products(%x: tensor<?x8xf32>, %w: tensor<128x8xf32>, %v: tensor<4x128xf32>) -> tensor<?x4xf32> {
  %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<128x8xf32>) -> tensor<?x128xf32>
  %e = graph.dense %d, %v : (tensor<?x128xf32>, tensor<4x128xf32>) -> tensor<?x4xf32>
  %y = graph.relu %e : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
