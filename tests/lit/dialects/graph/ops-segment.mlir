// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @segments
func.func @segments(%x: tensor<?x4xf32>, %o: tensor<11xi64>) -> tensor<10x4xf32> {
  // CHECK: %y = graph.segment_reduce mean %x, %o : (tensor<?x4xf32>, tensor<11xi64>) -> tensor<10x4xf32>
  %y = graph.segment_reduce mean %x, %o : (tensor<?x4xf32>, tensor<11xi64>) -> tensor<10x4xf32>
  func.return %y : tensor<10x4xf32>
}

// CHECK-LABEL: func.func @histogram
func.func @histogram(%x: tensor<4x?xi32>, %w: tensor<4x?xf64>) -> (tensor<5xi64>, tensor<5xf64>) {
  // CHECK: %y = graph.histogram %x bins = 5 : (tensor<4x?xi32>) -> tensor<5xi64>
  %y = graph.histogram %x bins = 5 : (tensor<4x?xi32>) -> tensor<5xi64>
  // CHECK: %z = graph.histogram %x weights %w bins = 5 : (tensor<4x?xi32>, tensor<4x?xf64>) -> tensor<5xf64>
  %z = graph.histogram %x weights %w bins = 5 : (tensor<4x?xi32>, tensor<4x?xf64>) -> tensor<5xf64>
  func.return %y, %z : tensor<5xi64>, tensor<5xf64>
}

// CHECK-LABEL: func.func @one_hot
func.func @one_hot(%i: tensor<?x3xi64>, %v: tensor<2xi8>) -> tensor<?x5x3xi8> {
  // CHECK: %y = graph.one_hot %i, %v axis = -2 depth = 5 : (tensor<?x3xi64>, tensor<2xi8>) -> tensor<?x5x3xi8>
  %y = graph.one_hot %i, %v axis = -2 depth = 5 : (tensor<?x3xi64>, tensor<2xi8>) -> tensor<?x5x3xi8>
  func.return %y : tensor<?x5x3xi8>
}
