// RUN: stepwell-opt %s -p graph-split-at-halo --split-input-file --verify-diagnostics | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<?x?xf32, #csr>

// What narrows is computed before the exchange, what follows is a function of its own.
// CHECK-LABEL: func.func private @narrowing.0
// CHECK-SAME: (%[[w:[^:]*]]: tensor<2x8xf32>, %[[x:[^:]*]]: tensor<?x8xf32> {graph.dims = ["n", ""]})
// CHECK-SAME: -> (tensor<?x2xf32> {graph.dims = ["n", ""]})
// CHECK-NEXT: %[[p:.*]] = graph.dense %[[x]], %[[w]]
// CHECK-NEXT: func.return %[[p]]
// CHECK-LABEL: func.func private @narrowing.1
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}} {graph.dims = ["n", "columns"], graph.nnz = "e"}, %[[h:[^:]*]]: tensor<?x2xf32> {graph.dims = ["columns", ""]})
// CHECK-NEXT: %[[y:.*]] = graph.spmm %[[a]], %[[h]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[y]]
// CHECK-NEXT: func.return %[[r]]
// CHECK-LABEL: func.func @narrowing
// CHECK-SAME: (%[[a:[^:]*]]: {{.*}}graph.dims = ["n", "columns"]
// CHECK-NEXT: %[[p:.*]] = func.call @narrowing.0
// CHECK-NEXT: %[[h:.*]] = graph.exchange %[[a]], %[[p]]
// CHECK-NEXT: %[[y:.*]] = func.call @narrowing.1(%[[a]], %[[h]])
// CHECK-NEXT: func.return %[[y]]
func.func @narrowing(%a: !csr {graph.dims = ["n", "n"], graph.nnz = "e"}, %x: tensor<?x8xf32> {graph.dims = ["n", ""]}, %w: tensor<2x8xf32>) -> tensor<?x2xf32> {
  %p = graph.dense %x, %w : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  %y = graph.spmm %a, %p : (!csr, tensor<?x2xf32>) -> tensor<?x2xf32>
  %r = graph.relu %y : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %r : tensor<?x2xf32>
}

// What widens is computed after it, for the halo too, in the function of the aggregation.
// CHECK-LABEL: func.func private @widening.1
// CHECK-SAME: %[[x:[^:]*]]: tensor<?x2xf32> {graph.dims = ["columns", ""]})
// CHECK-NEXT: %[[p:.*]] = graph.dense %[[x]]
// CHECK-NEXT: graph.aggregate max {{.*}}, %[[p]]
// CHECK-LABEL: func.func @widening
// CHECK-NEXT: graph.exchange {{.*}} -> tensor<?x2xf32>
func.func @widening(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x2xf32> {graph.dims = ["n", ""]}, %w: tensor<8x2xf32>) -> tensor<?x8xf32> {
  %p = graph.dense %x, %w : (tensor<?x2xf32>, tensor<8x2xf32>) -> tensor<?x8xf32>
  %y = graph.aggregate max %a, %p : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// Two layers. Degrees are computed once and kept; a product with them is computed again rather than
// kept; a residual is kept.
// CHECK-LABEL: func.func private @layers.0
// CHECK: graph.degree %{{.*}} halo self_loops = true
// CHECK: func.return %{{.*}}, %{{.*}} : tensor<?x1xf32>, tensor<?x4xf32>
// CHECK-LABEL: func.func private @layers.1
// CHECK-SAME: tensor<?x4xf32> {graph.dims = ["n", ""]}
// CHECK-SAME: tensor<?x4xf32> {graph.dims = ["columns", ""]}
// CHECK: graph.spmm
// CHECK: graph.add
// CHECK-LABEL: func.func private @layers.2
// CHECK: graph.spmm
// CHECK-LABEL: func.func @layers
// CHECK: graph.exchange
// CHECK: graph.exchange
// CHECK-NOT: graph.exchange
func.func @layers(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  %d = graph.degree %a self_loops = true power = -5.000000e-01 : (!csr) -> tensor<?xf32>
  %s = graph.reshape %d shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %t = graph.mul %x, %s : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
  %y = graph.spmm %a, %t : (!csr, tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = graph.add %y, %t : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %u = graph.mul %z, %s : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
  %v = graph.spmm %a, %u : (!csr, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %v : tensor<?x4xf32>
}

// Of the two ends of an edge one is the own row. A softmax beside own scores compares rows with
// columns, so that its rows are computed in one call.
// CHECK-LABEL: func.func private @attention.1
// CHECK-SAME: graph.whole_part
// CHECK: %[[e:.*]] = graph.sddmm add %{{.*}}, %{{.*}}, %{{.*}}
// CHECK: graph.edge_softmax %{{.*}} halo, %[[e]] own
// CHECK: graph.own_softmax %{{.*}} halo, %[[e]] own
func.func @attention(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}, %own: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %e = graph.sddmm add %a, %own, %x : (!csr, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = graph.edge_softmax %a, %e own %own : (!csr, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %q = graph.own_softmax %a, %e own %own : (!csr, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.aggregate sum %a, %x weights %p : (!csr, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y, %q : tensor<?x4xf32>, tensor<?x4xf32>
}

// Nothing is read along edges: one function, no exchange.
// CHECK-LABEL: func.func private @alone.0
// CHECK: graph.relu
// CHECK-LABEL: func.func @alone
// CHECK-NEXT: func.call @alone.0
// CHECK-NEXT: func.return
func.func @alone(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// These stay as they are: there is no graph, or not one, or its size is fixed.
// CHECK-LABEL: func.func @dense
// CHECK-NEXT: graph.relu
func.func @dense(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @relations
// CHECK-NEXT: graph.relu
func.func @relations(%a: !csr {graph.dims = ["n", "n"]}, %b: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @fixed_edges
// CHECK-NEXT: graph.relu
func.func @fixed_edges(%a: !csr {graph.dims = ["n", "n"], graph.nnz = 20}, %x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Each part has the sum of its nodes; `graph.combine` makes one of all, which others take. A limit
// of a part without nodes is neutral.
// CHECK-LABEL: func.func private @pool.1
// CHECK: %[[y:.*]] = graph.spmm
// CHECK-NEXT: %[[s:.*]] = graph.reduce sum %[[y]] axes = [0]
// CHECK-NEXT: %[[m:.*]] = graph.reduce max %[[y]] axes = [0] keepdims = true neutral
// CHECK-NEXT: func.return %[[s]], %[[y]], %[[m]]
// CHECK-LABEL: func.func private @pool.2
// CHECK-SAME: %[[y:[^:]*]]: tensor<?x4xf32> {graph.dims = ["n", ""]}, %[[m:[^:]*]]: tensor<1x4xf32>)
// CHECK-NEXT: graph.sub %[[y]], %[[m]]
// CHECK-LABEL: func.func @pool
// CHECK: func.call @pool.1
// CHECK-NEXT: %[[t:.*]] = graph.combine sum
// CHECK-NEXT: %[[c:.*]] = graph.combine max
// CHECK-NEXT: %[[z:.*]] = func.call @pool.2(%{{.*}}, %[[c]])
// CHECK-NEXT: func.return %[[t]], %[[z]]
func.func @pool(%a: !csr {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> (tensor<4xf32>, tensor<?x4xf32>) {
  %y = graph.spmm %a, %x : (!csr, tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = graph.reduce sum %y axes = [0] keepdims = false : (tensor<?x4xf32>) -> tensor<4xf32>
  %m = graph.reduce max %y axes = [0] keepdims = true : (tensor<?x4xf32>) -> tensor<1x4xf32>
  %z = graph.sub %y, %m : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  func.return %s, %z : tensor<4xf32>, tensor<?x4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @gathered(%a: tensor<?x?xf32, #csr> {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}, %i: tensor<?xi64> {graph.dims = ["n"]}) -> tensor<?x4xf32> {
  // expected-error @+1 {{graph-split-at-halo: graph.gather: it combines slices of all nodes, expected slices along edges}}
  %y = graph.gather %x, %i axis = 0 : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @running_sum(%a: tensor<?x?xf32, #csr> {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  // expected-error @+1 {{graph-split-at-halo: graph.cumulative: it combines slices of all nodes, expected slices along edges}}
  %y = graph.cumulative sum %x axis = 0 exclusive = false reverse = false : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @opaque(%a: tensor<?x?xf32, #csr> {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  // expected-error @+1 {{graph-split-at-halo: graph.normalize: it is not known which nodes it combines}}
  %b = graph.normalize symmetric %a self_loops = true : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
  %y = graph.spmm %b, %x : (tensor<?x?xf32, #csr>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @number_of_nodes(%a: tensor<?x?xf32, #csr> {graph.dims = ["n", "n"]}, %x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<i64> {
  // expected-error @+1 {{graph-split-at-halo: graph.dim}}
  %y = graph.dim %x axis = 0 : (tensor<?x4xf32>) -> tensor<i64>
  func.return %y : tensor<i64>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @edges(%a: tensor<?x?xf32, #csr> {graph.dims = ["n", "n"]}) -> tensor<?xf32> {
  %e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  // expected-error @+1 {{graph-split-at-halo: a result has a slice for each edge, expected one for each node}}
  func.return %e : tensor<?xf32>
}
