// RUN: stepwell-opt %s --split-input-file -p canonicalize | filecheck %s

// A check of what is known to hold goes; one of what is known not to hold stays.
// CHECK-LABEL: func.func @checks
// CHECK-NOT: "holds"
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK-NEXT: rt.check %ctx, %[[NO]], "fails"
// CHECK-NEXT: rt.check %ctx, %ok, "may fail"
func.func @checks(%ctx: !rt.context, %ok: i1) {
  %yes = arith.constant true
  %no = arith.constant false
  rt.check %ctx, %yes, "holds"
  rt.check %ctx, %no, "fails"
  rt.check %ctx, %ok, "may fail"
  func.return
}

// -----

// Constants are made in the body; captures that nobody uses, or that are there twice, go.
// CHECK-LABEL: func.func @captures
// CHECK: rt.parallel_tiles %n alternating captures(%x : memref<?xf32>) {
// CHECK-NEXT: ^{{.*}}(%[[T:.*]]: index, %[[A:.*]]: memref<?xf32>):
// CHECK-NEXT: %[[C:.*]] = arith.constant 2 : index
// CHECK-NEXT: %[[V:.*]] = memref.load %[[A]][%[[C]]] : memref<?xf32>
// CHECK-NEXT: memref.store %[[V]], %[[A]][%[[T]]] : memref<?xf32>
// CHECK-NEXT: rt.yield
func.func @captures(%n: index, %x: memref<?xf32>, %unused: f32) {
  %two = arith.constant 2 : index
  rt.parallel_tiles %n alternating captures(%unused, %x, %two, %x : f32, memref<?xf32>, index, memref<?xf32>) {
  ^bb0(%t: index, %u: f32, %a: memref<?xf32>, %c: index, %b: memref<?xf32>):
    %v = memref.load %a[%c] : memref<?xf32>
    memref.store %v, %b[%t] : memref<?xf32>
    rt.yield
  }
  func.return
}

// -----

// Captures that are used, each once, stay.
// CHECK-LABEL: func.func @kept
// CHECK: rt.parallel_tiles %n captures(%x, %y : memref<?xf32>, f32) {
func.func @kept(%n: index, %x: memref<?xf32>, %y: f32) {
  rt.parallel_tiles %n captures(%x, %y : memref<?xf32>, f32) {
  ^bb0(%t: index, %a: memref<?xf32>, %b: f32):
    memref.store %b, %a[%t] : memref<?xf32>
    rt.yield
  }
  func.return
}
