// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @pad_nothing(
// CHECK-NEXT: func.return %x : tensor<?x3xf32>
func.func @pad_nothing(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = graph.pad edge %x low = [0, 0] high = [0, 0] value = 0.0 : f64 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @pad_twice(
// CHECK-NEXT: [[Y:%.+]] = graph.pad constant %x low = [1, 2] high = [3, 1] value = 0.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x6xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<?x6xf32>
func.func @pad_twice(%x: tensor<?x3xf32>) -> tensor<?x6xf32> {
  %z = graph.pad constant %x low = [1, 0] high = [1, 1] value = 0.0 : f64 : (tensor<?x3xf32>) -> tensor<?x4xf32>
  %y = graph.pad constant %z low = [0, 2] high = [2, 0] value = 0.0 : f64 : (tensor<?x4xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}

// CHECK-LABEL: func.func @keep_pads_with_two_values(
// CHECK-NEXT: %z = graph.pad
// CHECK-NEXT: %y = graph.pad
// CHECK-NEXT: func.return %y : tensor<5xf32>
func.func @keep_pads_with_two_values(%x: tensor<3xf32>) -> tensor<5xf32> {
  %z = graph.pad constant %x low = [1] high = [0] value = 0.0 : f64 : (tensor<3xf32>) -> tensor<4xf32>
  %y = graph.pad constant %z low = [1] high = [0] value = -0.0 : f64 : (tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// CHECK-LABEL: func.func @keep_pads_that_mirror(
// CHECK-NEXT: %z = graph.pad
// CHECK-NEXT: %y = graph.pad
// CHECK-NEXT: func.return %y : tensor<5xf32>
func.func @keep_pads_that_mirror(%x: tensor<3xf32>) -> tensor<5xf32> {
  %z = graph.pad reflect %x low = [1] high = [0] value = 0.0 : f64 : (tensor<3xf32>) -> tensor<4xf32>
  %y = graph.pad reflect %z low = [1] high = [0] value = 0.0 : f64 : (tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// CHECK-LABEL: func.func @pool_nothing(
// CHECK-NEXT: func.return %x : tensor<?x3x4xf32>
func.func @pool_nothing(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %y = graph.pool max %x window = [1, 1] strides = [1, 1] dilations = [2, 1] : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  func.return %y : tensor<?x3x4xf32>
}

// A sum begins at 0.0, which -0.0 does not survive.
// CHECK-LABEL: func.func @keep_sum_of_one(
// CHECK-NEXT: %y = graph.pool mean
func.func @keep_sum_of_one(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %y = graph.pool mean %x window = [1, 1] strides = [1, 1] dilations = [2, 1] : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  func.return %y : tensor<?x3x4xf32>
}

// CHECK-LABEL: func.func @keep_pool_that_leaves_out(
// CHECK-NEXT: %y = graph.pool
// CHECK-NEXT: func.return %y : tensor<?x3x2xf32>
func.func @keep_pool_that_leaves_out(%x: tensor<?x3x4xf32>) -> tensor<?x3x2xf32> {
  %y = graph.pool mean %x window = [1, 1] strides = [1, 2] dilations = [1, 1] : (tensor<?x3x4xf32>) -> tensor<?x3x2xf32>
  func.return %y : tensor<?x3x2xf32>
}

// CHECK-LABEL: func.func @pad_same_known
func.func @pad_same_known(%x: tensor<?x9xf32>) -> tensor<?x12xf32> {
  // CHECK-NEXT: %y = graph.pad constant %x low = [0, 2] high = [0, 1] value = 1.000000e+00 : f64
  %y = graph.pad_same %x extents = [4] strides = [2] more_after = false value = 1.0 : f64 : (tensor<?x9xf32>) -> tensor<?x12xf32>
  func.return %y : tensor<?x12xf32>
}

// CHECK-LABEL: func.func @pad_same_unknown
func.func @pad_same_unknown(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // CHECK-NEXT: %y = graph.pad_same
  %y = graph.pad_same %x extents = [4] strides = [2] more_after = false value = 1.0 : f64 : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return %y : tensor<4x?xf32>
}
