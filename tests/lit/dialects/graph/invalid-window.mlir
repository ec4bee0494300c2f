// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf64>) {
  // expected-error @+1 {{graph.conv: element types differ, expected f32, got f64}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf64>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: x has no dimension for a window, expected rank >= 3, got rank 2}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3xf32>) {
  // expected-error @+1 {{graph.conv: w does not fit x, expected rank 4, got rank 3}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: wrong strides, expected 2 positive numbers, got [1]}}
  %y = graph.conv %x, %w strides = [1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: wrong dilations, expected 2 positive numbers, got [1, 0]}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 0] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x0x3xf32>) {
  // expected-error @+1 {{graph.conv: w has no window, expected sizes of 1 or more, got 0}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x0x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: groups out of range, expected groups >= 1, got 0}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 0 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x?x9xf32>, %w: tensor<8x?x3xf32>) {
  // expected-error @+1 {{graph.conv: groups of channels whose number is not known, expected a fixed number, got}}
  %y = graph.conv %x, %w strides = [1] dilations = [1] groups = 2 : (tensor<2x?x9xf32>, tensor<8x?x3xf32>) -> tensor<2x8x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x2x3x3xf32>) {
  // expected-error @+1 {{graph.conv: groups do not divide the filters, expected a multiple of 3, got 8}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 3 : (tensor<2x6x9x9xf32>, tensor<8x2x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: channels of x differ from those of w times groups, expected 12, got 6}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 2 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>, %b: tensor<1x8xf32>) {
  // expected-error @+1 {{graph.conv: bias is not a vector, expected rank 1, got rank 2}}
  %y = graph.conv %x, %w, %b strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>, tensor<1x8xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>, %b: tensor<6xf32>) {
  // expected-error @+1 {{graph.conv: length of bias differs from the filters of w, expected 8, got 6}}
  %y = graph.conv %x, %w, %b strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>, tensor<6xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x2xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: the window is larger than axis 3, expected at most 2, got 3}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x2xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x6x9x9xf32>, %w: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{graph.conv: result type differs, expected tensor<2x8x7x7xf32>, got tensor<2x8x9x9xf32>}}
  %y = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x6x9x9xf32>, tensor<8x6x3x3xf32>) -> tensor<2x8x9x9xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{graph.pool: window does not fit x, expected 1 to 2 sizes, got [2, 2, 2]}}
  %y = graph.pool max %x window = [2, 2, 2] strides = [1, 1, 1] dilations = [1, 1, 1] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{graph.pool: window does not fit x, expected 1 to 2 sizes, got []}}
  %y = graph.pool max %x window = [] strides = [] dilations = [] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{graph.pool: wrong window, expected 1 positive numbers, got [0]}}
  %y = graph.pool max %x window = [0] strides = [1] dilations = [1] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{graph.pool: wrong strides, expected 1 positive numbers, got [1, 1]}}
  %y = graph.pool max %x window = [2] strides = [1, 1] dilations = [1] : (tensor<4x6xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{graph.pool: the window is larger than axis 1, expected at most 6, got 7}}
  %y = graph.pool max %x window = [3] strides = [1] dilations = [3] : (tensor<4x6xf32>) -> tensor<4x1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.pad: low does not fit x, expected 2 numbers of 0 or more, got [1]}}
  %y = graph.pad constant %x low = [1] high = [1, 1] value = 0.0 : f64 : (tensor<4x3xf32>) -> tensor<6x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.pad: high does not fit x, expected 2 numbers of 0 or more, got [1, -1]}}
  %y = graph.pad constant %x low = [1, 1] high = [1, -1] value = 0.0 : f64 : (tensor<4x3xf32>) -> tensor<6x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.pad: value has the wrong type for f32, expected an f64, got 0 : i64}}
  %y = graph.pad constant %x low = [1, 1] high = [1, 1] value = 0 : i64 : (tensor<4x3xf32>) -> tensor<6x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xi8>) {
  // expected-error @+1 {{graph.pad: value does not fit i8, expected -128 to 127, got 128}}
  %y = graph.pad constant %x low = [1] high = [1] value = 128 : i64 : (tensor<3xi8>) -> tensor<5xi8>
  func.return
}

// -----

func.func @f(%x: tensor<3xi1>) {
  // expected-error @+1 {{graph.pad: value does not fit i1, expected 0 to 1, got 2}}
  %y = graph.pad constant %x low = [1] high = [1] value = 2 : i64 : (tensor<3xi1>) -> tensor<5xi1>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error @+1 {{graph.pad: axis 0 has a symbolic size and can only be padded with a constant, expected constant, got edge}}
  %y = graph.pad edge %x low = [1] high = [1] value = 0.0 : f64 : (tensor<?xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.pad: axis 0 is too short to be mirrored, expected more than 3, got 3}}
  %y = graph.pad reflect %x low = [3] high = [1] value = 0.0 : f64 : (tensor<3xf32>) -> tensor<7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<0xf32>) {
  // expected-error @+1 {{graph.pad: axis 0 is empty and can only be padded with a constant, got wrap}}
  %y = graph.pad wrap %x low = [1] high = [0] value = 0.0 : f64 : (tensor<0xf32>) -> tensor<1xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{graph.pad_same: extents do not fit x, expected 1 to 2 sizes, got []}}
  %y = graph.pad_same %x extents = [] strides = [] more_after = true value = 0.0 : f64 : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{graph.pad_same: wrong strides, expected 1 positive numbers, got [0]}}
  %y = graph.pad_same %x extents = [3] strides = [0] more_after = true value = 0.0 : f64 : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x?xi8>) {
  // expected-error @+1 {{graph.pad_same: value does not fit i8, expected -128 to 127, got 128}}
  %y = graph.pad_same %x extents = [3] strides = [2] more_after = true value = 128 : i64 : (tensor<4x?xi8>) -> tensor<4x?xi8>
  func.return
}
