// RUN: stepwell-opt %s --split-input-file -p rt-fuse-checks | filecheck %s

// Each row is checked before it is read, the last ones of a remainder too.
// CHECK-LABEL: func.func @fused(
// CHECK-NEXT: %[[S:.*]] = rt.details %ctx : memref<3xindex>
// CHECK: memref.store
// CHECK-NEXT: rt.call @fused_k(%n, %[[S]], %i) : index, memref<3xindex>, memref<7x128xi64>
// CHECK: scf.if
// CHECK-NEXT: rt.check_index %ctx, %i, %n "i" : memref<7x128xi64>
// CHECK-LABEL: func.func private @fused_k(%{{.*}}: index, %{{.*}}: memref<3xindex>, %i: memref<7x128xi64> {llvm.noalias}) {
// CHECK: %[[OK:.*]] = rt.are_indices %a, %{{.*}}, %{{.*}}, %{{.*}} : memref<7x128xi64>
// CHECK-NEXT: scf.if %[[OK]] {
// CHECK-NEXT: memref.load %a[%row, %c0]
// CHECK-NEXT: } else {
// CHECK: memref.store
func.func @fused(%ctx: !rt.context, %i: memref<7x128xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<7x128xi64>
  rt.call @fused_k(%i) : memref<7x128xi64>
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @fused_k(%i: memref<7x128xi64> {llvm.noalias}) {
  %c2 = arith.constant 2 : index
  rt.parallel_tiles %c2 captures(%i : memref<7x128xi64>) {
  ^bb0(%tile: index, %a: memref<7x128xi64>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %tile, %c4 : index
    %m4 = arith.constant -4 : index
    %rows = arith.constant 7 : index
    %done = arith.muli %tile, %m4 : index
    %left = arith.addi %done, %rows : index
    %ub = arith.minsi %left, %c4 : index
    scf.for %j = %c0 to %ub step %c1 {
      %row = arith.addi %first, %j : index
      %v = memref.load %a[%row, %c0] : memref<7x128xi64>
    }
    rt.yield
  }
  func.return
}

// -----

// One row is not read.
// CHECK-LABEL: func.func @unread(
// CHECK-NEXT: rt.check_index
// CHECK-NEXT: rt.call @unread_k(%i) : memref<9x128xi64>
func.func @unread(%ctx: !rt.context, %i: memref<9x128xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<9x128xi64>
  rt.call @unread_k(%i) : memref<9x128xi64>
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @unread_k(%i: memref<9x128xi64> {llvm.noalias}) {
  %c2 = arith.constant 2 : index
  rt.parallel_tiles %c2 captures(%i : memref<9x128xi64>) {
  ^bb0(%tile: index, %a: memref<9x128xi64>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %tile, %c4 : index
    %ub = arith.constant 4 : index
    scf.for %j = %c0 to %ub step %c1 {
      %row = arith.addi %first, %j : index
      %v = memref.load %a[%row, %c0] : memref<9x128xi64>
    }
    rt.yield
  }
  func.return
}

// -----

// Another row may be read.
// CHECK-LABEL: func.func @outside(
// CHECK-NEXT: rt.check_index
// CHECK-NEXT: rt.call @outside_k(%i) : memref<7x128xi64>
func.func @outside(%ctx: !rt.context, %i: memref<7x128xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<7x128xi64>
  rt.call @outside_k(%i) : memref<7x128xi64>
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @outside_k(%i: memref<7x128xi64> {llvm.noalias}) {
  %c2 = arith.constant 2 : index
  rt.parallel_tiles %c2 captures(%i : memref<7x128xi64>) {
  ^bb0(%tile: index, %a: memref<7x128xi64>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %tile, %c4 : index
    %m4 = arith.constant -4 : index
    %rows = arith.constant 8 : index
    %done = arith.muli %tile, %m4 : index
    %left = arith.addi %done, %rows : index
    %ub = arith.minsi %left, %c4 : index
    scf.for %j = %c0 to %ub step %c1 {
      %row = arith.addi %first, %j : index
      %v = memref.load %a[%row, %c0] : memref<7x128xi64>
    }
    rt.yield
  }
  func.return
}

// -----

// Short rows are checked as a whole.
// CHECK-LABEL: func.func @short(
// CHECK-NEXT: rt.check_index
// CHECK-NEXT: rt.call @short_k(%i) : memref<8x100xi64>
func.func @short(%ctx: !rt.context, %i: memref<8x100xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<8x100xi64>
  rt.call @short_k(%i) : memref<8x100xi64>
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @short_k(%i: memref<8x100xi64> {llvm.noalias}) {
  %c2 = arith.constant 2 : index
  rt.parallel_tiles %c2 captures(%i : memref<8x100xi64>) {
  ^bb0(%tile: index, %a: memref<8x100xi64>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %tile, %c4 : index
    %ub = arith.constant 4 : index
    scf.for %j = %c0 to %ub step %c1 {
      %row = arith.addi %first, %j : index
      %v = memref.load %a[%row, %c0] : memref<8x100xi64>
    }
    rt.yield
  }
  func.return
}

// -----

// A kernel of two calls would have to know which one it is.
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: rt.check_index
// CHECK-NEXT: rt.call @twice_k(%i) : memref<8x128xi64>
func.func @twice(%ctx: !rt.context, %i: memref<8x128xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<8x128xi64>
  rt.call @twice_k(%i) : memref<8x128xi64>
  rt.call @twice_k(%i) : memref<8x128xi64>
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @twice_k(%i: memref<8x128xi64> {llvm.noalias}) {
  %c2 = arith.constant 2 : index
  rt.parallel_tiles %c2 captures(%i : memref<8x128xi64>) {
  ^bb0(%tile: index, %a: memref<8x128xi64>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %tile, %c4 : index
    %ub = arith.constant 4 : index
    scf.for %j = %c0 to %ub step %c1 {
      %row = arith.addi %first, %j : index
      %v = memref.load %a[%row, %c0] : memref<8x128xi64>
    }
    rt.yield
  }
  func.return
}
