// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-func-to-llvm | filecheck %s

// A buffer is passed as its address and its symbolic sizes; what is said of it is said of the address.
// CHECK-LABEL: llvm.func @arguments(
// CHECK-SAME: %x: !llvm.ptr {llvm.noalias}, %[[V0:.*]]: i64, %[[V1:.*]]: i64, %i: i64, %c: i1) -> i32 {
// CHECK-NEXT: %[[V2:.*]] = arith.constant 0 : i32
// CHECK-NEXT: llvm.return %[[V2]] : i32
func.func @arguments(%x: memref<?x4x?xf32> {llvm.noalias, graph.name = "x"}, %i: index, %c: i1) -> i32 {
  %0 = arith.constant 0 : i32
  func.return %0 : i32
}

// -----

// What says how a program is called is kept.
// CHECK-LABEL: llvm.func @program(
// CHECK-SAME: %ctx: !llvm.ptr) -> i32 attributes
// CHECK-SAME: {graph.signature = () -> (), rt.failures = [{kind = "csr", subject = "x"}]} {
func.func @program(%ctx: !rt.context) -> i32 attributes {graph.signature = () -> (), rt.failures = [{kind = "csr", subject = "x"}], other.note} {
  %0 = arith.constant 0 : i32
  func.return %0 : i32
}

// -----

// CHECK-LABEL: llvm.func internal @kernel(
// CHECK-SAME: %x: !llvm.ptr, %[[V0:.*]]: i64, %n: i64) {
// CHECK-NEXT: llvm.return
// CHECK-LABEL: llvm.func @caller(
// CHECK-SAME: %x_1: !llvm.ptr, %[[V0:.*]]: i64, %n_1: i64) {
// CHECK-NEXT: llvm.call @kernel(%x_1, %[[V0]], %n_1) : (!llvm.ptr, i64, i64) -> ()
// CHECK-NEXT: llvm.return
// CHECK-LABEL: llvm.func @elsewhere(
// CHECK-SAME: !llvm.ptr) -> f64
func.func private @kernel(%x: memref<?xf32>, %n: index) {
  func.return
}
func.func @caller(%x: memref<?xf32>, %n: index) {
  func.call @kernel(%x, %n) : (memref<?xf32>, index) -> ()
  func.return
}
func.func private @elsewhere(memref<4xf32>) -> f64

// -----

// Several results come back as a struct.
// CHECK-LABEL: llvm.func internal @pair(
// CHECK-SAME: %x: !llvm.ptr, %[[V0:.*]]: i64, %a: f32) -> !llvm.struct<(!llvm.ptr, i64, f32)> {
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.poison : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: %[[V2:.*]] = llvm.insertvalue %x, %[[V1]][0] : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: %[[V3:.*]] = llvm.insertvalue %[[V0]], %[[V2]][1] : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: %[[V4:.*]] = llvm.insertvalue %a, %[[V3]][2] : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: llvm.return %[[V4]] : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-LABEL: llvm.func @uses_pair(
// CHECK-SAME: %x_1: !llvm.ptr, %[[V0:.*]]: i64, %a_1: f32) -> f32 {
// CHECK-NEXT: %[[V1:.*]] = llvm.call @pair(%x_1, %[[V0]], %a_1) : (!llvm.ptr, i64, f32) -> !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: %[[V2:.*]] = llvm.extractvalue %[[V1]][2] : !llvm.struct<(!llvm.ptr, i64, f32)>
// CHECK-NEXT: %[[V3:.*]] = arith.addf %[[V2]], %[[V2]] : f32
// CHECK-NEXT: llvm.return %[[V3]] : f32
func.func private @pair(%x: memref<?xf32>, %a: f32) -> (memref<?xf32>, f32) {
  func.return %x, %a : memref<?xf32>, f32
}
func.func @uses_pair(%x: memref<?xf32>, %a: f32) -> f32 {
  %0, %1 = func.call @pair(%x, %a) : (memref<?xf32>, f32) -> (memref<?xf32>, f32)
  %2 = arith.addf %1, %1 : f32
  func.return %2 : f32
}

// -----

// expected-error @+1 {{func.func: buffer is not contiguous, expected no layout, got memref<4xf32, strided<[2]>>}}
func.func @layout(%x: memref<4xf32, strided<[2]>>) {
  func.return
}
