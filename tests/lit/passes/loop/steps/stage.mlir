// RUN: stepwell-opt %s -p "loop-stage{kernel=panels argument=0 loop=j}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-stage{kernel=others argument=0 loop=a}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-stage{kernel=panels argument=1 loop=j}" 2>&1 | filecheck %s --check-prefix=INPUT
// RUN: not stepwell-opt %s -p "loop-stage{kernel=others argument=0 loop=b}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not stepwell-opt %s -p "loop-stage{kernel=others argument=0 loop=c}" 2>&1 | filecheck %s --check-prefix=LOOPS
// RUN: not stepwell-opt %s -p "loop-stage{kernel=others argument=0 loop=d}" 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: not stepwell-opt %s -p "loop-stage{kernel=others argument=0 loop=e}" 2>&1 | filecheck %s --check-prefix=BODY
// RUN: not stepwell-opt %s -p "loop-stage{kernel=gathered argument=2 loop=j}" 2>&1 | filecheck %s --check-prefix=COLUMN

// KIND: loop-stage: loop "a" of @others: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// INPUT: loop-stage: argument 1 of @panels: no such input, expected 0 <= number < 1, got 1
// NONE: loop-stage: loop "b" of @others: does not read argument 0
// LOOPS: loop-stage: loop "c" of @others: an argument is read along other loops than one reduction of known size, got "c1"
// SEVERAL: loop-stage: loop "d" of @others: reads argument 0 in several ways
// BODY: loop-stage: loop "e" of @others: an argument is read at an index that its body computes
// COLUMN: loop-stage: loop "j" of @gathered: an argument is read at an index that its body computes

// Lanes that are not there are not copied; both reductions read the copy.
// CHECK-LABEL: loop.kernel @panels
// CHECK:       loop.for "j" %j to 7 {
// CHECK-NEXT:    %[[copy:.*]] = loop.local : memref<9x16xf32>
// CHECK-NEXT:    %[[n:.*]] = affine.min
// CHECK-NEXT:    loop.for "k__" %k__ to 9 {
// CHECK-NEXT:      %[[v:.*]] = loop.load %w {{.*}}(%k__, %j) valid(1 : %[[n]]) : memref<9x99xf32>, vector<1x16xf32>
// CHECK-NEXT:      loop.store %[[v]], %[[copy]] (d0)[s0, s1] -> (d0, s1)(%k__) : vector<1x16xf32>, memref<9x16xf32>
// CHECK-NEXT:    }
// CHECK:         loop.for "k"
// CHECK-NEXT:      loop.load %[[copy]] (d0)[s0, s1] -> (d0, s1)(%k) : memref<9x16xf32>, vector<1x16xf32>
// CHECK:         loop.for "k_"
// CHECK-NEXT:      loop.load %[[copy]] (d0)[s0, s1] -> (d0, s1)(%k_) : memref<9x16xf32>, vector<1x16xf32>
loop.kernel @panels(%w: memref<9x99xf32>) -> (%y: memref<2x99xf32>) {
  %z = arith.constant dense<0.0> : vector<1x16xf32>
  loop.for "j" %j to 7 {
    loop.for "i" %i to 1 {
      %n = affine.min affine_map<(d0) -> (16, d0 * -16 + 99)>(%j)
      %s = loop.for "k" %k to 9 reduction carry(%acc = %z : vector<1x16xf32> add) {
        %v = loop.load %w (d0, d1)[s0, s1] -> (d0, d1 * 16 + s1)(%k, %j) valid(1 : %n) : memref<9x99xf32>, vector<1x16xf32>
        %t = arith.addf %acc, %v : vector<1x16xf32>
        loop.yield %t : vector<1x16xf32>
      }
      loop.store %s, %y (d0)[s0, s1] -> (0, d0 * 16 + s1)(%j) valid(1 : %n) : vector<1x16xf32>, memref<2x99xf32>
    }
    %m = affine.min affine_map<(d0) -> (16, d0 * -16 + 99)>(%j)
    %t = loop.for "k_" %k to 9 reduction carry(%acc = %z : vector<1x16xf32> add) {
      %v = loop.load %w (d0, d1)[s0, s1] -> (d0, d1 * 16 + s1)(%k, %j) valid(1 : %m) : memref<9x99xf32>, vector<1x16xf32>
      %t = arith.addf %acc, %v : vector<1x16xf32>
      loop.yield %t : vector<1x16xf32>
    }
    loop.store %t, %y (d0)[s0, s1] -> (1, d0 * 16 + s1)(%j) valid(1 : %m) : vector<1x16xf32>, memref<2x99xf32>
  }
}

loop.kernel @others(%w: memref<9x9xf32>, %n: index) -> (%y: memref<9xf32>) {
  %z = arith.constant 0.0 : f32
  %a = loop.for "a" %k to 8 reduction carry(%acc = %z : f32 add) {
    loop.yield %acc : f32
  }
  loop.store %a, %y () -> (0)() : f32, memref<9xf32>
  loop.for "b" %i to 9 {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
  loop.for "c" %i to 9 {
    loop.for "c1" %j to 9 serial {
      %v = loop.load %w (d0, d1) -> (d0, d1)(%i, %j) : memref<9x9xf32>, f32
      loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
    }
  }
  loop.for "d" %i to 9 {
    %d = loop.for "d1" %k to 9 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %w (d0, d1) -> (d0, d1)(%i, %k) : memref<9x9xf32>, f32
      %u = loop.load %w (d0, d1) -> (d1, d0)(%i, %k) : memref<9x9xf32>, f32
      %t = arith.addf %u, %v : f32
      %s = arith.addf %acc, %t : f32
      loop.yield %s : f32
    }
    loop.store %d, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
  loop.for "e" %i to 9 {
    %m = arith.remui %i, %n : index
    %e = loop.for "e1" %k to 9 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %w (d0, d1) -> (d0, d1)(%m, %k) : memref<9x9xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %e, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
}

// The row that is read is the column of an entry.
loop.kernel @gathered(%ptr: memref<?xi32>, %col: memref<?xi32>, %x: memref<50x9xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "j" %j to 4 {
    %s = loop.for "e" %p, %c of %ptr, %col row (d0) -> (d0)(%j) reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
      %r = loop.for "k" %k to 9 reduction carry(%b = %acc : f32 add) {
        %v = loop.load %x (d0, d1) -> (d0, d1)(%c, %k) : memref<50x9xf32>, f32
        %t = arith.addf %b, %v : f32
        loop.yield %t : f32
      }
      loop.yield %r : f32
    }
    loop.store %s, %y (d0) -> (d0)(%j) : f32, memref<4xf32>
  }
}
