// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Comparisons, logic, choices, and what belongs to signs and whole numbers.

// CHECK-LABEL: func.func @equal
func.func @equal(%a: tensor<4x?xf32>, %b: tensor<1xf32>) -> tensor<4x?xi1> {
  // CHECK: %y = graph.equal %a, %b : (tensor<4x?xf32>, tensor<1xf32>) -> tensor<4x?xi1>
  %y = graph.equal %a, %b : (tensor<4x?xf32>, tensor<1xf32>) -> tensor<4x?xi1>
  func.return %y : tensor<4x?xi1>
}

// CHECK-LABEL: func.func @equal_of_truth_values
func.func @equal_of_truth_values(%a: tensor<3xi1>, %b: tensor<3xi1>) -> tensor<3xi1> {
  // CHECK: %y = graph.equal %a, %b : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %y = graph.equal %a, %b : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  func.return %y : tensor<3xi1>
}

// CHECK-LABEL: func.func @less
func.func @less(%a: tensor<4x?xf32>, %b: tensor<4x1xf32>) -> tensor<4x?xi1> {
  // CHECK: %y = graph.less %a, %b : (tensor<4x?xf32>, tensor<4x1xf32>) -> tensor<4x?xi1>
  %y = graph.less %a, %b : (tensor<4x?xf32>, tensor<4x1xf32>) -> tensor<4x?xi1>
  func.return %y : tensor<4x?xi1>
}

// CHECK-LABEL: func.func @less_equal
func.func @less_equal(%a: tensor<3xi64>, %b: tensor<3xi64>) -> tensor<3xi1> {
  // CHECK: %y = graph.less_equal %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
  %y = graph.less_equal %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
  func.return %y : tensor<3xi1>
}

// CHECK-LABEL: func.func @greater
func.func @greater(%a: tensor<3xf16>, %b: tensor<f16>) -> tensor<3xi1> {
  // CHECK: %y = graph.greater %a, %b : (tensor<3xf16>, tensor<f16>) -> tensor<3xi1>
  %y = graph.greater %a, %b : (tensor<3xf16>, tensor<f16>) -> tensor<3xi1>
  func.return %y : tensor<3xi1>
}

// CHECK-LABEL: func.func @greater_equal
func.func @greater_equal(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xi1> {
  // CHECK: %y = graph.greater_equal %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %y = graph.greater_equal %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  func.return %y : tensor<2x3xi1>
}

// CHECK-LABEL: func.func @logical_and
func.func @logical_and(%a: tensor<2x3xi1>, %b: tensor<3xi1>) -> tensor<2x3xi1> {
  // CHECK: %y = graph.logical_and %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  %y = graph.logical_and %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %y : tensor<2x3xi1>
}

// CHECK-LABEL: func.func @logical_or
func.func @logical_or(%a: tensor<2x3xi1>, %b: tensor<3xi1>) -> tensor<2x3xi1> {
  // CHECK: %y = graph.logical_or %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  %y = graph.logical_or %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %y : tensor<2x3xi1>
}

// CHECK-LABEL: func.func @logical_xor
func.func @logical_xor(%a: tensor<2x3xi1>, %b: tensor<3xi1>) -> tensor<2x3xi1> {
  // CHECK: %y = graph.logical_xor %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  %y = graph.logical_xor %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  func.return %y : tensor<2x3xi1>
}

// CHECK-LABEL: func.func @logical_not
func.func @logical_not(%x: tensor<?xi1>) -> tensor<?xi1> {
  // CHECK: %y = graph.logical_not %x : (tensor<?xi1>) -> tensor<?xi1>
  %y = graph.logical_not %x : (tensor<?xi1>) -> tensor<?xi1>
  func.return %y : tensor<?xi1>
}

// CHECK-LABEL: func.func @where
func.func @where(%c: tensor<4x1xi1>, %a: tensor<4x3xi64>, %b: tensor<3xi64>) -> tensor<4x3xi64> {
  // CHECK: %y = graph.where %c, %a, %b : (tensor<4x1xi1>, tensor<4x3xi64>, tensor<3xi64>) -> tensor<4x3xi64>
  %y = graph.where %c, %a, %b : (tensor<4x1xi1>, tensor<4x3xi64>, tensor<3xi64>) -> tensor<4x3xi64>
  func.return %y : tensor<4x3xi64>
}

// CHECK-LABEL: func.func @abs
func.func @abs(%x: tensor<?x3xi8>) -> tensor<?x3xi8> {
  // CHECK: %y = graph.abs %x : (tensor<?x3xi8>) -> tensor<?x3xi8>
  %y = graph.abs %x : (tensor<?x3xi8>) -> tensor<?x3xi8>
  func.return %y : tensor<?x3xi8>
}

// CHECK-LABEL: func.func @sign
func.func @sign(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sign %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.sign %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @ceil
func.func @ceil(%x: tensor<?x3xf16>) -> tensor<?x3xf16> {
  // CHECK: %y = graph.ceil %x : (tensor<?x3xf16>) -> tensor<?x3xf16>
  %y = graph.ceil %x : (tensor<?x3xf16>) -> tensor<?x3xf16>
  func.return %y : tensor<?x3xf16>
}

// CHECK-LABEL: func.func @floor
func.func @floor(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.floor %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.floor %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @fmod
func.func @fmod(%a: tensor<?x3xf64>, %b: tensor<3xf64>) -> tensor<?x3xf64> {
  // CHECK: %y = graph.fmod %a, %b : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
  %y = graph.fmod %a, %b : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
  func.return %y : tensor<?x3xf64>
}

// CHECK-LABEL: func.func @round
func.func @round(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {
  // CHECK: %y = graph.round %x : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %y = graph.round %x : (tensor<?x3xf64>) -> tensor<?x3xf64>
  func.return %y : tensor<?x3xf64>
}

// CHECK-LABEL: func.func @sin
func.func @sin(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sin %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.sin %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @cos
func.func @cos(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.cos %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.cos %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @acos
func.func @acos(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.acos %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.acos %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @acosh
func.func @acosh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.acosh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.acosh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @asin
func.func @asin(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.asin %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.asin %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @asinh
func.func @asinh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.asinh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.asinh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @atan
func.func @atan(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.atan %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.atan %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @atanh
func.func @atanh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.atanh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.atanh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @cosh
func.func @cosh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.cosh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.cosh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @sinh
func.func @sinh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sinh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.sinh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @small_exp
func.func @small_exp(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.small_exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.small_exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @expm1
func.func @expm1(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.expm1 %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.expm1 %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @log1p
func.func @log1p(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.log1p %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.log1p %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @tan
func.func @tan(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.tan %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.tan %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}
