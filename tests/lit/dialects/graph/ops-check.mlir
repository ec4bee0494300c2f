// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @check_indices
func.func @check_indices(%i: tensor<2x?xi64>, %x: tensor<4x?xf32>) -> (tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>) {
  // CHECK: %a = graph.check_indices %i of %x axis = -1 : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  %a = graph.check_indices %i of %x axis = -1 : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  // CHECK: %b = graph.check_indices %i of %x axis = 0 "edges" : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  %b = graph.check_indices %i of %x axis = 0 "edges" : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  // CHECK: %c = graph.check_indices %i below 0 "edges" : (tensor<2x?xi64>) -> tensor<2x?xi64>
  %c = graph.check_indices %i below 0 "edges" : (tensor<2x?xi64>) -> tensor<2x?xi64>
  // CHECK: %d = graph.check_indices %i below 34 : (tensor<2x?xi64>) -> tensor<2x?xi64>
  %d = graph.check_indices %i below 34 : (tensor<2x?xi64>) -> tensor<2x?xi64>
  func.return %a, %b, %c, %d : tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>
}
