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

// CHECK-LABEL: func.func @exchange
func.func @exchange(%a: tensor<?x?xf32, #csr>, %x: tensor<?x4x2xi1>) -> tensor<?x4x2xi1> {
  // CHECK: %y = graph.exchange %a, %x : (tensor<?x?xf32, #csr>, tensor<?x4x2xi1>) -> tensor<?x4x2xi1>
  %y = graph.exchange %a, %x : (tensor<?x?xf32, #csr>, tensor<?x4x2xi1>) -> tensor<?x4x2xi1>
  func.return %y : tensor<?x4x2xi1>
}

// CHECK-LABEL: func.func @combine
func.func @combine(%x: tensor<1x4xi32>) -> tensor<1x4xi32> {
  // CHECK: %y = graph.combine max %x : (tensor<1x4xi32>) -> tensor<1x4xi32>
  %y = graph.combine max %x : (tensor<1x4xi32>) -> tensor<1x4xi32>
  func.return %y : tensor<1x4xi32>
}

// On a part of a graph there are more columns than rows.
// CHECK-LABEL: func.func @part
func.func @part(%a: tensor<4x6xf32, #csr>, %e: tensor<?xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>) {
  // CHECK: %d = graph.degree %a halo values %e self_loops = true power = 1.000000e+00 : (tensor<4x6xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  %d = graph.degree %a halo values %e self_loops = true power = 1.000000e+00 : (tensor<4x6xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  // CHECK: %m = graph.missing_self_loops %a halo : (tensor<4x6xf32, #csr>) -> tensor<4xf32>
  %m = graph.missing_self_loops %a halo : (tensor<4x6xf32, #csr>) -> tensor<4xf32>
  // CHECK: %p = graph.edge_softmax %a halo, %e own %s : (tensor<4x6xf32, #csr>, tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  %p = graph.edge_softmax %a halo, %e own %s : (tensor<4x6xf32, #csr>, tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  // CHECK: %q = graph.own_softmax %a halo, %e own %s : (tensor<4x6xf32, #csr>, tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  %q = graph.own_softmax %a halo, %e own %s : (tensor<4x6xf32, #csr>, tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d, %m, %p, %q : tensor<4xf32>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>
}
