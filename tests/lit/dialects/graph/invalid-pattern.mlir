// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<7x2xf32>) {
  // expected-error @+1 {{graph.with_entries: values is not a vector, expected rank 1, got rank 2}}
  %y = graph.with_entries %a, %e : (tensor<4x5xf32, #csr>, tensor<7x2xf32>) -> tensor<4x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<f32>) {
  // expected-error @+1 {{graph.with_entries: values has no dimension for the entries of a, expected rank 1 or more, got rank 0}}
  %y = graph.with_entries %a, %e : (tensor<4x5xf32, #csr>, tensor<f32>) -> tensor<4x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.at_entries: x does not have one row for each column of a, expected 5, got 4}}
  %y = graph.at_entries %a, %x axis = 1 : (tensor<4x5xf32, #csr>, tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.at_entries: axis out of range, expected 0 or 1, got 2}}
  %y = graph.at_entries %a, %x axis = 2 : (tensor<4x5xf32, #csr>, tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.at_entries: x has no rows, expected rank 1 or more, got rank 0}}
  %y = graph.at_entries %a, %x axis = 0 : (tensor<4x5xf32, #csr>, tensor<f32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.slice_rows: the rows are not a range, expected 0 <= start <= end, got [3, 2)}}
  %y = graph.slice_rows %a start = 3 end = 2 : (tensor<4x5xf32, #csr>) -> tensor<1x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.slice_rows: the rows are not all in a, expected end <= 4, got 5}}
  %y = graph.slice_rows %a start = 3 end = 5 : (tensor<4x5xf32, #csr>) -> tensor<2x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<?x5xf32, #csr>) {
  // expected-error @+1 {{graph.slice_rows: a has a symbolic number of rows, expected a number}}
  %y = graph.slice_rows %a start = 3 end = 5 : (tensor<?x5xf32, #csr>) -> tensor<2x5xf32, #csr>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<7x2xf32>) {
  // expected-error @+1 {{graph.to_dense: values is not a vector, expected rank 1, got rank 2}}
  %y = graph.to_dense %a values %e : (tensor<4x5xf32, #csr>, tensor<7x2xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %e: tensor<7x2xf32>) {
  // expected-error @+1 {{graph.degree: values is not a vector, expected rank 1, got rank 2}}
  %y = graph.degree %a values %e self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>, tensor<7x2xf32>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error-re @+1 {{expected a dense tensor of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, got tensor<4x5xf32, #{{.*}}>; graph.to_dense makes one}}
  %y = graph.relu %a : (tensor<4x5xf32, #csr>) -> tensor<4x5xf32, #csr>
  func.return
}
