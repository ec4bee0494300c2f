// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: loop.kernel @short_maps
// CHECK-NEXT:  loop.for "i" %i to min (d0) -> (4, d0)(%n) {
// CHECK-NEXT:    %[[v:.*]] = loop.load %x (d0) -> (((d0 * 2) + 2))(%i) : memref<?xf32>, f32
// CHECK-NEXT:    loop.store %[[v]], %y (d0) -> (d0)(%i) : f32, memref<?xf32>
// CHECK-NEXT:  }
// CHECK-NEXT: }
loop.kernel @short_maps(%x: memref<?xf32>, %n: index) -> (%y: memref<?xf32>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  loop.for "i" %i to min (d0, d1) -> (d0, d1 + 0)(%c4, %n) {
    %v = loop.load %x (d0, d1, d2) -> (d0 + d1 + d2)(%i, %c2, %i) : memref<?xf32>, f32
    loop.store %v, %y (d0, d1) -> (d0)(%i, %n) : f32, memref<?xf32>
  }
}

// CHECK-LABEL: loop.kernel @idle_loops
// CHECK-NEXT:  %[[c:.*]] = arith.constant
// CHECK-NEXT:  loop.store %[[c]], %y () -> (0)() : f32, memref<?xf32>
// CHECK-NEXT: }
loop.kernel @idle_loops(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> (%y: memref<?xf32>) {
  %c = arith.constant 1.0 : f32
  loop.for "i" %i to 0 {
    loop.store %c, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
  loop.for "j" %j to %n {
  }
  %s = loop.for "k" %k to 0 reduction carry(%acc = %c : f32 add) {
    %t = arith.addf %acc, %c : f32
    loop.yield %t : f32
  }
  %e = loop.for "e" %p, %q of %indptr, %indices row (d0) -> (d0)(%n) reduction carry(%acc = %s : f32 add) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
  loop.store %e, %y () -> (0)() : f32, memref<?xf32>
}

// A loop whose size is unknown stays.
// CHECK-LABEL: loop.kernel @stays
// CHECK:       loop.for "i" %i to %n {
// CHECK:       loop.for "k" %k to %n
loop.kernel @stays(%n: index) -> (%y: memref<?xf32>) {
  %c = arith.constant 1.0 : f32
  loop.for "i" %i to %n {
    %s = loop.for "k" %k to %n reduction carry(%acc = %c : f32 add) {
      %t = arith.addf %acc, %c : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// What stays the same is not carried; the other values are, with their combiners.
// CHECK-LABEL: loop.kernel @invariant
// CHECK-SAME:  (%n: index, %z: index, %v: index)
// CHECK:       %[[S:.*]] = loop.for "k" %k to %n reduction unroll 2 carry(%[[B:.*]] = %z : index max) {
// CHECK-NEXT:    %[[T:.*]] = arith.maxsi %[[B]], %v : index
// CHECK-NEXT:    loop.yield %[[T]] : index
// CHECK-NEXT:  } {note = "kept"}
// CHECK-NEXT:  loop.store %[[F:.*]], %y (d0, d1) -> (d0, d1)(%v, %[[S]])
loop.kernel @invariant(%n: index, %z: index, %v: index) -> (%y: memref<?x?xf32>) {
  %f = arith.constant 1.0 : f32
  %r, %s = loop.for "k" %k to %n reduction unroll 2 carry(%a = %v : index add, %b = %z : index max) {
    %t = arith.maxsi %b, %v : index
    loop.yield %a, %t : index, index
  } {note = "kept"}
  loop.store %f, %y (d0, d1) -> (d0, d1)(%r, %s) : f32, memref<?x?xf32>
}

// CHECK-LABEL: loop.kernel @never
// CHECK-NOT:   loop.for
// CHECK:       loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%n, %v)
loop.kernel @never(%n: index, %v: index) -> (%y: memref<?x?xf32>) {
  %f = arith.constant 1.0 : f32
  %r, %s = loop.for "k" %k to 0 serial carry(%a = %n : index, %b = %v : index) {
    loop.yield %b, %a : index, index
  }
  loop.store %f, %y (d0, d1) -> (d0, d1)(%r, %s) : f32, memref<?x?xf32>
}

// CHECK-LABEL: loop.kernel @shifted
// CHECK-SAME:  (%n: index, %u: index, %v: index)
// CHECK:       %[[S:.*]] = loop.for "k" %k to %n serial carry(%[[B:.*]] = %v : index) {
// CHECK-NEXT:    loop.yield %u : index
// CHECK-NEXT:  }
// CHECK-NEXT:  loop.store %[[F:.*]], %y (d0, d1) -> (d0, d1)(%u, %[[S]])
loop.kernel @shifted(%n: index, %u: index, %v: index) -> (%y: memref<?x?xf32>) {
  %f = arith.constant 1.0 : f32
  %r, %s = loop.for "k" %k to %n serial carry(%a = %u : index, %b = %v : index) {
    loop.yield %a, %a : index, index
  }
  loop.store %f, %y (d0, d1) -> (d0, d1)(%r, %s) : f32, memref<?x?xf32>
}
