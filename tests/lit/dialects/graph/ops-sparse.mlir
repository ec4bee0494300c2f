// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Operators on sparse matrices.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @constant
func.func @constant() -> tensor<2708x2708xf32, #csr> {
  // CHECK: %y = graph.constant nnz = 13264 dense_resource<adj> : tensor<2708x2708xf32, #csr>
  %y = graph.constant nnz = 13264 dense_resource<adj> : tensor<2708x2708xf32, #csr>
  func.return %y : tensor<2708x2708xf32, #csr>
}

// CHECK-LABEL: func.func @spmm
func.func @spmm(%a: tensor<?x?xf32, #csr>, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  // CHECK: %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @degree
func.func @degree(%a: tensor<?x?xf32, #csr>) -> tensor<?xf32> {
  // CHECK: %y = graph.degree %a self_loops = true power = -5.000000e-01 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %y = graph.degree %a self_loops = true power = -5.000000e-01 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @missing_self_loops
func.func @missing_self_loops(%a: tensor<?x?xf32, #csr>) -> tensor<?xf32> {
  // CHECK: %y = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %y = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @normalize_symmetric
func.func @normalize_symmetric(%a: tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr> {
  // CHECK: %y = graph.normalize symmetric %a self_loops = true : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
  %y = graph.normalize symmetric %a self_loops = true : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
  func.return %y : tensor<?x?xf32, #csr>
}

// CHECK-LABEL: func.func @normalize_row
func.func @normalize_row(%a: tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr> {
  // CHECK: %y = graph.normalize row %a self_loops = false : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
  %y = graph.normalize row %a self_loops = false : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
  func.return %y : tensor<?x?xf32, #csr>
}
