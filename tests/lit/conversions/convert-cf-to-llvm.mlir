// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-cf-to-llvm | filecheck %s

// Arguments of blocks change their types with the branches: a buffer is an address and sizes.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %n: index, %x: memref<?xf32>) -> index {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %[[V1:.*]], %[[V2:.*]] = builtin.unrealized_conversion_cast %x : memref<?xf32> to !llvm.ptr, i64
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: llvm.br ^bb1(%[[V0]], %[[V1]], %[[V2]] : i64, !llvm.ptr, i64)
// CHECK-NEXT: ^bb1(%i: i64, %b: !llvm.ptr, %[[V3:.*]]: i64):
// CHECK-NEXT: %i_1 = builtin.unrealized_conversion_cast %i : i64 to index
// CHECK-NEXT: %more = arith.cmpi slt, %i_1, %n : index
// CHECK-NEXT: llvm.cond_br %more, ^bb2, ^bb3(%i : i64)
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %next = arith.addi %i_1, %c1 : index
// CHECK-NEXT: %[[V4:.*]] = builtin.unrealized_conversion_cast %next : index to i64
// CHECK-NEXT: llvm.br ^bb1(%[[V4]], %b, %[[V3]] : i64, !llvm.ptr, i64)
// CHECK-NEXT: ^bb3(%last: i64):
// CHECK-NEXT: %last_1 = builtin.unrealized_conversion_cast %last : i64 to index
// CHECK-NEXT: func.return %last_1 : index
func.func @loop(%n: index, %x: memref<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  cf.br ^bb1(%c0, %x : index, memref<?xf32>)
^bb1(%i: index, %b: memref<?xf32>):
  %more = arith.cmpi slt, %i, %n : index
  cf.cond_br %more, ^bb2, ^bb3(%i : index)
^bb2:
  %c1 = arith.constant 1 : index
  %next = arith.addi %i, %c1 : index
  cf.br ^bb1(%next, %b : index, memref<?xf32>)
^bb3(%last: index):
  func.return %last : index
}

// -----

// A switch is a chain of comparisons.
// CHECK-LABEL: func.func @switch(
// CHECK-SAME: %f: i32, %a: f32, %b: f32) -> f32 {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(42 : i32) : i32
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(-7 : i32) : i32
// CHECK-NEXT: %[[V2:.*]] = llvm.icmp "eq" %f, %[[V0]] : i32
// CHECK-NEXT: llvm.cond_br %[[V2]], ^bb3(%b : f32), ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %[[V3:.*]] = llvm.icmp "eq" %f, %[[V1]] : i32
// CHECK-NEXT: llvm.cond_br %[[V3]], ^bb4, ^bb2
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: llvm.br ^bb3(%a : f32)
// CHECK-NEXT: ^bb3(%x: f32):
// CHECK-NEXT: func.return %x : f32
// CHECK-NEXT: ^bb4:
// CHECK-NEXT: func.return %a : f32
func.func @switch(%f: i32, %a: f32, %b: f32) -> f32 {
  cf.switch %f : i32, [
    default: ^bb1(%a : f32),
    42: ^bb1(%b : f32),
    -7: ^bb2
  ]
^bb1(%x: f32):
  func.return %x : f32
^bb2:
  func.return %a : f32
}

// -----

// Without branches nothing changes.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %i: index) -> index {
// CHECK-NEXT: func.return %i : index
func.func @other(%i: index) -> index {
  func.return %i : index
}

// -----

func.func @assert(%c: i1) {
  // expected-error @+1 {{cf.assert: cannot be converted to the llvm dialect}}
  cf.assert %c, "no"
  func.return
}
