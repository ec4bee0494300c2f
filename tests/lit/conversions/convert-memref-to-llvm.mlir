// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-memref-to-llvm | filecheck %s

// The address of a row is computed where the row is known, once for both accesses.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %x: memref<?x7xf32>, %c0: i64) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?x7xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(7) : i64
// CHECK-NEXT: %n0 = arith.constant 0 : index
// CHECK-NEXT: %one = arith.constant 1 : index
// CHECK-NEXT: %seven = arith.constant 7 : index
// CHECK-NEXT: scf.for %i = %n0 to %seven step %one {
// CHECK-NEXT: %[[V3:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V4:.*]] = llvm.mul %[[V3]], %[[V2]] : i64
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[V0]][%[[V4]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: scf.for %j = %n0 to %seven step %one {
// CHECK-NEXT: %[[V6:.*]] = builtin.unrealized_conversion_cast %j : index to i64
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V5]][%[[V6]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %v = llvm.load %[[V7]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: llvm.store %v, %[[V7]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
func.func @rows(%x: memref<?x7xf32>, %c0: i64) {
  %n0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %seven = arith.constant 7 : index
  scf.for %i = %n0 to %seven step %one {
    scf.for %j = %n0 to %seven step %one {
      %v = memref.load %x[%i, %j] : memref<?x7xf32>
      memref.store %v, %x[%i, %j] : memref<?x7xf32>
    }
  }
  func.return
}

// -----

// Strides of symbolic dimensions are products of the sizes that come with the buffer.
// CHECK-LABEL: func.func @symbolic(
// CHECK-SAME: %x: memref<?x?x3xf64>, %i: index, %j: index, %k: index) -> f64 {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]], %[[V2:.*]] = builtin.unrealized_conversion_cast %x : memref<?x?x3xf64> to !llvm.ptr, i64, i64
// CHECK-NEXT: %[[V3:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V4:.*]] = builtin.unrealized_conversion_cast %j : index to i64
// CHECK-NEXT: %[[V5:.*]] = builtin.unrealized_conversion_cast %k : index to i64
// CHECK-NEXT: %[[V6:.*]] = llvm.mlir.constant(3) : i64
// CHECK-NEXT: %[[V7:.*]] = llvm.mul %[[V2]], %[[V6]] : i64
// CHECK-NEXT: %[[V8:.*]] = llvm.mul %[[V3]], %[[V7]] : i64
// CHECK-NEXT: %[[V9:.*]] = llvm.mul %[[V4]], %[[V6]] : i64
// CHECK-NEXT: %[[V10:.*]] = llvm.getelementptr %[[V0]][%[[V8]]] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT: %[[V11:.*]] = llvm.getelementptr %[[V10]][%[[V9]]] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT: %[[V12:.*]] = llvm.getelementptr %[[V11]][%[[V5]]] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT: %v = llvm.load %[[V12]] {alignment = 8 : i64} : !llvm.ptr -> f64
// CHECK-NEXT: func.return %v : f64
func.func @symbolic(%x: memref<?x?x3xf64>, %i: index, %j: index, %k: index) -> f64 {
  %v = memref.load %x[%i, %j, %k] : memref<?x?x3xf64>
  func.return %v : f64
}

// -----

// A known number becomes the displacement, the rest of the address is shared.
// CHECK-LABEL: func.func @displacement(
// CHECK-SAME: %x: memref<?x7xf32>, %i: index) -> (f32, f32) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?x7xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.constant(7) : i64
// CHECK-NEXT: %[[V4:.*]] = llvm.mul %[[V2]], %[[V3]] : i64
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[V0]][%[[V4]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V6:.*]] = llvm.getelementptr %[[V5]][2] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V5]][3] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT: %c2 = arith.constant 2 : index
// CHECK-NEXT: %c3 = arith.constant 3 : index
// CHECK-NEXT: %v = llvm.load %[[V6]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: %w = llvm.load %[[V7]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: func.return %v, %w : f32, f32
func.func @displacement(%x: memref<?x7xf32>, %i: index) -> (f32, f32) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = memref.load %x[%i, %c2] : memref<?x7xf32>
  %w = memref.load %x[%i, %c3] : memref<?x7xf32>
  func.return %v, %w : f32, f32
}

// -----

// An element of i1 is a byte in memory.
// CHECK-LABEL: func.func @bool(
// CHECK-SAME: %x: memref<4xi1>, %i: index) {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %x : memref<4xi1> to !llvm.ptr
// CHECK-NEXT: %[[V1:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V2:.*]] = llvm.getelementptr %[[V0]][%[[V1]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.constant(0 : i8) : i8
// CHECK-NEXT: %[[V4:.*]] = llvm.load %[[V2]] {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK-NEXT: %v = llvm.icmp "ne" %[[V4]], %[[V3]] : i8
// CHECK-NEXT: %[[V5:.*]] = llvm.zext %v : i1 to i8
// CHECK-NEXT: llvm.store %[[V5]], %[[V2]] {alignment = 1 : i64} : i8, !llvm.ptr
// CHECK-NEXT: func.return
func.func @bool(%x: memref<4xi1>, %i: index) {
  %v = memref.load %x[%i] : memref<4xi1>
  memref.store %v, %x[%i] : memref<4xi1>
  func.return
}

// -----

// CHECK-LABEL: func.func @dim(
// CHECK-SAME: %x: memref<?x7x?xf32>) -> (index, index, index) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]], %[[V2:.*]] = builtin.unrealized_conversion_cast %x : memref<?x7x?xf32> to !llvm.ptr, i64, i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.constant(7) : i64
// CHECK-NEXT: %[[V4:.*]] = builtin.unrealized_conversion_cast %[[V2]] : i64 to index
// CHECK-NEXT: %[[V5:.*]] = builtin.unrealized_conversion_cast %[[V3]] : i64 to index
// CHECK-NEXT: %[[V6:.*]] = builtin.unrealized_conversion_cast %[[V1]] : i64 to index
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %c2 = arith.constant 2 : index
// CHECK-NEXT: func.return %[[V6]], %[[V5]], %[[V4]] : index, index, index
func.func @dim(%x: memref<?x7x?xf32>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = memref.dim %x, %c0 : memref<?x7x?xf32>
  %1 = memref.dim %x, %c1 : memref<?x7x?xf32>
  %2 = memref.dim %x, %c2 : memref<?x7x?xf32>
  func.return %0, %1, %2 : index, index, index
}

// -----

// A buffer on the stack is made once, at the entry, aligned for any vector; LLVM makes registers of it.
// CHECK-LABEL: func.func @stack(
// CHECK-SAME: %i: index) -> f32 attributes {rt.effort = "light"} {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(32) : i64
// CHECK-NEXT: %b = llvm.alloca %[[V0]] x f32 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT: %[[V1:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(9) : i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mul %[[V1]], %[[V2]] : i64
// CHECK-NEXT: %[[V4:.*]] = llvm.getelementptr %b[%[[V3]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: cf.br ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %v = llvm.load %[[V4]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: func.return %v : f32
func.func @stack(%i: index) -> f32 {
  cf.br ^bb1
^bb1:
  %b = memref.alloca() : memref<4x8xf32>
  %v = memref.load %b[%i, %i] : memref<4x8xf32>
  func.return %v : f32
}

// -----

// Memory on the heap ends the process where there is none.
// CHECK: llvm.func internal @rt_allocate(%bytes: i64) -> !llvm.ptr {
// CHECK: %[[ADDRESS:.*]] = llvm.call @aligned_alloc(
// CHECK: llvm.call @abort() : () -> ()
// CHECK: llvm.return %[[ADDRESS]] : !llvm.ptr
// CHECK-LABEL: func.func @heap(
// CHECK: %[[N:.*]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK: %[[UNIT:.*]] = llvm.mlir.constant(8) : i64
// CHECK: %[[MOST:.*]] = llvm.mlir.constant(4611686018427387904) : i64
// CHECK: %[[LIMIT:.*]] = llvm.udiv %[[MOST]], %{{.*}} : i64
// CHECK: %[[FITS:.*]] = llvm.icmp "ule" %[[N]], %[[LIMIT]] : i64
// CHECK: %[[PRODUCT:.*]] = llvm.mul %[[UNIT]], %[[N]] : i64
// CHECK: %[[BYTES:.*]] = llvm.select %[[FITS]], %[[PRODUCT]], %[[MOST]]
// CHECK: %b = llvm.call @rt_allocate(%[[BYTES]]) : (i64) -> !llvm.ptr
// CHECK: llvm.call @free(%b) : (!llvm.ptr) -> ()
func.func @heap(%n: index, %v: f32) {
  %b = memref.alloc(%n) : memref<2x?xf32>
  memref.store %v, %b[%n, %n] : memref<2x?xf32>
  memref.dealloc %b : memref<2x?xf32>
  func.return
}

// -----

// CHECK-LABEL: func.func @view(
// CHECK-SAME: %a: memref<?xi8>, %shift: index, %n: index, %i: index) -> f32 {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %shift : index to i64
// CHECK-NEXT: %[[V1:.*]], %[[V2:.*]] = builtin.unrealized_conversion_cast %a : memref<?xi8> to !llvm.ptr, i64
// CHECK-NEXT: %v = llvm.getelementptr %[[V1]][%[[V0]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT: %[[V4:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V5:.*]] = llvm.mul %[[V4]], %[[V3]] : i64
// CHECK-NEXT: %[[V6:.*]] = llvm.getelementptr %v[%[[V5]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V6]][%[[V4]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %x = llvm.load %[[V7]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: func.return %x : f32
func.func @view(%a: memref<?xi8>, %shift: index, %n: index, %i: index) -> f32 {
  %v = memref.view %a[%shift][%n] : memref<?xi8> to memref<?x4xf32>
  %c = "memref.cast"(%v) : (memref<?x4xf32>) -> memref<?x?xf32>
  %x = memref.load %c[%i, %i] : memref<?x?xf32>
  func.return %x : f32
}

// -----

// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %x: memref<?x4xf32>, %y: memref<?x4xf32>) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?x4xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mul %[[V1]], %[[V2]] : i64
// CHECK-NEXT: %[[V4:.*]], %[[V5:.*]] = builtin.unrealized_conversion_cast %y : memref<?x4xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V6:.*]] = llvm.mlir.constant(false) : i1
// CHECK-NEXT: %[[V7:.*]] = llvm.mul %[[V3]], %[[V2]] : i64
// CHECK-NEXT: llvm.call_intrinsic "llvm.memcpy.p0.p0.i64"(%[[V4]], %[[V0]], %[[V7]], %[[V6]]) : (!llvm.ptr, !llvm.ptr, i64, i1) -> ()
// CHECK-NEXT: func.return
func.func @copy(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  "memref.copy"(%x, %y) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
  func.return
}

// -----

// Vectors are not touched.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %x: memref<?xf32>, %i: index) -> vector<4xf32> {
// CHECK-NEXT: %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
// CHECK-NEXT: func.return %v : vector<4xf32>
func.func @other(%x: memref<?xf32>, %i: index) -> vector<4xf32> {
  %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
  func.return %v : vector<4xf32>
}

// -----

func.func @layout(%x: memref<4x4xf32, strided<[8, 1]>>, %i: index) -> f32 {
  // expected-error @+1 {{memref.load: buffer is not contiguous, expected no layout, got memref<4x4xf32, strided<[8, 1]>>}}
  %v = memref.load %x[%i, %i] : memref<4x4xf32, strided<[8, 1]>>
  func.return %v : f32
}

// -----

func.func @dynamic_stack(%n: index) {
  // expected-error @+1 {{memref.alloca: size on the stack is not known, expected a static shape, got memref<?xf32>}}
  %b = memref.alloca(%n) : memref<?xf32>
  func.return
}

// -----

func.func @endless_heap() {
  // expected-error @+1 {{memref.alloc: buffer is too large, expected at most 4611686018427387904 bytes, got memref<4611686018427387904x2xf32>}}
  %b = memref.alloc() : memref<4611686018427387904x2xf32>
  func.return
}

// -----

func.func @global() {
  // expected-error @+1 {{memref.get_global: cannot be converted to the llvm dialect}}
  %b = memref.get_global @b : memref<4xf32>
  func.return
}

// -----

// CHECK-LABEL: func.func @hint(
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr
// CHECK: llvm.call_intrinsic "llvm.prefetch.p0"(%[[ADDRESS]], %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i32, i32, i32) -> ()
func.func @hint(%x: memref<7xf32>, %i: index) {
  memref.prefetch %x[%i], read, locality<2>, data : memref<7xf32>
  memref.prefetch %x[%i], write, locality<0>, instr : memref<7xf32>
  func.return
}

// -----

func.func @wrong(%x: memref<7x7xf32>, %i: index) {
  // expected-error @+1 {{memref.prefetch: wrong number of indices, expected 2, got 1}}
  memref.prefetch %x[%i], read, locality<2>, data : memref<7x7xf32>
  func.return
}
