// RUN: stepwell-opt %s -p graph-decompose-normalize | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<?x?xf32, #csr>

// CHECK-LABEL: func.func @symmetric_with_self_loops
// CHECK-SAME: (%[[a:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[x:[^:]*]]: tensor<?x8xf32>)
// CHECK-NEXT: %[[degree:.*]] = graph.degree %[[a]] self_loops = true power = -5.000000e-01
// CHECK-NEXT: %[[s:.*]] = graph.reshape %[[degree]] shape = [-1, 1]
// CHECK-NEXT: %[[t:.*]] = graph.mul %[[x]], %[[s]]
// CHECK-NEXT: %[[at:.*]] = graph.spmm %[[a]], %[[t]]
// CHECK-NEXT: %[[missing:.*]] = graph.missing_self_loops %[[a]]
// CHECK-NEXT: %[[m:.*]] = graph.reshape %[[missing]] shape = [-1, 1]
// CHECK-NEXT: %[[loops:.*]] = graph.mul %[[t]], %[[m]]
// CHECK-NEXT: %[[sum:.*]] = graph.add %[[at]], %[[loops]]
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[sum]], %[[s]] : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
// CHECK-NEXT: func.return %[[y]]
func.func @symmetric_with_self_loops(%a: !csr, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = graph.normalize symmetric %a self_loops = true : (!csr) -> !csr
  %y = graph.spmm %n, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @row_with_self_loops
// CHECK-SAME: (%[[a:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[x:[^:]*]]: tensor<?x8xf32>)
// CHECK-NEXT: graph.degree %[[a]] self_loops = true power = -1.000000e+00
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: %[[ax:.*]] = graph.spmm %[[a]], %[[x]]
// CHECK-NEXT: graph.missing_self_loops %[[a]]
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: %[[loops:.*]] = graph.mul %[[x]]
// CHECK-NEXT: graph.add %[[ax]], %[[loops]]
// CHECK-NEXT: graph.mul
// CHECK-NEXT: func.return
func.func @row_with_self_loops(%a: !csr, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = graph.normalize row %a self_loops = true : (!csr) -> !csr
  %y = graph.spmm %n, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// A matrix that has another use is still normalised for that one.
// CHECK-LABEL: func.func @other_uses_stay
// CHECK-NEXT: %[[n:.*]] = graph.normalize symmetric
// CHECK-NOT: graph.missing_self_loops
// CHECK: graph.spmm
// CHECK: func.return %{{.*}}, %[[n]]
func.func @other_uses_stay(%a: !csr, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, !csr) {
  %n = graph.normalize symmetric %a self_loops = false : (!csr) -> !csr
  %y = graph.spmm %n, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y, %n : tensor<?x8xf32>, !csr
}

// CHECK-LABEL: func.func @plain_product_stays
// CHECK-NEXT: %[[y:.*]] = graph.spmm
// CHECK-NEXT: func.return %[[y]]
func.func @plain_product_stays(%a: !csr, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = graph.spmm %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}
