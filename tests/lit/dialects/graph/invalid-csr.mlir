// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%r: tensor<2x3xi64>, %c: tensor<3xi64>, %y: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges: rows is not a vector, expected rank 1, got rank 2}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<2x3xi64>, tensor<3xi64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<i64>, %y: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges: columns is not a vector, expected rank 1, got rank 0}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<3xi64>, tensor<i64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<3xi64>, %y: tensor<f32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges: targets has no first dimension, expected rank 1 or more, got rank 0}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<3xi64>, tensor<3xi64>, tensor<f32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<3xi64>, %y: tensor<4xf32>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.sort_edges: sources has no first dimension, expected rank 1 or more, got rank 0}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<3xi64>, tensor<3xi64>, tensor<4xf32>, tensor<f32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<2xi64>, %y: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges: rows and columns differ in length, expected 3, got 2}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<3xi64>, tensor<2xi64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

func.func @f(%r: tensor<2147483648xi64>, %c: tensor<2147483648xi64>, %y: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges: too many edges, expected at most 2147483647, got 2147483648}}
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<2147483648xi64>, tensor<2147483648xi64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4x1xi32>, %j: tensor<3xi32>, %v: tensor<3xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: indptr is not a vector, expected rank 1, got rank 2}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4x1xi32>, tensor<3xi32>, tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4xi32>, %j: tensor<3x1xi32>, %v: tensor<3xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: indices is not a vector, expected rank 1, got rank 2}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4xi32>, tensor<3x1xi32>, tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4xi32>, %j: tensor<3xi32>, %v: tensor<3x1xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: values is not a vector, expected rank 1, got rank 2}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4xi32>, tensor<3xi32>, tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4xi32>, %j: tensor<3xi32>, %v: tensor<3xf32>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.assemble: sources has no first dimension, expected rank 1 or more, got rank 0}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4xi32>, tensor<3xi32>, tensor<3xf32>, tensor<f32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4xi32>, %j: tensor<3xi64>, %v: tensor<3xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: indptr and indices differ in type, expected i32, got i64}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4xi32>, tensor<3xi64>, tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<0xi32>, %j: tensor<0xi32>, %v: tensor<0xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: too few row pointers, expected 1 or more, got 0}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<0xi32>, tensor<0xi32>, tensor<0xf32>, tensor<4xf32>) -> tensor<?x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%p: tensor<4xi32>, %j: tensor<3xi32>, %v: tensor<2xf32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.assemble: indices and values differ in length, expected 3, got 2}}
  %a = graph.assemble %p, %j, %v of %x : (tensor<4xi32>, tensor<3xi32>, tensor<2xf32>, tensor<4xf32>) -> tensor<3x4xf32, #csr>
  func.return
}

// -----

func.func @f(%r: tensor<2x3xi64>, %c: tensor<3xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: rows is not a vector, expected rank 1, got rank 2}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<2x3xi64>, tensor<3xi64>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<i64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: columns is not a vector, expected rank 1, got rank 0}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<3xi64>, tensor<i64>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<3xi64>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: nodes has no first dimension, expected rank 1 or more, got rank 0}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<3xi64>, tensor<3xi64>, tensor<f32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<3xi32>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: rows and columns differ in type, expected i64, got i32}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<3xi64>, tensor<3xi32>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<2xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: rows and columns differ in length, expected 3, got 2}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<3xi64>, tensor<2xi64>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<1073741825xi64>, %c: tensor<1073741825xi64>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: too many edges, expected at most 1073741824, got 1073741825}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<1073741825xi64>, tensor<1073741825xi64>, tensor<4xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}

// -----

func.func @f(%r: tensor<3xi64>, %c: tensor<3xi64>, %x: tensor<1073741825xi1>) {
  // expected-error @+1 {{graph.sort_edges_with_loops: too many nodes, expected at most 1073741824, got 1073741825}}
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<3xi64>, tensor<3xi64>, tensor<1073741825xi1>) -> (tensor<?xi32>, tensor<?xi32>, tensor<i64>)
  func.return
}
