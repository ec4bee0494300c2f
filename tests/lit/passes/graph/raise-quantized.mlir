// RUN: stepwell-opt %s --split-input-file -p graph-open-composites,graph-raise-quantized,graph-fold-constant | filecheck %s

// Zero points of known weights are taken off them, in the smallest type that holds the rest; that
// of x becomes a summand.
// CHECK-LABEL: func.func @dense
// CHECK-DAG: %[[W:.*]] = graph.constant dense<[[-2, 2], [-252, 3]]> : tensor<2x2xi16>
// CHECK-DAG: %[[B:.*]] = graph.constant dense<[10, -1723]> : tensor<2xi32>
// CHECK: %[[T:.*]] = graph.dense %x, %[[W]], %[[B]] : (tensor<?x2xi8>, tensor<2x2xi16>, tensor<2xi32>) -> tensor<?x2xi32>
// CHECK: %[[M:.*]] = graph.constant dense<[2.500000e-01, 1.000000e+00]> : tensor<2xf32>
// CHECK: %[[Y:.*]] = graph.requantize %[[T]], %[[M]], %{{.*}} axis = 1 : (tensor<?x2xi32>, tensor<2xf32>, tensor<ui8>) -> tensor<?x2xui8>
// CHECK-NEXT: func.return %[[Y]]
func.func @dense(%x: tensor<?x2xi8>) -> tensor<?x2xui8> {
  %w = graph.constant dense<[[1, 5], [0, 255]]> : tensor<2x2xui8>
  %wz = graph.constant dense<[3, 252]> : tensor<2xui8>
  %ws = graph.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %xs = graph.constant dense<0.5> : tensor<f32>
  %xz = graph.constant dense<-7> : tensor<i8>
  %ys = graph.constant dense<1.0> : tensor<f32>
  %yz = graph.constant dense<100> : tensor<ui8>
  %b = graph.constant dense<[10, 20]> : tensor<2xi32>
  %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b : (tensor<?x2xi8>, tensor<f32>, tensor<i8>, tensor<2x2xui8>, tensor<2xf32>, tensor<2xui8>, tensor<f32>, tensor<ui8>, tensor<2xi32>) -> tensor<?x2xui8>
  func.return %y : tensor<?x2xui8>
}

// -----

// Weights that come at run time are widened; then the zero point of x stays where it is.
// CHECK-LABEL: func.func @matmul
// CHECK-DAG: %[[A:.*]] = graph.sub %{{.*}}, %{{.*}} : (tensor<?x8xi16>, tensor<i16>) -> tensor<?x8xi16>
// CHECK-DAG: %[[W:.*]] = graph.sub %{{.*}}, %{{.*}} : (tensor<8x4xi16>, tensor<4xi16>) -> tensor<8x4xi16>
// CHECK: %[[T:.*]] = graph.matmul %[[A]], %[[W]] : (tensor<?x8xi16>, tensor<8x4xi16>) -> tensor<?x4xi32>
// CHECK-NEXT: %[[S:.*]] = graph.add %[[T]], %b
// CHECK: graph.requantize %[[S]], %{{.*}}, %z : (tensor<?x4xi32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
func.func @matmul(%x: tensor<?x8xui8>, %w: tensor<8x4xi8>, %wz: tensor<4xi8>, %z: tensor<ui8>, %b: tensor<4xi32>) -> tensor<?x4xui8> {
  %s = graph.constant dense<0.5> : tensor<f32>
  %y = graph.quantized_matmul %x, %s, %z, %w, %s, %wz, %s, %z, %b : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<4xi8>, tensor<f32>, tensor<ui8>, tensor<4xi32>) -> tensor<?x4xui8>
  func.return %y : tensor<?x4xui8>
}

// -----

// CHECK-LABEL: func.func @conv
// CHECK: %[[T:.*]] = graph.conv %x, %w strides = [2] dilations = [1] groups = 1 : (tensor<?x1x5xui8>, tensor<2x1x2xi8>) -> tensor<?x2x2xi32>
// CHECK: graph.requantize %[[T]], %{{.*}}, %{{.*}} axis = 1 : (tensor<?x2x2xi32>, tensor<2xf32>, tensor<ui8>) -> tensor<?x2x2xui8>
func.func @conv(%x: tensor<?x1x5xui8>, %w: tensor<2x1x2xi8>) -> tensor<?x2x2xui8> {
  %ws = graph.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %s = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<0> : tensor<ui8>
  %wz = graph.constant dense<0> : tensor<i8>
  %y = graph.quantized_conv %x, %s, %z, %w, %ws, %wz, %s, %z strides = [2] dilations = [1] groups = 1 : (tensor<?x1x5xui8>, tensor<f32>, tensor<ui8>, tensor<2x1x2xi8>, tensor<2xf32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<?x2x2xui8>
  func.return %y : tensor<?x2x2xui8>
}

// -----

// A zero point that comes at run time is multiplied with the sums of known weights.
// CHECK-LABEL: func.func @shifted
// CHECK: %[[C:.*]] = graph.constant dense<[-3, -7]> : tensor<2xi32>
// CHECK: %[[Z:.*]] = graph.cast %z : (tensor<ui8>) -> tensor<i32>
// CHECK: %[[B:.*]] = graph.mul %[[C]], %[[Z]]
// CHECK: %[[P:.*]] = graph.matmul %x, %{{.*}} : (tensor<?x2xui8>, tensor<2x2xi8>) -> tensor<?x2xi32>
// CHECK: graph.add %[[P]], %[[B]]
func.func @shifted(%x: tensor<?x2xui8>, %z: tensor<ui8>) -> tensor<?x2xi32> {
  %w = graph.constant dense<[[1, 3], [2, 4]]> : tensor<2x2xi8>
  %a = graph.cast %x : (tensor<?x2xui8>) -> tensor<?x2xi16>
  %c = graph.cast %z : (tensor<ui8>) -> tensor<i16>
  %d = graph.sub %a, %c : (tensor<?x2xi16>, tensor<i16>) -> tensor<?x2xi16>
  %y = graph.matmul %d, %w : (tensor<?x2xi16>, tensor<2x2xi8>) -> tensor<?x2xi32>
  func.return %y : tensor<?x2xi32>
}

// -----

// As quantisers write it: dequantised operands, a cut, a quantisation.
// CHECK-LABEL: func.func @recognised
// CHECK-NOT: graph.dequantize
// CHECK: %[[T:.*]] = graph.dense %q, %{{.*}}, %{{.*}} : (tensor<?x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<?x2xi32>
// CHECK: %[[Y:.*]] = graph.requantize %[[T]]
// CHECK: %[[C:.*]] = graph.clip %[[Y]] minimum = 10 : i64 maximum = 22 : i64 : (tensor<?x2xui8>) -> tensor<?x2xui8>
// CHECK-NEXT: func.return %[[C]]
func.func @recognised(%q: tensor<?x2xui8>) -> tensor<?x2xui8> {
  %w = graph.constant dense<[[1, 3], [2, 4]]> : tensor<2x2xi8>
  %s = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<10> : tensor<ui8>
  %n = graph.constant dense<0> : tensor<i8>
  %b = graph.constant dense<[9, 8]> : tensor<2xi32>
  %bs = graph.constant dense<0.25> : tensor<f32>
  %bz = graph.constant dense<0> : tensor<i32>
  %x = graph.dequantize %q, %s, %z : (tensor<?x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xf32>
  %v = graph.dequantize %w, %s, %n : (tensor<2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<2x2xf32>
  %t = graph.transpose %v permutation = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = graph.dequantize %b, %bs, %bz : (tensor<2xi32>, tensor<f32>, tensor<i32>) -> tensor<2xf32>
  %d = graph.dense %x, %t, %c : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %r = graph.clip %d minimum = 0.0 : f64 maximum = 6.0 : f64 : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.quantize %r, %s, %z : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  func.return %y : tensor<?x2xui8>
}

// -----

// What moves, pads and pools numbers is done to their integers.
// CHECK-LABEL: func.func @moved
// CHECK: %[[P:.*]] = graph.pad constant %q low = [0, 1] high = [0, 1] value = 10 : i64 : (tensor<?x6xui8>) -> tensor<?x8xui8>
// CHECK-NEXT: %[[M:.*]] = graph.pool max %[[P]] window = [2] strides = [2] dilations = [1] : (tensor<?x8xui8>) -> tensor<?x4xui8>
// CHECK-NEXT: func.return %[[M]]
func.func @moved(%q: tensor<?x6xui8>) -> tensor<?x4xui8> {
  %s = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<10> : tensor<ui8>
  %x = graph.dequantize %q, %s, %z : (tensor<?x6xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x6xf32>
  %p = graph.pad constant %x low = [0, 1] high = [0, 1] value = 0.0 : f64 : (tensor<?x6xf32>) -> tensor<?x8xf32>
  %m = graph.pool max %p window = [2] strides = [2] dilations = [1] : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %y = graph.quantize %m, %s, %z : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  func.return %y : tensor<?x4xui8>
}

// -----

// These stay: another scale of the bias, a mean, other scales. A scale may come at run time.
// CHECK-LABEL: func.func @kept
// CHECK: graph.dense %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
// CHECK: graph.dense %q, %{{.*}}, %{{.*}} : (tensor<?x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<?x2xi32>
// CHECK: graph.mul %rs
// CHECK: graph.requantize
// CHECK: graph.pool mean %{{.*}} : (tensor<?x2xf32>) -> tensor<?x1xf32>
// CHECK: graph.quantize %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
func.func @kept(%q: tensor<?x2xui8>, %rs: tensor<f32>) -> (tensor<?x2xui8>, tensor<?x2xui8>, tensor<?x1xui8>, tensor<?x2xui8>) {
  %w = graph.constant dense<[[1, 3], [2, 4]]> : tensor<2x2xi8>
  %s = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<10> : tensor<ui8>
  %n = graph.constant dense<0> : tensor<i8>
  %b = graph.constant dense<[9, 8]> : tensor<2xi32>
  %bz = graph.constant dense<0> : tensor<i32>
  %x = graph.dequantize %q, %s, %z : (tensor<?x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xf32>
  %v = graph.dequantize %w, %s, %n : (tensor<2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<2x2xf32>
  %c = graph.dequantize %b, %s, %bz : (tensor<2xi32>, tensor<f32>, tensor<i32>) -> tensor<2xf32>
  %d = graph.dense %x, %v, %c : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %y = graph.quantize %d, %s, %z : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  %e = graph.quantized_dense %q, %rs, %z, %w, %s, %n, %s, %z : (tensor<?x2xui8>, tensor<f32>, tensor<ui8>, tensor<2x2xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  %m = graph.pool mean %x window = [2] strides = [1] dilations = [1] : (tensor<?x2xf32>) -> tensor<?x1xf32>
  %f = graph.quantize %m, %s, %z : (tensor<?x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x1xui8>
  %o = graph.constant dense<0.25> : tensor<f32>
  %g = graph.quantize %x, %o, %z : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  func.return %y, %e, %f, %g : tensor<?x2xui8>, tensor<?x2xui8>, tensor<?x1xui8>, tensor<?x2xui8>
}

// -----

// A cast states the type of its result, and moves no integers.
// CHECK-LABEL: func.func @cast
// CHECK: graph.dequantize %q
// CHECK-NEXT: graph.cast %{{.*}} : (tensor<2xf32>) -> tensor<2xf32>
func.func @cast(%q: tensor<2xui8>) -> tensor<2xf32> {
  %s = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<10> : tensor<ui8>
  %x = graph.dequantize %q, %s, %z : (tensor<2xui8>, tensor<f32>, tensor<ui8>) -> tensor<2xf32>
  %y = graph.cast %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
