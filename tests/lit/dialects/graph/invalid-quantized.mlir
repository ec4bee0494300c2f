// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @per_tensor_scale(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %z: tensor<8xui8>) {
  // expected-error @+1 {{graph.quantize: scale is not a scalar but there is no axis, expected rank 0, got rank 1}}
  %q = graph.quantize %x, %s, %z : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xui8>) -> tensor<2x8xui8>
  func.return
}

// -----

func.func @axis_range(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %z: tensor<8xui8>) {
  // expected-error @+1 {{graph.quantize: axis out of range, expected -2 <= axis < 2, got 2}}
  %q = graph.quantize %x, %s, %z axis = 2 : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xui8>) -> tensor<2x8xui8>
  func.return
}

// -----

func.func @no_vector(%x: tensor<2x8xf32>, %s: tensor<8x1xf32>, %z: tensor<ui8>) {
  // expected-error @+1 {{graph.quantize: scale is neither a scalar nor a vector, expected rank 0 or 1, got rank 2}}
  %q = graph.quantize %x, %s, %z axis = 1 : (tensor<2x8xf32>, tensor<8x1xf32>, tensor<ui8>) -> tensor<2x8xui8>
  func.return
}

// -----

func.func @length(%x: tensor<2x8xf32>, %s: tensor<2xf32>, %z: tensor<2xui8>) {
  // expected-error @+1 {{graph.quantize: length of scale differs from axis 1 of x, expected 8, got 2}}
  %q = graph.quantize %x, %s, %z axis = 1 : (tensor<2x8xf32>, tensor<2xf32>, tensor<2xui8>) -> tensor<2x8xui8>
  func.return
}

// -----

func.func @wrong_result(%x: tensor<2x8xf32>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{graph.quantize: result type differs, expected tensor<2x8xui8>, got tensor<2x8xi8>}}
  %q = graph.quantize %x, %s, %z : (tensor<2x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x8xi8>
  func.return
}

// -----

func.func @wide_target(%x: tensor<2xf32>, %s: tensor<f32>, %z: tensor<ui32>) {
  // expected-error @+1 {{expected a dense tensor of i8, i16, ui8, ui16, i4, ui4, i2, ui2, got tensor<ui32>}}
  %q = graph.quantize %x, %s, %z : (tensor<2xf32>, tensor<f32>, tensor<ui32>) -> tensor<2xui32>
  func.return
}

// -----

func.func @wide_source(%x: tensor<2xf64>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{expected a dense tensor of f16, f32, got tensor<2xf64>}}
  %q = graph.quantize %x, %s, %z : (tensor<2xf64>, tensor<f32>, tensor<ui8>) -> tensor<2xui8>
  func.return
}

// -----

func.func @zero_point_type(%x: tensor<2xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{graph.dequantize: element types of x and zero_point differ, expected i8, got ui8}}
  %q = graph.dequantize %x, %s, %z : (tensor<2xi8>, tensor<f32>, tensor<ui8>) -> tensor<2xf32>
  func.return
}

// -----

func.func @no_sum(%x: tensor<2xi16>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{expected a dense tensor of i32, got tensor<2xi16>}}
  %q = graph.requantize %x, %s, %z : (tensor<2xi16>, tensor<f32>, tensor<ui8>) -> tensor<2xui8>
  func.return
}

// -----

func.func @mixed_factors(%x: tensor<2x8xi8>, %w: tensor<4x8xi32>) {
  // expected-error @+1 {{graph.dense: element types differ, expected i8, got i32}}
  %q = graph.dense %x, %w : (tensor<2x8xi8>, tensor<4x8xi32>) -> tensor<2x4xi32>
  func.return
}

// -----

func.func @bias_of_sum(%x: tensor<2x8xi8>, %w: tensor<4x8xi8>, %b: tensor<4xi8>) {
  // expected-error @+1 {{graph.dense: element types differ, expected i32, got i8}}
  %q = graph.dense %x, %w, %b : (tensor<2x8xi8>, tensor<4x8xi8>, tensor<4xi8>) -> tensor<2x4xi32>
  func.return
}

// -----

func.func @types_of_zero_points(%x: tensor<2x8xui8>, %xs: tensor<f32>, %xz: tensor<i8>, %w: tensor<4x8xi8>, %ws: tensor<f32>, %wz: tensor<i8>, %ys: tensor<f32>, %yz: tensor<ui8>) {
  // expected-error @+1 {{graph.quantized_dense: element types of a tensor and its zero point differ, expected ui8, got i8}}
  %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : (tensor<2x8xui8>, tensor<f32>, tensor<i8>, tensor<4x8xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @scale_of_x(%x: tensor<2x8xui8>, %xs: tensor<8xf32>, %xz: tensor<ui8>, %w: tensor<4x8xi8>, %ws: tensor<f32>, %wz: tensor<i8>, %ys: tensor<f32>, %yz: tensor<ui8>) {
  // expected-error @+1 {{graph.quantized_dense: x_scale is not a scalar, expected rank 0, got rank 1}}
  %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : (tensor<2x8xui8>, tensor<8xf32>, tensor<ui8>, tensor<4x8xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @scale_of_w(%x: tensor<2x8xui8>, %xs: tensor<f32>, %xz: tensor<ui8>, %w: tensor<4x8xi8>, %ws: tensor<4x1xf32>, %wz: tensor<i8>, %ys: tensor<f32>, %yz: tensor<ui8>) {
  // expected-error @+1 {{graph.quantized_dense: w_scale is neither a scalar nor a vector, expected rank 0 or 1, got rank 2}}
  %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : (tensor<2x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<4x1xf32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @channels(%x: tensor<2x8xui8>, %xs: tensor<f32>, %xz: tensor<ui8>, %w: tensor<4x8xi8>, %ws: tensor<f32>, %wz: tensor<8xi8>, %ys: tensor<f32>, %yz: tensor<ui8>) {
  // expected-error @+1 {{graph.quantized_dense: length of w_zero_point differs from the channels, expected 4, got 8}}
  %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : (tensor<2x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<f32>, tensor<8xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @columns(%x: tensor<2x8xui8>, %xs: tensor<f32>, %xz: tensor<ui8>, %w: tensor<8x4xi8>, %ws: tensor<f32>, %wz: tensor<i8>, %ys: tensor<f32>, %yz: tensor<ui8>, %b: tensor<1x4xi32>) {
  // expected-error @+1 {{graph.quantized_matmul: bias is not a vector, expected rank 1, got rank 2}}
  %y = graph.quantized_matmul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b : (tensor<2x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>, tensor<1x4xi32>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @more_columns(%x: tensor<2x8xui8>, %xs: tensor<f32>, %xz: tensor<ui8>, %w: tensor<8x4xi8>, %ws: tensor<f32>, %wz: tensor<i8>, %ys: tensor<f32>, %yz: tensor<ui8>, %b: tensor<8xi32>) {
  // expected-error @+1 {{graph.quantized_matmul: length of bias differs from the columns of w, expected 4, got 8}}
  %y = graph.quantized_matmul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b : (tensor<2x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>, tensor<8xi32>) -> tensor<2x4xui8>
  func.return
}

// -----

func.func @groups(%x: tensor<2x2x8xui8>, %s: tensor<f32>, %z: tensor<ui8>, %w: tensor<3x1x2xui8>) {
  // expected-error @+1 {{graph.quantized_conv: groups do not divide the filters, expected a multiple of 2, got 3}}
  %y = graph.quantized_conv %x, %s, %z, %w, %s, %z, %s, %z strides = [1] dilations = [1] groups = 2 : (tensor<2x2x8xui8>, tensor<f32>, tensor<ui8>, tensor<3x1x2xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x7xui8>
  func.return
}

// -----

func.func @no_vector_at_all(%x: tensor<2x8xf32>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{graph.quantize: there is an axis but no vector along it, expected no axis, got 1}}
  %q = graph.quantize %x, %s, %z axis = 1 : (tensor<2x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x8xui8>
  func.return
}
