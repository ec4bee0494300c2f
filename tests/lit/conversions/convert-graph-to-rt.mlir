// RUN: stepwell-opt %s --split-input-file -p convert-graph-to-rt | filecheck %s

// Intermediate results lie in the arena; one that is no longer needed gives its place to another.
// CHECK-LABEL: func.func @main(%ctx: !rt.context, %x: memref<8x4xf32>, %result: memref<8x4xf32>) -> i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[SECOND:.*]] = arith.constant 128 : index
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 256 : index
// CHECK: %arena = rt.arena %ctx, %[[BYTES]] : memref<?xi8>
// CHECK-NEXT: %[[A:.*]] = memref.view %arena[%[[ZERO]]][] : memref<?xi8> to memref<8x4xf32>
// CHECK-NEXT: %[[B:.*]] = memref.view %arena[%[[SECOND]]][] : memref<?xi8> to memref<8x4xf32>
// CHECK-NEXT: %[[C:.*]] = memref.view %arena[%[[ZERO]]][] : memref<?xi8> to memref<8x4xf32>
// CHECK-NEXT: rt.call @relu(%x, %[[A]])
// CHECK-NEXT: rt.call @relu(%[[A]], %[[B]])
// CHECK-NEXT: rt.call @relu(%[[B]], %[[C]])
// CHECK-NEXT: rt.call @relu(%[[C]], %result)
// CHECK-NEXT: %[[OK:.*]] = arith.constant 0 : i32
// CHECK-NEXT: func.return %[[OK]] : i32
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = graph.call_dps @relu(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = graph.call_dps @relu(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = graph.call_dps @relu(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = graph.call_dps @relu(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %3 : tensor<8x4xf32>
}
loop.kernel @relu(%x: memref<8x4xf32>) -> (%y: memref<8x4xf32>) {
}

// -----

// A symbolic size is read from an argument and rounded up to the alignment.
// CHECK-LABEL: func.func @symbolic
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: %[[SIZE:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK: arith.divui
// CHECK: %[[BYTES:.*]] = arith.muli
// CHECK: rt.arena %ctx, %[[BYTES]]
// CHECK: memref.view %arena[%{{.*}}][%[[N]]] : memref<?xi8> to memref<?x4xf32>
func.func @symbolic(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  %0 = graph.call_dps @relu(%x) dims [["n", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.call_dps @relu(%0) dims [["n", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
loop.kernel @relu(%x: memref<?x4xf32>) -> (%y: memref<?x4xf32>) {
}

// -----

// Sparse arguments are three buffers, and their indices are checked; a packed constant says how.
// CHECK-LABEL: func.func @sparse(%ctx: !rt.context, %a: memref<5xi32>, %a_1: memref<?xi32>, %a_2: memref<?xf32>, %result: memref<4x2xf32>) -> i32
// CHECK: rt.check_csr %ctx, %a, %a_1, %{{.*}} "input \22features\22"
// CHECK: %[[W:.*]] = rt.constant %ctx, 0 "w" {packing = affine_map<(d0, d1) -> (d1, d0)>} : memref<2x6xf32>
// CHECK: rt.call @spmm(%a, %a_1, %a_2, %[[W]], %result)
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @sparse(%a: tensor<4x6xf32, #csr> {graph.name = "features", graph.nnz = "e"}) -> tensor<4x2xf32> {
  %w = graph.constant dense_resource<w> : tensor<6x2xf32>
  %0 = graph.call_dps @spmm(%a, %w) : (tensor<4x6xf32, #csr>, tensor<6x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
loop.kernel @spmm(%a: memref<5xi32>, %a_1: memref<?xi32>, %a_2: memref<?xf32>, %w: memref<2x6xf32> {loop.constant, loop.packing = affine_map<(d0, d1) -> (d1, d0)>}) -> (%y: memref<4x2xf32>) {
}

// -----

// A sparse constant is three entries of the table of constants.
// CHECK-LABEL: func.func @sparse_constant
// CHECK: %[[P:.*]] = rt.constant %ctx, 0 "a.indptr" : memref<5xi32>
// CHECK-NEXT: %[[I:.*]] = rt.constant %ctx, 1 "a.indices" : memref<7xi32>
// CHECK-NEXT: %[[CI:.*]] = "memref.cast"(%[[I]]) : (memref<7xi32>) -> memref<?xi32>
// CHECK-NEXT: %[[V:.*]] = rt.constant %ctx, 2 "a.values" : memref<7xf32>
// CHECK-NEXT: %[[CV:.*]] = "memref.cast"(%[[V]]) : (memref<7xf32>) -> memref<?xf32>
// CHECK-NEXT: rt.call @spmm(%[[P]], %[[CI]], %[[CV]], %x, %result)
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @sparse_constant(%x: tensor<6x2xf32>) -> tensor<4x2xf32> {
  %a = graph.constant nnz = 7 dense_resource<a> : tensor<4x6xf32, #csr>
  %0 = graph.call_dps @spmm(%a, %x) : (tensor<4x6xf32, #csr>, tensor<6x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
loop.kernel @spmm(%a: memref<5xi32>, %a_1: memref<?xi32>, %a_2: memref<?xf32>, %x: memref<6x2xf32>) -> (%y: memref<4x2xf32>) {
}

// -----

// What kernels use as indices is checked first, and functions are called through the table.
// CHECK-LABEL: func.func @checked
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: rt.check_index %ctx, %ids, %[[N]] "kernel rows" : memref<3xi64>
// CHECK-NEXT: rt.check_index %ctx, %ids, %[[SEVEN:.*]] "kernel rows" : memref<3xi64>
// CHECK-NEXT: rt.call @rows(%x, %ids, %[[R:.*]])
// CHECK-NEXT: rt.call_packed %ctx, 0 "env.scale" ins(%[[R]] : memref<3x4xf32>) outs(%result : memref<3x4xf32>)
func.func @checked(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %0 = graph.call_dps @rows(%x, %ids) : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %1 = graph.call_packed "env.scale"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %1 : tensor<3x4xf32>
}
loop.kernel @rows(%x: memref<?x4xf32>, %ids: memref<3xi64> {loop.bounds = ["x0.0", "7"]}) -> (%y: memref<3x4xf32>) {
}

// -----

// So are offsets.
// CHECK-LABEL: func.func @segments
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: rt.check_offsets %ctx, %o, %[[N]] "kernel sums" : memref<3xi64>
// CHECK-NEXT: rt.call @sums(%x, %o, %result)
func.func @segments(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %o: tensor<3xi64>) -> tensor<2x4xf32> {
  %0 = graph.call_dps @sums(%x, %o) : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
loop.kernel @sums(%x: memref<?x4xf32>, %o: memref<3xi64> {loop.offsets = ["x0.0"]}) -> (%y: memref<2x4xf32>) {
}

// -----

// A size that has a limit is checked before the kernel runs, where it is symbolic.
// CHECK-LABEL: func.func @limits
// CHECK: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[FITS:.*]] = arith.cmpi sge, %[[N:.*]], %[[FOUR]] : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]], "kernel best: a size is too small, expected 4 or more, got {0}"(%[[N]])
// CHECK: %[[FITS:.*]] = arith.cmpi sle, %[[N]], %{{.*}} : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]], "graph.top_k: dimension 0 of x is too large, expected at most 9, got {0}"(%[[N]])
// CHECK-NEXT: rt.call @best(%x, %y,
// CHECK-NEXT: %[[Z:.*]] = "memref.cast"(%z)
// CHECK-NEXT: rt.call @best(%[[Z]], %y,
func.func @limits(%x: tensor<?xf32> {graph.dims = ["n"]}, %z: tensor<4xf32>, %y: tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.call_dps @best(%x, %y) : (tensor<?xf32>, tensor<3xf32>) -> tensor<4xf32>
  %1 = graph.call_dps @best(%z, %y) : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
loop.kernel @best(%x: memref<?xf32> {loop.sizes = ["x0.0 >= 4", "x1.0 >= 3", "graph.top_k, dimension 0 of x: x0.0 <= 9"]}, %y: memref<3xf32>) -> (%r: memref<4xf32>) {
}

// -----

// A function sees the element types of tensors, where buffers do not have them.
// CHECK-LABEL: func.func @packed_types
// CHECK: rt.call_packed %ctx, 0 "env.mask" ins(%x, %m : memref<4xi8>, memref<4xi8>) outs(%result : memref<4xi8>) as (tensor<4xui8>, tensor<4xi1>) -> tensor<4xui8>
func.func @packed_types(%x: tensor<4xui8>, %m: tensor<4xi1>) -> tensor<4xui8> {
  %0 = graph.call_packed "env.mask"(%x, %m) : (tensor<4xui8>, tensor<4xi1>) -> tensor<4xui8>
  func.return %0 : tensor<4xui8>
}

// -----

// An argument that is a result is copied, a result that is given twice as well.
// CHECK-LABEL: func.func @copies(%ctx: !rt.context, %x: memref<4xf32>, %result: memref<4xf32>, %result_1: memref<4xf32>, %result_2: memref<4xf32>) -> i32
// CHECK: rt.call @relu(%x, %result_1)
// CHECK: "memref.copy"(%x, %result)
// CHECK: "memref.copy"(%result_1, %result_2)
func.func @copies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x, %0, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
}

// -----

// A function that nobody calls from outside is left alone.
// CHECK-LABEL: func.func private @hidden(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @hidden(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// What callers see stays on the function: names, symbolic sizes, and the bytes of the arena.
// CHECK-LABEL: func.func @described
// CHECK-SAME: graph.signature = (tensor<?x4xf32>, tensor<?x6xf32, #csr>) -> tensor<?x4xf32>
// CHECK-SAME: graph.arguments = [{graph.name = "x", graph.dims = ["n", ""], graph.sizes = ["n", "4"]}, {graph.name = "a", graph.dims = ["m", ""], graph.nnz = "e", graph.sizes = ["m", "6"], graph.entries = "e"}]
// CHECK-SAME: graph.results = [{graph.name = "y", graph.sizes = ["n", "4"]}]
// CHECK-SAME: graph.equal = {{\[}}["n", "m"]]
// CHECK-SAME: graph.arena = "16*n+64"
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @described(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %a: tensor<?x6xf32, #csr> {graph.name = "a", graph.dims = ["m", ""], graph.nnz = "e"}) -> (tensor<?x4xf32> {graph.name = "y"}) attributes {graph.equal = [["n", "m"]]} {
  %0 = graph.call_dps @relu(%x) dims [["n", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.call_dps @relu(%0) dims [["n", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
loop.kernel @relu(%x: memref<?x4xf32>) -> (%y: memref<?x4xf32>) {
}

// -----

// A kernel that works in place gets one buffer for both, where the operand is not needed again
// and has the same sizes.
// CHECK-LABEL: func.func @in_place
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 128 : index
// CHECK: %[[A:.*]] = memref.view %arena[%[[ZERO]]]
// CHECK-NEXT: %[[B:.*]] = memref.view %arena[%[[ONE]]]
// CHECK-NEXT: %[[C:.*]] = memref.view %arena[%[[ONE]]]
// CHECK-NEXT: %[[D:.*]] = memref.view %arena[%[[ONE]]]
// CHECK-NEXT: %[[E:.*]] = memref.view %arena[%[[TWO]]]
// CHECK: rt.call @add(%[[A]], %[[B]], %[[C]])
// CHECK-NEXT: rt.call @add(%[[A]], %[[C]], %[[D]])
// CHECK-NEXT: rt.call @add(%[[D]], %[[D]], %[[E]])
// CHECK-NEXT: rt.call @add(%[[A]], %[[E]], %result)
func.func @in_place(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = graph.call_dps @relu(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = graph.call_dps @add(%x, %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = graph.call_dps @add(%a, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %d = graph.call_dps @add(%a, %c) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %e = graph.call_dps @add(%d, %d) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %f = graph.call_dps @add(%a, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %f : tensor<8xf32>
}
loop.kernel @add(%x: memref<8xf32>, %z: memref<8xf32>) -> (%y: memref<8xf32> {loop.in_place = [1]}) {
}
loop.kernel @relu(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
}

// -----

// Checked indices have the buffer of those that are checked, and are not checked for that size again.
// CHECK-LABEL: func.func @checked_before
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: rt.check_index %ctx, %ids, %[[N]] "input \22ids\22" from_front : memref<3xi64>
// CHECK-NEXT: rt.check_index %ctx, %ids, %[[SEVEN:.*]] "kernel rows" : memref<3xi64>
// CHECK-NEXT: rt.call @rows(%x, %ids, %result)
func.func @checked_before(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %c = graph.check_indices %ids of %x axis = 0 "input \22ids\22" : (tensor<3xi64>, tensor<?x4xf32>) -> tensor<3xi64>
  %0 = graph.call_dps @rows(%x, %c) : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
loop.kernel @rows(%x: memref<?x4xf32>, %ids: memref<3xi64> {loop.bounds = ["x0.0", "7"]}) -> (%y: memref<3x4xf32>) {
}

// -----

// The indices of a constant are known: a call compares the size with their extremes, which the
// program has as a constant of its own. No index is out of range if there is none.
// CHECK-LABEL: func.func @known(
// CHECK: %[[EXTREMES:.*]] = rt.constant %ctx, {{[0-9]+}} "literal.extremes" : memref<2xi64>
// CHECK-NOT: rt.check_index
// CHECK: %[[SMALLEST:.*]] = memref.load %[[EXTREMES]][%{{.*}}] : memref<2xi64>
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_cast %[[SMALLEST]] : i64 to index
// CHECK-NEXT: %[[FITS:.*]] = arith.cmpi sge, %[[FIRST]], %[[LOW:.*]] : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]], "kernel rows: index out of range, expected {0} to {1}, got {2}"(%[[LOW]], %[[HIGH:.*]], %[[FIRST]])
// CHECK: %[[LARGEST:.*]] = memref.load %[[EXTREMES]]
// CHECK-NEXT: %[[LAST:.*]] = arith.index_cast %[[LARGEST]] : i64 to index
// CHECK-NEXT: %[[FITS:.*]] = arith.cmpi sle, %[[LAST]], %[[HIGH]] : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]]
// CHECK-NEXT: rt.call @rows(
// CHECK-NEXT: rt.constant
// CHECK-NEXT: rt.call @none(
func.func @known(%x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> (tensor<3x4xf32>, tensor<0x4xf32>) {
  %i = graph.constant dense<[2, -1, 7]> : tensor<3xi64>
  %e = graph.constant dense<> : tensor<0xi64>
  %y = graph.call_dps @rows(%x, %i) : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %z = graph.call_dps @none(%x, %e) : (tensor<?x4xf32>, tensor<0xi64>) -> tensor<0x4xf32>
  func.return %y, %z : tensor<3x4xf32>, tensor<0x4xf32>
}

loop.kernel @rows(%x: memref<?x4xf32>, %i: memref<3xi64> {loop.bounds = ["x0.0"]}) -> (%y: memref<3x4xf32>) {
}

loop.kernel @none(%x: memref<?x4xf32>, %i: memref<0xi64> {loop.bounds = ["x0.0"]}) -> (%y: memref<0x4xf32>) {
}

// -----

// A row is a part of its buffer, and a reshape the same buffer. The operand lives as long.
// CHECK-LABEL: func.func @views(%ctx: !rt.context, %x: memref<2x6xf32>,
// CHECK: %[[MADE:.*]] = memref.view
// CHECK: %[[ROW:.*]] = rt.slice %x, %{{.*}} : memref<2x6xf32> to memref<6xf32>
// CHECK: %[[ONE:.*]] = memref.reinterpret_cast %[[ROW]] to offset: [0], sizes: [1, 6], strides: [6, 1] : memref<6xf32> to memref<1x6xf32>
// CHECK: rt.call @make(%[[ONE]], %[[MADE]])
// CHECK-NEXT: {{.*}}memref.reinterpret_cast %[[MADE]]
// CHECK: rt.call @read(
func.func @views(%x: tensor<2x6xf32>) -> tensor<6xf32> {
  %r = graph.slice %x starts = [1, 0] ends = [2, 9223372036854775807] steps = [1, 1] : (tensor<2x6xf32>) -> tensor<1x6xf32>
  %m = graph.call_dps @make(%r) : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %v = graph.reshape %m shape = [-1] : (tensor<1x6xf32>) -> tensor<6xf32>
  %y = graph.call_dps @read(%v) : (tensor<6xf32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

loop.kernel @make(%x: memref<1x6xf32>) -> (%y: memref<1x6xf32>) {
}

loop.kernel @read(%x: memref<6xf32>) -> (%y: memref<6xf32>) {
}

// -----

// Parts are stored where they are joined, and so are parts that are joined again.
// CHECK-LABEL: func.func @joined(
// CHECK: %[[ARENA:.*]] = rt.arena %ctx
// CHECK-DAG: %[[FIRST:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<?xi8> to memref<1x1x16xf32>
// CHECK-DAG: %[[PAIR:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<?xi8> to memref<1x2x16xf32>
// CHECK-DAG: %[[ALL:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<?xi8> to memref<1x3x16xf32>
// CHECK-NOT: memref.copy
// CHECK: rt.call @make(%x,
// CHECK-NEXT: rt.call @make(%x,
// CHECK-NEXT: rt.call @pair(%[[PAIR]],
// CHECK-NEXT: rt.call @read(%[[ALL]], %result)
func.func @joined(%x: tensor<1x1x16xf32>) -> tensor<1x3x16xf32> {
  %a = graph.call_dps @make(%x) : (tensor<1x1x16xf32>) -> tensor<1x1x16xf32>
  %b = graph.call_dps @make(%x) : (tensor<1x1x16xf32>) -> tensor<1x1x16xf32>
  %p = graph.concat %a, %b axis = 1 : (tensor<1x1x16xf32>, tensor<1x1x16xf32>) -> tensor<1x2x16xf32>
  %c = graph.call_dps @pair(%p) : (tensor<1x2x16xf32>) -> tensor<1x1x16xf32>
  %all = graph.concat %p, %c axis = 1 : (tensor<1x2x16xf32>, tensor<1x1x16xf32>) -> tensor<1x3x16xf32>
  %y = graph.call_dps @read(%all) : (tensor<1x3x16xf32>) -> tensor<1x3x16xf32>
  func.return %y : tensor<1x3x16xf32>
}

loop.kernel @make(%x: memref<1x1x16xf32>) -> (%y: memref<1x1x16xf32>) {
}

loop.kernel @pair(%x: memref<1x2x16xf32>) -> (%y: memref<1x1x16xf32>) {
}

loop.kernel @read(%x: memref<1x3x16xf32>) -> (%y: memref<1x3x16xf32>) {
}
