// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<f32>, %o: tensor<3xi64>) {
  // expected-error @+1 {{graph.segment_reduce: x has no axis to divide into segments, expected rank >= 1, got rank 0}}
  %y = graph.segment_reduce sum %x, %o : (tensor<f32>, tensor<3xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %o: tensor<3x1xi64>) {
  // expected-error @+1 {{graph.segment_reduce: wrong rank of the offsets, expected 1, got 2}}
  %y = graph.segment_reduce sum %x, %o : (tensor<4xf32>, tensor<3x1xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %o: tensor<0xi64>) {
  // expected-error @+1 {{graph.segment_reduce: too few offsets, expected 1 or more, got 0}}
  %y = graph.segment_reduce sum %x, %o : (tensor<4xf32>, tensor<0xi64>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xi64>) {
  // expected-error @+1 {{graph.histogram: wrong number of bins, expected 1 or more, got 0}}
  %y = graph.histogram %x bins = 0 : (tensor<4xi64>) -> tensor<0xi64>
  func.return
}

// -----

func.func @f(%x: tensor<4xi64>, %w: tensor<4x1xf32>) {
  // expected-error @+1 {{graph.histogram: weights have the wrong rank, expected 1, got 2}}
  %y = graph.histogram %x weights %w bins = 3 : (tensor<4xi64>, tensor<4x1xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xi64>, %w: tensor<5xf32>) {
  // expected-error @+1 {{graph.histogram: weights have the wrong shape, expected 4, got 5}}
  %y = graph.histogram %x weights %w bins = 3 : (tensor<4xi64>, tensor<5xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%i: tensor<4xi64>, %v: tensor<2xf32>) {
  // expected-error @+1 {{graph.one_hot: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.one_hot %i, %v axis = 2 depth = 5 : (tensor<4xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%i: tensor<4xi64>, %v: tensor<2xf32>) {
  // expected-error @+1 {{graph.one_hot: wrong depth, expected 0 or more, got -5}}
  %y = graph.one_hot %i, %v axis = 1 depth = -5 : (tensor<4xi64>, tensor<2xf32>) -> tensor<4x?xf32>
  func.return
}

// -----

func.func @f(%i: tensor<4xi64>, %v: tensor<1x2xf32>) {
  // expected-error @+1 {{graph.one_hot: values have the wrong rank, expected 1, got 2}}
  %y = graph.one_hot %i, %v axis = 1 depth = 5 : (tensor<4xi64>, tensor<1x2xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%i: tensor<4xi64>, %v: tensor<3xf32>) {
  // expected-error @+1 {{graph.one_hot: wrong number of values, expected 2, got 3}}
  %y = graph.one_hot %i, %v axis = 1 depth = 5 : (tensor<4xi64>, tensor<3xf32>) -> tensor<4x5xf32>
  func.return
}
