// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Sparse matrices that are made of others.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @with_entries(
func.func @with_entries(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf32>) -> tensor<?x?xf32, #csr> {
  // CHECK: %y = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32, #csr>
  %y = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32, #csr>
  func.return %y : tensor<?x?xf32, #csr>
}

// CHECK-LABEL: func.func @with_entries_of_another_type(
func.func @with_entries_of_another_type(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf64>) -> tensor<?x?xf64, #csr> {
  // CHECK: %y = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf64>) -> tensor<?x?xf64, #csr>
  %y = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf64>) -> tensor<?x?xf64, #csr>
  func.return %y : tensor<?x?xf64, #csr>
}

// CHECK-LABEL: func.func @at_entries(
func.func @at_entries(%a: tensor<?x?xf32, #csr>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK: %y = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @slice_rows(
func.func @slice_rows(%a: tensor<9x?xf32, #csr>) -> tensor<3x?xf32, #csr> {
  // CHECK: %y = graph.slice_rows %a start = 2 end = 5 : (tensor<9x?xf32, #csr>) -> tensor<3x?xf32, #csr>
  %y = graph.slice_rows %a start = 2 end = 5 : (tensor<9x?xf32, #csr>) -> tensor<3x?xf32, #csr>
  func.return %y : tensor<3x?xf32, #csr>
}

// CHECK-LABEL: func.func @to_dense(
func.func @to_dense(%a: tensor<?x?xf32, #csr>) -> tensor<?x?xf32> {
  // CHECK: %y = graph.to_dense %a : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32>
  %y = graph.to_dense %a : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @to_dense_values(
func.func @to_dense_values(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf32>) -> tensor<?x?xf32> {
  // CHECK: %y = graph.to_dense %a values %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32>
  %y = graph.to_dense %a values %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @degree_values(
func.func @degree_values(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.degree %a values %e self_loops = true power = -5.000000e-01 : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %y = graph.degree %a values %e self_loops = true power = -5.000000e-01 : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @missing_self_loops_values(
func.func @missing_self_loops_values(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.missing_self_loops %a values %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %y = graph.missing_self_loops %a values %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
