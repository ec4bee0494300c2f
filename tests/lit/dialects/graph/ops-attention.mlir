// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Attention: its operands that may be missing, and shapes that it infers.

// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<2x8x?x64xf32>, %k: tensor<2x2x?x64xf32>, %v: tensor<2x2x?x16xf32>) -> tensor<2x8x?x16xf32> {
  // CHECK-NEXT: %y = graph.attention %q, %k, %v scale = 1.250000e-01 softcap = 0.000000e+00 left = -1 right = 0 at_end = true safe = true : (tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x16xf32>) -> tensor<2x8x?x16xf32>
  %y = graph.attention %q, %k, %v scale = 1.250000e-01 softcap = 0.000000e+00 left = -1 right = 0 at_end = true safe = true : (tensor<2x8x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x16xf32>) -> tensor<2x8x?x16xf32>
  func.return %y : tensor<2x8x?x16xf32>
}

// CHECK-LABEL: func.func @operands
func.func @operands(%q: tensor<4x5x8xf16>, %k: tensor<1x6x8xf16>, %m: tensor<5x1xi1>, %a: tensor<4x1x6xf16>, %n: tensor<i64>) -> tensor<4x5x8xf16> {
  // CHECK-NEXT: %y0 = graph.attention %q, %k, %k mask %m : tensor<5x1xi1> scale = 1.000000e+00 softcap = 5.000000e+01 left = 3 right = 1 at_end = false safe = false : (tensor<4x5x8xf16>, tensor<1x6x8xf16>, tensor<1x6x8xf16>) -> tensor<4x5x8xf16>
  %y0 = graph.attention %q, %k, %k mask %m : tensor<5x1xi1> scale = 1.000000e+00 softcap = 5.000000e+01 left = 3 right = 1 at_end = false safe = false : (tensor<4x5x8xf16>, tensor<1x6x8xf16>, tensor<1x6x8xf16>) -> tensor<4x5x8xf16>
  // CHECK-NEXT: %y1 = graph.attention %q, %k, %k mask %a : tensor<4x1x6xf16> lengths %n : tensor<i64> scale = 1.000000e+00 softcap = 0.000000e+00 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf16>, tensor<1x6x8xf16>, tensor<1x6x8xf16>) -> tensor<4x5x8xf16>
  %y1 = graph.attention %q, %k, %k mask %a : tensor<4x1x6xf16> lengths %n : tensor<i64> scale = 1.000000e+00 softcap = 0.000000e+00 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf16>, tensor<1x6x8xf16>, tensor<1x6x8xf16>) -> tensor<4x5x8xf16>
  func.return %y0 : tensor<4x5x8xf16>
}
