// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Operators on the edges of a graph.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @entries
func.func @entries(%a: tensor<?x?xf32, #csr>) -> tensor<?xf32> {
  // CHECK: %y = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %y = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @sddmm_add
func.func @sddmm_add(%a: tensor<?x?xf32, #csr>, %s: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.sddmm add %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.sddmm add %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @sddmm_sub
func.func @sddmm_sub(%a: tensor<?x?xf32, #csr>, %s: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.sddmm sub %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.sddmm sub %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @sddmm_mul
func.func @sddmm_mul(%a: tensor<?x?xf32, #csr>, %s: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.sddmm mul %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.sddmm mul %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @sddmm_dot
func.func @sddmm_dot(%a: tensor<?x?xf32, #csr>, %s: tensor<?x2x8xf32>) -> tensor<?x2xf32> {
  // CHECK: %y = graph.sddmm dot %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2x8xf32>) -> tensor<?x2xf32>
  %y = graph.sddmm dot %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2x8xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @edge_softmax
func.func @edge_softmax(%a: tensor<?x?xf32, #csr>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %y = graph.edge_softmax %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %y = graph.edge_softmax %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @edge_softmax_own
func.func @edge_softmax_own(%a: tensor<?x?xf32, #csr>, %e: tensor<?x2xf32>, %s: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK: %y = graph.edge_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.edge_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @own_softmax
func.func @own_softmax(%a: tensor<?x?xf32, #csr>, %e: tensor<?x2xf32>, %s: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK: %y = graph.own_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.own_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @aggregate_sum
func.func @aggregate_sum(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.aggregate sum %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate sum %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @aggregate_mean
func.func @aggregate_mean(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.aggregate mean %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate mean %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @aggregate_max
func.func @aggregate_max(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.aggregate max %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate max %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @aggregate_min
func.func @aggregate_min(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %y = graph.aggregate min %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate min %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @aggregate_weights
func.func @aggregate_weights(%a: tensor<?x?xf32, #csr>, %x: tensor<?x2x8xf32>, %p: tensor<?x2xf32>) -> tensor<?x2x8xf32> {
  // CHECK: %y = graph.aggregate sum %a, %x weights %p : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2xf32>) -> tensor<?x2x8xf32>
  %y = graph.aggregate sum %a, %x weights %p : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2xf32>) -> tensor<?x2x8xf32>
  func.return %y : tensor<?x2x8xf32>
}

// CHECK-LABEL: func.func @aggregate_softmax
func.func @aggregate_softmax(%a: tensor<?x?xf32, #csr>, %x: tensor<?x2x8xf32>, %s: tensor<?x2xf32>) -> tensor<?x2x8xf32> {
  // CHECK: %y = graph.aggregate softmax %a, %x weights %s : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2xf32>) -> tensor<?x2x8xf32>
  %y = graph.aggregate softmax %a, %x weights %s : (tensor<?x?xf32, #csr>, tensor<?x2x8xf32>, tensor<?x2xf32>) -> tensor<?x2x8xf32>
  func.return %y : tensor<?x2x8xf32>
}

// CHECK-LABEL: func.func @aggregate_spread
func.func @aggregate_spread(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: %y = graph.aggregate prod %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate prod %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: %z = graph.aggregate var %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = graph.aggregate var %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: %v = graph.aggregate std %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = graph.aggregate std %a, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y, %z, %v : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @reduce_entries
func.func @reduce_entries(%a: tensor<?x?xf32, #csr>, %e: tensor<?x8xf64>) -> tensor<?x8xf64> {
  // CHECK: %y = graph.reduce_entries mean %a, %e : (tensor<?x?xf32, #csr>, tensor<?x8xf64>) -> tensor<?x8xf64>
  %y = graph.reduce_entries mean %a, %e : (tensor<?x?xf32, #csr>, tensor<?x8xf64>) -> tensor<?x8xf64>
  func.return %y : tensor<?x8xf64>
}

// CHECK-LABEL: func.func @aggregate_dense
func.func @aggregate_dense(%a: tensor<27x?xf32, #csr>, %x: tensor<?x8xf32>, %w: tensor<3x8x16xf32>) -> tensor<9x16xf32> {
  // CHECK: %y = graph.aggregate_dense mean %a, %x, %w : (tensor<27x?xf32, #csr>, tensor<?x8xf32>, tensor<3x8x16xf32>) -> tensor<9x16xf32>
  %y = graph.aggregate_dense mean %a, %x, %w : (tensor<27x?xf32, #csr>, tensor<?x8xf32>, tensor<3x8x16xf32>) -> tensor<9x16xf32>
  func.return %y : tensor<9x16xf32>
}
