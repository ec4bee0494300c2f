// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// The encodings as upstream prints them: an alias each, and names of dimensions in their order.
// What is not a format of matrices is written out.

// CHECK: #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 64 }>
// CHECK-NEXT: #csc = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed) }>
// CHECK-NEXT: #coo = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton) }>
// CHECK-NEXT: #csr_1 = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#rows = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 64 }>
#csc = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed) }>
#coo = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton) }>
#index_rows = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#soa = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique, nonordered), d1 : singleton(soa)) }>
#vector = #sparse_tensor.encoding<{ crdWidth = 8, map = (d0) -> (d0 : compressed), posWidth = 16 }>

// CHECK-LABEL: func.func private @csr
// CHECK-SAME: tensor<4x?xf32, #csr>
func.func private @csr(tensor<4x?xf32, #rows>)

// CHECK-LABEL: func.func private @csc
// CHECK-SAME: tensor<?x4xf64, #csc>
func.func private @csc(tensor<?x4xf64, #csc>)

// CHECK-LABEL: func.func private @coo
// CHECK-SAME: tensor<4x4xf32, #coo>
func.func private @coo(tensor<4x4xf32, #coo>)

// CHECK-LABEL: func.func private @index_rows
// CHECK-SAME: tensor<4x4xf32, #csr_1>
func.func private @index_rows(tensor<4x4xf32, #index_rows>)

// CHECK-LABEL: func.func private @soa
// CHECK-SAME: tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique, nonordered), d1 : singleton(soa)) }>>
func.func private @soa(tensor<4x4xf32, #soa>)

// CHECK-LABEL: func.func private @vector
// CHECK-SAME: tensor<?xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), posWidth = 16, crdWidth = 8 }>>
func.func private @vector(tensor<?xf32, #vector>)
