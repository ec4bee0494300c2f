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
  %s = loop.reduce "k" %k to 0 combine add carry(%acc = %c : f32) {
    %t = arith.addf %acc, %c : f32
    loop.yield %t : f32
  }
  %e = loop.reduce_entries "e" %p, %q of %indptr, %indices row (d0) -> (d0)(%n) combine add carry(%acc = %s : f32) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
  loop.store %e, %y () -> (0)() : f32, memref<?xf32>
}

// A loop whose size is unknown stays.
// CHECK-LABEL: loop.kernel @stays
// CHECK:       loop.for "i" %i to %n {
// CHECK:       loop.reduce "k" %k to %n
loop.kernel @stays(%n: index) -> (%y: memref<?xf32>) {
  %c = arith.constant 1.0 : f32
  loop.for "i" %i to %n {
    %s = loop.reduce "k" %k to %n combine add carry(%acc = %c : f32) {
      %t = arith.addf %acc, %c : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
