// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.cumulative: wrong kind, expected sum, prod, max, min, got mean}}
  %y = graph.cumulative mean %x axis = 0 exclusive = false reverse = false : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.cumulative: axis out of range, expected -2 <= axis < 2, got 2}}
  %y = graph.cumulative sum %x axis = 2 exclusive = false reverse = false : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2x5xi64>) {
  // expected-error @+1 {{graph.gather_elements: more indices than elements in dimension 1, expected 3, got 5}}
  %y = graph.gather_elements %x, %i axis = 0 : (tensor<4x3xf32>, tensor<2x5xi64>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{graph.gather_elements: the ranks differ, expected 2, got 1}}
  %y = graph.gather_elements %x, %i axis = 0 : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{graph.gather_nd: wrong number of indices, expected 1 to 1, got 2}}
  %y = graph.gather_nd %x at %i, %i : (tensor<4xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>, %j: tensor<1x2xi64>) {
  // expected-error @+1 {{graph.gather_nd: the indices have different ranks, expected 1, got 2}}
  %y = graph.gather_nd %x at %i, %j : (tensor<4x3xf32>, tensor<2xi64>, tensor<1x2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>, %j: tensor<5xi64>) {
  // expected-error @+1 {{graph.gather_nd: the indices have different shapes, expected 2, got 5}}
  %y = graph.gather_nd %x at %i, %j : (tensor<4x3xf32>, tensor<2xi64>, tensor<5xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2x3xi64>, %u: tensor<2x2xf32>) {
  // expected-error @+1 {{graph.scatter_elements: updates and indices differ in shape, expected 3, got 2}}
  %y = graph.scatter_elements none %x, %i, %u axis = 0 : (tensor<4x3xf32>, tensor<2x3xi64>, tensor<2x2xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2x3xi64>, %u: tensor<6xf32>) {
  // expected-error @+1 {{graph.scatter_elements: updates and indices differ in rank, expected 2, got 1}}
  %y = graph.scatter_elements none %x, %i, %u axis = 0 : (tensor<4x3xf32>, tensor<2x3xi64>, tensor<6xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf64>) {
  // expected-error @+1 {{graph.scatter_nd: element types differ, expected f32, got f64}}
  %y = graph.scatter_nd add %x, %u at %i : (tensor<4x3xf32>, tensor<2x3xf64>, tensor<2xi64>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xi1>, %i: tensor<2xi64>, %u: tensor<2x3xi1>) {
  // expected-error @+1 {{graph.scatter_nd: truth values cannot be combined, expected none, got add}}
  %y = graph.scatter_nd add %x, %u at %i : (tensor<4x3xi1>, tensor<2x3xi1>, tensor<2xi64>) -> tensor<4x3xi1>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error @+1 {{graph.scatter_nd: updates have the wrong rank, expected 2, got 1}}
  %y = graph.scatter_nd add %x, %u at %i : (tensor<4x3xf32>, tensor<2xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x4xf32>) {
  // expected-error @+1 {{graph.scatter_nd: updates have the wrong shape, expected 3, got 4}}
  %y = graph.scatter_nd add %x, %u at %i : (tensor<4x3xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.arg_reduce: wrong kind, expected max, min, got sum}}
  %y = graph.arg_reduce sum %x axis = 0 keepdims = false last = false : (tensor<4x3xf32>) -> tensor<3xi64>
  func.return
}

// -----

func.func @f(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{graph.arg_reduce: a place in an empty axis, expected a size of 1 or more, got 0}}
  %y = graph.arg_reduce max %x axis = 1 keepdims = false last = false : (tensor<4x0xf32>) -> tensor<4xi64>
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.sort: axis out of range, expected -2 <= axis < 2, got -3}}
  %y, %p = graph.sort %x axis = -3 descending = false : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  func.return
}

// -----

func.func @f(%x: tensor<2147483648xi1>) {
  // expected-error @+1 {{graph.sort: the axis is too long, expected at most 2147483647, got 2147483648}}
  %y, %p = graph.sort %x axis = 0 descending = false : (tensor<2147483648xi1>) -> (tensor<2147483648xi1>, tensor<2147483648xi64>)
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.top_k: wrong k, expected 0 to 3, got 4}}
  %y, %p = graph.top_k %x axis = 1 k = 4 largest = true : (tensor<4x3xf32>) -> (tensor<4x4xf32>, tensor<4x4xi64>)
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.nonzero: wrong number of indices, expected one for each dimension of x, got 1}}
  %i, %n = graph.nonzero %x : (tensor<4x3xf32>) -> (tensor<?xi64>, tensor<i64>)
  func.return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{graph.nonzero: wrong number of indices, expected an x with dimensions, got 0}}
  %n = graph.nonzero %x : (tensor<f32>) -> (tensor<i64>)
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.nonzero: a size is not a scalar, expected tensor<i64>, got tensor<1xi64>}}
  %i, %n = graph.nonzero %x : (tensor<4xf32>) -> (tensor<?xi64>, tensor<1xi64>)
  func.return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{graph.unique: x is not a vector, expected rank 1, got rank 2}}
  %y, %i, %j, %c, %n = graph.unique %x sorted = true : (tensor<4x3xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  func.return
}

// -----

func.func @f(%x: tensor<2147483648xi1>) {
  // expected-error @+1 {{graph.unique: x is too long, expected at most 2147483647, got 2147483648}}
  %y, %i, %j, %c, %n = graph.unique %x sorted = true : (tensor<2147483648xi1>) -> (tensor<?xi1>, tensor<?xi64>, tensor<2147483648xi64>, tensor<?xi64>, tensor<i64>)
  func.return
}

// -----

func.func @f(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf64>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) {
  // expected-error @+1 {{graph.suppress_boxes: element types differ, expected f32, got f64}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<1x9x4xf32>, tensor<1x3x9xf64>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%b: tensor<1x9x5xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) {
  // expected-error @+1 {{graph.suppress_boxes: boxes have the wrong shape, expected (batch, n, 4), got [1, 9, 5]}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<1x9x5xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%b: tensor<1x9x4xf32>, %s: tensor<3x9xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) {
  // expected-error @+1 {{graph.suppress_boxes: scores have the wrong rank, expected 3, got 2}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<1x9x4xf32>, tensor<3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<2xf32>) {
  // expected-error @+1 {{graph.suppress_boxes: a limit is not a scalar, expected rank 0, got rank 1}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<2xf32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%b: tensor<2x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) {
  // expected-error @+1 {{graph.suppress_boxes: scores of another batch, expected 2, got 1}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<2x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%b: tensor<1x8x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %o: tensor<f32>, %l: tensor<f32>) {
  // expected-error @+1 {{graph.suppress_boxes: scores of other boxes, expected 8, got 9}}
  %y = graph.suppress_boxes %b, %s, %m, %o, %l : (tensor<1x8x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x9xi64>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<7xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: wrong kind, expected sum, prod, max, min, got mean}}
  %y = graph.tree_ensemble mean %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf64>, %f: tensor<7xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: thresholds have another element type than x, expected f32, got f64}}
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf64>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<7xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: values have the wrong rank, expected 2, got 1}}
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<6xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: numbers of nodes differ, expected 7, got 6}}
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<6xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<7xi32>, %n: tensor<7x3xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<2xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: a node has not two next ones, expected 2, got 3}}
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x3xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %t: tensor<7xf32>, %f: tensor<7xi32>, %n: tensor<7x2xi32>, %l: tensor<7xi32>, %v: tensor<4x3xf32>, %r: tensor<2xi32>, %d: tensor<3xi32>) {
  // expected-error @+1 {{graph.tree_ensemble: numbers of trees differ, expected 2, got 3}}
  %y = graph.tree_ensemble sum %x, %t, %f, %n, %l, %v, %r, %d : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>, tensor<4x3xf32>, tensor<2xi32>, tensor<3xi32>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{graph.det: x is not a matrix, expected rank >= 2, got rank 1}}
  %y = graph.det %x : (tensor<3xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>) {
  // expected-error @+1 {{graph.det: a matrix is not square, expected 3, got 4}}
  %y = graph.det %x : (tensor<2x3x4xf32>) -> tensor<2xf32>
  func.return
}
