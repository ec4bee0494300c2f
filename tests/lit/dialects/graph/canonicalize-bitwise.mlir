// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @not_twice(
// CHECK-NEXT: func.return %x : tensor<?xui8>
func.func @not_twice(%x: tensor<?xui8>) -> tensor<?xui8> {
  %a = graph.bitwise_not %x : (tensor<?xui8>) -> tensor<?xui8>
  %y = graph.bitwise_not %a : (tensor<?xui8>) -> tensor<?xui8>
  func.return %y : tensor<?xui8>
}

// CHECK-LABEL: func.func @of_truth_values(
// CHECK-NEXT: %a = graph.logical_and %x, %y
// CHECK-NEXT: %b = graph.logical_or %a, %y
// CHECK-NEXT: %c = graph.logical_xor %b, %x
// CHECK-NEXT: %d = graph.logical_not %c
// CHECK-NEXT: func.return %d : tensor<3xi1>
func.func @of_truth_values(%x: tensor<3xi1>, %y: tensor<3xi1>) -> tensor<3xi1> {
  %a = graph.bitwise_and %x, %y : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %b = graph.bitwise_or %a, %y : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %c = graph.bitwise_xor %b, %x : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %d = graph.bitwise_not %c : (tensor<3xi1>) -> tensor<3xi1>
  func.return %d : tensor<3xi1>
}

// CHECK-LABEL: func.func @keep_those_of_integers(
// CHECK-NEXT: %a = graph.bitwise_not %x
// CHECK-NEXT: %y = graph.bitwise_and %a, %x
// CHECK-NEXT: func.return %y : tensor<3xi8>
func.func @keep_those_of_integers(%x: tensor<3xi8>) -> tensor<3xi8> {
  %a = graph.bitwise_not %x : (tensor<3xi8>) -> tensor<3xi8>
  %y = graph.bitwise_and %a, %x : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  func.return %y : tensor<3xi8>
}
