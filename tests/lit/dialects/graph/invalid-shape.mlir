// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.transpose: not a permutation, expected each of 2 dimensions once, got [0, 0]}}
  %y = graph.transpose %x permutation = [0, 0] : (tensor<4x3xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reshape: elements of [4, 3] do not fit, expected 12, got 10}}
  %y = graph.reshape %x shape = [5, 2] : (tensor<4x3xf32>) -> tensor<5x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reshape: elements of [4, 3] do not fit, expected a multiple of 5, got 12}}
  %y = graph.reshape %x shape = [5, -1] : (tensor<4x3xf32>) -> tensor<5x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reshape: not a shape, expected sizes, 0, and -1 at most once, got [-1, -1]}}
  %y = graph.reshape %x shape = [-1, -1] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reshape: 0 copies a dimension that x does not have, expected rank 2, got [4, 3, 0]}}
  %y = graph.reshape %x shape = [4, 3, 0] : (tensor<4x3xf32>) -> tensor<4x3x1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.broadcast_to: [4, 3] does not broadcast, expected a shape of at least its rank, got [3]}}
  %y = graph.broadcast_to %x shape = [3] : (tensor<4x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.broadcast_to: [4, 3] does not broadcast to [2, 3], expected 2, got 4}}
  %y = graph.broadcast_to %x shape = [2, 3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<5x3xf32>) {
  // expected-error @+1 {{graph.concat: sizes of axis 0 differ, expected 4, got 5}}
  %y = graph.concat %a, %b axis = 1 : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{graph.concat: ranks differ, expected 2, got 1}}
  %y = graph.concat %a, %b axis = 0 : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x3xi32>) {
  // expected-error @+1 {{graph.concat: element types differ, expected f32, got i32}}
  %y = graph.concat %a, %b axis = 0 : (tensor<4x3xf32>, tensor<4x3xi32>) -> tensor<8x3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.concat: nothing to concatenate, expected 1 operand or more, got 0}}
  %y = "graph.concat"() <{axis = 0 : i64}> : () -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.slice: wrong number of starts, expected 2, got 1}}
  %y = graph.slice %x starts = [0] ends = [4, 3] steps = [1, 1] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.slice: step of axis 0 is 0, expected a step that is not 0}}
  %y = graph.slice %x starts = [0] ends = [4] steps = [0] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.slice: bounds of axis 0 are not clamped to its size, expected 0 <= start, end <= 4, got [0, 5]}}
  %y = graph.slice %x starts = [0] ends = [5] steps = [1] : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error @+1 {{graph.slice: axis 0 has a symbolic size and can only be taken whole, expected [0, 9223372036854775807, 1], got [1, 3, 1]}}
  %y = graph.slice %x starts = [1] ends = [3] steps = [1] : (tensor<?xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{expected a dense tensor of i32, i64, got tensor<2xf32>}}
  %y = graph.gather %x, %i axis = 0 : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{graph.gather: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.gather %x, %i axis = 2 : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<4x3x2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.constant: shape is not static, got tensor<?x3xf32>}}
  %y = graph.constant dense_resource<w> : tensor<?x3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.constant: nnz of a dense constant, expected a sparse type, got tensor<2x3xf32>}}
  %y = graph.constant nnz = 3 dense_resource<w> : tensor<2x3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{expected a tensor of f16, bf16, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN, i4, ui4, i2, ui2, got tensor<2xi7>}}
  %y = graph.constant dense<[1, 2]> : tensor<2xi7>
  func.return
}

// -----

func.func @f(%seeds: tensor<4xi32>) {
  // expected-error @+1 {{expected a dense tensor of i64, got tensor<4xi32>}}
  %y = graph.random_uniform %seeds : (tensor<4xi32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%seeds: tensor<4xi64>) {
  // expected-error @+1 {{expected a dense tensor of f32, got tensor<4xf64>}}
  %y = graph.random_uniform %seeds : (tensor<4xi64>) -> tensor<4xf64>
  func.return
}

// -----

func.func @f(%n: tensor<i64>) {
  // expected-error @+1 {{graph.arange: a bound is negative, expected 0 or more, got -1}}
  %y = graph.arange %n at_most = -1 : (tensor<i64>) -> tensor<?xi64>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.dynamic_reshape: wrong number of sizes, expected 2, got 1}}
  %y = graph.dynamic_reshape %x to %n shape = [-1, -1] : (tensor<4xf32>, tensor<i64>) -> tensor<?x?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.dynamic_reshape: not a shape, expected sizes, and -1 for each operand, got [-1, -2]}}
  %y = graph.dynamic_reshape %x to %n shape = [-1, -2] : (tensor<4xf32>, tensor<i64>) -> tensor<?x?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.dynamic_reshape: elements of [4] do not fit, expected 4, got 6}}
  %y = graph.dynamic_reshape %x to shape = [2, 3] : (tensor<4xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.dynamic_broadcast: [4] does not broadcast, expected 4, got 3}}
  %y = graph.dynamic_broadcast %x to %n shape = [-1, 3] : (tensor<4xf32>, tensor<i64>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.dynamic_broadcast: [4, 4] does not broadcast, expected a shape of at least its rank, got [-1]}}
  %y = graph.dynamic_broadcast %x to %n shape = [-1] : (tensor<4x4xf32>, tensor<i64>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.dim: axis out of range, expected -1 <= axis < 1, got 1}}
  %n = graph.dim %x axis = 1 : (tensor<4xf32>) -> tensor<i64>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.dynamic_slice: axis out of range, expected -1 <= axis < 1, got 1}}
  %y = graph.dynamic_slice %x from %n by %n take %n axis = 1 : (tensor<4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xf32>
  func.return
}
