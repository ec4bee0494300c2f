// RUN: stepwell-opt %s --split-input-file --print-debuginfo -p convert-scf-to-cf | filecheck %s

// What a loop becomes is of the node of the loop, where the loop says it.
// CHECK-LABEL: func.func @loop(
// CHECK: cf.br ^bb1(%zero : index) loc("conv1")
// CHECK-NEXT: ^bb1(%i: index
// CHECK-NEXT: %{{.*}} = arith.cmpi slt, %i, %n : index loc("conv1")
// CHECK-NEXT: cf.cond_br %{{.*}}, ^bb2, ^bb3 loc("conv1")
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: memref.store %v, %x[%i] : memref<?xf32> loc("relu1")
// CHECK-NEXT: %{{.*}} = arith.addi %i, %one : index loc("conv1")
// CHECK-NEXT: cf.br ^bb1(%{{.*}} : index) loc("conv1")
// CHECK-NEXT: ^bb3:
func.func @loop(%n: index, %x: memref<?xf32>, %v: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    memref.store %v, %x[%i] : memref<?xf32> loc("relu1")
    scf.yield
  } loc("conv1")
  func.return
}

// -----

// CHECK-LABEL: func.func @condition(
// CHECK: cf.cond_br %c, ^bb1, ^bb2 loc("fc1")
// CHECK: ^bb1:
// CHECK-NEXT: cf.br ^bb3(%a : f32) loc("fc1")
// CHECK: ^bb2:
// CHECK-NEXT: cf.br ^bb3(%b : f32) loc("fc1")
// CHECK: cf.br ^bb4 loc("fc1")
func.func @condition(%c: i1, %a: f32, %b: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    scf.yield %a : f32
  } else {
    scf.yield %b : f32
  } loc("fc1")
  func.return %r : f32
}

// -----

// CHECK-LABEL: func.func @while(
// CHECK: cf.br ^bb1(%n : index) loc("spmm1")
// CHECK-NEXT: ^bb1(%a: index
// CHECK-NEXT: %more = arith.cmpi ne, %a, %zero : index
// CHECK-NEXT: cf.cond_br %more, ^bb2(%a : index), ^bb3(%a : index) loc("spmm1")
// CHECK-NEXT: ^bb2(%b: index
// CHECK-NEXT: %half = arith.shrui %b, %one : index
// CHECK-NEXT: cf.br ^bb1(%half : index) loc("spmm1")
// CHECK-NEXT: ^bb3(%{{.*}}: index
// CHECK-NEXT: func.return %{{.*}} : index
func.func @while(%n: index) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.while (%a = %n) : (index) -> index {
    %more = arith.cmpi ne, %a, %zero : index
    scf.condition(%more) %a : index
  } do {
  ^bb0(%b: index):
    %half = arith.shrui %b, %one : index
    scf.yield %half : index
  } loc("spmm1")
  func.return %r : index
}

// -----

// What is no structured control flow stays, and so does what has no location.
// CHECK-LABEL: func.func @branches(
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb1 loc(unknown)
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: func.return
func.func @branches(%c: i1) {
  cf.cond_br %c, ^bb1, ^bb1
^bb1:
  func.return
}

// -----

// CHECK-LABEL: func.func @switch(
// CHECK: %{{.*}} = arith.index_cast %i : index to i32 loc("choose1")
// CHECK-NEXT: cf.switch %{{.*}} : i32, [
// CHECK-NEXT: default: ^bb3,
// CHECK-NEXT: 2: ^bb1,
// CHECK-NEXT: 5: ^bb2
// CHECK: ^bb1:
// CHECK-NEXT: cf.br ^bb4(%a : f32) loc("choose1")
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: cf.br ^bb4(%b : f32) loc("choose1")
// CHECK-NEXT: ^bb3:
// CHECK-NEXT: %s = arith.addf %a, %b : f32
// CHECK-NEXT: cf.br ^bb4(%s : f32) loc("choose1")
// CHECK-NEXT: ^bb4(%r: f32
// CHECK-NEXT: func.return %r : f32
func.func @switch(%i: index, %a: f32, %b: f32) -> f32 {
  %r = scf.index_switch %i -> f32
  case 2 {
    scf.yield %a : f32
  }
  case 5 {
    scf.yield %b : f32
  }
  default {
    %s = arith.addf %a, %b : f32
    scf.yield %s : f32
  } loc("choose1")
  func.return %r : f32
}

// -----

// LLVM unrolls loops that move elements one by one.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: attributes {rt.unroll}
func.func @gather(%zero: index, %n: index, %one: index, %x: memref<?xf32>, %at: memref<?xi64>, %y: memref<?xf32>) {
  scf.for %i = %zero to %n step %one {
    %p = memref.load %at[%i] : memref<?xi64>
    %q = arith.index_cast %p : i64 to index
    %v = memref.load %x[%q] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
