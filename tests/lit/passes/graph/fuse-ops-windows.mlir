// RUN: stepwell-opt %s -p graph-fuse-ops | filecheck %s

// A window reads an element many times: what is cheap is computed again, the rest is not.

// CHECK-LABEL: func.func @cheap(
// CHECK-NEXT: [[Y:%.+]] = func.call @fused_relu_pool(%x)
// CHECK-NEXT: func.return [[Y]]
func.func @cheap(%x: tensor<2x9xf32>) -> tensor<2x8xf32> {
  %r = graph.relu %x : (tensor<2x9xf32>) -> tensor<2x9xf32>
  %y = graph.pool sum %r window = [2] strides = [1] dilations = [1] : (tensor<2x9xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @dear(
// CHECK-NEXT: [[E:%.+]] = func.call @fused_exp(%x)
// CHECK-NEXT: [[Y:%.+]] = func.call @fused_pool(%e)
// CHECK-NEXT: func.return [[Y]]
func.func @dear(%x: tensor<2x9xf32>) -> tensor<2x8xf32> {
  %e = graph.exp %x : (tensor<2x9xf32>) -> tensor<2x9xf32>
  %y = graph.pool sum %e window = [2] strides = [1] dilations = [1] : (tensor<2x9xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// A pad takes the activation before it, and is written before the convolution reads it.
// CHECK-LABEL: func.func @padded(
// CHECK-NEXT: [[P:%.+]] = func.call @fused_relu_pad(%x)
// CHECK-NEXT: [[Y:%.+]] = func.call @fused_conv_relu([[P]], %w)
// CHECK-NEXT: func.return [[Y]]
func.func @padded(%x: tensor<?x2x9xf32>, %w: tensor<4x2x3xf32>) -> tensor<?x4x9xf32> {
  %r = graph.relu %x : (tensor<?x2x9xf32>) -> tensor<?x2x9xf32>
  %p = graph.pad constant %r low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<?x2x9xf32>) -> tensor<?x2x11xf32>
  %c = graph.conv %p, %w strides = [1] dilations = [1] groups = 1 : (tensor<?x2x11xf32>, tensor<4x2x3xf32>) -> tensor<?x4x9xf32>
  %y = graph.relu %c : (tensor<?x4x9xf32>) -> tensor<?x4x9xf32>
  func.return %y : tensor<?x4x9xf32>
}

// A convolution stores what it computes in the padded tensor. What is read elsewhere as well, or
// has other numbers than a constant around it, is padded by a kernel of its own.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: [[P:%.+]] = func.call @fused_conv_relu_pad(%x, %w)
// CHECK-NEXT: [[C:%.+]] = func.call @fused_conv([[P]], %v)
// CHECK-NEXT: [[E:%.+]] = func.call @fused_pad([[C]])
// CHECK-NEXT: [[D:%.+]] = func.call @fused_conv_add([[E]], %v, [[C]])
// CHECK-NEXT: [[Y:%.+]] = func.call @fused_pad_1([[D]])
// CHECK-NEXT: func.return [[Y]]
func.func @chain(%x: tensor<2x2x9xf32>, %w: tensor<4x2x3xf32>, %v: tensor<4x4x3xf32>) -> tensor<2x4x9xf32> {
  %c = graph.conv %x, %w strides = [1] dilations = [1] groups = 1 : (tensor<2x2x9xf32>, tensor<4x2x3xf32>) -> tensor<2x4x7xf32>
  %r = graph.relu %c : (tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %p = graph.pad constant %r low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<2x4x7xf32>) -> tensor<2x4x9xf32>
  %d = graph.conv %p, %v strides = [1] dilations = [1] groups = 1 : (tensor<2x4x9xf32>, tensor<4x4x3xf32>) -> tensor<2x4x7xf32>
  %q = graph.pad constant %d low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<2x4x7xf32>) -> tensor<2x4x9xf32>
  %e = graph.conv %q, %v strides = [1] dilations = [1] groups = 1 : (tensor<2x4x9xf32>, tensor<4x4x3xf32>) -> tensor<2x4x7xf32>
  %a = graph.add %e, %d : (tensor<2x4x7xf32>, tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %y = graph.pad edge %a low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<2x4x7xf32>) -> tensor<2x4x9xf32>
  func.return %y : tensor<2x4x9xf32>
}

// -----

// A window that slides over channels reads each element five times: channels that are adjacent in
// memory are laid out for it first.
// CHECK-LABEL: func.func @gathered
// CHECK: func.call @fused_mul_transpose(
// CHECK: func.call @fused_pad_pool(
func.func @gathered(%x: tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32> {
  %s = graph.mul %x, %x : (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %t = graph.transpose %s permutation = [0, 3, 1, 2] : (tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32>
  %p = graph.pad constant %t low = [0, 2, 0, 0] high = [0, 2, 0, 0] value = 0.0 : f64 : (tensor<1x8x4x4xf32>) -> tensor<1x12x4x4xf32>
  %y = graph.pool sum %p window = [5, 1, 1] strides = [1, 1, 1] dilations = [1, 1, 1] : (tensor<1x12x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return %y : tensor<1x8x4x4xf32>
}
