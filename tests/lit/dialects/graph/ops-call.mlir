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

// Sizes that results or arguments of a call hold.
// CHECK-LABEL: func.func @computed_sizes
func.func @computed_sizes(%x: tensor<?xf32> {graph.dims = ["n"]}) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %y, %k = graph.call_packed "env.some"(%x) dims {{\[\[}}"k"], []] sizes [#graph.size<"k" in result 1 at_most "n">] : (tensor<?xf32>) -> (tensor<?xf32>, tensor<i64>)
  %y, %k = graph.call_packed "env.some"(%x) dims [["k"], []] sizes [#graph.size<"k" in result 1 at_most "n">] : (tensor<?xf32>) -> (tensor<?xf32>, tensor<i64>)
  // CHECK: %z = graph.call_dps @kernel(%y, %k) dims {{\[\[}}"m"{{\]\]}} sizes [#graph.size<"m" in argument 1 at_most "4">] : (tensor<?xf32>, tensor<i64>) -> tensor<?xf32>
  %z = graph.call_dps @kernel(%y, %k) dims [["m"]] sizes [#graph.size<"m" in argument 1 at_most "4">] : (tensor<?xf32>, tensor<i64>) -> tensor<?xf32>
  func.return %y, %z : tensor<?xf32>, tensor<?xf32>
}
