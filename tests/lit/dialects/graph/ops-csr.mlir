// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Sparse matrices that are made at run time.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @sort_edges
func.func @sort_edges(%r: tensor<?xi64>, %c: tensor<?xi64>, %y: tensor<9x4xf32>, %x: tensor<?xi1>) -> (tensor<10xi32>, tensor<?xi32>, tensor<?xi32>) {
  // CHECK: %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<?xi64>, tensor<?xi64>, tensor<9x4xf32>, tensor<?xi1>) -> (tensor<10xi32>, tensor<?xi32>, tensor<?xi32>)
  %p, %j, %o = graph.sort_edges %r, %c of %y, %x : (tensor<?xi64>, tensor<?xi64>, tensor<9x4xf32>, tensor<?xi1>) -> (tensor<10xi32>, tensor<?xi32>, tensor<?xi32>)
  func.return %p, %j, %o : tensor<10xi32>, tensor<?xi32>, tensor<?xi32>
}

// CHECK-LABEL: func.func @assemble
func.func @assemble(%p: tensor<10xi32>, %j: tensor<?xi32>, %v: tensor<?xf32>, %x: tensor<?x8xf32>) -> tensor<9x8xf32> {
  // CHECK: %a = graph.assemble %p, %j, %v of %x : (tensor<10xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?x8xf32>) -> tensor<9x?xf32, #csr>
  %a = graph.assemble %p, %j, %v of %x : (tensor<10xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?x8xf32>) -> tensor<9x?xf32, #csr>
  %y = graph.spmm %a, %x : (tensor<9x?xf32, #csr>, tensor<?x8xf32>) -> tensor<9x8xf32>
  func.return %y : tensor<9x8xf32>
}

// CHECK-LABEL: func.func @sort_edges_with_loops
func.func @sort_edges_with_loops(%r: tensor<?xi64>, %c: tensor<?xi64>, %x: tensor<9x4xf32>) -> (tensor<10xi32>, tensor<?xi32>, tensor<i64>) {
  // CHECK: %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<?xi64>, tensor<?xi64>, tensor<9x4xf32>) -> (tensor<10xi32>, tensor<?xi32>, tensor<i64>)
  %p, %j, %n = graph.sort_edges_with_loops %r, %c of %x : (tensor<?xi64>, tensor<?xi64>, tensor<9x4xf32>) -> (tensor<10xi32>, tensor<?xi32>, tensor<i64>)
  func.return %p, %j, %n : tensor<10xi32>, tensor<?xi32>, tensor<i64>
}
