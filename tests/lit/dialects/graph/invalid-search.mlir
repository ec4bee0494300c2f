// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<9xf32>, %v: tensor<4xf64>) {
  // expected-error @+1 {{graph.searchsorted: element types differ, expected f32, got f64}}
  %p = graph.searchsorted %a, %v right = false : (tensor<9xf32>, tensor<4xf64>) -> tensor<4xi64>
  func.return
}

// -----

func.func @f(%a: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error @+1 {{graph.searchsorted: there is no row to search in, expected rank >= 1, got rank 0}}
  %p = graph.searchsorted %a, %v right = false : (tensor<f32>, tensor<4xf32>) -> tensor<4xi64>
  func.return
}

// -----

func.func @f(%a: tensor<3x9xf32>, %v: tensor<4xf32>) {
  // expected-error @+1 {{graph.searchsorted: values have the wrong rank, expected 2, got 1}}
  %p = graph.searchsorted %a, %v right = false : (tensor<3x9xf32>, tensor<4xf32>) -> tensor<4xi64>
  func.return
}

// -----

func.func @f(%a: tensor<3x9xf32>, %v: tensor<2x4xf32>) {
  // expected-error @+1 {{graph.searchsorted: values have other rows, expected 3, got 2}}
  %p = graph.searchsorted %a, %v right = false : (tensor<3x9xf32>, tensor<2x4xf32>) -> tensor<2x4xi64>
  func.return
}
