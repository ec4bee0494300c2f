// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf64>) {
  // expected-error @+1 {{graph.blocked_conv: element types differ, expected f32, got f64}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf64>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x3xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: x has no dimension for a window, expected rank >= 4, got rank 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x3xf32>, tensor<8x6x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: w does not fit x, expected rank 4, got rank 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: wrong strides, expected 2 positive numbers, got [0, 1]}}
  %y = graph.blocked_conv %x, %w strides = [0, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x?xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the block of x is not a number, expected sizes of 1 or more, got [?]}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x?xf32>, tensor<8x6x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x?x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: w has a size that is not a number, expected sizes of 1 or more, got [8, 6, ?, 3]}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x?x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the block does not divide the filters, expected a divisor of 8, got 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 3 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x5x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: channels of x do not fall into groups of those of w, expected a multiple of 5, got 6}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x5x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x4x9x9x3xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the block of x does not divide the channels of a group, expected a divisor of 4, got 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 2 : (tensor<2x4x9x9x3xf32>, tensor<6x4x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x9x2xf32>, %w: tensor<8x2x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: groups do not divide the filters, expected a multiple of 3, got 8}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x3x9x9x2xf32>, tensor<8x2x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x4x9x9x2xf32>, %w: tensor<8x2x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the block does not divide the filters of a group, expected a divisor of 2, got 4}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x4x9x9x2xf32>, tensor<8x2x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x2x9x3xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the window is larger than axis 2, expected at most 2, got 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x2x9x3xf32>, tensor<8x6x3x3xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf32>, %b: tensor<8x1xf32>) {
  // expected-error @+1 {{graph.blocked_conv: bias is not a vector, expected rank 1, got rank 2}}
  %y = graph.blocked_conv %x, %w, %b strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf32>, tensor<8x1xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{graph.blocked_conv: length of bias differs from the filters of w, expected 8, got 4}}
  %y = graph.blocked_conv %x, %w, %b strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf32>, tensor<4xf32>) -> tensor<2x2x7x7x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: result type differs, expected tensor<2x2x7x7x4xf32>, got tensor<2x4x7x7x2xf32>}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 4 : (tensor<2x2x9x9x3xf32>, tensor<8x6x3x3xf32>) -> tensor<2x4x7x7x2xf32>
  func.return
}

// -----

func.func @f(%w: tensor<4x2x3x1xf32>) {
  // expected-error @+1 {{graph.winograd_filter: the window is not square, expected 3, got 1}}
  %u = graph.winograd_filter %w tile = 2 : (tensor<4x2x3x1xf32>) -> tensor<16x2x4xf32>
  func.return
}

// -----

func.func @f(%w: tensor<4x2x3x3xf32>) {
  // expected-error @+1 {{graph.winograd_filter: no algorithm for the tile and the window, expected sizes of 1 or more, of at most 6 + 1, got 5 and 3}}
  %u = graph.winograd_filter %w tile = 5 : (tensor<4x2x3x3xf32>) -> tensor<49x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x2x4x1xf32>, %u: tensor<16x2x4xf32>) {
  // expected-error @+1 {{graph.winograd_conv: the window is larger than axis 2, expected at most 2, got 3}}
  %y = graph.winograd_conv %x, %u tile = 2 block = 2 : (tensor<1x2x2x4x1xf32>, tensor<16x2x4xf32>) -> tensor<1x2x1x2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x6x4x1xf32>, %u: tensor<15x2x4xf32>) {
  // expected-error @+1 {{graph.winograd_conv: the tile does not fit u, expected n x n transformed numbers of a filter, with tile <= n <= 6, got 15 numbers, and a tile of 2}}
  %y = graph.winograd_conv %x, %u tile = 2 block = 2 : (tensor<1x2x6x4x1xf32>, tensor<15x2x4xf32>) -> tensor<1x2x4x2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<8x1x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: channels of x differ from filters of one each, expected 8, got 6}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 3 : (tensor<2x2x9x9x3xf32>, tensor<8x1x3x3xf32>) -> tensor<2x2x7x7x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x2x9x9x3xf32>, %w: tensor<6x1x3x3xf32>) {
  // expected-error @+1 {{graph.blocked_conv: the block differs from that of x, expected 2, got 3}}
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 2 : (tensor<2x2x9x9x3xf32>, tensor<6x1x3x3xf32>) -> tensor<2x3x7x7x2xf32>
  func.return
}
