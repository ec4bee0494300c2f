// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Operators on the bits of integers.

// CHECK-LABEL: func.func @bitwise_and(
func.func @bitwise_and(%a: tensor<4x?xi32>, %b: tensor<1xi32>) -> tensor<4x?xi32> {
  // CHECK: %y = graph.bitwise_and %a, %b : (tensor<4x?xi32>, tensor<1xi32>) -> tensor<4x?xi32>
  %y = graph.bitwise_and %a, %b : (tensor<4x?xi32>, tensor<1xi32>) -> tensor<4x?xi32>
  func.return %y : tensor<4x?xi32>
}

// CHECK-LABEL: func.func @bitwise_or(
func.func @bitwise_or(%a: tensor<3xui8>, %b: tensor<3xui8>) -> tensor<3xui8> {
  // CHECK: %y = graph.bitwise_or %a, %b : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  %y = graph.bitwise_or %a, %b : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  func.return %y : tensor<3xui8>
}

// CHECK-LABEL: func.func @bitwise_xor(
func.func @bitwise_xor(%a: tensor<2x3xi1>, %b: tensor<3xi1>) -> tensor<2x3xi1> {
  // CHECK: %y = graph.bitwise_xor %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  %y = graph.bitwise_xor %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %y : tensor<2x3xi1>
}

// CHECK-LABEL: func.func @bitwise_not(
func.func @bitwise_not(%x: tensor<?xi64>) -> tensor<?xi64> {
  // CHECK: %y = graph.bitwise_not %x : (tensor<?xi64>) -> tensor<?xi64>
  %y = graph.bitwise_not %x : (tensor<?xi64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

// CHECK-LABEL: func.func @shift_left(
func.func @shift_left(%a: tensor<4x?xui32>, %b: tensor<1xui32>) -> tensor<4x?xui32> {
  // CHECK: %y = graph.shift_left %a, %b : (tensor<4x?xui32>, tensor<1xui32>) -> tensor<4x?xui32>
  %y = graph.shift_left %a, %b : (tensor<4x?xui32>, tensor<1xui32>) -> tensor<4x?xui32>
  func.return %y : tensor<4x?xui32>
}

// CHECK-LABEL: func.func @shift_right(
func.func @shift_right(%a: tensor<3xi16>, %b: tensor<i16>) -> tensor<3xi16> {
  // CHECK: %y = graph.shift_right %a, %b : (tensor<3xi16>, tensor<i16>) -> tensor<3xi16>
  %y = graph.shift_right %a, %b : (tensor<3xi16>, tensor<i16>) -> tensor<3xi16>
  func.return %y : tensor<3xi16>
}
