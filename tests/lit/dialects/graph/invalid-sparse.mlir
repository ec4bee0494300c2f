// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.spmm: inner dimensions differ, expected 5, got 4}}
  %y = graph.spmm %a, %x : (tensor<4x5xf32, #csr>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.spmm: x is not a matrix, expected rank 2, got rank 1}}
  %y = graph.spmm %a, %x : (tensor<4x4xf32, #csr>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %x: tensor<4x2xf64>) {
  // expected-error @+1 {{graph.spmm: element types differ, expected f32, got f64}}
  %y = graph.spmm %a, %x : (tensor<4x4xf32, #csr>, tensor<4x2xf64>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4x4xf32>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{expected a sparse tensor of f16, f32, f64, got tensor<4x4xf32>}}
  %y = graph.spmm %a, %x : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csc = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csc>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.spmm: a is not a matrix of compressed sparse rows, expected a CSR encoding, got tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32, crdWidth = 32 }>>}}
  %y = graph.spmm %a, %x : (tensor<4x4xf32, #csc>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.degree: a is not square, expected 4, got 5}}
  %y = graph.degree %a self_loops = true power = 1.0 : (tensor<4x5xf32, #csr>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.missing_self_loops: a is not square, expected 4, got 5}}
  %y = graph.missing_self_loops %a : (tensor<4x5xf32, #csr>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.normalize: a is not square, expected 4, got 5}}
  %y = graph.normalize row %a self_loops = true : (tensor<4x5xf32, #csr>) -> tensor<4x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>) {
  // expected-error @+1 {{Expected `symmetric`, or `row`.}}
  %y = graph.normalize column %a self_loops = false : (tensor<4x4xf32, #csr>) -> tensor<4x4xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f() {
  // expected-error @+1 {{graph.constant: a sparse constant has a literal value, expected dense_resource<name>}}
  %y = graph.constant dense<1.0> : tensor<2x2xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f() {
  // expected-error @+1 {{graph.constant: nnz is negative, expected 0 or more, got -1}}
  %y = graph.constant nnz = -1 dense_resource<a> : tensor<2x2xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.exchange: a has columns of other parts, and there is one part, expected 4, got 5}}
  %y = graph.exchange %a, %x : (tensor<4x5xf32, #csr>, tensor<4x2xf32>) -> tensor<5x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %x: tensor<5x2xf32>) {
  // expected-error @+1 {{graph.exchange: x does not have one row for each row of a, expected 4, got 5}}
  %y = graph.exchange %a, %x : (tensor<4x4xf32, #csr>, tensor<5x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.exchange: x has no rows, expected rank 1 or more, got rank 0}}
  %y = graph.exchange %a, %x : (tensor<4x4xf32, #csr>, tensor<f32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.combine: result type differs, expected tensor<4xf32>, got tensor<1xf32>}}
  %y = graph.combine sum %x : (tensor<4xf32>) -> tensor<1xf32>
  func.return
}
