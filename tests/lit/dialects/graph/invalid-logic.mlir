// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.equal: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.equal %a, %b : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.less: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.less %a, %b : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.less_equal: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.less_equal %a, %b : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.greater: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.greater %a, %b : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.greater_equal: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.greater_equal %a, %b : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<3xf64>) {
  // expected-error @+1 {{graph.less: element types differ, expected f32, got f64}}
  %y = graph.less %a, %b : (tensor<4x3xf32>, tensor<3xf64>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{expected a dense tensor of i1, got tensor<4x3xf32>}}
  %y = graph.less %a, %a : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi1>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<3xi1>}}
  %y = graph.less %a, %a : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xi1>, %b: tensor<4x2xi1>) {
  // expected-error @+1 {{graph.logical_and: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.logical_and %a, %b : (tensor<4x3xi1>, tensor<4x2xi1>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xi1>, %b: tensor<4x2xi1>) {
  // expected-error @+1 {{graph.logical_or: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.logical_or %a, %b : (tensor<4x3xi1>, tensor<4x2xi1>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xi1>, %b: tensor<4x2xi1>) {
  // expected-error @+1 {{graph.logical_xor: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.logical_xor %a, %b : (tensor<4x3xi1>, tensor<4x2xi1>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{expected a dense tensor of i1, got tensor<4x3xf32>}}
  %y = graph.logical_not %a : (tensor<4x3xf32>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%c: tensor<4x3xi1>, %a: tensor<4x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.where: shapes [4, 3] and [4, 2] do not broadcast, expected 3, got 2}}
  %y = graph.where %c, %a, %b : (tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%c: tensor<4x3xi1>, %a: tensor<4x3xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{graph.where: element types differ, expected f32, got i64}}
  %y = graph.where %c, %a, %b : (tensor<4x3xi1>, tensor<4x3xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%c: tensor<2xi1>, %a: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.where: shapes [2] and [4, 3] do not broadcast, expected 2, got 3}}
  %y = graph.where %c, %a, %a : (tensor<2xi1>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.abs: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.abs %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.sign: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.sign %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.ceil: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.ceil %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.floor: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.floor %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.round: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.round %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<4xi32>}}
  %y = graph.fmod %a, %a : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+1 {{graph.fmod: element types differ, expected f32, got f64}}
  %y = graph.fmod %a, %b : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.sin: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.sin %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.cos: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.cos %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.ceil %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.floor %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.round %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.sin %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi32>) {
  // expected-error @+1 {{expected a dense tensor of f16, bf16, f32, f64, got tensor<3xi32>}}
  %y = graph.cos %x : (tensor<3xi32>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.acos: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.acos %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.acosh: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.acosh %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.asin: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.asin %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.asinh: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.asinh %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.atan: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.atan %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.atanh: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.atanh %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.cosh: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.cosh %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.sinh: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.sinh %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.small_exp: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.small_exp %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.expm1: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.expm1 %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.log1p: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.log1p %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.tan: result type differs, expected tensor<4x3xf32>, got tensor<4x2xf32>}}
  %y = graph.tan %x : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return
}
