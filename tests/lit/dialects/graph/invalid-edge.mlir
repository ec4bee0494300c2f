// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

#csc = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csc>) {
  // expected-error @+1 {{graph.entries: a is not a matrix of compressed sparse rows, expected a CSR encoding}}
  %y = graph.entries %a : (tensor<4x5xf32, #csc>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>) {
  // expected-error @+1 {{graph.entries: result type differs, expected tensor<?xf32>, got tensor<?xf64>}}
  %y = graph.entries %a : (tensor<4x5xf32, #csr>) -> tensor<?xf64>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<5x2xf32>) {
  // expected-error @+1 {{graph.sddmm: x does not have one row for each row of a, expected 4, got 5}}
  %y = graph.sddmm dot %a, %x, %x : (tensor<4x5xf32, #csr>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.sddmm: y does not have one row for each column of a, expected 5, got 4}}
  %y = graph.sddmm add %a, %x, %x : (tensor<4x5xf32, #csr>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>, %z: tensor<5x3xf32>) {
  // expected-error @+1 {{graph.sddmm: rows of x and y differ, expected 2, got 3}}
  %y = graph.sddmm mul %a, %x, %z : (tensor<4x5xf32, #csr>, tensor<4x2xf32>, tensor<5x3xf32>) -> tensor<?x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>, %z: tensor<5xf32>) {
  // expected-error @+1 {{graph.sddmm: rows of x and y differ, expected [2], got []}}
  %y = graph.sddmm sub %a, %x, %z : (tensor<4x5xf32, #csr>, tensor<4x2xf32>, tensor<5xf32>) -> tensor<?x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4xf32>, %z: tensor<5xf32>) {
  // expected-error @+1 {{graph.sddmm: x has too few dimensions, expected rank 2 or more, got rank 1}}
  %y = graph.sddmm dot %a, %x, %z : (tensor<4x5xf32, #csr>, tensor<4xf32>, tensor<5xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{graph.sddmm: y has no rows, expected rank 1, got rank 0}}
  %y = graph.sddmm add %a, %x, %z : (tensor<4x5xf32, #csr>, tensor<4xf32>, tensor<f32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4xf32>, %z: tensor<5xf64>) {
  // expected-error @+1 {{graph.sddmm: element types differ, expected f32, got f64}}
  %y = graph.sddmm add %a, %x, %z : (tensor<4x5xf32, #csr>, tensor<4xf32>, tensor<5xf64>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<f32>) {
  // expected-error @+1 {{graph.edge_softmax: scores has no dimension for the entries of a, expected rank 1 or more, got rank 0}}
  %y = graph.edge_softmax %a, %e : (tensor<4x5xf32, #csr>, tensor<f32>) -> tensor<f32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %e: tensor<?xf32>, %s: tensor<5xf32>) {
  // expected-error @+1 {{graph.edge_softmax: own does not have one score for each row of a, expected 4, got 5}}
  %y = graph.edge_softmax %a, %e own %s : (tensor<4x4xf32, #csr>, tensor<?xf32>, tensor<5xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<?xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{graph.edge_softmax: a is not square, as a graph with self loops is, expected 4, got 5}}
  %y = graph.edge_softmax %a, %e own %s : (tensor<4x5xf32, #csr>, tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x4xf32, #csr>, %e: tensor<?x2xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{graph.own_softmax: own does not have one score for each row of a, expected [4, 2], got [4]}}
  %y = graph.own_softmax %a, %e own %s : (tensor<4x4xf32, #csr>, tensor<?x2xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.aggregate: x has no rows, expected rank 1 or more, got rank 0}}
  %y = graph.aggregate sum %a, %x : (tensor<4x5xf32, #csr>, tensor<f32>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<4x2xf32>) {
  // expected-error @+1 {{graph.aggregate: x does not have one row for each column of a, expected 5, got 4}}
  %y = graph.aggregate sum %a, %x : (tensor<4x5xf32, #csr>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<5x2xf32>) {
  // expected-error @+1 {{graph.aggregate: softmax has no scores, expected weights, got none}}
  %y = graph.aggregate softmax %a, %x : (tensor<4x5xf32, #csr>, tensor<5x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %e: tensor<?x2xf32>) {
  // expected-error @+1 {{graph.reduce_entries: softmax has no scores, expected graph.aggregate with weights, got graph.reduce_entries}}
  %y = graph.reduce_entries softmax %a, %e : (tensor<4x5xf32, #csr>, tensor<?x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<5x2xf32>, %p: tensor<?x3xf32>) {
  // expected-error @+1 {{graph.aggregate: weights do not fit the leading dimensions of x, expected 2, got 3}}
  %y = graph.aggregate sum %a, %x weights %p : (tensor<4x5xf32, #csr>, tensor<5x2xf32>, tensor<?x3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<5x2xf32>) {
  // expected-error @+1 {{Expected `sum`, `mean`, `max`, `min`, `prod`, `var`, `std`, or `softmax`.}}
  %y = graph.aggregate median %a, %x : (tensor<4x5xf32, #csr>, tensor<5x2xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<4x5xf32, #csr>, %x: tensor<f32>) {
  // expected-error @+1 {{graph.reduce_entries: x has no dimension for the entries of a, expected rank 1 or more, got rank 0}}
  %y = graph.reduce_entries sum %a, %x : (tensor<4x5xf32, #csr>, tensor<f32>) -> tensor<4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<3x2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: wrong kind, expected sum, mean, max, min, var, std, got prod}}
  %y = graph.aggregate_dense prod %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5x2xf32>, tensor<3x2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5xf32>, %w: tensor<3x2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: x has the wrong rank, expected 2, got 1}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5xf32>, tensor<3x2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: w has the wrong rank, expected 3, got 2}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<0x2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: w has no parts, expected 1 or more, got 0}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5x2xf32>, tensor<0x2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<4x2xf32>, %w: tensor<3x2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: x does not have one row for each column of a, expected 5, got 4}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<4x2xf32>, tensor<3x2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: rows of x do not fit the weights, expected 2, got 3}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5x2xf32>, tensor<3x3x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<7x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<3x2x4xf32>) {
  // expected-error @+1 {{graph.aggregate_dense: a does not have one row for each part of each node, expected a multiple of 3, got 7}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<7x5xf32, #csr>, tensor<5x2xf32>, tensor<3x2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @f(%a: tensor<6x5xf32, #csr>, %x: tensor<5x2xf32>, %w: tensor<3x2x4xf64>) {
  // expected-error @+1 {{graph.aggregate_dense: element types differ, expected f32, got f64}}
  %y = graph.aggregate_dense sum %a, %x, %w : (tensor<6x5xf32, #csr>, tensor<5x2xf32>, tensor<3x2x4xf64>) -> tensor<2x4xf32>
  func.return
}
