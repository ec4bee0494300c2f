// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.add: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.add %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.sub: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.sub %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.mul: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.mul %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.div: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.div %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.max: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.max %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.min: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.min %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{graph.pow: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.pow %a, %b : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error @+1 {{graph.add: element types differ, expected f32, got f64}}
  %y = graph.add %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{graph.add: result type differs, expected tensor<3xf32>, got tensor<4xf32>}}
  %y = graph.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xf32, "blocked">, %b: tensor<3xf32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<3xf32, "blocked">}}
  %y = graph.add %a, %b : (tensor<3xf32, "blocked">, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi1>, %b: tensor<3xi1>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<3xi1>}}
  %y = graph.add %a, %b : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.exp %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.log %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.sqrt %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.rsqrt %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.tanh %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.sigmoid %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.erf %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<?x3xf32>) {
  // expected-error @+1 {{graph.neg: result type differs, expected tensor<?x3xf32>, got tensor<?x4xf32>}}
  %y = graph.neg %x : (tensor<?x3xf32>) -> tensor<?x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x3xf32>) {
  // expected-error @+1 {{graph.relu: result type differs, expected tensor<?x3xf32>, got tensor<?x4xf32>}}
  %y = graph.relu %x : (tensor<?x3xf32>) -> tensor<?x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.relu: result type differs, expected tensor<3xf32>, got tensor<3x1xf32>}}
  %y = graph.relu %x : (tensor<3xf32>) -> tensor<3x1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{Expected `none`, or `tanh`.}}
  %y = graph.gelu %x approximate = exact : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.clip: minimum is not a number, got nan}}
  %y = graph.clip %x minimum = 0x7ff8000000000000 : f64 : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{graph.clip: maximum of an integer tensor is not whole, expected a whole number, got 1.5}}
  %y = graph.clip %x maximum = 1.5 : f64 : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{graph.cast: result type differs, expected tensor<3xf32>, got tensor<4xf32>}}
  %y = graph.cast %x : (tensor<3xi32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN, i4, ui4, i2, ui2, got tensor<3xi7>}}
  %y = graph.cast %x : (tensor<3xi32>) -> tensor<3xi7>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.dropout: ratio out of range, expected 0 <= ratio <= 1, got 1.5}}
  %y = graph.dropout %x ratio = 1.5 : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{graph.batch_norm: length of scale differs from the channels, expected 3, got 2}}
  %y = graph.batch_norm %x scale %s : tensor<2xf32> bias %s : tensor<2xf32> mean %s : tensor<2xf32> variance %s : tensor<2xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @batch_norm_of_two_lengths(%x: tensor<2x?x4xf32>, %s: tensor<3xf32>, %t: tensor<4xf32>) -> tensor<2x?x4xf32> {
  // expected-error @+1 {{graph.batch_norm: length of variance differs from the channels, expected 3, got 4}}
  %y = graph.batch_norm %x mean %s : tensor<3xf32> variance %t : tensor<4xf32> axis = 1 epsilon = 1.0e-5 : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<1x3xf32>) {
  // expected-error @+1 {{graph.batch_norm: scale is not a vector, expected rank 1, got rank 2}}
  %y = graph.batch_norm %x scale %s : tensor<1x3xf32> bias %s : tensor<1x3xf32> mean %s : tensor<1x3xf32> variance %s : tensor<1x3xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{graph.batch_norm: axis out of range, expected -1 <= axis < 1, got 1}}
  %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %s : tensor<3xf32> mean %s : tensor<3xf32> variance %s : tensor<3xf32> axis = 1 epsilon = 1.0e-05 : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<2xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{graph.fma: shapes [4, 3] and [2] do not broadcast, expected 3, got 2}}
  %y = graph.fma %a, %b, %c : (tensor<4x3xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xf32>, %c: tensor<3xf16>) {
  // expected-error @+1 {{graph.fma: element types differ, expected f32, got f16}}
  %y = graph.fma %a, %a, %c : (tensor<3xf32>, tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.bitcast: widths of the element types differ, expected 32 bits, got 16 bits}}
  %y = graph.bitcast %x : (tensor<3xf32>) -> tensor<3xi16>
  func.return
}

// -----

func.func @f(%x: tensor<3xf8E5M2>) {
  // expected-error @+1 {{got tensor<3xf8E5M2>; graph.cast converts from and to low-bit types}}
  %y = graph.relu %x : (tensor<3xf8E5M2>) -> tensor<3xf8E5M2>
  func.return
}
