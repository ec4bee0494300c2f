// RUN: stepwell-opt %s -p "graph-fuse-ops{max-ops=1}" | filecheck %s --check-prefix=ONE
// RUN: stepwell-opt %s -p "graph-fuse-ops{max-ops=2}" | filecheck %s --check-prefix=TWO
// RUN: stepwell-opt %s -p "graph-fuse-ops{max-staged-width=4}" | filecheck %s --check-prefix=NARROW
// RUN: stepwell-opt %s -p graph-fuse-ops | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<?x?xf32, #csr>

// ONE-LABEL: func.func @layer
// ONE: call @fused_spmm(
// ONE: call @fused_add(
// ONE: call @fused_relu(
// ONE: call @fused_matmul(

// TWO-LABEL: func.func @layer
// TWO: call @fused_spmm_add(
// TWO: call @fused_relu(
// TWO: call @fused_matmul(

// NARROW-LABEL: func.func @layer
// NARROW: call @fused_spmm_add_relu(
// NARROW: call @fused_matmul(

// The rows that the sparse product makes go straight into the small dense product.
// CHECK-LABEL: func.func @layer
// CHECK: call @fused_spmm_add_relu_matmul(
// CHECK-NEXT: func.return
func.func @layer(%a: !csr, %x: tensor<?x16xf32>, %b: tensor<16xf32>, %w: tensor<16x7xf32>) -> tensor<?x7xf32> {
  %s = graph.spmm %a, %x : (!csr, tensor<?x16xf32>) -> tensor<?x16xf32>
  %t = graph.add %s, %b : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %h = graph.relu %t : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = graph.matmul %h, %w : (tensor<?x16xf32>, tensor<16x7xf32>) -> tensor<?x7xf32>
  func.return %y : tensor<?x7xf32>
}

// Rows that something else reads as well stay a kernel of their own.
// CHECK-LABEL: func.func @rows_with_two_readers
// CHECK: call @fused_spmm(
// CHECK: call @fused_matmul(
func.func @rows_with_two_readers(%a: !csr, %x: tensor<?x16xf32>, %w: tensor<16x7xf32>) -> (tensor<?x7xf32>, tensor<?x16xf32>) {
  %h = graph.spmm %a, %x : (!csr, tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = graph.matmul %h, %w : (tensor<?x16xf32>, tensor<16x7xf32>) -> tensor<?x7xf32>
  func.return %y, %h : tensor<?x7xf32>, tensor<?x16xf32>
}

// The rows of the right operand are all read by each row of the result.
// CHECK-LABEL: func.func @right_operand
// CHECK: call @fused_spmm(
// CHECK: call @fused_matmul_1(
func.func @right_operand(%a: !csr, %x: tensor<?x16xf32>, %w: tensor<7x?xf32>) -> tensor<7x16xf32> {
  %h = graph.spmm %a, %x : (!csr, tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = graph.matmul %w, %h : (tensor<7x?xf32>, tensor<?x16xf32>) -> tensor<7x16xf32>
  func.return %y : tensor<7x16xf32>
}
