// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.silu %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.softplus %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.log_sigmoid %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.mish %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.softsign %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.elu %x alpha = 1.000000e+00 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.selu %x alpha = 1.670000e+00 gamma = 1.050000e+00 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.celu %x alpha = 5.000000e-01 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.hard_sigmoid %x alpha = 2.000000e-01 beta = 5.000000e-01 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.hard_swish %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.elu: result type differs, expected tensor<3xf32>, got tensor<4xf32>}}
  %y = graph.elu %x alpha = 1.0 : (tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %slope: tensor<4xf32>) {
  // expected-error @+1 {{graph.prelu: shapes [4, 3] and [4] do not broadcast, expected 3, got 4}}
  %y = graph.prelu %x, %slope : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>, %slope: tensor<3xf64>) {
  // expected-error @+1 {{graph.prelu: element types differ, expected f32, got f64}}
  %y = graph.prelu %x, %slope : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>
  func.return
}
