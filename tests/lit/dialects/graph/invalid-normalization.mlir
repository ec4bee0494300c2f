// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{graph.layer_norm: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.layer_norm %x axis = 2 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{graph.layer_norm: epsilon out of range, expected 0 <= epsilon < inf, got -1.0}}
  %y = graph.layer_norm %x axis = 1 epsilon = -1.0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{graph.layer_norm: scale of shape [2] does not broadcast to x, expected 3, got 2}}
  %y = graph.layer_norm %x scale %s : tensor<2xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>, %s: tensor<1x3xf32>) {
  // expected-error @+1 {{graph.layer_norm: bias of shape [1, 3] does not broadcast to x, expected rank <= 1, got rank 2}}
  %y = graph.layer_norm %x bias %s : tensor<1x3xf32> axis = 0 epsilon = 1.0e-05 : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf64>) {
  // expected-error @+1 {{graph.layer_norm: element types differ, expected f32, got f64}}
  %y = graph.layer_norm %x scale %s : tensor<3xf64> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{graph.instance_norm: x has nothing but channels, expected rank >= 3, got rank 2}}
  %y = graph.instance_norm %x axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>) {
  // expected-error @+1 {{graph.instance_norm: the channels are the dimension of the batch, expected axis != 0, got 0}}
  %y = graph.instance_norm %x axis = 0 epsilon = 1.0e-05 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{graph.instance_norm: length of scale differs from the channels, expected 3, got 4}}
  %y = graph.instance_norm %x scale %s : tensor<4xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x4xf32>) {
  // expected-error @+1 {{graph.group_norm: groups do not divide the channels, expected a divisor of 6, got 4}}
  %y = graph.group_norm %x groups = 4 axis = 1 epsilon = 1.0e-05 : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x?x4xf32>) {
  // expected-error @+1 {{graph.group_norm: the number of channels is not known, expected a number}}
  %y = graph.group_norm %x groups = 4 axis = 1 epsilon = 1.0e-05 : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x4xf32>) {
  // expected-error @+1 {{graph.group_norm: the channels are the dimension of the batch, expected axis != 0, got 0}}
  %y = graph.group_norm %x groups = 2 axis = -3 epsilon = 1.0e-05 : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<1x3xf32>) {
  // expected-error @+1 {{graph.batch_norm_training: scale is not a vector, expected rank 1, got rank 2}}
  %y, %m, %v = graph.batch_norm_training %x scale %s : tensor<1x3xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{graph.batch_norm_training: result type differs, expected tensor<3xf32>, got tensor<2xf32>}}
  %y, %m, %v = graph.batch_norm_training %x axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>)
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{graph.rms_norm: scale of shape [2] does not broadcast to x, expected 3, got 2}}
  %y = graph.rms_norm %x scale %s : tensor<2xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{graph.l2_normalize: an axis is named twice, expected axes that differ, got [1, -1]}}
  %y = graph.l2_normalize %x axes = [1, -1] epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64}}
  %y = graph.l2_normalize %x axes = [1] epsilon = 1.0e-05 : (tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return
}
