// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Calls of kernels and of registered functions.

func.func private @kernel(memref<?x4xf32>, memref<4xf32>)

// CHECK-LABEL: func.func @call_dps
func.func @call_dps(%x: tensor<?x4xf32>) -> tensor<4xf32> {
  // CHECK: %y = graph.call_dps @kernel(%x) : (tensor<?x4xf32>) -> tensor<4xf32>
  %y = graph.call_dps @kernel(%x) : (tensor<?x4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @call_dps_with_sizes
func.func @call_dps_with_sizes(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: %y = graph.call_dps @kernel(%x) dims {{\[\[}}"batch", ""{{\]\]}} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.call_dps @kernel(%x) dims [["batch", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @call_packed
func.func @call_packed(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: %y = graph.call_packed "env.linear"(%x) dims {{\[\[}}"batch", ""{{\]\]}} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.call_packed "env.linear"(%x) dims [["batch", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @call_packed_alone
func.func @call_packed_alone() -> tensor<4xf32> {
  // CHECK: %y = graph.call_packed "env.noise"() : () -> tensor<4xf32>
  %y = graph.call_packed "env.noise"() : () -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @call_packed_twice
func.func @call_packed_twice(%x: tensor<4xf32>) -> tensor<2xf32> {
  // CHECK: %y, %z = graph.call_packed "env.split"(%x) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %y, %z = graph.call_packed "env.split"(%x) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return %y : tensor<2xf32>
}
