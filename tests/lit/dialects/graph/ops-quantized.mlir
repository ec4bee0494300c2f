// RUN: stepwell-opt %s | stepwell-opt | filecheck %s
// RUN: stepwell-opt %s --print-op-generic | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @scaled
func.func @scaled(%x: tensor<?x8xf32>, %s: tensor<f32>, %z: tensor<ui8>, %sv: tensor<8xf16>, %zv: tensor<8xi8>) {
  // CHECK-NEXT: %q = graph.quantize %x, %s, %z : (tensor<?x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x8xui8>
  %q = graph.quantize %x, %s, %z : (tensor<?x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x8xui8>
  // CHECK-NEXT: %p = graph.quantize %x, %sv, %zv axis = 1 : (tensor<?x8xf32>, tensor<8xf16>, tensor<8xi8>) -> tensor<?x8xi8>
  %p = graph.quantize %x, %sv, %zv axis = 1 : (tensor<?x8xf32>, tensor<8xf16>, tensor<8xi8>) -> tensor<?x8xi8>
  // CHECK-NEXT: %d = graph.dequantize %q, %s, %z : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %d = graph.dequantize %q, %s, %z : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  // CHECK-NEXT: %h = graph.dequantize %p, %sv, %zv axis = -1 : (tensor<?x8xi8>, tensor<8xf16>, tensor<8xi8>) -> tensor<?x8xf16>
  %h = graph.dequantize %p, %sv, %zv axis = -1 : (tensor<?x8xi8>, tensor<8xf16>, tensor<8xi8>) -> tensor<?x8xf16>
  func.return
}

// CHECK-LABEL: func.func @sums
func.func @sums(%t: tensor<?x8xi32>, %s: tensor<f32>, %z: tensor<ui8>, %z32: tensor<i32>) {
  // CHECK-NEXT: %r = graph.requantize %t, %s, %z : (tensor<?x8xi32>, tensor<f32>, tensor<ui8>) -> tensor<?x8xui8>
  %r = graph.requantize %t, %s, %z : (tensor<?x8xi32>, tensor<f32>, tensor<ui8>) -> tensor<?x8xui8>
  // CHECK-NEXT: %d = graph.dequantize %t, %s, %z32 : (tensor<?x8xi32>, tensor<f32>, tensor<i32>) -> tensor<?x8xf32>
  %d = graph.dequantize %t, %s, %z32 : (tensor<?x8xi32>, tensor<f32>, tensor<i32>) -> tensor<?x8xf32>
  func.return
}

// Integers of 8 and 16 bits are summed up in i32.
// CHECK-LABEL: func.func @integer_products
func.func @integer_products(%x: tensor<?x8xui8>, %w: tensor<4x8xi8>, %v: tensor<8x4xi16>, %b: tensor<4xi32>, %i: tensor<?x2x5xi8>, %f: tensor<3x2x2xi8>) {
  // CHECK-NEXT: %d = graph.dense %x, %w, %b : (tensor<?x8xui8>, tensor<4x8xi8>, tensor<4xi32>) -> tensor<?x4xi32>
  %d = graph.dense %x, %w, %b : (tensor<?x8xui8>, tensor<4x8xi8>, tensor<4xi32>) -> tensor<?x4xi32>
  // CHECK-NEXT: %m = graph.matmul %x, %v : (tensor<?x8xui8>, tensor<8x4xi16>) -> tensor<?x4xi32>
  %m = graph.matmul %x, %v : (tensor<?x8xui8>, tensor<8x4xi16>) -> tensor<?x4xi32>
  // CHECK-NEXT: %c = graph.conv %i, %f strides = [1] dilations = [1] groups = 1 : (tensor<?x2x5xi8>, tensor<3x2x2xi8>) -> tensor<?x3x4xi32>
  %c = graph.conv %i, %f strides = [1] dilations = [1] groups = 1 : (tensor<?x2x5xi8>, tensor<3x2x2xi8>) -> tensor<?x3x4xi32>
  func.return
}

// CHECK-LABEL: func.func @products
func.func @products(%x: tensor<?x8xui8>, %w: tensor<4x8xi8>, %v: tensor<8x4xui8>, %s: tensor<f32>, %z: tensor<ui8>, %ws: tensor<4xf32>, %wz: tensor<4xi8>, %b: tensor<4xi32>) {
  // CHECK-NEXT: %d = graph.quantized_dense %x, %s, %z, %w, %ws, %wz, %s, %z, %b : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>, tensor<f32>, tensor<ui8>, tensor<4xi32>) -> tensor<?x4xui8>
  %d = graph.quantized_dense %x, %s, %z, %w, %ws, %wz, %s, %z, %b : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>, tensor<f32>, tensor<ui8>, tensor<4xi32>) -> tensor<?x4xui8>
  // CHECK-NEXT: %m = graph.quantized_matmul %x, %s, %z, %v, %s, %z, %s, %z : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %m = graph.quantized_matmul %x, %s, %z, %v, %s, %z, %s, %z : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  func.return
}

// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<?x2x5x5xi8>, %w: tensor<4x1x3x3xi8>, %s: tensor<f16>, %z: tensor<i8>, %y: tensor<ui8>) {
  // CHECK-NEXT: %c = graph.quantized_conv %x, %s, %z, %w, %s, %z, %s, %y strides = [2, 2] dilations = [1, 1] groups = 2 : (tensor<?x2x5x5xi8>, tensor<f16>, tensor<i8>, tensor<4x1x3x3xi8>, tensor<f16>, tensor<i8>, tensor<f16>, tensor<ui8>) -> tensor<?x4x2x2xui8>
  %c = graph.quantized_conv %x, %s, %z, %w, %s, %z, %s, %y strides = [2, 2] dilations = [1, 1] groups = 2 : (tensor<?x2x5x5xi8>, tensor<f16>, tensor<i8>, tensor<4x1x3x3xi8>, tensor<f16>, tensor<i8>, tensor<f16>, tensor<ui8>) -> tensor<?x4x2x2xui8>
  func.return
}
