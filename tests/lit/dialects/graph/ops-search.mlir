// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @one_row
func.func @one_row(%a: tensor<9xf32>, %v: tensor<?x4xf32>) -> tensor<?x4xi64> {
  // CHECK: %p = graph.searchsorted %a, %v right = true : (tensor<9xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
  %p = graph.searchsorted %a, %v right = true : (tensor<9xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
  func.return %p : tensor<?x4xi64>
}

// CHECK-LABEL: func.func @rows
func.func @rows(%a: tensor<3x?xi8>, %v: tensor<3x5xi8>) -> tensor<3x5xi64> {
  // CHECK: %p = graph.searchsorted %a, %v right = false : (tensor<3x?xi8>, tensor<3x5xi8>) -> tensor<3x5xi64>
  %p = graph.searchsorted %a, %v right = false : (tensor<3x?xi8>, tensor<3x5xi8>) -> tensor<3x5xi64>
  func.return %p : tensor<3x5xi64>
}
