// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Operators that move elements, and constants.

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<2x?x4xf32>) -> tensor<?x4x2xf32> {
  // CHECK: %y = graph.transpose %x permutation = [1, 2, 0] : (tensor<2x?x4xf32>) -> tensor<?x4x2xf32>
  %y = graph.transpose %x permutation = [1, 2, 0] : (tensor<2x?x4xf32>) -> tensor<?x4x2xf32>
  func.return %y : tensor<?x4x2xf32>
}

// CHECK-LABEL: func.func @transpose_scalar
func.func @transpose_scalar(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: %y = graph.transpose %x permutation = [] : (tensor<f32>) -> tensor<f32>
  %y = graph.transpose %x permutation = [] : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<?x28x28xf32>) -> tensor<?x784xf32> {
  // CHECK: %y = graph.reshape %x shape = [0, -1] : (tensor<?x28x28xf32>) -> tensor<?x784xf32>
  %y = graph.reshape %x shape = [0, -1] : (tensor<?x28x28xf32>) -> tensor<?x784xf32>
  func.return %y : tensor<?x784xf32>
}

// CHECK-LABEL: func.func @reshape_to_scalar
func.func @reshape_to_scalar(%x: tensor<1x1xi1>) -> tensor<i1> {
  // CHECK: %y = graph.reshape %x shape = [] : (tensor<1x1xi1>) -> tensor<i1>
  %y = graph.reshape %x shape = [] : (tensor<1x1xi1>) -> tensor<i1>
  func.return %y : tensor<i1>
}

// CHECK-LABEL: func.func @broadcast_to
func.func @broadcast_to(%x: tensor<?x1xf32>) -> tensor<4x?x3xf32> {
  // CHECK: %y = graph.broadcast_to %x shape = [4, -1, 3] : (tensor<?x1xf32>) -> tensor<4x?x3xf32>
  %y = graph.broadcast_to %x shape = [4, -1, 3] : (tensor<?x1xf32>) -> tensor<4x?x3xf32>
  func.return %y : tensor<4x?x3xf32>
}

// CHECK-LABEL: func.func @concat
func.func @concat(%a: tensor<?x3xf32>, %b: tensor<?x2xf32>) -> tensor<?x5xf32> {
  // CHECK: %y = graph.concat %a, %b axis = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
  %y = graph.concat %a, %b axis = 1 : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>
  func.return %y : tensor<?x5xf32>
}

// CHECK-LABEL: func.func @concat_one
func.func @concat_one(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.concat %a axis = -2 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.concat %a axis = -2 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<4x10xf32>) -> tensor<3x4xf32> {
  // CHECK: %y = graph.slice %x starts = [1, 9] ends = [4, -1] steps = [1, -3] : (tensor<4x10xf32>) -> tensor<3x4xf32>
  %y = graph.slice %x starts = [1, 9] ends = [4, -1] steps = [1, -3] : (tensor<4x10xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @slice_symbolic
func.func @slice_symbolic(%x: tensor<?x10xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.slice %x starts = [0, 2] ends = [9223372036854775807, 5] steps = [1, 1] : (tensor<?x10xf32>) -> tensor<?x3xf32>
  %y = graph.slice %x starts = [0, 2] ends = [9223372036854775807, 5] steps = [1, 1] : (tensor<?x10xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @gather
func.func @gather(%x: tensor<10x4xf32>, %i: tensor<?x2xi64>) -> tensor<?x2x4xf32> {
  // CHECK: %y = graph.gather %x, %i axis = 0 : (tensor<10x4xf32>, tensor<?x2xi64>) -> tensor<?x2x4xf32>
  %y = graph.gather %x, %i axis = 0 : (tensor<10x4xf32>, tensor<?x2xi64>) -> tensor<?x2x4xf32>
  func.return %y : tensor<?x2x4xf32>
}

// CHECK-LABEL: func.func @gather_one
func.func @gather_one(%x: tensor<10x4xi8>, %i: tensor<i32>) -> tensor<10xi8> {
  // CHECK: %y = graph.gather %x, %i axis = -1 : (tensor<10x4xi8>, tensor<i32>) -> tensor<10xi8>
  %y = graph.gather %x, %i axis = -1 : (tensor<10x4xi8>, tensor<i32>) -> tensor<10xi8>
  func.return %y : tensor<10xi8>
}

// CHECK-LABEL: func.func @constant_splat
func.func @constant_splat() -> tensor<2x3xf32> {
  // CHECK: %y = graph.constant dense<5.000000e-01> : tensor<2x3xf32>
  %y = graph.constant dense<5.000000e-01> : tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @constant_literal
func.func @constant_literal() -> tensor<3xi64> {
  // CHECK: %y = graph.constant dense<[1, -2, 3]> : tensor<3xi64>
  %y = graph.constant dense<[1, -2, 3]> : tensor<3xi64>
  func.return %y : tensor<3xi64>
}

// CHECK-LABEL: func.func @constant_resource
func.func @constant_resource() -> tensor<128x784xf32> {
  // CHECK: %y = graph.constant dense_resource<w0> : tensor<128x784xf32>
  %y = graph.constant dense_resource<w0> : tensor<128x784xf32>
  func.return %y : tensor<128x784xf32>
}

// CHECK-LABEL: func.func @arange
func.func @arange(%n: tensor<i64>) -> tensor<?xi64> {
  // CHECK: %y = graph.arange %n at_most = 100 : (tensor<i64>) -> tensor<?xi64>
  %y = graph.arange %n at_most = 100 : (tensor<i64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

// Without a bound, memory is allocated once the size is known.
// CHECK-LABEL: func.func @arange_of_any_size
func.func @arange_of_any_size(%n: tensor<i64>) -> tensor<?xi64> {
  // CHECK: %y = graph.arange %n : (tensor<i64>) -> tensor<?xi64>
  %y = graph.arange %n : (tensor<i64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

// CHECK-LABEL: func.func @dim
func.func @dim(%x: tensor<?x4xf32>) -> tensor<i64> {
  // CHECK: %n = graph.dim %x axis = -2 : (tensor<?x4xf32>) -> tensor<i64>
  %n = graph.dim %x axis = -2 : (tensor<?x4xf32>) -> tensor<i64>
  func.return %n : tensor<i64>
}

// CHECK-LABEL: func.func @dynamic_reshape
func.func @dynamic_reshape(%x: tensor<?xf32>, %n: tensor<i64>, %m: tensor<i64>) -> tensor<?x4x?xf32> {
  // CHECK: %y = graph.dynamic_reshape %x to %n, %m shape = [-1, 4, -1] : (tensor<?xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4x?xf32>
  %y = graph.dynamic_reshape %x to %n, %m shape = [-1, 4, -1] : (tensor<?xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4x?xf32>
  func.return %y : tensor<?x4x?xf32>
}

// CHECK-LABEL: func.func @dynamic_broadcast
func.func @dynamic_broadcast(%x: tensor<3xf32>, %n: tensor<i64>) -> tensor<5x3xf32> {
  // CHECK: %y = graph.dynamic_broadcast %x to %n shape = [-1, 3] : (tensor<3xf32>, tensor<i64>) -> tensor<5x3xf32>
  %y = graph.dynamic_broadcast %x to %n shape = [-1, 3] : (tensor<3xf32>, tensor<i64>) -> tensor<5x3xf32>
  func.return %y : tensor<5x3xf32>
}

// CHECK-LABEL: func.func @dynamic_slice
func.func @dynamic_slice(%x: tensor<?x4xf32>, %a: tensor<i64>, %s: tensor<i64>, %n: tensor<i64>) -> tensor<?x4xf32> {
  // CHECK: %y = graph.dynamic_slice %x from %a by %s take %n axis = 0 : (tensor<?x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
  %y = graph.dynamic_slice %x from %a by %s take %n axis = 0 : (tensor<?x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @random_uniform
func.func @random_uniform(%seeds: tensor<?x3xi64>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.random_uniform %seeds : (tensor<?x3xi64>) -> tensor<?x3xf32>
  %y = graph.random_uniform %seeds : (tensor<?x3xi64>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}
