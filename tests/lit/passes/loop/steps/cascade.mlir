// RUN: stepwell-opt %s -p "loop-cascade{kernel=product loop=k factor=8}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-cascade{kernel=product loop=k factor=10}" | filecheck %s --check-prefix=EVEN
// RUN: stepwell-opt %s -p "loop-cascade{kernel=window loop=r}" | filecheck %s --check-prefix=WINDOW
// RUN: stepwell-opt %s -p "loop-unroll{kernel=window loop=s factor=2},loop-cascade{kernel=window loop=s factor=4}" | filecheck %s --check-prefix=UNROLLED
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=window loop=s factor=2},loop-cascade{kernel=window loop=s}" 2>&1 | filecheck %s --check-prefix=ONE
// RUN: stepwell-opt %s -p "loop-cascade{kernel=others loop=e factor=4}" | filecheck %s --check-prefix=ENTRIES
// RUN: stepwell-opt %s -p "loop-cascade{kernel=others loop=e factor=4},loop-schedule" | filecheck %s --check-prefix=ENTRIES
// RUN: not stepwell-opt %s -p "loop-cascade{kernel=others loop=e factor=4},loop-cascade{kernel=others loop=e factor=2}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not stepwell-opt %s -p "loop-cascade{kernel=others loop=i factor=4}" 2>&1 | filecheck %s --check-prefix=PARALLEL
// RUN: not stepwell-opt %s -p "loop-cascade{kernel=others loop=c factor=4}" 2>&1 | filecheck %s --check-prefix=CUSTOM
// RUN: not stepwell-opt %s -p "loop-cascade{kernel=product loop=k factor=0}" 2>&1 | filecheck %s --check-prefix=FACTOR

// ONE: loop-cascade: loop "s" of @window: is unrolled, expected a factor above 1, got 1
// TWICE: loop-cascade: loop "e" of @others: is a cascade already
// PARALLEL: loop-cascade: loop "i" of @others: its chunks cannot be combined, expected a reduction by add, mul, max or min, got parallel
// CUSTOM: loop-cascade: loop "c" of @others: its chunks cannot be combined, expected a reduction by add, mul, max or min, got custom
// FACTOR: loop-cascade: loop "k" of @product: wrong factor, expected at least 1, got 0

// The total starts from the initial value, a chunk from 0; the last one is shorter.
// CHECK-LABEL: loop.kernel @product
// CHECK-SAME:    loop.schedule = "cascade(k, 8)"
// CHECK:         %[[b:.*]] = loop.load %x ()[s0] -> (s0)()
// CHECK-NEXT:    %[[z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[fresh:.*]] = vector.broadcast %[[z]] : f32 to vector<4xf32>
// CHECK-NEXT:    %[[s:.*]] = loop.for "k0" %k0 to 3 reduction carry(%[[total:.*]] = %[[b]] : vector<4xf32> add)
// CHECK-NEXT:      %[[p:.*]] = loop.for "k1" %k1 to min (d0) -> (8, ((d0 * -8) + 20))(%k0) reduction carry(%[[acc:.*]] = %[[fresh]] : vector<4xf32> add)
// CHECK-NEXT:        loop.load %w (d0, d1)[s0] -> (((d0 * 8) + d1), s0)(%k0, %k1)
// CHECK-NEXT:        %[[t:.*]] = arith.addf %[[acc]]
// CHECK-NEXT:        loop.yield %[[t]]
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[u:.*]] = arith.addf %[[total]], %[[p]] : vector<4xf32>
// CHECK-NEXT:      loop.yield %[[u]]
// CHECK:         loop.store %[[s]], %y

// EVEN:         loop.for "k0" %k0 to 2 reduction
// EVEN-NEXT:      loop.for "k1" %k1 to 10 reduction
loop.kernel @product(%x: memref<4xf32>, %w: memref<20x4xf32>) -> (%y: memref<4xf32>) {
  %b = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  %s = loop.for "k" %k to 20 reduction carry(%acc = %b : vector<4xf32> add) {
    %v = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<20x4xf32>, vector<4xf32>
    %t = arith.addf %acc, %v : vector<4xf32>
    loop.yield %t : vector<4xf32>
  }
  loop.store %s, %y ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32>
}

// An iteration with a reduction in it is a chunk as it is; several values have a total each.
// WINDOW-LABEL: loop.kernel @window
// WINDOW:         loop.for "r" %r to 3 reduction carry(%[[sum:.*]] = %z : f32 add, %[[top:.*]] = %z : f32 max)
// WINDOW-NEXT:      %[[p:.*]], %[[m:.*]] = loop.for "s" %s to 5 reduction carry({{.*}} = %[[zero:.*]] : f32 add, {{.*}} = %[[low:.*]] : f32 max)
// WINDOW:           arith.addf %[[sum]], %[[p]]
// WINDOW-NEXT:      arith.maximumf %[[top]], %[[m]]

// Only the chunk is unrolled.
// UNROLLED-LABEL: loop.kernel @window
// UNROLLED:         loop.for "s0" %s0 to 2 reduction carry
// UNROLLED-NEXT:      loop.for "s1" %s1 to min (d0) -> (4, ((d0 * -4) + 5))(%s0) reduction unroll 2 carry
loop.kernel @window(%x: memref<3x5xf32>) -> (%y: memref<2xf32>) {
  %z = arith.constant 0.0 : f32
  %a, %b = loop.for "r" %r to 3 reduction carry(%p = %z : f32 add, %q = %z : f32 max) {
    %c, %d = loop.for "s" %s to 5 reduction carry(%t = %p : f32 add, %u = %q : f32 max) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %s) : memref<3x5xf32>, f32
      %f = arith.addf %t, %v : f32
      %g = arith.maximumf %u, %v : f32
      loop.yield %f, %g : f32, f32
    }
    loop.yield %c, %d : f32, f32
  }
  loop.store %a, %y () -> (0)() : f32, memref<2xf32>
  loop.store %b, %y () -> (1)() : f32, memref<2xf32>
}

// The chunks of the entries of a row are made when the loop is lowered.
// ENTRIES-LABEL: loop.kernel @others
// ENTRIES-SAME:    loop.schedule = "cascade(e, 4)"
// ENTRIES:         loop.for "e" %{{.*}} row (d0) -> (d0)(%i) reduction cascade 4 carry(
loop.kernel @others(%indptr: memref<4xi32> {loop.indptr}, %indices: memref<?xi32>, %x: memref<?xf32>) -> (%y: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<4xi32>, memref<?xi32> {
      %t = arith.addf %acc, %z : f32
      loop.yield %t : f32
    }
    %u = loop.for "c" %k to 9 reduction carry(%acc = %s : f32 custom) {
      %t = arith.subf %z, %acc : f32
      loop.yield %t : f32
    }
    loop.store %u, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}
