// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s

// What kernels give is joined without one if each part is a range of the elements, and begins at a
// multiple of 64 bytes.
// CHECK-LABEL: func.func @joined
// CHECK: %[[A:.*]] = func.call @fused_softmax(
// CHECK: %[[B:.*]] = func.call @fused_softmax(
// CHECK: %[[J:.*]] = graph.concat %[[A]], %[[B]] axis = 1
// CHECK: func.call @fused_dense(%[[J]],
func.func @joined(%x: tensor<1x2x16xf32>, %y: tensor<1x2x16xf32>, %w: tensor<8x16xf32>) -> tensor<1x4x8xf32> {
  %a = graph.softmax %x axis = 2 : (tensor<1x2x16xf32>) -> tensor<1x2x16xf32>
  %b = graph.softmax %y axis = 2 : (tensor<1x2x16xf32>) -> tensor<1x2x16xf32>
  %j = graph.concat %a, %b axis = 1 : (tensor<1x2x16xf32>, tensor<1x2x16xf32>) -> tensor<1x4x16xf32>
  %d = graph.dense %j, %w : (tensor<1x4x16xf32>, tensor<8x16xf32>) -> tensor<1x4x8xf32>
  func.return %d : tensor<1x4x8xf32>
}

// -----

// An argument, a constant and a part of another join are somewhere else; the program returns what
// has a buffer of its own; parts interleave where a size before the axis is not 1.
// CHECK-LABEL: func.func @copied
// CHECK-NOT: graph.concat %{{.*}} axis
// CHECK: func.return
func.func @copied(%x: tensor<1x2x16xf32>, %z: tensor<2x1x16xf32>, %w: tensor<8x16xf32>)
    -> (tensor<1x4x8xf32>, tensor<1x4x16xf32>, tensor<2x2x8xf32>) {
  %a = graph.softmax %x axis = 2 : (tensor<1x2x16xf32>) -> tensor<1x2x16xf32>
  %j = graph.concat %a, %x axis = 1 : (tensor<1x2x16xf32>, tensor<1x2x16xf32>) -> tensor<1x4x16xf32>
  %d = graph.dense %j, %w : (tensor<1x4x16xf32>, tensor<8x16xf32>) -> tensor<1x4x8xf32>
  %b = graph.softmax %x axis = 1 : (tensor<1x2x16xf32>) -> tensor<1x2x16xf32>
  %k = graph.concat %b, %a axis = 1 : (tensor<1x2x16xf32>, tensor<1x2x16xf32>) -> tensor<1x4x16xf32>
  %c = graph.softmax %z axis = 2 : (tensor<2x1x16xf32>) -> tensor<2x1x16xf32>
  %e = graph.softmax %z axis = 0 : (tensor<2x1x16xf32>) -> tensor<2x1x16xf32>
  %i = graph.concat %c, %e axis = 1 : (tensor<2x1x16xf32>, tensor<2x1x16xf32>) -> tensor<2x2x16xf32>
  %f = graph.dense %i, %w : (tensor<2x2x16xf32>, tensor<8x16xf32>) -> tensor<2x2x8xf32>
  func.return %d, %k, %f : tensor<1x4x8xf32>, tensor<1x4x16xf32>, tensor<2x2x8xf32>
}

// -----

// Parts of 8 bytes would begin in the middle of a line.
// CHECK-LABEL: func.func @short
// CHECK-NOT: graph.concat %{{.*}} axis
// CHECK: func.return
func.func @short(%x: tensor<1x2xf32>, %w: tensor<8x4xf32>) -> tensor<1x8xf32> {
  %a = graph.softmax %x axis = 1 : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %b = graph.softmax %x axis = 0 : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %j = graph.concat %a, %b axis = 1 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x4xf32>
  %d = graph.dense %j, %w : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<1x8xf32>
  func.return %d : tensor<1x8xf32>
}
