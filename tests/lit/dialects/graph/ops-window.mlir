// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Windows, and what is around a tensor.

// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<?x3x9x9xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<8xf32>) -> tensor<?x8x4x4xf32> {
  // CHECK: %y = graph.conv %x, %w, %b strides = [2, 2] dilations = [1, 1] groups = 1 : (tensor<?x3x9x9xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<?x8x4x4xf32>
  %y = graph.conv %x, %w, %b strides = [2, 2] dilations = [1, 1] groups = 1 : (tensor<?x3x9x9xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<?x8x4x4xf32>
  func.return %y : tensor<?x8x4x4xf32>
}

// CHECK-LABEL: func.func @conv_of_groups
func.func @conv_of_groups(%x: tensor<?x6x9x9xf32>, %w: tensor<8x3x3x2xf32>) -> tensor<?x8x5x8xf32> {
  // CHECK: %y = graph.conv %x, %w strides = [1, 1] dilations = [2, 1] groups = 2 : (tensor<?x6x9x9xf32>, tensor<8x3x3x2xf32>) -> tensor<?x8x5x8xf32>
  %y = graph.conv %x, %w strides = [1, 1] dilations = [2, 1] groups = 2 : (tensor<?x6x9x9xf32>, tensor<8x3x3x2xf32>) -> tensor<?x8x5x8xf32>
  func.return %y : tensor<?x8x5x8xf32>
}

// CHECK-LABEL: func.func @conv_of_a_sequence
func.func @conv_of_a_sequence(%x: tensor<2x6x9xf16>, %w: tensor<8x6x4xf16>) -> tensor<2x8x2xf16> {
  // CHECK: %y = graph.conv %x, %w strides = [3] dilations = [1] groups = 1 : (tensor<2x6x9xf16>, tensor<8x6x4xf16>) -> tensor<2x8x2xf16>
  %y = graph.conv %x, %w strides = [3] dilations = [1] groups = 1 : (tensor<2x6x9xf16>, tensor<8x6x4xf16>) -> tensor<2x8x2xf16>
  func.return %y : tensor<2x8x2xf16>
}

// CHECK-LABEL: func.func @conv_of_a_volume
func.func @conv_of_a_volume(%x: tensor<2x6x5x4x3xi32>, %w: tensor<6x1x2x2x2xi32>) -> tensor<2x6x4x3x2xi32> {
  // CHECK: %y = graph.conv %x, %w strides = [1, 1, 1] dilations = [1, 1, 1] groups = 6 : (tensor<2x6x5x4x3xi32>, tensor<6x1x2x2x2xi32>) -> tensor<2x6x4x3x2xi32>
  %y = graph.conv %x, %w strides = [1, 1, 1] dilations = [1, 1, 1] groups = 6 : (tensor<2x6x5x4x3xi32>, tensor<6x1x2x2x2xi32>) -> tensor<2x6x4x3x2xi32>
  func.return %y : tensor<2x6x4x3x2xi32>
}

// CHECK-LABEL: func.func @conv_of_points
func.func @conv_of_points(%x: tensor<2x6x?x?xf32>, %w: tensor<8x6x1x1xf32>, %b: tensor<8xf32>) -> tensor<2x8x?x?xf32> {
  // CHECK: %y = graph.conv %x, %w, %b strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x?x?xf32>, tensor<8x6x1x1xf32>, tensor<8xf32>) -> tensor<2x8x?x?xf32>
  %y = graph.conv %x, %w, %b strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x?x?xf32>, tensor<8x6x1x1xf32>, tensor<8xf32>) -> tensor<2x8x?x?xf32>
  func.return %y : tensor<2x8x?x?xf32>
}

// CHECK-LABEL: func.func @conv_of_symbolic_sizes
func.func @conv_of_symbolic_sizes(%x: tensor<?x3x?x?xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<?x8x?x?xf32> {
  // CHECK: %y = graph.conv %x, %w strides = [2, 2] dilations = [1, 1] groups = 1 : (tensor<?x3x?x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x?x?xf32>
  %y = graph.conv %x, %w strides = [2, 2] dilations = [1, 1] groups = 1 : (tensor<?x3x?x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x?x?xf32>
  func.return %y : tensor<?x8x?x?xf32>
}

// CHECK-LABEL: func.func @pool_of_symbolic_sizes
func.func @pool_of_symbolic_sizes(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // CHECK: %y = graph.pool max %x window = [1] strides = [2] dilations = [1] : (tensor<4x?xf32>) -> tensor<4x?xf32>
  %y = graph.pool max %x window = [1] strides = [2] dilations = [1] : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return %y : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @pool_max
func.func @pool_max(%x: tensor<?x8x6x6xf32>) -> tensor<?x8x3x3xf32> {
  // CHECK: %y = graph.pool max %x window = [2, 2] strides = [2, 2] dilations = [1, 1] : (tensor<?x8x6x6xf32>) -> tensor<?x8x3x3xf32>
  %y = graph.pool max %x window = [2, 2] strides = [2, 2] dilations = [1, 1] : (tensor<?x8x6x6xf32>) -> tensor<?x8x3x3xf32>
  func.return %y : tensor<?x8x3x3xf32>
}

// CHECK-LABEL: func.func @pool_mean
func.func @pool_mean(%x: tensor<?x8x7xf32>) -> tensor<?x8x3xf32> {
  // CHECK: %y = graph.pool mean %x window = [3] strides = [1] dilations = [2] : (tensor<?x8x7xf32>) -> tensor<?x8x3xf32>
  %y = graph.pool mean %x window = [3] strides = [1] dilations = [2] : (tensor<?x8x7xf32>) -> tensor<?x8x3xf32>
  func.return %y : tensor<?x8x3xf32>
}

// CHECK-LABEL: func.func @pool_sum
func.func @pool_sum(%x: tensor<4xi64>) -> tensor<1xi64> {
  // CHECK: %y = graph.pool sum %x window = [4] strides = [1] dilations = [1] : (tensor<4xi64>) -> tensor<1xi64>
  %y = graph.pool sum %x window = [4] strides = [1] dilations = [1] : (tensor<4xi64>) -> tensor<1xi64>
  func.return %y : tensor<1xi64>
}

// CHECK-LABEL: func.func @pool_min
func.func @pool_min(%x: tensor<4x4xi8>) -> tensor<4x3xi8> {
  // CHECK: %y = graph.pool min %x window = [1, 2] strides = [1, 1] dilations = [1, 1] : (tensor<4x4xi8>) -> tensor<4x3xi8>
  %y = graph.pool min %x window = [1, 2] strides = [1, 1] dilations = [1, 1] : (tensor<4x4xi8>) -> tensor<4x3xi8>
  func.return %y : tensor<4x3xi8>
}

// CHECK-LABEL: func.func @pool_prod
func.func @pool_prod(%x: tensor<4x4xf64>) -> tensor<4x3xf64> {
  // CHECK: %y = graph.pool prod %x window = [1, 2] strides = [1, 1] dilations = [1, 1] : (tensor<4x4xf64>) -> tensor<4x3xf64>
  %y = graph.pool prod %x window = [1, 2] strides = [1, 1] dilations = [1, 1] : (tensor<4x4xf64>) -> tensor<4x3xf64>
  func.return %y : tensor<4x3xf64>
}

// CHECK-LABEL: func.func @pad
func.func @pad(%x: tensor<?x3xf32>) -> tensor<?x6xf32> {
  // CHECK: %y = graph.pad constant %x low = [0, 1] high = [0, 2] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x6xf32>
  %y = graph.pad constant %x low = [0, 1] high = [0, 2] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}

// CHECK-LABEL: func.func @pad_with_infinity
func.func @pad_with_infinity(%x: tensor<2x3xf32>) -> tensor<3x4xf32> {
  // CHECK: %y = graph.pad constant %x low = [0, 1] high = [1, 0] value = 0xfff0000000000000 : f64 : (tensor<2x3xf32>) -> tensor<3x4xf32>
  %y = graph.pad constant %x low = [0, 1] high = [1, 0] value = 0xfff0000000000000 : f64 : (tensor<2x3xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @pad_of_integers
func.func @pad_of_integers(%x: tensor<?x3xi8>) -> tensor<?x3xi8> {
  // CHECK: %y = graph.pad constant %x low = [1, 0] high = [0, 0] value = -128 : i64 : (tensor<?x3xi8>) -> tensor<?x3xi8>
  %y = graph.pad constant %x low = [1, 0] high = [0, 0] value = -128 : i64 : (tensor<?x3xi8>) -> tensor<?x3xi8>
  func.return %y : tensor<?x3xi8>
}

// CHECK-LABEL: func.func @pad_edge
func.func @pad_edge(%x: tensor<?x3xf32>) -> tensor<?x10xf32> {
  // CHECK: %y = graph.pad edge %x low = [0, 5] high = [0, 2] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x10xf32>
  %y = graph.pad edge %x low = [0, 5] high = [0, 2] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}

// CHECK-LABEL: func.func @pad_reflect
func.func @pad_reflect(%x: tensor<?x3xf32>) -> tensor<?x6xf32> {
  // CHECK: %y = graph.pad reflect %x low = [0, 2] high = [0, 1] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x6xf32>
  %y = graph.pad reflect %x low = [0, 2] high = [0, 1] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}

// CHECK-LABEL: func.func @pad_wrap
func.func @pad_wrap(%x: tensor<?x3xi1>) -> tensor<?x14xi1> {
  // CHECK: %y = graph.pad wrap %x low = [0, 4] high = [0, 7] value = 0 : i64 : (tensor<?x3xi1>) -> tensor<?x14xi1>
  %y = graph.pad wrap %x low = [0, 4] high = [0, 7] value = 0 : i64 : (tensor<?x3xi1>) -> tensor<?x14xi1>
  func.return %y : tensor<?x14xi1>
}

// CHECK-LABEL: func.func @pad_same
func.func @pad_same(%x: tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32> {
  // CHECK: %y = graph.pad_same %x extents = [3, 3] strides = [2, 1] more_after = true value = 0.000000e+00 : f64 : (tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>
  %y = graph.pad_same %x extents = [3, 3] strides = [2, 1] more_after = true value = 0.0 : f64 : (tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>
  func.return %y : tensor<?x3x?x?xf32>
}
