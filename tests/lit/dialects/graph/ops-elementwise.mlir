// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Operators that work element by element.

// CHECK-LABEL: func.func @add
func.func @add(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.add %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.add %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @sub
func.func @sub(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sub %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.sub %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @mul
func.func @mul(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.mul %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.mul %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @div
func.func @div(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.div %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.div %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @max
func.func @max(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.max %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.max %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @min
func.func @min(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.min %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.min %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @pow
func.func @pow(%a: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.pow %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %y = graph.pow %a, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @integers
func.func @integers(%a: tensor<4x1xi64>, %b: tensor<3xi64>) -> tensor<4x3xi64> {
  // CHECK: %y = graph.add %a, %b : (tensor<4x1xi64>, tensor<3xi64>) -> tensor<4x3xi64>
  %y = graph.add %a, %b : (tensor<4x1xi64>, tensor<3xi64>) -> tensor<4x3xi64>
  func.return %y : tensor<4x3xi64>
}

// CHECK-LABEL: func.func @halves
func.func @halves(%a: tensor<f16>, %b: tensor<2x3xf16>) -> tensor<2x3xf16> {
  // CHECK: %y = graph.mul %a, %b : (tensor<f16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %y = graph.mul %a, %b : (tensor<f16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  func.return %y : tensor<2x3xf16>
}

// CHECK-LABEL: func.func @refined
func.func @refined(%a: tensor<?xf64>, %b: tensor<5xf64>) -> tensor<5xf64> {
  // CHECK: %y = graph.sub %a, %b : (tensor<?xf64>, tensor<5xf64>) -> tensor<5xf64>
  %y = graph.sub %a, %b : (tensor<?xf64>, tensor<5xf64>) -> tensor<5xf64>
  func.return %y : tensor<5xf64>
}

// CHECK-LABEL: func.func @fma
func.func @fma(%a: tensor<?x3xf32>, %b: tensor<3xf32>, %c: tensor<f32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.fma %a, %b, %c : (tensor<?x3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32>
  %y = graph.fma %a, %b, %c : (tensor<?x3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @neg
func.func @neg(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.neg %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.neg %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @exp
func.func @exp(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @log
func.func @log(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.log %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.log %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @sqrt
func.func @sqrt(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sqrt %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.sqrt %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @rsqrt
func.func @rsqrt(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.rsqrt %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.rsqrt %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @tanh
func.func @tanh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.tanh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.tanh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @sigmoid
func.func @sigmoid(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.sigmoid %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.sigmoid %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @relu
func.func @relu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @erf
func.func @erf(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.erf %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.erf %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @dropout
func.func @dropout(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.dropout %x ratio = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.dropout %x ratio = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @leaky_relu
func.func @leaky_relu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.leaky_relu %x alpha = 1.000000e-02 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.leaky_relu %x alpha = 1.000000e-02 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @gelu_none
func.func @gelu_none(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.gelu %x approximate = none : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.gelu %x approximate = none : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @gelu_tanh
func.func @gelu_tanh(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.gelu %x approximate = tanh : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.gelu %x approximate = tanh : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @relu_integers
func.func @relu_integers(%x: tensor<4xi8>) -> tensor<4xi8> {
  // CHECK: %y = graph.relu %x : (tensor<4xi8>) -> tensor<4xi8>
  %y = graph.relu %x : (tensor<4xi8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}

// CHECK-LABEL: func.func @clip
func.func @clip(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.clip %x minimum = 0.000000e+00 : f64 maximum = 6.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.clip %x minimum = 0.000000e+00 : f64 maximum = 6.000000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @clip_below
func.func @clip_below(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.clip %x minimum = -1.500000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.clip %x minimum = -1.500000e+00 : f64 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @clip_above
func.func @clip_above(%x: tensor<4xi64>) -> tensor<4xi64> {
  // CHECK: %y = graph.clip %x maximum = 7 : i64 : (tensor<4xi64>) -> tensor<4xi64>
  %y = graph.clip %x maximum = 7 : i64 : (tensor<4xi64>) -> tensor<4xi64>
  func.return %y : tensor<4xi64>
}

// CHECK-LABEL: func.func @clip_nothing
func.func @clip_nothing(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.clip %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.clip %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @cast
func.func @cast(%x: tensor<?x3xi64>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.cast %x : (tensor<?x3xi64>) -> tensor<?x3xf32>
  %y = graph.cast %x : (tensor<?x3xi64>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @unsigned
func.func @unsigned(%x: tensor<?x3xf32>) -> tensor<?x3xui64> {
  // CHECK-NEXT: %c = graph.constant dense<[7, 200, 255]> : tensor<3xui8>
  %c = graph.constant dense<[7, 200, 255]> : tensor<3xui8>
  // CHECK-NEXT: %q = graph.cast %x : (tensor<?x3xf32>) -> tensor<?x3xui8>
  %q = graph.cast %x : (tensor<?x3xf32>) -> tensor<?x3xui8>
  // CHECK-NEXT: %s = graph.add %q, %c : (tensor<?x3xui8>, tensor<3xui8>) -> tensor<?x3xui8>
  %s = graph.add %q, %c : (tensor<?x3xui8>, tensor<3xui8>) -> tensor<?x3xui8>
  // CHECK-NEXT: %h = graph.cast %s : (tensor<?x3xui8>) -> tensor<?x3xui16>
  %h = graph.cast %s : (tensor<?x3xui8>) -> tensor<?x3xui16>
  // CHECK-NEXT: %w = graph.cast %h : (tensor<?x3xui16>) -> tensor<?x3xui32>
  %w = graph.cast %h : (tensor<?x3xui16>) -> tensor<?x3xui32>
  // CHECK-NEXT: %v = graph.cast %w : (tensor<?x3xui32>) -> tensor<?x3xui64>
  %v = graph.cast %w : (tensor<?x3xui32>) -> tensor<?x3xui64>
  // CHECK-NEXT: %l = graph.constant dense<18446744073709551615> : tensor<1xui64>
  %l = graph.constant dense<18446744073709551615> : tensor<1xui64>
  // CHECK-NEXT: %k = graph.min %v, %l : (tensor<?x3xui64>, tensor<1xui64>) -> tensor<?x3xui64>
  %k = graph.min %v, %l : (tensor<?x3xui64>, tensor<1xui64>) -> tensor<?x3xui64>
  // CHECK-NEXT: %m = graph.clip %k maximum = 18446744073709551614 : ui64 : (tensor<?x3xui64>) -> tensor<?x3xui64>
  %m = graph.clip %k maximum = 18446744073709551614 : ui64 : (tensor<?x3xui64>) -> tensor<?x3xui64>
  func.return %m : tensor<?x3xui64>
}

// CHECK-LABEL: func.func @cast_to_boolean
func.func @cast_to_boolean(%x: tensor<4xf16>) -> tensor<4xi1> {
  // CHECK: %y = graph.cast %x : (tensor<4xf16>) -> tensor<4xi1>
  %y = graph.cast %x : (tensor<4xf16>) -> tensor<4xi1>
  func.return %y : tensor<4xi1>
}

// CHECK-LABEL: func.func @batch_norm
func.func @batch_norm(%x: tensor<2x3x?xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<2x3x?xf32> {
  // CHECK: %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32> mean %m : tensor<3xf32> variance %v : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32> mean %m : tensor<3xf32> variance %v : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  func.return %y : tensor<2x3x?xf32>
}

// CHECK-LABEL: func.func @bitcast
func.func @bitcast(%x: tensor<?x3xf32>) -> tensor<?x3xi32> {
  // CHECK: %y = graph.bitcast %x : (tensor<?x3xf32>) -> tensor<?x3xi32>
  %y = graph.bitcast %x : (tensor<?x3xf32>) -> tensor<?x3xi32>
  func.return %y : tensor<?x3xi32>
}

// CHECK-LABEL: func.func @low_bits
func.func @low_bits(%x: tensor<4xf32>) -> tensor<4xui2> {
  // CHECK: %a = graph.cast %x : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  %a = graph.cast %x : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  // CHECK-NEXT: %b = graph.bitcast %a : (tensor<4xf8E4M3FN>) -> tensor<4xf8E8M0FNU>
  %b = graph.bitcast %a : (tensor<4xf8E4M3FN>) -> tensor<4xf8E8M0FNU>
  // CHECK-NEXT: %c = graph.cast %b : (tensor<4xf8E8M0FNU>) -> tensor<4xf4E2M1FN>
  %c = graph.cast %b : (tensor<4xf8E8M0FNU>) -> tensor<4xf4E2M1FN>
  // CHECK-NEXT: %d = graph.cast %c : (tensor<4xf4E2M1FN>) -> tensor<4xi4>
  %d = graph.cast %c : (tensor<4xf4E2M1FN>) -> tensor<4xi4>
  // CHECK-NEXT: %e = graph.cast %d : (tensor<4xi4>) -> tensor<4xui2>
  %e = graph.cast %d : (tensor<4xi4>) -> tensor<4xui2>
  func.return %e : tensor<4xui2>
}
