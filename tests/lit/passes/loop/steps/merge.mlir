// RUN: stepwell-opt %s -p "loop-merge{kernel=gates first=k second=l}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-merge{kernel=between first=k second=l}" | filecheck %s --check-prefix=BETWEEN
// RUN: not stepwell-opt %s -p "loop-merge{kernel=gates first=l second=k}" 2>&1 | filecheck %s --check-prefix=ORDER
// RUN: not stepwell-opt %s -p "loop-merge{kernel=gates first=i second=k}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=gates loop=k factor=2},loop-merge{kernel=gates first=k second=l}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-merge{kernel=refused first=a second=b}" 2>&1 | filecheck %s --check-prefix=RANGE
// RUN: not stepwell-opt %s -p "loop-merge{kernel=refused first=a second=c}" 2>&1 | filecheck %s --check-prefix=NEEDS
// RUN: not stepwell-opt %s -p "loop-merge{kernel=refused first=a second=d}" 2>&1 | filecheck %s --check-prefix=FOLLOWS
// RUN: not stepwell-opt %s -p "loop-merge{kernel=refused first=a second=e}" 2>&1 | filecheck %s --check-prefix=WRITTEN
// RUN: not stepwell-opt %s -p "loop-merge{kernel=refused first=a second=f}" 2>&1 | filecheck %s --check-prefix=EFFECTS
// RUN: stepwell-opt %s -p "loop-merge{kernel=fill first=i second=j}" | filecheck %s --check-prefix=FILL
// RUN: not stepwell-opt %s -p "loop-merge{kernel=parallel first=i second=j}" 2>&1 | filecheck %s --check-prefix=MEETS
// RUN: not stepwell-opt %s -p "loop-merge{kernel=parallel first=j second=k}" 2>&1 | filecheck %s --check-prefix=PLACE
// RUN: stepwell-opt %s -p "loop-merge{kernel=entries first=e second=f}" | filecheck %s --check-prefix=ENTRIES
// RUN: not stepwell-opt %s -p "loop-merge{kernel=entries first=e second=g}" 2>&1 | filecheck %s --check-prefix=ROW

// MEETS: loop-merge: loop "j" of @parallel: cannot be one with "i": iterations of loop "i" may depend on one another: one stores y[i], another loads y[{{.*}}]
// PLACE: loop-merge: loop "k" of @parallel: loop.load in front of it has to come after "j"
// ORDER: loop-merge: loop "k" of @gates: is in another place, expected a later loop beside "l"
// KIND: loop-merge: loop "{{[ik]}}" of @gates: cannot be merged, expected a reduction that is not unrolled
// RANGE: loop-merge: loop "b" of @refused: has another range than "a"
// NEEDS: loop-merge: loop "c" of @refused: needs the result of "a"
// FOLLOWS: loop-merge: loop "d" of @refused: needs what follows "a"
// WRITTEN: loop-merge: loop "e" of @refused: reads what is written after "a"
// EFFECTS: loop-merge: loop "f" of @refused: loop.store in it has effects

// What both read is read once, also where it is the same only after the loops are one.
// CHECK-LABEL: loop.kernel @gates
// CHECK-SAME:  loop.schedule = "merge(k, l)"
// CHECK:         %[[s:.*]], %[[t:.*]] = loop.for "k" %k to 5 reduction carry(%[[a:.*]] = %z : f32 add, %[[b:.*]] = %z : f32 add) {
// CHECK-NEXT:      %[[p:.*]] = loop.load %x (d0) -> (d0)(%k) : memref<5xf32>, f32
// CHECK-NEXT:      %[[q:.*]] = loop.load %w (d0, d1) -> (d0, d1)(%i, %k)
// CHECK-NEXT:      %[[u:.*]] = math.fma %[[p]], %[[q]], %[[a]] : f32
// CHECK-NEXT:      %[[r:.*]] = loop.load %w (d0, d1) -> ((d0 + 4), d1)(%i, %k)
// CHECK-NEXT:      %[[v:.*]] = math.fma %[[p]], %[[r]], %[[b]] : f32
// CHECK-NEXT:      loop.yield %[[u]], %[[v]] : f32, f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[e:.*]] = math.exp %[[s]] : f32
// CHECK-NEXT:    loop.store %[[e]], %y
// CHECK-NEXT:    loop.store %[[t]], %y
loop.kernel @gates(%x: memref<5xf32>, %w: memref<8x5xf32>) -> (%y: memref<2x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    %s = loop.for "k" %k to 5 reduction carry(%acc = %z : f32 add) {
      %p = loop.load %x (d0) -> (d0)(%k) : memref<5xf32>, f32
      %q = loop.load %w (d0, d1) -> (d0, d1)(%i, %k) : memref<8x5xf32>, f32
      %t = math.fma %p, %q, %acc : f32
      loop.yield %t : f32
    }
    %e = math.exp %s : f32
    loop.store %e, %y (d0) -> (0, d0)(%i) : f32, memref<2x4xf32>
    %u = loop.for "l" %l to 5 reduction carry(%acc = %z : f32 add) {
      %p = loop.load %x (d0) -> (d0)(%l) : memref<5xf32>, f32
      %q = loop.load %w (d0, d1) -> (d0 + 4, d1)(%i, %l) : memref<8x5xf32>, f32
      %t = math.fma %p, %q, %acc : f32
      loop.yield %t : f32
    }
    loop.store %u, %y (d0) -> (1, d0)(%i) : f32, memref<2x4xf32>
  }
}

// The initial value of the second one is computed before the loop, what follows the first one after it.
// BETWEEN-LABEL: loop.kernel @between
// BETWEEN:       %[[n:.*]] = arith.negf %{{.*}} : f32
// BETWEEN-NEXT:  %[[s:.*]], %[[u:.*]] = loop.for "k" %k to 4 reduction carry(%[[a:.*]] = %z : f32 add, %[[b:.*]] = %[[n]] : f32 max) {
// BETWEEN:       %[[e:.*]] = math.exp %[[s]] : f32
// BETWEEN-NEXT:  arith.addf %[[e]], %[[u]] : f32
loop.kernel @between(%x: memref<4xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  %e = math.exp %s : f32
  %v = loop.load %x () -> (3)() : memref<4xf32>, f32
  %n = arith.negf %v : f32
  %u = loop.for "l" %l to 4 reduction carry(%top = %n : f32 max) {
    %p = loop.load %x (d0) -> (d0)(%l) : memref<4xf32>, f32
    %t = arith.maximumf %p, %top : f32
    loop.yield %t : f32
  }
  %r = arith.addf %e, %u : f32
  loop.store %r, %y () -> (0)() : f32, memref<1xf32>
}

// ROW: loop-merge: loop "g" of @entries: has another range than "e"

// The entries of a row are visited once, and what is read at their columns is read once.
// ENTRIES-LABEL: loop.kernel @entries
// ENTRIES:         %[[s:.*]], %[[m:.*]] = loop.for "e" %{{.*}}, %[[j:.*]] of %p, %c row (d0) -> (d0)(%i) reduction carry(%[[a:.*]] = %z : f32 add, %[[b:.*]] = %z : f32 max) : memref<4xi32>, memref<?xi32> {
// ENTRIES-NEXT:      %[[v:.*]] = loop.load %x (d0) -> (d0)(%[[j]])
// ENTRIES-NEXT:      %[[t:.*]] = arith.addf %[[a]], %[[v]] : f32
// ENTRIES-NEXT:      %[[u:.*]] = arith.maximumf %[[b]], %[[v]] : f32
// ENTRIES-NEXT:      loop.yield %[[t]], %[[u]] : f32, f32
loop.kernel @entries(%p: memref<4xi32>, %c: memref<?xi32>, %x: memref<5xf32>) -> (%y: memref<3x3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 2 {
    %s = loop.for "e" %q, %j of %p, %c row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<4xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%j) : memref<5xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0, 0)(%i) : f32, memref<3x3xf32>
    %m = loop.for "f" %q, %j of %p, %c row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 max) : memref<4xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%j) : memref<5xf32>, f32
      %t = arith.maximumf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %m, %y (d0) -> (d0, 1)(%i) : f32, memref<3x3xf32>
    %n = loop.for "g" %q, %j of %p, %c row (d0) -> (d0 + 1)(%i) reduction carry(%acc = %z : f32 max) : memref<4xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%j) : memref<5xf32>, f32
      %t = arith.maximumf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %n, %y (d0) -> (d0, 2)(%i) : f32, memref<3x3xf32>
  }
}

loop.kernel @refused(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  %a = loop.for "a" %k to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  %b = loop.for "b" %k to 3 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  %c = loop.for "c" %k to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %q = arith.mulf %p, %a : f32
    %t = arith.addf %q, %acc : f32
    loop.yield %t : f32
  }
  %n = math.exp %a : f32
  %d = loop.for "d" %k to 4 reduction carry(%acc = %n : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  loop.store %b, %y () -> (0)() : f32, memref<4xf32>
  loop.store %c, %y () -> (1)() : f32, memref<4xf32>
  loop.store %d, %y () -> (2)() : f32, memref<4xf32>
  loop.store %n, %y () -> (3)() : f32, memref<4xf32>
  %e = loop.for "e" %k to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %y (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  %f = loop.for "f" %k to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%k) : f32, memref<4xf32>
    %t = arith.addf %p, %acc : f32
    loop.yield %t : f32
  }
  loop.store %e, %y () -> (2)() : f32, memref<4xf32>
  loop.store %f, %y () -> (3)() : f32, memref<4xf32>
}

// Each row is filled, then updated.
// FILL-LABEL: loop.kernel @fill
// FILL:         %[[c:.*]] = arith.constant 1.000000e+00 : f32
// FILL-NEXT:    loop.for "i" %i to 3 {
// FILL-NEXT:      loop.for "f" %f to 4 {
// FILL-NEXT:        loop.load %x (d0, d1) -> (d0, d1)(%i, %f)
// FILL-NEXT:        loop.store
// FILL-NEXT:      }
// FILL-NEXT:      loop.for "k" %k to 2 serial {
// FILL-NEXT:        %[[q:.*]] = loop.load %p (d0, d1) -> (d0, d1)(%i, %k)
// FILL-NEXT:        loop.store add %[[c]], %y (d0, d1) -> (d0, d1)(%i, %[[q]])
// FILL-NEXT:      }
// FILL-NEXT:    }
// FILL-NEXT:  }
loop.kernel @fill(%x: memref<3x4xf32>, %p: memref<3x2xindex> {loop.bounds = ["4"]}) -> (%y: memref<3x4xf32>) {
  loop.for "i" %i to 3 {
    loop.for "f" %f to 4 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %f) : memref<3x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %f) : f32, memref<3x4xf32>
    }
  }
  %c = arith.constant 1.0 : f32
  loop.for "j" %j to 3 {
    loop.for "k" %k to 2 serial {
      %q = loop.load %p (d0, d1) -> (d0, d1)(%j, %k) : memref<3x2xindex>, index
      loop.store add %c, %y (d0, d1) -> (d0, d1)(%j, %q) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @parallel(%x: memref<4xf32>) -> (%y: memref<4xf32>, %z: memref<4xf32>, %w: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
  loop.for "j" %j to 4 {
    %v = loop.load %y (d0) -> (-d0 + 3)(%j) : memref<4xf32>, f32
    loop.store %v, %z (d0) -> (d0)(%j) : f32, memref<4xf32>
  }
  %last = loop.load %z () -> (3)() : memref<4xf32>, f32
  loop.for "k" %k to 4 {
    loop.store %last, %w (d0) -> (d0)(%k) : f32, memref<4xf32>
  }
}
