// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x768xf32>, %w: tensor<128x784xf32>) {
  // expected-error @+1 {{graph.dense: inner dimensions differ, expected 784, got 768 (node "fc1")}}
  %y = graph.dense %x, %w : (tensor<?x768xf32>, tensor<128x784xf32>) -> tensor<?x128xf32> loc("fc1")
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %w: tensor<3xf32>) {
  // expected-error @+1 {{graph.dense: w is not a matrix, expected rank 2, got rank 1}}
  %y = graph.dense %x, %w : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<f32>, %w: tensor<3x1xf32>) {
  // expected-error @+1 {{graph.dense: x has no dimension, expected rank >= 1, got rank 0}}
  %y = graph.dense %x, %w : (tensor<f32>, tensor<3x1xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{graph.dense: length of bias differs from the rows of w, expected 5, got 4}}
  %y = graph.dense %x, %w, %b : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<4xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %b: tensor<1x5xf32>) {
  // expected-error @+1 {{graph.dense: bias is not a vector, expected rank 1, got rank 2}}
  %y = graph.dense %x, %w, %b : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<1x5xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %w: tensor<5x3xf16>) {
  // expected-error @+1 {{graph.dense: element types differ, expected f32, got f16}}
  %y = graph.dense %x, %w : (tensor<4x3xf32>, tensor<5x3xf16>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.matmul: inner dimensions differ, expected 3, got 4}}
  %y = graph.matmul %a, %b : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+1 {{graph.matmul: an operand is not a matrix, expected rank >= 2, got [3]}}
  %y = graph.matmul %a, %b : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<2x4x3xf32>, %b: tensor<5x3x4xf32>) {
  // expected-error @+1 {{graph.matmul: shapes [2] and [5] do not broadcast, expected 2, got 5}}
  %y = graph.matmul %a, %b : (tensor<2x4x3xf32>, tensor<5x3x4xf32>) -> tensor<2x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reduce: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.reduce sum %x axes = [2] keepdims = false : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.reduce: an axis is named twice, expected axes that differ, got [1, -1]}}
  %y = graph.reduce sum %x axes = [1, -1] keepdims = false : (tensor<4x3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{graph.reduce: max of an empty axis, expected a size of 1 or more, got 0}}
  %y = graph.reduce max %x axes = [1] keepdims = false : (tensor<4x0xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{Expected `sum`, `mean`, `max`, `maxnum`, `min`, or `prod`.}}
  %y = graph.reduce median %x axes = [1] keepdims = false : (tensor<4x3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.softmax: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.softmax %x axis = 2 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.log_softmax: axis out of range, expected -2 <= axis < 2, got -3}}
  %y = graph.log_softmax %x axis = -3 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}
