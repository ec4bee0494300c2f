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
