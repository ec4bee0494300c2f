// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s

// What two layers need of a graph to normalize it: the kernel goes through each row once.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @normalization
// CHECK-NEXT: %{{.*}}, %{{.*}} = func.call @fused_degree_reshape_missing_self_loops(%a)
// CHECK-NEXT: func.return
func.func @normalization(%a: tensor<?x?xf32, #csr>) -> (tensor<?xf32>, tensor<?x1xf32>) {
  %d = graph.degree %a self_loops = true power = -5.0e-01 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %s = graph.reshape %d shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %m = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  func.return %m, %s : tensor<?xf32>, tensor<?x1xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// What stands between two operators and needs only the first comes after both.
// CHECK-LABEL: func.func @needed_in_between
// CHECK-NEXT: %[[d:.*]], %[[m:.*]] = func.call @fused_degree_missing_self_loops(%a)
// CHECK-NEXT: func.call @fused_exp(%[[d]])
// CHECK-NEXT: func.return
func.func @needed_in_between(%a: tensor<?x?xf32, #csr>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %d = graph.degree %a self_loops = false power = 1.0 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %e = graph.exp %d : (tensor<?xf32>) -> tensor<?xf32>
  %m = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  func.return %d, %e, %m : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @two_matrices
// CHECK-NEXT: func.call @fused_degree(%a)
// CHECK-NEXT: func.call @fused_degree(%b)
// CHECK-NEXT: func.return
func.func @two_matrices(%a: tensor<4x4xf32, #csr>, %b: tensor<4x4xf32, #csr>) -> (tensor<4xf32>, tensor<4xf32>) {
  %d = graph.degree %a self_loops = true power = 1.0 : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  %e = graph.degree %b self_loops = true power = 1.0 : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  func.return %d, %e : tensor<4xf32>, tensor<4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// The second degree of %a needs the first one by way of a product, which is another kernel.
// CHECK-LABEL: func.func @one_after_the_other
// CHECK-NEXT: func.call @fused_degree_reshape(%a)
// CHECK-NEXT: func.call @fused_spmm(
// CHECK-NEXT: func.call @fused_sddmm_degree(%a,
// CHECK-NEXT: func.return
func.func @one_after_the_other(%a: tensor<4x4xf32, #csr>, %x: tensor<1x3xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
  %d = graph.degree %a self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  %s = graph.reshape %d shape = [4, 1] : (tensor<4xf32>) -> tensor<4x1xf32>
  %y = graph.spmm %a, %s : (tensor<4x4xf32, #csr>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %e = graph.sddmm dot %a, %y, %y : (tensor<4x4xf32, #csr>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<?xf32>
  %f = graph.degree %a values %e self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  func.return %f, %y : tensor<4xf32>, tensor<4x1xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// Either matrix has a number that one of the other's needs: of the two pairs one is a kernel.
// CHECK-LABEL: func.func @crossed
// CHECK-NEXT: func.call @fused_degree(%a)
// CHECK-NEXT: func.call @fused_sddmm_degree_missing_self_loops(%b,
// CHECK-NEXT: func.call @fused_sddmm_degree(%a,
// CHECK-NEXT: func.return
func.func @crossed(%a: tensor<4x4xf32, #csr>, %b: tensor<4x4xf32, #csr>) -> (tensor<4xf32>, tensor<4xf32>) {
  %d = graph.degree %a self_loops = true power = 1.0 : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  %e = graph.sddmm add %b, %d, %d : (tensor<4x4xf32, #csr>, tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>
  %f = graph.degree %b values %e self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  %m = graph.missing_self_loops %b : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  %g = graph.sddmm add %a, %m, %m : (tensor<4x4xf32, #csr>, tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>
  %h = graph.degree %a values %g self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  func.return %f, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// The second degree of a row needs the first ones of its columns.
// CHECK-LABEL: func.func @degree_of_degrees
// CHECK-NEXT: func.call @fused_degree(%a)
// CHECK-NEXT: func.call @fused_sddmm_degree(%a,
// CHECK-NEXT: func.return
func.func @degree_of_degrees(%a: tensor<4x4xf32, #csr>) -> tensor<4xf32> {
  %d = graph.degree %a self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>) -> tensor<4xf32>
  %e = graph.sddmm mul %a, %d, %d : (tensor<4x4xf32, #csr>, tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>
  %f = graph.degree %a values %e self_loops = false power = 1.0 : (tensor<4x4xf32, #csr>, tensor<?xf32>) -> tensor<4xf32>
  func.return %f : tensor<4xf32>
}
