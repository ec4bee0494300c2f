// RUN: stepwell-opt %s --split-input-file -p "convert-graph-to-rt{copy-indices=true}" | filecheck %s

// Row pointers and column indices are copied, then checked; values are used where they are.
// CHECK-LABEL: func.func @sparse(%ctx: !rt.context, %a: memref<5xi32>, %a_1: memref<?xi32>, %a_2: memref<?xf32>,
// CHECK: %[[P:.*]] = memref.view %arena[%{{.*}}][] : memref<?xi8> to memref<5xi32>
// CHECK-NEXT: "memref.copy"(%a, %[[P]])
// CHECK-NEXT: %[[I:.*]] = memref.view %arena[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xi32>
// CHECK-NEXT: "memref.copy"(%a_1, %[[I]])
// CHECK: rt.check_csr %ctx, %[[P]], %[[I]],
// CHECK: rt.call @spmm(%[[P]], %[[I]], %a_2, %w, %result)
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @sparse(%a: tensor<4x6xf32, #csr> {graph.name = "a", graph.nnz = "e"}, %w: tensor<6x2xf32>) -> tensor<4x2xf32> {
  %0 = graph.call_dps @spmm(%a, %w) : (tensor<4x6xf32, #csr>, tensor<6x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
loop.kernel @spmm(%a: memref<5xi32>, %a_1: memref<?xi32>, %a_2: memref<?xf32>, %w: memref<6x2xf32>) -> (%y: memref<4x2xf32>) {
}

// -----

// A result that is used as indices is computed in the arena, where its reader does not find it.
// CHECK-LABEL: func.func @returned(%ctx: !rt.context, %x: memref<8x2xf32>, %i: memref<3xi64>, %result: memref<3xi64>, %result_1: memref<3x2xf32>)
// CHECK: %[[I:.*]] = memref.view %arena
// CHECK: rt.call @next(%i, %[[I]])
// CHECK-NEXT: rt.check_index %ctx, %[[I]],
// CHECK-NEXT: rt.call @rows(%x, %[[I]], %result_1)
// CHECK-NEXT: "memref.copy"(%[[I]], %result)
func.func @returned(%x: tensor<8x2xf32>, %i: tensor<3xi64>) -> (tensor<3xi64>, tensor<3x2xf32>) {
  %0 = graph.call_dps @next(%i) : (tensor<3xi64>) -> tensor<3xi64>
  %1 = graph.call_dps @rows(%x, %0) : (tensor<8x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  func.return %0, %1 : tensor<3xi64>, tensor<3x2xf32>
}
loop.kernel @next(%i: memref<3xi64>) -> (%y: memref<3xi64>) {
}
loop.kernel @rows(%x: memref<8x2xf32>, %i: memref<3xi64> {loop.bounds = ["x0.0"]}) -> (%y: memref<3x2xf32>) {
}

// -----

// Where nothing is used as indices, nothing is copied.
// CHECK-LABEL: func.func @dense
// CHECK-NEXT: rt.call @relu(%x, %result)
func.func @dense(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = graph.call_dps @relu(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %0 : tensor<8x4xf32>
}
loop.kernel @relu(%x: memref<8x4xf32>) -> (%y: memref<8x4xf32>) {
}

// -----

// What a check passes on is in the buffer of its operand, which is copied.
// CHECK-LABEL: func.func @checked(%ctx: !rt.context, %x: memref<8x2xf32>, %i: memref<3xi64>, %ok: memref<i8>,
// CHECK: %[[I:.*]] = memref.view %arena
// CHECK-NEXT: "memref.copy"(%i, %[[I]])
// CHECK: rt.check_index %ctx, %[[I]],
// CHECK-NEXT: rt.call @rows(%x, %[[I]], %result)
func.func @checked(%x: tensor<8x2xf32>, %i: tensor<3xi64>, %ok: tensor<i1>) -> tensor<3x2xf32> {
  %0 = graph.check %i if %ok "no" () : (tensor<3xi64>, tensor<i1>) -> tensor<3xi64>
  %1 = graph.call_dps @rows(%x, %0) : (tensor<8x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
}
loop.kernel @rows(%x: memref<8x2xf32>, %i: memref<3xi64> {loop.bounds = ["x0.0"]}) -> (%y: memref<3x2xf32>) {
}
