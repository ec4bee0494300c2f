// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<3xi32>, %b: tensor<3xi8>) {
  // expected-error @+1 {{graph.bitwise_and: element types differ, expected i32, got i8}}
  %y = graph.bitwise_and %a, %b : (tensor<3xi32>, tensor<3xi8>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi32>, %b: tensor<3xi8>) {
  // expected-error @+1 {{graph.bitwise_or: element types differ, expected i32, got i8}}
  %y = graph.bitwise_or %a, %b : (tensor<3xi32>, tensor<3xi8>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi32>, %b: tensor<3xi8>) {
  // expected-error @+1 {{graph.bitwise_xor: element types differ, expected i32, got i8}}
  %y = graph.bitwise_xor %a, %b : (tensor<3xi32>, tensor<3xi8>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi32>, %b: tensor<3xi8>) {
  // expected-error @+1 {{graph.shift_left: element types differ, expected i32, got i8}}
  %y = graph.shift_left %a, %b : (tensor<3xi32>, tensor<3xi8>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi32>, %b: tensor<3xi8>) {
  // expected-error @+1 {{graph.shift_right: element types differ, expected i32, got i8}}
  %y = graph.shift_right %a, %b : (tensor<3xi32>, tensor<3xi8>) -> tensor<3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xi32>) {
  // expected-error @+1 {{graph.bitwise_not: result type differs, expected tensor<4x3xi32>, got tensor<4x2xi32>}}
  %y = graph.bitwise_not %x : (tensor<4x3xi32>) -> tensor<4x2xi32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{expected a dense tensor of i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<3xf32>}}
  %y = graph.bitwise_not %x : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xi1>) {
  // expected-error @+1 {{expected a dense tensor of i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<3xi1>}}
  %y = graph.shift_left %a, %a : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  func.return
}
