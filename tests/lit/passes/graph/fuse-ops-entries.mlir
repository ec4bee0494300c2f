// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s

// Scores and their softmax over a row are one kernel. The sum that they weight is another one, where a
// weight is read for several values.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @attention
// CHECK-NEXT: func.call @fused_sddmm_leaky_relu_edge_softmax(
// CHECK-NEXT: func.call @fused_aggregate(
// CHECK-NEXT: func.return
func.func @attention(%a: tensor<?x?xf32, #csr>, %x: tensor<?x4x8xf32>, %s: tensor<?x4xf32>) -> tensor<?x4x8xf32> {
  %e = graph.sddmm add %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %l = graph.leaky_relu %e alpha = 2.0e-01 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = graph.edge_softmax %a, %l : (tensor<?x?xf32, #csr>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.aggregate sum %a, %x weights %p : (tensor<?x?xf32, #csr>, tensor<?x4x8xf32>, tensor<?x4xf32>) -> tensor<?x4x8xf32>
  func.return %y : tensor<?x4x8xf32>
}

// -----

// A score that is a sum is computed once, as a dot product or by single operators, not where it is read.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @scores
// CHECK-NEXT: func.call @fused_sddmm(
// CHECK-NEXT: func.call @fused_edge_softmax(
// CHECK-NEXT: func.call @fused_at_entries_at_entries_mul_reduce(
// CHECK-NEXT: func.call @fused_aggregate(
// CHECK-NEXT: func.return
func.func @scores(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> (tensor<?xf32>, tensor<?x8xf32>) {
  %e = graph.sddmm dot %a, %x, %x : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?xf32>
  %p = graph.edge_softmax %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %i = graph.at_entries %a, %x axis = 0 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %j = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = graph.mul %i, %j : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = graph.reduce sum %m axes = [1] keepdims = false : (tensor<?x8xf32>) -> tensor<?xf32>
  %y = graph.aggregate softmax %a, %x weights %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  func.return %p, %y : tensor<?xf32>, tensor<?x8xf32>
}

// -----

// Not what has other users, what belongs to another matrix, or what a long row would repeat.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @apart
// CHECK: func.call @fused_edge_softmax(
// CHECK: func.call @fused_aggregate(
// CHECK: func.call @fused_sddmm(
// CHECK: func.call @fused_aggregate(
// CHECK: func.call @fused_edge_softmax(
// CHECK: func.call @fused_aggregate_1(
func.func @apart(%a: tensor<?x?xf32, #csr>, %b: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>, %u: tensor<?x8xf32>, %e: tensor<?xf32>, %s: tensor<?xf32>, %w: tensor<?x?xf32>)
    -> (tensor<?xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x?xf32>) {
  %p = graph.edge_softmax %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %y = graph.aggregate sum %a, %x weights %p : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  %q = graph.sddmm add %b, %s, %s : (tensor<?x?xf32, #csr>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %z = graph.aggregate sum %a, %u weights %q : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
  %r = graph.edge_softmax %a, %s : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
  %v = graph.aggregate sum %a, %w weights %r : (tensor<?x?xf32, #csr>, tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  func.return %p, %y, %z, %v : tensor<?xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x?xf32>
}

// -----

// The shares of self loops, which an edge list does not store, are computed beside the others.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @attention_beside_self_loops
// CHECK-NEXT: func.call @fused_sddmm_edge_softmax_own_softmax_reshape_aggregate_mul_add(
// CHECK-NEXT: func.return
func.func @attention_beside_self_loops(%a: tensor<?x?xf32, #csr>, %x: tensor<?x4x8xf32>, %s: tensor<?x4xf32>) -> tensor<?x4x8xf32> {
  %e = graph.sddmm add %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = graph.edge_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %q = graph.own_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = graph.reshape %q shape = [-1, 4, 1] : (tensor<?x4xf32>) -> tensor<?x4x1xf32>
  %m = graph.aggregate sum %a, %x weights %p : (tensor<?x?xf32, #csr>, tensor<?x4x8xf32>, tensor<?x4xf32>) -> tensor<?x4x8xf32>
  %n = graph.mul %r, %x : (tensor<?x4x1xf32>, tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %y = graph.add %m, %n : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  func.return %y : tensor<?x4x8xf32>
}

// -----

// Shares of self loops that are sent along edges have to be there before; so have the scores.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @shares_that_are_sent
// CHECK-NEXT: func.call @fused_sddmm(
// CHECK-NEXT: func.call @fused_own_softmax(
// CHECK-NEXT: func.call @fused_edge_softmax_aggregate(
// CHECK-NEXT: func.return
func.func @shares_that_are_sent(%a: tensor<?x?xf32, #csr>, %s: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %e = graph.sddmm add %a, %s, %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = graph.edge_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %q = graph.own_softmax %a, %e own %s : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.aggregate sum %a, %q weights %p : (tensor<?x?xf32, #csr>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// A dense product of each entry is computed where its row is combined, and its factors there.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @messages
// CHECK-NEXT: %[[y:.*]] = func.call @fused_at_entries_relu_matmul_reduce_entries(
// CHECK-NEXT: func.return %[[y]]
func.func @messages(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>, %w: tensor<8x16xf32>) -> tensor<?x16xf32> {
  %e = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = graph.relu %e : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = graph.matmul %r, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %y = graph.reduce_entries max %a, %d : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}

// -----

// Not one with few columns, nor one that is needed again for each entry.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: func.func @twice
// CHECK: func.call @fused_matmul(
// CHECK-NEXT: func.call @fused_reduce_entries(
// CHECK: func.call @fused_matmul_1(
// CHECK-NEXT: func.call @fused_reduce_entries_1(
func.func @twice(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %v: tensor<8x4xf32>) -> (tensor<?x16xf32>, tensor<?x4xf32>) {
  %e = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = graph.matmul %e, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %y = graph.reduce_entries std %a, %d : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %f = graph.matmul %e, %v : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %z = graph.reduce_entries max %a, %f : (tensor<?x?xf32, #csr>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y, %z : tensor<?x16xf32>, tensor<?x4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// What combines the same messages in the same rows is one kernel, which makes the messages, also
// where one goes on with what another one gives.
// CHECK-LABEL: func.func @several
// CHECK-NEXT: %{{.*}}, %{{.*}}, %{{.*}} = func.call @fused_at_entries_at_entries_add_reduce_entries_reduce_entries_mul_reduce_entries_mul_and_1_more(%a, %x)
// CHECK-NEXT: func.return
func.func @several(%a: tensor<?x?xf32, #csr>, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %i = graph.at_entries %a, %x axis = 0 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %j = graph.at_entries %a, %x axis = 1 : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = graph.add %i, %j : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %most = graph.reduce_entries max %a, %m : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %mean = graph.reduce_entries mean %a, %m : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = graph.mul %m, %m : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %t = graph.reduce_entries mean %a, %s : (tensor<?x?xf32, #csr>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %u = graph.mul %mean, %mean : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %v = graph.sub %t, %u : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %most, %mean, %v : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// Other values, other matrices, other shapes, and what is needed of other rows.
// CHECK-LABEL: func.func @several_apart
// CHECK-NEXT: func.call @fused_aggregate(%a, %x)
// CHECK-NEXT: func.call @fused_aggregate(%a, %y)
// CHECK-NEXT: func.call @fused_aggregate(%b, %x)
// CHECK-NEXT: func.call @fused_at_entries_aggregate(%a, %{{.*}}, %x)
// CHECK-NEXT: func.return
func.func @several_apart(%a: tensor<5x5xf32, #csr>, %b: tensor<5x5xf32, #csr>, %x: tensor<5x8xf32>, %y: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) {
  %p = graph.aggregate sum %a, %x : (tensor<5x5xf32, #csr>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %q = graph.aggregate sum %a, %y : (tensor<5x5xf32, #csr>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = graph.aggregate sum %b, %x : (tensor<5x5xf32, #csr>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = graph.at_entries %a, %p axis = 1 : (tensor<5x5xf32, #csr>, tensor<5x8xf32>) -> tensor<?x8xf32>
  %d = graph.aggregate sum %a, %x weights %c : (tensor<5x5xf32, #csr>, tensor<5x8xf32>, tensor<?x8xf32>) -> tensor<5x8xf32>
  func.return %q, %r, %d : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}
