// RUN: stepwell-opt %s -p "loop-stage-columns{kernel=sums loop=i size=64}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-stage-columns{kernel=backwards loop=i size=8}" | filecheck %s --check-prefix=BACK
// RUN: stepwell-opt %s -p "loop-stage-columns{kernel=columns loop=i size=1},loop-drop-unit-loops" | filecheck %s --check-prefix=COLUMNS
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=sums loop=i size=0}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=sums loop=k}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=a}" 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=b}" 2>&1 | filecheck %s --check-prefix=BODY
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=c}" 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=d}" 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=e}" 2>&1 | filecheck %s --check-prefix=LENGTH
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=f}" 2>&1 | filecheck %s --check-prefix=NEEDS
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=g}" 2>&1 | filecheck %s --check-prefix=CARRIED
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=h}" 2>&1 | filecheck %s --check-prefix=STORES
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=l}" 2>&1 | filecheck %s --check-prefix=READS
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=m}" 2>&1 | filecheck %s --check-prefix=ELEMENTS
// RUN: not stepwell-opt %s -p "loop-stage-columns{kernel=others loop=n}" 2>&1 | filecheck %s --check-prefix=BOUND

// SIZE: loop-stage-columns: loop "i" of @sums: wrong number of columns, expected at least 1, got 0
// KIND: loop-stage-columns: loop "k" of @sums: it carries values from one iteration to the next, expected a loop that carries nothing, got serial
// ROWS: loop-stage-columns: loop "a" of @others: its size is not known, expected a constant bound
// BODY: loop-stage-columns: loop "b" of @others: its body ends with something else, expected a serial loop that carries values
// ALONE: loop-stage-columns: loop "c" of @others: does more than one serial loop
// NESTED: loop-stage-columns: loop "d1" of @others: has loops or conditions in it
// LENGTH: loop-stage-columns: loop "e1" of @others: its bound depends on "e"
// NEEDS: loop-stage-columns: loop "f1" of @others: needs what is computed before it in each row
// CARRIED: loop-stage-columns: loop "g1" of @others: wrong carried value, expected numbers, got i1
// STORES: loop-stage-columns: loop "h1" of @others: updates other elements, expected stores that are contiguous along it
// READS: loop-stage-columns: loop "l1" of @others: reads what it writes
// ELEMENTS: loop-stage-columns: loop "m1" of @others: wrong elements, expected numbers, got i1
// BOUND: loop-stage-columns: loop "n1" of @others: its bound is not one number that is at least 0

// Columns of %x are copied, and those of %y. What all rows have in common, and what is contiguous
// along them, stays where it is. The remaining columns have loops of their own.
// CHECK-LABEL: loop.kernel @sums
// CHECK-SAME:    loop.schedule = "stage_columns(i, 64)"
// CHECK:       %[[P:.*]] = loop.local : memref<64x16xf32>
// CHECK-NEXT:  %[[Q:.*]] = loop.local : memref<64x16xf32>
// CHECK-NEXT:  %[[C:.*]] = loop.local : memref<16xf32>
// CHECK-NEXT:  loop.for "i0" %i0 to 16 {
// CHECK-NEXT:    %[[INIT:.*]] = loop.load %b (d0) -> (d0)(%i0)
// CHECK-NEXT:    loop.store %[[INIT]], %[[C]] (d0) -> (d0)(%i0)
// CHECK:       loop.for "k0" %k0 to min (d0) -> ((d0 floordiv 64))(%n) serial {
// CHECK-NEXT:    loop.for "i1" %i1 to 16 {
// CHECK-NEXT:      loop.for "k2" %k2 to 64 {
// CHECK-NEXT:        %[[V:.*]] = loop.load %x (d0, d1, d2) -> (d0, ((d1 * 64) + d2))(%i1, %k0, %k2)
// CHECK-NEXT:        loop.store %[[V]], %[[P]] (d0, d1) -> (d0, d1)(%k2, %i1)
// CHECK:         loop.for "i" %i to 16 {
// CHECK-NEXT:      %[[T:.*]] = loop.load %[[C]] (d0) -> (d0)(%i)
// CHECK-NEXT:      %[[LAST:.*]] = loop.for "k1" %k1 to 64 serial carry(%[[S:.*]] = %[[T]] : f32) {
// CHECK-NEXT:        %[[X:.*]] = loop.load %[[P]] (d0, d1) -> (d0, d1)(%k1, %i)
// CHECK-NEXT:        %[[A:.*]] = loop.load %a (d0, d1) -> (((d0 * 64) + d1))(%k0, %k1)
// CHECK-NEXT:        %[[W:.*]] = loop.load %w (d0, d1, d2) -> (((d0 * 64) + d1), d2)(%k0, %k1, %i)
// CHECK:             %[[SUM:.*]] = arith.addf %[[S]]
// CHECK-NEXT:        loop.store %[[SUM]], %[[Q]] (d0, d1) -> (d0, d1)(%k1, %i)
// CHECK-NEXT:        loop.yield %[[SUM]]
// CHECK:           loop.store %[[LAST]], %[[C]] (d0) -> (d0)(%i)
// CHECK:         loop.for "i2" %i2 to 16 {
// CHECK-NEXT:      loop.for "k3" %k3 to 64 {
// CHECK-NEXT:        %[[R:.*]] = loop.load %[[Q]] (d0, d1) -> (d0, d1)(%k3, %i2)
// CHECK-NEXT:        loop.store %[[R]], %y (d0, d1, d2) -> (d0, ((d1 * 64) + d2))(%i2, %k0, %k3)
// CHECK:       loop.for "i1t" %i1t to 16 {
// CHECK-NEXT:    loop.for "k2t" %k2t to min (d0) -> ((d0 mod 64))(%n) {
// CHECK:       loop.for "it" %it to 16 {
// CHECK:         loop.for "k1t" %k1t to min (d0) -> ((d0 mod 64))(%n) serial
// CHECK:       loop.for "i2t" %i2t to 16 {
loop.kernel @sums(%x: memref<16x?xf32>, %a: memref<?xf32>, %w: memref<?x16xf32>, %b: memref<16xf32>) -> (%y: memref<16x?xf32>) {
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c1 : memref<16x?xf32>
  loop.for "i" %i to 16 {
    %z = loop.load %b (d0) -> (d0)(%i) : memref<16xf32>, f32
    %s = loop.for "k" %k to %n serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<16x?xf32>, f32
      %c = loop.load %a (d0) -> (d0)(%k) : memref<?xf32>, f32
      %d = loop.load %w (d0, d1) -> (d1, d0)(%i, %k) : memref<?x16xf32>, f32
      %p = arith.mulf %v, %c : f32
      %q = arith.mulf %p, %d : f32
      %u = arith.addf %t, %q : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x?xf32>
      loop.yield %u : f32
    }
  }
}

// Rows that are followed from the back are copied forwards.
// BACK-LABEL: loop.kernel @backwards
// BACK:         loop.for "k0" %k0 to 2 serial {
// BACK-NEXT:      loop.for "i1" %i1 to 16 {
// BACK-NEXT:        loop.for "k2" %k2 to 8 {
// BACK-NEXT:          loop.load %x (d0, d1, d2) -> (d0, (((d1 * -8) + d2) + 12))(%i1, %k0, %k2)
// BACK-NEXT:          loop.store %{{.*}} (d0, d1) -> (d0, d1)(%k2, %i1)
// BACK:             loop.for "k1" %k1 to 8 serial
// BACK-NEXT:          loop.load %{{.*}} (d0, d1) -> (((d0 * -1) + 7), d1)(%k1, %i)
// BACK:         loop.for "k1t" %k1t to 4 serial
// BACK-NEXT:      loop.load %{{.*}} (d0, d1) -> (((d0 * -1) + 3), d1)(%k1t, %it)
loop.kernel @backwards(%x: memref<16x20xf32>) -> (%y: memref<16x20xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 16 {
    %s = loop.for "k" %k to 20 serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1 * -1 + 19)(%i, %k) : memref<16x20xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.store %u, %y (d0, d1) -> (d0, d1 * -1 + 19)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %u : f32
    }
  }
}

// One loop for each refusal.
loop.kernel @others(%x: memref<16x20xf32>, %b: memref<16xf32>, %e: memref<16x20xi1>, %m: index) -> (%y: memref<16x20xf32>) {
  %z = arith.constant 0.0 : f32
  %no = arith.constant false
  loop.for "a" %i to %m {
    %s = loop.for "a1" %k to 20 serial carry(%t = %z : f32) {
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %t : f32
    }
  }
  loop.for "b" %i to 16 {
    loop.for "b1" %k to 20 {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
    }
  }
  loop.for "c" %i to 16 {
      loop.store %z, %y (d0) -> (d0, 0)(%i) : f32, memref<16x20xf32>
    %s = loop.for "c1" %k to 20 serial carry(%t = %z : f32) {
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %t : f32
    }
  }
  loop.for "d" %i to 16 {
    %s = loop.for "d1" %k to 3 serial carry(%t = %z : f32) {
      loop.for "d2" %l to 20 { loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %l) : f32, memref<16x20xf32> }
      loop.yield %t : f32
    }
  }
  loop.for "e" %i to 16 {
    %s = loop.for "e1" %k to %i serial carry(%t = %z : f32) {
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %t : f32
    }
  }
  loop.for "f" %i to 16 {
    %c = loop.load %b (d0) -> (d0)(%i) : memref<16xf32>, f32
    %s = loop.for "f1" %k to 20 serial carry(%t = %z : f32) {
      %u = arith.addf %t, %c : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %u : f32
    }
  }
  loop.for "g" %i to 16 {
    %s = loop.for "g1" %k to 20 serial carry(%p = %no : i1) {
      %v = arith.select %p, %z, %z : f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %p : i1
    }
  }
  loop.for "h" %i to 16 {
    %s = loop.for "h1" %k to 20 serial carry(%t = %z : f32) {
      loop.store add %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %t : f32
    }
  }
  loop.for "l" %i to 16 {
    %s = loop.for "l1" %k to 20 serial carry(%t = %z : f32) {
      %v = loop.load %y (d0) -> (d0, 19)(%i) : memref<16x20xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %v : f32
    }
  }
  loop.for "m" %i to 16 {
    %s = loop.for "m1" %k to 20 serial carry(%t = %z : f32) {
      %q = loop.load %e (d0, d1) -> (d0, d1)(%i, %k) : memref<16x20xi1>, i1
      %v = arith.select %q, %t, %z : f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %v : f32
    }
  }
  loop.for "n" %i to 16 {
    %s = loop.for "n1" %k to min (d0) -> (20, d0)(%m) serial carry(%t = %z : f32) {
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<16x20xf32>
      loop.yield %t : f32
    }
  }
}

// Nothing is contiguous along "k", so that nothing is staged: the loops change places.
// COLUMNS-LABEL: loop.kernel @columns
// COLUMNS:         %[[C:.*]] = loop.local : memref<5xf32>
// COLUMNS-NEXT:    loop.for "i0" %i0 to 5 {
// COLUMNS-NEXT:      loop.store %z, %[[C]] (d0) -> (d0)(%i0)
// COLUMNS-NEXT:    }
// COLUMNS-NEXT:    loop.for "k0" %k0 to 7 serial {
// COLUMNS-NEXT:      loop.for "i" %i to 5 {
// COLUMNS-NEXT:        %[[T:.*]] = loop.load %[[C]] (d0) -> (d0)(%i)
// COLUMNS-NEXT:        %[[V:.*]] = loop.load %x (d0, d1) -> (d0, d1)(%k0, %i)
// COLUMNS-NEXT:        %[[S:.*]] = arith.addf %[[T]], %[[V]] : f32
// COLUMNS-NEXT:        loop.store %[[S]], %y (d0, d1) -> (d0, d1)(%k0, %i)
// COLUMNS-NEXT:        loop.store %[[S]], %[[C]] (d0) -> (d0)(%i)
loop.kernel @columns(%x: memref<7x5xf32>) -> (%y: memref<7x5xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 5 {
    %s = loop.for "k" %k to 7 serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %i) : memref<7x5xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%k, %i) : f32, memref<7x5xf32>
      loop.yield %u : f32
    }
  }
}
