// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf16>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: element types differ, expected f32, got f16}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf16>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<5x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) {
  // expected-error @+1 {{graph.attention: wrong ranks of q, k and v, expected the same rank, 3 or more, got 2, 2 and 2}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<5x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<2x4x5x8xf32>, %k: tensor<3x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: batches of q and k differ, expected 2, got 3}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<2x4x5x8xf32>, tensor<3x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<3x4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: batches of q and v differ, expected 2, got 3}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>) -> tensor<2x4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<2x6x8xf32>) {
  // expected-error @+1 {{graph.attention: heads of k and v differ, expected 4, got 2}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<2x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x7x8xf32>) {
  // expected-error @+1 {{graph.attention: lengths of k and v differ, expected 6, got 7}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x9xf32>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: widths of q and k differ, expected 8, got 9}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x9xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x?xf32>, %k: tensor<4x6x?xf32>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: the width of q and k is not known, expected a number, got _0}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x?xf32>, tensor<4x6x?xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x?xf32>) {
  // expected-error @+1 {{graph.attention: the width of v is not known, expected a number, got _0}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x?xf32>) -> tensor<4x5x?xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<3x6x8xf32>, %v: tensor<3x6x8xf32>) {
  // expected-error @+1 {{graph.attention: heads of k do not divide those of q, expected a divisor of 4, got 3}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<3x6x8xf32>, tensor<3x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>, %m: tensor<6xi32>) {
  // expected-error @+1 {{graph.attention: wrong element type of the mask, expected i1 or f32, got i32}}
  %y = graph.attention %q, %k, %v mask %m : tensor<6xi32> scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>, %m: tensor<1x4x5x6xi1>) {
  // expected-error @+1 {{graph.attention: the mask does not broadcast to the scores, expected [4, 5, 6], got [1, 4, 5, 6]}}
  %y = graph.attention %q, %k, %v mask %m : tensor<1x4x5x6xi1> scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.attention: wrong rank of the lengths, expected 1, got 0}}
  %y = graph.attention %q, %k, %v lengths %n : tensor<i64> scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %n: tensor<3xi64>) {
  // expected-error @+1 {{graph.attention: lengths are not those of the batch, expected 2, got 3}}
  %y = graph.attention %q, %k, %v lengths %n : tensor<3xi64> scale = 1.0 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: wrong left, expected -1 or more, got -2}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = 0.0 left = -2 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{graph.attention: wrong softcap, expected 0, or a finite number above it, got -1.0}}
  %y = graph.attention %q, %k, %v scale = 1.0 softcap = -1.0 left = -1 right = -1 at_end = false safe = false : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  func.return
}
