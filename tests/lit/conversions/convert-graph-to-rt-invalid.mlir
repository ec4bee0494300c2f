// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-graph-to-rt

func.func @operator(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{graph.relu: cannot be converted to the run time}}
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @nameless(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error-re @+1 {{graph.call_packed: size "_1" is not that of an argument {{.*}}; name it in `dims`}}
  %0 = graph.call_packed "env.any"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

// -----

func.func @short(%x: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{kernel best: a size is too small, expected 4 or more, got 3}}
  %0 = graph.call_dps @best(%x) : (tensor<3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
loop.kernel @best(%x: memref<?xf32> {loop.sizes = ["x0.0 >= 4"]}) -> (%y: memref<4xf32>) {
}

// -----

// Without `loop.packing` an argument has the sizes of the constant.
func.func @unpacked() -> tensor<4xf32> {
  %w = graph.constant dense<1.0> : tensor<5x3xf32>
  // expected-error @+1 {{graph.call_dps: argument 0 of @dense has another type, expected memref<1x3x8xf32>, got memref<5x3xf32>}}
  %0 = graph.call_dps @dense(%w) : (tensor<5x3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
loop.kernel @dense(%w: memref<1x3x8xf32> {loop.constant}) -> (%y: memref<4xf32>) {
}
