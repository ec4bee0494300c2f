// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-to-llvm | filecheck %s

// One walk converts everything; no cast is left.
// CHECK-LABEL: llvm.func @add(
// CHECK-SAME: %x: !llvm.ptr {llvm.noalias}, %n: i64, %y: !llvm.ptr {llvm.noalias}, %[[V0:.*]]: i64) {
// CHECK-NEXT: %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT: llvm.br ^bb1(%c0 : i64)
// CHECK-NEXT: ^bb1(%i: i64):
// CHECK-NEXT: %[[V1:.*]] = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V2:.*]] = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %more = llvm.icmp "slt" %i, %n : i64
// CHECK-NEXT: llvm.cond_br %more, ^bb2, ^bb3
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %v = llvm.load %[[V1]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: %s = llvm.intr.sqrt(%v) : (f32) -> f32
// CHECK-NEXT: llvm.store %s, %[[V2]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT: %next = llvm.add %i, %c1 : i64
// CHECK-NEXT: llvm.br ^bb1(%next : i64)
// CHECK-NEXT: ^bb3:
// CHECK-NEXT: llvm.return
func.func @add(%x: memref<?xf32> {llvm.noalias}, %y: memref<?xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  cf.br ^bb1(%c0 : index)
^bb1(%i: index):
  %more = arith.cmpi slt, %i, %n : index
  cf.cond_br %more, ^bb2, ^bb3
^bb2:
  %v = memref.load %x[%i] : memref<?xf32>
  %s = math.sqrt %v : f32
  memref.store %s, %y[%i] : memref<?xf32>
  %next = arith.addi %i, %c1 : index
  cf.br ^bb1(%next : index)
^bb3:
  func.return
}

// -----

// The LLVM dialect is left as it is.
// CHECK-LABEL: llvm.func @other(
// CHECK-SAME: %a: f32) -> f32 {
// CHECK-NEXT: llvm.return %a : f32
llvm.func @other(%a: f32) -> f32 {
  llvm.return %a : f32
}

// -----

func.func @structured(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{scf.for: cannot be converted to the llvm dialect}}
  scf.for %i = %c0 to %n step %c1 {
  }
  func.return
}

// -----

// The error names where the operation came from.
func.func @tiles(%n: index) {
  // expected-error @+1 {{rt.parallel_tiles: cannot be converted to the llvm dialect (node "fc1")}}
  "rt.parallel_tiles"(%n) ({
  ^bb0(%t: index):
    rt.yield
  }) : (index) -> () loc("fc1")
  func.return
}
