// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @axis(%i: tensor<3xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.check_indices: axis out of range, expected -1 <= axis < 1, got 1}}
  %a = graph.check_indices %i of %x axis = 1 : (tensor<3xi64>, tensor<4xf32>) -> tensor<3xi64>
  func.return
}

// -----

func.func @result(%i: tensor<3xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.check_indices}}
  %a = graph.check_indices %i of %x axis = 0 : (tensor<3xi64>, tensor<4xf32>) -> tensor<2xi64>
  func.return
}

// -----

func.func @no_size(%i: tensor<3xi64>) {
  // expected-error @+1 {{graph.check_indices: wrong size to check against, expected an axis of x, or a number}}
  %a = graph.check_indices %i : (tensor<3xi64>) -> tensor<3xi64>
  func.return
}

// -----

func.func @two_sizes(%i: tensor<3xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.check_indices: wrong size to check against, expected an axis of x, or a number}}
  %a = graph.check_indices %i of %x axis = 0 below 4 : (tensor<3xi64>, tensor<4xf32>) -> tensor<3xi64>
  func.return
}

// -----

func.func @negative(%i: tensor<3xi64>) {
  // expected-error @+1 {{graph.check_indices: negative size, expected 0 or more, got -1}}
  %a = graph.check_indices %i below -1 : (tensor<3xi64>) -> tensor<3xi64>
  func.return
}

// -----

func.func @details(%x: tensor<4xf32>, %ok: tensor<i1>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.check: too many details, expected at most 3, got 4}}
  %a = graph.check %x if %ok "wrong" (%n, %n, %n, %n) : (tensor<4xf32>, tensor<i1>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4xf32>
  func.return
}
