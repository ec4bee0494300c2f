// RUN: python -c "import numpy; numpy.savez('%t.npz', v=numpy.zeros(5, 'f4'), w=numpy.zeros((3, 4), 'f4'), **{'a.indptr': [0, 1, 1], 'a.indices': [2], 'a.values': numpy.ones(1, 'f4'), 'a.shape': [2, 3]})"
// RUN: stepwell-opt %s -p 'graph-bind-params{path="%t.npz"}' | filecheck %s

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
!csr = tensor<?x?xf32, #csr>

// A size is a number wherever its name was: in arguments, results, names of sizes, and their sums.
// CHECK-LABEL: func.func @named
// CHECK-SAME: (%[[x:[^:]*]]: tensor<5x?xf32> {graph.name = "x", graph.dims = ["", "k"]}) -> (tensor<5x?xf32> {graph.dims = ["", "k"]}, tensor<10xf32>, tensor<?xf32>)
// CHECK-NEXT: %[[v:.*]] = graph.constant dense_resource<v> : tensor<5xf32>
// CHECK-NEXT: %[[c:.*]] = graph.reshape %[[v]] shape = [-1, 1] : (tensor<5xf32>) -> tensor<5x1xf32>
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[x]], %[[c]] : (tensor<5x?xf32>, tensor<5x1xf32>) -> tensor<5x?xf32>
// CHECK-NEXT: %[[z:.*]] = graph.call_packed "twice"(%[[v]]) : (tensor<5xf32>) -> tensor<10xf32>
// CHECK-NEXT: %[[u:.*]] = graph.call_packed "more"(%[[v]]) dims {{\[\[}}"k+5"]] : (tensor<5xf32>) -> tensor<?xf32>
// CHECK-NEXT: func.return %[[y]], %[[z]], %[[u]]
func.func @named(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["n", "k"]}, %v: tensor<?xf32> {graph.name = "v", graph.dims = ["n"]}) -> (tensor<?x?xf32> {graph.dims = ["n", "k"]}, tensor<?xf32> {graph.dims = ["2*n"]}, tensor<?xf32>) {
  %c = graph.reshape %v shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %y = graph.mul %x, %c : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  %z = graph.call_packed "twice"(%v) dims [["2*n"]] : (tensor<?xf32>) -> tensor<?xf32>
  %u = graph.call_packed "more"(%v) dims [["n+k"]] : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y, %z, %u : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// So is a size that has to be equal to one, and the number of entries of a matrix.
// CHECK-LABEL: func.func @equal
// CHECK-SAME: (%[[x:[^:]*]]: tensor<3x4xf32>, %[[e:[^:]*]]: tensor<1xf32> {graph.name = "e"}) -> tensor<2x4xf32>
// CHECK-NEXT: %[[a:.*]] = graph.constant nnz = 1 dense_resource<a> : tensor<2x3xf32, #csr>
// CHECK-NEXT: %[[b:.*]] = graph.with_entries %[[a]], %[[e]] : (tensor<2x3xf32, #csr>, tensor<1xf32>) -> tensor<2x3xf32, #csr>
// CHECK-NEXT: %[[y:.*]] = graph.spmm %[[b]], %[[x]] : (tensor<2x3xf32, #csr>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @equal(%a: !csr {graph.name = "a", graph.dims = ["n", "m"], graph.nnz = "E"}, %x: tensor<?x4xf32> {graph.dims = ["p", ""]}, %e: tensor<?xf32> {graph.name = "e", graph.dims = ["E"]}) -> tensor<?x4xf32> attributes {graph.equal = [["n", "2"]]} {
  %b = graph.with_entries %a, %e : (!csr, tensor<?xf32>) -> !csr
  %y = graph.spmm %b, %x : (!csr, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// A function that is called with other sizes too is copied; one that is not gets them itself.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT: %[[w:.*]] = graph.constant dense_resource<w>
// CHECK-NEXT: %[[s:.*]] = func.call @shared_1(%[[w]]) : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[t:.*]] = func.call @shared(%[[x:.*]]) : (tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %[[o:.*]] = func.call @own(%[[s]]) : (tensor<3x4xf32>) -> tensor<12xf32>
// CHECK-NEXT: func.return %[[t]], %[[o]] : tensor<?x4xf32>, tensor<12xf32>
func.func @calls(%x: tensor<?x4xf32> {graph.dims = ["n", ""]}, %w: tensor<?x4xf32> {graph.name = "w"}) -> (tensor<?x4xf32>, tensor<?xf32>) {
  %s = func.call @shared(%w) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = func.call @shared(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %o = func.call @own(%s) : (tensor<?x4xf32>) -> tensor<?xf32>
  func.return %t, %o : tensor<?x4xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func private @shared(
// CHECK-SAME: tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-LABEL: func.func private @shared_1(
// CHECK-SAME: tensor<3x4xf32>) -> tensor<3x4xf32>
func.func private @shared(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {graph.primitive} {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func private @own(
// CHECK-SAME: tensor<3x4xf32>) -> tensor<12xf32>
func.func private @own(%x: tensor<?x4xf32>) -> tensor<?xf32> attributes {graph.primitive} {
  %y = graph.reshape %x shape = [-1] : (tensor<?x4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// The upper bounds of sizes that calls compute are in these names too.
// CHECK-LABEL: func.func @bounds
// CHECK: graph.call_packed "some"(%{{.*}}) dims {{\[\[}}"s"], []] sizes [#graph.size<"s" in result 1 at_most "k+5">]
func.func @bounds(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["n", "k"]}, %v: tensor<?xf32> {graph.name = "v", graph.dims = ["n"]}) -> tensor<?xf32> {
  %y, %s = graph.call_packed "some"(%x) dims [["s"], []] sizes [#graph.size<"s" in result 1 at_most "n+k">] : (tensor<?x?xf32>) -> (tensor<?xf32>, tensor<i64>)
  %z = graph.call_packed "other"(%v) dims [["n"]] : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
