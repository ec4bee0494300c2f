// REQUIRES: mlir-opt
// RUN: stepwell-opt %s | mlir-opt | stepwell-opt | filecheck %s

// Upstream reads what is printed here, and the other way round.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
#coo = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)) }>

// CHECK: #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
// CHECK-LABEL: func.func private @f
// CHECK-SAME: tensor<4x?xf32, #csr>
// CHECK-SAME: tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)) }>>
func.func private @f(tensor<4x?xf32, #csr>, tensor<4x4xf32, #coo>)
