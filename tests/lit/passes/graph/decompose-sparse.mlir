// RUN: stepwell-opt %s -p graph-decompose-sparse | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<9x9xf32, #csr>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}}, %[[e:[^:]*]]: tensor<?xf32>, %[[x:[^:]*]]: tensor<9x2xf32>)
// CHECK-NEXT: graph.aggregate sum %[[a]], %[[x]] weights %[[e]]
// CHECK-NEXT: func.return
func.func @product(%a: !csr, %e: tensor<?xf32>, %x: tensor<9x2xf32>) -> tensor<9x2xf32> {
  %b = graph.with_entries %a, %e : (!csr, tensor<?xf32>) -> !csr
  %y = graph.spmm %b, %x : (!csr, tensor<9x2xf32>) -> tensor<9x2xf32>
  func.return %y : tensor<9x2xf32>
}

// The values of the entries, their pattern, and what adds them up.
// CHECK-LABEL: func.func @users
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}}, %[[e:[^:]*]]: tensor<?xf32>, %[[x:[^:]*]]: tensor<9x2xf32>)
// CHECK-NEXT: %[[m:.*]] = graph.aggregate max %[[a]], %[[x]] :
// CHECK-NEXT: %[[d:.*]] = graph.degree %[[a]] values %[[e]] self_loops = true power = -5.0
// CHECK-NEXT: %[[t:.*]] = graph.to_dense %[[a]] values %[[e]]
// CHECK-NEXT: func.return %[[e]], %[[m]], %[[d]], %[[t]]
func.func @users(%a: !csr, %e: tensor<?xf32>, %x: tensor<9x2xf32>) -> (tensor<?xf32>, tensor<9x2xf32>, tensor<9xf32>, tensor<9x9xf32>) {
  %b = graph.with_entries %a, %e : (!csr, tensor<?xf32>) -> !csr
  %0 = graph.entries %b : (!csr) -> tensor<?xf32>
  %1 = graph.aggregate max %b, %x : (!csr, tensor<9x2xf32>) -> tensor<9x2xf32>
  %2 = graph.degree %b self_loops = true power = -0.5 : (!csr) -> tensor<9xf32>
  %3 = graph.to_dense %b : (!csr) -> tensor<9x9xf32>
  func.return %0, %1, %2, %3 : tensor<?xf32>, tensor<9x2xf32>, tensor<9xf32>, tensor<9x9xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %[[y:.*]] = graph.spmm %{{.*}} -> tensor<9x2xf32>
// CHECK-NEXT: graph.slice %[[y]] starts = [2, 0] ends = [5, 2] steps = [1, 1]
func.func @rows(%a: !csr, %x: tensor<9x2xf32>) -> tensor<3x2xf32> {
  %b = graph.slice_rows %a start = 2 end = 5 : (!csr) -> tensor<3x9xf32, #csr>
  %y = graph.spmm %b, %x : (tensor<3x9xf32, #csr>, tensor<9x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @normalized
// CHECK-SAME: (%[[a:[^:]*]]:
// CHECK-NEXT: %[[s:.*]] = graph.degree %[[a]] self_loops = false power = -5.0
// CHECK-NEXT: %[[e:.*]] = graph.entries %[[a]]
// CHECK-NEXT: %[[r:.*]] = graph.at_entries %[[a]], %[[s]] axis = 0
// CHECK-NEXT: %[[er:.*]] = graph.mul %[[e]], %[[r]]
// CHECK-NEXT: %[[c:.*]] = graph.at_entries %[[a]], %[[s]] axis = 1
// CHECK-NEXT: %[[erc:.*]] = graph.mul %[[er]], %[[c]]
// CHECK-NEXT: func.return %[[erc]]
func.func @normalized(%a: !csr) -> tensor<?xf32> {
  %b = graph.normalize symmetric %a self_loops = false : (!csr) -> !csr
  %y = graph.entries %b : (!csr) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// Loops that are not stored have no place in the pattern.
// CHECK-LABEL: func.func @with_loops
// CHECK-NEXT: graph.normalize
func.func @with_loops(%a: !csr) -> tensor<?xf32> {
  %b = graph.normalize symmetric %a self_loops = true : (!csr) -> !csr
  %y = graph.entries %b : (!csr) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// The sizes of a normalized matrix are equal, and known where one of them was.
// CHECK-LABEL: func.func @normalized_of_an_open_size
// CHECK: graph.with_entries {{.*}} -> tensor<9x9xf32, #csr>
func.func @normalized_of_an_open_size(%a: tensor<?x9xf32, #csr>) -> !csr {
  %b = graph.normalize row %a self_loops = false : (tensor<?x9xf32, #csr>) -> tensor<?x9xf32, #csr>
  %c = graph.normalize symmetric %b self_loops = false : (tensor<?x9xf32, #csr>) -> !csr
  func.return %c : !csr
}

// Products with a normalised matrix, also one whose entries are used, become products with the
// matrix itself. A graph of one call has any size.
!graph = tensor<?x?xf32, #csr>

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
func.func @symmetric_with_self_loops(%a: !graph, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = graph.normalize symmetric %a self_loops = true : (!graph) -> !graph
  %y = graph.spmm %n, %x : (!graph, tensor<?x8xf32>) -> tensor<?x8xf32>
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
func.func @row_with_self_loops(%a: !graph, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = graph.normalize row %a self_loops = true : (!graph) -> !graph
  %y = graph.spmm %n, %x : (!graph, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// A matrix that has another use is still normalised for that one.
// CHECK-LABEL: func.func @other_uses_stay
// CHECK-NEXT: %[[n:.*]] = graph.normalize symmetric
// CHECK: graph.spmm
// CHECK: func.return %{{.*}}, %[[n]]
func.func @other_uses_stay(%a: !graph, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, !graph) {
  %n = graph.normalize symmetric %a self_loops = true : (!graph) -> !graph
  %y = graph.spmm %n, %x : (!graph, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y, %n : tensor<?x8xf32>, !graph
}

// CHECK-LABEL: func.func @plain_product_stays
// CHECK-NEXT: %[[y:.*]] = graph.spmm
// CHECK-NEXT: func.return %[[y]]
func.func @plain_product_stays(%a: !graph, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = graph.spmm %a, %x : (!graph, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @entries_are_used_beside_a_product
// CHECK-SAME: (%[[a:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[x:[^:]*]]: tensor<?x8xf32>)
// CHECK: %[[e:.*]] = graph.entries %[[a]]
// CHECK: %[[n:.*]] = graph.mul %[[e]]
// CHECK: %[[ax:.*]] = graph.spmm %[[a]], %[[x]]
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[ax]]
// CHECK-NEXT: func.return %[[y]], %[[n]]
func.func @entries_are_used_beside_a_product(%a: !graph, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?xf32>) {
  %n = graph.normalize row %a self_loops = false : (!graph) -> !graph
  %y = graph.spmm %n, %x : (!graph, tensor<?x8xf32>) -> tensor<?x8xf32>
  %e = graph.entries %n : (!graph) -> tensor<?xf32>
  func.return %y, %e : tensor<?x8xf32>, tensor<?xf32>
}
