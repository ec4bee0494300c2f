// RUN: stepwell-opt %s -p canonicalize,dce | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @by_stored_values(
// CHECK-NEXT: %[[y:.*]] = graph.spmm %a, %x
// CHECK-NEXT: func.return %[[y]]
func.func @by_stored_values(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %y = graph.aggregate sum %a, %x weights %e : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// The values of another matrix, or another way to combine them, are no product.
// CHECK-LABEL: func.func @no_product(
// CHECK: graph.aggregate sum %a
// CHECK: graph.aggregate mean %a
// CHECK: graph.aggregate sum %a
func.func @no_product(%a: tensor<?x?xf32, #csr>, %b: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %f = graph.entries %b : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %y = graph.aggregate sum %a, %x weights %f : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  %z = graph.aggregate mean %a, %x weights %e : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  %v = graph.aggregate sum %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y, %z, %v : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @columns(
// CHECK-NEXT: %[[y:.*]] = graph.aggregate mean %a, %x
// CHECK-NEXT: func.return %[[y]]
func.func @columns(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %e = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.reduce_entries mean %a, %e : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// What rows have, or the columns of another matrix, is not sent by columns.
// CHECK-LABEL: func.func @no_columns(
// CHECK: graph.reduce_entries sum %a
// CHECK: graph.reduce_entries sum %a
func.func @no_columns(%a: tensor<4x4xf32, #csr>, %b: tensor<4x4xf32, #csr>, %x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = graph.at_entries %a, %x axis = 0 : (tensor<4x4xf32, #csr>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %f = graph.at_entries %b, %x axis = 1 : (tensor<4x4xf32, #csr>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %y = graph.reduce_entries sum %a, %e : (tensor<4x4xf32, #csr>, tensor<?x8xf32>) -> tensor<4x8xf32>
  %z = graph.reduce_entries sum %a, %f : (tensor<4x4xf32, #csr>, tensor<?x8xf32>) -> tensor<4x8xf32>
  func.return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
