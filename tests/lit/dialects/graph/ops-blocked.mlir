// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @image
// CHECK: %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 8 : (tensor<?x2x9x9x4xf32>, tensor<16x8x3x3xf32>, tensor<16xf32>) -> tensor<?x2x4x4x8xf32>
func.func @image(%x: tensor<?x2x9x9x4xf32>, %w: tensor<16x8x3x3xf32>, %b: tensor<16xf32>) -> tensor<?x2x4x4x8xf32> {
  %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 8 : (tensor<?x2x9x9x4xf32>, tensor<16x8x3x3xf32>, tensor<16xf32>) -> tensor<?x2x4x4x8xf32>
  func.return %y : tensor<?x2x4x4x8xf32>
}

// CHECK-LABEL: func.func @sequence
// CHECK: %y = graph.blocked_conv %x, %w strides = [1] dilations = [3] block = 5 : (tensor<2x1x9x3xf64>, tensor<5x3x2xf64>) -> tensor<2x1x6x5xf64>
func.func @sequence(%x: tensor<2x1x9x3xf64>, %w: tensor<5x3x2xf64>) -> tensor<2x1x6x5xf64> {
  %y = graph.blocked_conv %x, %w strides = [1] dilations = [3] block = 5 : (tensor<2x1x9x3xf64>, tensor<5x3x2xf64>) -> tensor<2x1x6x5xf64>
  func.return %y : tensor<2x1x6x5xf64>
}

// CHECK-LABEL: func.func @points
// CHECK: %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 2 : (tensor<2x3x?x?x2xf32>, tensor<4x6x1x1xf32>) -> tensor<2x2x?x?x2xf32>
func.func @points(%x: tensor<2x3x?x?x2xf32>, %w: tensor<4x6x1x1xf32>) -> tensor<2x2x?x?x2xf32> {
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 2 : (tensor<2x3x?x?x2xf32>, tensor<4x6x1x1xf32>) -> tensor<2x2x?x?x2xf32>
  func.return %y : tensor<2x2x?x?x2xf32>
}

// Filters that read fewer channels than x has have groups.
// CHECK-LABEL: func.func @groups
// CHECK: %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 8 : (tensor<1x4x9x9x4xf32>, tensor<16x8x3x3xf32>) -> tensor<1x2x7x7x8xf32>
// CHECK: %z = graph.winograd_conv %x, %u tile = 4 block = 8 : (tensor<1x4x9x9x4xf32>, tensor<36x8x16xf32>) -> tensor<1x2x7x7x8xf32>
func.func @groups(%x: tensor<1x4x9x9x4xf32>, %w: tensor<16x8x3x3xf32>, %u: tensor<36x8x16xf32>) -> (tensor<1x2x7x7x8xf32>, tensor<1x2x7x7x8xf32>) {
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 8 : (tensor<1x4x9x9x4xf32>, tensor<16x8x3x3xf32>) -> tensor<1x2x7x7x8xf32>
  %z = graph.winograd_conv %x, %u tile = 4 block = 8 : (tensor<1x4x9x9x4xf32>, tensor<36x8x16xf32>) -> tensor<1x2x7x7x8xf32>
  func.return %y, %z : tensor<1x2x7x7x8xf32>, tensor<1x2x7x7x8xf32>
}

// Filters of one channel are those of single channels, in the blocks of x.
// CHECK-LABEL: func.func @depthwise
// CHECK: %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 4 : (tensor<?x2x9x9x4xf32>, tensor<8x1x3x3xf32>, tensor<8xf32>) -> tensor<?x2x4x4x4xf32>
// CHECK: %z = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 4] block = 4 : (tensor<?x2x9x9x4xf32>, tensor<8x1x3x3xf32>) -> tensor<?x2x7x1x4xf32>
func.func @depthwise(%x: tensor<?x2x9x9x4xf32>, %w: tensor<8x1x3x3xf32>, %b: tensor<8xf32>) -> (tensor<?x2x4x4x4xf32>, tensor<?x2x7x1x4xf32>) {
  %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 4 : (tensor<?x2x9x9x4xf32>, tensor<8x1x3x3xf32>, tensor<8xf32>) -> tensor<?x2x4x4x4xf32>
  %z = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 4] block = 4 : (tensor<?x2x9x9x4xf32>, tensor<8x1x3x3xf32>) -> tensor<?x2x7x1x4xf32>
  func.return %y, %z : tensor<?x2x4x4x4xf32>, tensor<?x2x7x1x4xf32>
}

// CHECK-LABEL: func.func @winograd
// CHECK: %u = graph.winograd_filter %w tile = 4 : (tensor<16x8x3x3xf32>) -> tensor<36x8x16xf32>
// CHECK: %y = graph.winograd_conv %x, %u, %b tile = 4 block = 8 : (tensor<?x2x9x9x4xf32>, tensor<36x8x16xf32>, tensor<16xf32>) -> tensor<?x2x7x7x8xf32>
// CHECK: %z = graph.winograd_conv %x, %u tile = 4 block = 16 : (tensor<?x2x9x9x4xf32>, tensor<36x8x16xf32>) -> tensor<?x1x7x7x16xf32>
func.func @winograd(%x: tensor<?x2x9x9x4xf32>, %w: tensor<16x8x3x3xf32>, %b: tensor<16xf32>) -> (tensor<?x2x7x7x8xf32>, tensor<?x1x7x7x16xf32>) {
  %u = graph.winograd_filter %w tile = 4 : (tensor<16x8x3x3xf32>) -> tensor<36x8x16xf32>
  %y = graph.winograd_conv %x, %u, %b tile = 4 block = 8 : (tensor<?x2x9x9x4xf32>, tensor<36x8x16xf32>, tensor<16xf32>) -> tensor<?x2x7x7x8xf32>
  %z = graph.winograd_conv %x, %u tile = 4 block = 16 : (tensor<?x2x9x9x4xf32>, tensor<36x8x16xf32>) -> tensor<?x1x7x7x16xf32>
  func.return %y, %z : tensor<?x2x7x7x8xf32>, tensor<?x1x7x7x16xf32>
}
