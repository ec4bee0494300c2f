// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @cumulative
func.func @cumulative(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // CHECK: %y = graph.cumulative sum %x axis = 1 exclusive = false reverse = true : (tensor<4x?xf32>) -> tensor<4x?xf32>
  %y = graph.cumulative sum %x axis = 1 exclusive = false reverse = true : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return %y : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @elements
func.func @elements(%x: tensor<10x4xf32>, %i: tensor<3x2xi64>) -> tensor<10x4xf32> {
  // CHECK: %g = graph.gather_elements %x, %i axis = 0 : (tensor<10x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  %g = graph.gather_elements %x, %i axis = 0 : (tensor<10x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  // CHECK: %y = graph.scatter_elements max %x, %i, %g axis = -2 : (tensor<10x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<10x4xf32>
  %y = graph.scatter_elements max %x, %i, %g axis = -2 : (tensor<10x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<10x4xf32>
  func.return %y : tensor<10x4xf32>
}

// CHECK-LABEL: func.func @places
func.func @places(%x: tensor<10x4x8xi1>, %i: tensor<?xi64>, %j: tensor<?xi32>) -> tensor<10x4x8xi1> {
  // CHECK: %g = graph.gather_nd %x at %i, %j : (tensor<10x4x8xi1>, tensor<?xi64>, tensor<?xi32>) -> tensor<?x8xi1>
  %g = graph.gather_nd %x at %i, %j : (tensor<10x4x8xi1>, tensor<?xi64>, tensor<?xi32>) -> tensor<?x8xi1>
  // CHECK: %y = graph.scatter_nd none %x, %g at %i, %j : (tensor<10x4x8xi1>, tensor<?x8xi1>, tensor<?xi64>, tensor<?xi32>) -> tensor<10x4x8xi1>
  %y = graph.scatter_nd none %x, %g at %i, %j : (tensor<10x4x8xi1>, tensor<?x8xi1>, tensor<?xi64>, tensor<?xi32>) -> tensor<10x4x8xi1>
  func.return %y : tensor<10x4x8xi1>
}

// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<4x?xf32>, %z: tensor<5x7xi8>) -> (tensor<4x?xf32>, tensor<2x7xi64>) {
  // CHECK: %y, %p = graph.sort %x axis = 1 descending = true : (tensor<4x?xf32>) -> (tensor<4x?xf32>, tensor<4x?xi64>)
  %y, %p = graph.sort %x axis = 1 descending = true : (tensor<4x?xf32>) -> (tensor<4x?xf32>, tensor<4x?xi64>)
  // CHECK: %u, %v = graph.top_k %z axis = -2 k = 2 largest = false : (tensor<5x7xi8>) -> (tensor<2x7xi8>, tensor<2x7xi64>)
  %u, %v = graph.top_k %z axis = -2 k = 2 largest = false : (tensor<5x7xi8>) -> (tensor<2x7xi8>, tensor<2x7xi64>)
  func.return %y, %v : tensor<4x?xf32>, tensor<2x7xi64>
}

// CHECK-LABEL: func.func @place
func.func @place(%x: tensor<4x?xf32>) -> (tensor<4xi64>, tensor<1x?xi64>) {
  // CHECK: %y = graph.arg_reduce max %x axis = 1 keepdims = false last = true : (tensor<4x?xf32>) -> tensor<4xi64>
  %y = graph.arg_reduce max %x axis = 1 keepdims = false last = true : (tensor<4x?xf32>) -> tensor<4xi64>
  // CHECK: %z = graph.arg_reduce min %x axis = -2 keepdims = true last = false : (tensor<4x?xf32>) -> tensor<1x?xi64>
  %z = graph.arg_reduce min %x axis = -2 keepdims = true last = false : (tensor<4x?xf32>) -> tensor<1x?xi64>
  func.return %y, %z : tensor<4xi64>, tensor<1x?xi64>
}

// CHECK-LABEL: func.func @nonzero
func.func @nonzero(%x: tensor<4x?xf32>) -> (tensor<?xi64>, tensor<?xi64>) {
  // CHECK: %i, %j, %count = graph.nonzero %x : (tensor<4x?xf32>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  %i, %j, %count = graph.nonzero %x : (tensor<4x?xf32>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  func.return %i, %j : tensor<?xi64>, tensor<?xi64>
}

// CHECK-LABEL: func.func @unique
func.func @unique(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %y, %first, %inverse, %counts, %count = graph.unique %x sorted = false : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  %y, %first, %inverse, %counts, %count = graph.unique %x sorted = false : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @boxes
func.func @boxes(%b: tensor<?x?x4xf32>, %s: tensor<?x3x?xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) -> tensor<?x3x?xi64> {
  // CHECK: %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<?x?x4xf32>, tensor<?x3x?xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<?x3x?xi64>
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<?x?x4xf32>, tensor<?x3x?xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<?x3x?xi64>
  func.return %y : tensor<?x3x?xi64>
}

// CHECK-LABEL: func.func @trees
func.func @trees(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<7xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @det
func.func @det(%x: tensor<?x4x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.det %x : (tensor<?x4x4xf32>) -> tensor<?xf32>
  %y = graph.det %x : (tensor<?x4x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
