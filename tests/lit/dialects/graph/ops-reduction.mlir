// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Contractions and reductions.

// CHECK-LABEL: func.func @dense
func.func @dense(%x: tensor<?x784xf32>, %w: tensor<10x784xf32>, %b: tensor<10xf32>) -> tensor<?x10xf32> {
  // CHECK: %y = graph.dense %x, %w, %b : (tensor<?x784xf32>, tensor<10x784xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  %y = graph.dense %x, %w, %b : (tensor<?x784xf32>, tensor<10x784xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}

// CHECK-LABEL: func.func @dense_without_bias
func.func @dense_without_bias(%x: tensor<2x4x7xf16>, %w: tensor<3x7xf16>) -> tensor<2x4x3xf16> {
  // CHECK: %y = graph.dense %x, %w : (tensor<2x4x7xf16>, tensor<3x7xf16>) -> tensor<2x4x3xf16>
  %y = graph.dense %x, %w : (tensor<2x4x7xf16>, tensor<3x7xf16>) -> tensor<2x4x3xf16>
  func.return %y : tensor<2x4x3xf16>
}

// CHECK-LABEL: func.func @dense_of_vector
func.func @dense_of_vector(%x: tensor<7xi32>, %w: tensor<3x7xi32>) -> tensor<3xi32> {
  // CHECK: %y = graph.dense %x, %w : (tensor<7xi32>, tensor<3x7xi32>) -> tensor<3xi32>
  %y = graph.dense %x, %w : (tensor<7xi32>, tensor<3x7xi32>) -> tensor<3xi32>
  func.return %y : tensor<3xi32>
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<8x1x4x3xf32>, %b: tensor<5x3x?xf32>) -> tensor<8x5x4x?xf32> {
  // CHECK: %y = graph.matmul %a, %b : (tensor<8x1x4x3xf32>, tensor<5x3x?xf32>) -> tensor<8x5x4x?xf32>
  %y = graph.matmul %a, %b : (tensor<8x1x4x3xf32>, tensor<5x3x?xf32>) -> tensor<8x5x4x?xf32>
  func.return %y : tensor<8x5x4x?xf32>
}

// CHECK-LABEL: func.func @reduce_sum
func.func @reduce_sum(%x: tensor<2x?x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.reduce sum %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  %y = graph.reduce sum %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @reduce_mean
func.func @reduce_mean(%x: tensor<2x?x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.reduce mean %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  %y = graph.reduce mean %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @reduce_max
func.func @reduce_max(%x: tensor<2x?x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.reduce max %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  %y = graph.reduce max %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @reduce_neutral
func.func @reduce_neutral(%x: tensor<0x4xf32>) -> tensor<4xf32> {
  // CHECK: %y = graph.reduce max %x axes = [0] keepdims = false neutral : (tensor<0x4xf32>) -> tensor<4xf32>
  %y = graph.reduce max %x axes = [0] keepdims = false neutral : (tensor<0x4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_min
func.func @reduce_min(%x: tensor<2x?x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.reduce min %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  %y = graph.reduce min %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @reduce_prod
func.func @reduce_prod(%x: tensor<2x?x4xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.reduce prod %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  %y = graph.reduce prod %x axes = [0, -1] keepdims = false : (tensor<2x?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @reduce_keeping_dimensions
func.func @reduce_keeping_dimensions(%x: tensor<2x?x4xi64>) -> tensor<2x1x4xi64> {
  // CHECK: %y = graph.reduce sum %x axes = [1] keepdims = true : (tensor<2x?x4xi64>) -> tensor<2x1x4xi64>
  %y = graph.reduce sum %x axes = [1] keepdims = true : (tensor<2x?x4xi64>) -> tensor<2x1x4xi64>
  func.return %y : tensor<2x1x4xi64>
}

// CHECK-LABEL: func.func @reduce_nothing
func.func @reduce_nothing(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: %y = graph.reduce sum %x axes = [] keepdims = false : (tensor<2xf32>) -> tensor<2xf32>
  %y = graph.reduce sum %x axes = [] keepdims = false : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
  // CHECK: %y = graph.softmax %x axis = -1 : (tensor<?x10xf32>) -> tensor<?x10xf32>
  %y = graph.softmax %x axis = -1 : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}

// CHECK-LABEL: func.func @log_softmax
func.func @log_softmax(%x: tensor<?x10xf64>) -> tensor<?x10xf64> {
  // CHECK: %y = graph.log_softmax %x axis = 0 : (tensor<?x10xf64>) -> tensor<?x10xf64>
  %y = graph.log_softmax %x axis = 0 : (tensor<?x10xf64>) -> tensor<?x10xf64>
  func.return %y : tensor<?x10xf64>
}
