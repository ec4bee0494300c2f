// RUN: stepwell-opt %s -p "loop-tensorize{kernel=pairs loop=k instruction=vpmaddwd}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=pairs loop=k instruction=vpmadd}" 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=pairs loop=k instruction=fma}" 2>&1 | filecheck %s --check-prefix=GROUPS
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=refused loop=a instruction=vpmaddwd}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=refused loop=b instruction=vpmaddwd}" 2>&1 | filecheck %s --check-prefix=BODY
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=refused loop=c instruction=vpmaddwd}" 2>&1 | filecheck %s --check-prefix=LANES
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=refused loop=d instruction=vpmaddwd}" 2>&1 | filecheck %s --check-prefix=BLOCKS
// RUN: not stepwell-opt %s -p "loop-tensorize{kernel=refused loop=e instruction=vpmaddwd}" 2>&1 | filecheck %s --check-prefix=LIMITED

// NAME: loop-tensorize: loop "k" of @pairs: no such instruction, vpmadd, expected vpmaddwd
// GROUPS: loop-tensorize: loop "k" of @pairs: no such instruction, fma, expected vpmaddwd
// SIZE: loop-tensorize: loop "a" of @refused: wrong size, expected 2, got 3
// BODY: loop-tensorize: loop "b" of @refused: its body is not that of vpmaddwd
// LANES: loop-tensorize: loop "c" of @refused: it carries no block of several lanes; vectorize loops around it before
// BLOCKS: loop-tensorize: loop "d" of @refused: reads other blocks than it carries, expected (2, 4), got (4,)
// LIMITED: loop-tensorize: loop "e" of @refused: reads lanes beyond the end of a buffer

// A factor has a group for each lane, the other one for all lanes; rows that are missing stay out.
// CHECK-LABEL: loop.kernel @pairs
// CHECK-SAME:    loop.schedule = "tensorize(k, vpmaddwd)"
// CHECK:       loop.for "i" %i to 8 {
// CHECK-NEXT:    %[[w:.*]] = loop.load %w (d0)[s0, s1] -> (d0, (s1 floordiv 2), (s1 mod 2))(%i) : memref<8x4x2xi16>, vector<1x8xi16>
// CHECK-NEXT:    %[[x:.*]] = loop.load %x (d0)[s0, s1] -> (s0, ((d0 * 2) + s1))(%i) valid(0 : %n) : memref<?x16xi8>, vector<2x2xi8>
// CHECK-NEXT:    %[[a:.*]] = arith.extsi %[[x]] : vector<2x2xi8> to vector<2x2xi16>
// CHECK-NEXT:    %[[m:.*]] = loop.instruction "vpmaddwd"(%[[w]], %[[a]]) : (vector<1x8xi16>, vector<2x2xi16>) -> vector<2x4xi32>
// CHECK-NEXT:    %[[t:.*]] = arith.addi %[[m]], %z : vector<2x4xi32>
// CHECK-NEXT:    loop.store %[[t]], %y
loop.kernel @pairs(%x: memref<?x16xi8>, %w: memref<8x4x2xi16>, %n: index) -> (%y: memref<8x2x4xi32>) {
  %z = arith.constant dense<7> : vector<2x4xi32>
  loop.for "i" %i to 8 {
    %s = loop.for "k" %k to 2 reduction carry(%acc = %z : vector<2x4xi32> add) {
      %p = loop.load %x (d0, d1)[s0, s1] -> (s0, d0 * 2 + d1)(%i, %k) valid(0 : %n) : memref<?x16xi8>, vector<2x1xi8>
      %q = loop.load %w (d0, d1)[s0, s1] -> (d0, s1, d1)(%i, %k) : memref<8x4x2xi16>, vector<1x4xi16>
      %a = arith.extsi %p : vector<2x1xi8> to vector<2x1xi32>
      %b = arith.extsi %q : vector<1x4xi16> to vector<1x4xi32>
      %v = vector.broadcast %b : vector<1x4xi32> to vector<2x4xi32>
      %u = vector.broadcast %a : vector<2x1xi32> to vector<2x4xi32>
      %m = arith.muli %v, %u : vector<2x4xi32>
      %t = arith.addi %acc, %m : vector<2x4xi32>
      loop.yield %t : vector<2x4xi32>
    }
    loop.store %s, %y (d0)[s0, s1] -> (d0, s0, s1)(%i) : vector<2x4xi32>, memref<8x2x4xi32>
  }
}

loop.kernel @refused(%x: memref<16xi16>, %n: index) -> (%y: memref<2x4xi32>) {
  %z = arith.constant dense<0> : vector<4xi32>
  %a = loop.for "a" %k to 3 reduction carry(%acc = %z : vector<4xi32> add) {
    %p = loop.load %x (d0)[s0] -> (s0 + d0)(%k) : memref<16xi16>, vector<4xi16>
    %e = arith.extsi %p : vector<4xi16> to vector<4xi32>
    %m = arith.muli %e, %e : vector<4xi32>
    %t = arith.addi %acc, %m : vector<4xi32>
    loop.yield %t : vector<4xi32>
  }
  // Numbers without a sign are no numbers of i16.
  %b = loop.for "b" %k to 2 reduction carry(%acc = %a : vector<4xi32> add) {
    %p = loop.load %x (d0)[s0] -> (s0 + d0)(%k) : memref<16xi16>, vector<4xi16>
    %e = arith.extui %p : vector<4xi16> to vector<4xi32>
    %m = arith.muli %e, %e : vector<4xi32>
    %t = arith.addi %acc, %m : vector<4xi32>
    loop.yield %t : vector<4xi32>
  }
  %zero = arith.constant 0 : i32
  %c = loop.for "c" %k to 2 reduction carry(%acc = %zero : i32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<16xi16>, i16
    %e = arith.extsi %p : i16 to i32
    %m = arith.muli %e, %e : i32
    %t = arith.addi %acc, %m : i32
    loop.yield %t : i32
  }
  %i = vector.broadcast %c : i32 to vector<2x4xi32>
  %d = loop.for "d" %k to 2 reduction carry(%acc = %i : vector<2x4xi32> add) {
    %p = loop.load %x (d0)[s0] -> (s0 + d0)(%k) : memref<16xi16>, vector<4xi16>
    %e = arith.extsi %p : vector<4xi16> to vector<4xi32>
    %m = arith.muli %e, %e : vector<4xi32>
    %v = vector.broadcast %m : vector<4xi32> to vector<2x4xi32>
    %t = arith.addi %acc, %v : vector<2x4xi32>
    loop.yield %t : vector<2x4xi32>
  }
  %f = loop.for "e" %k to 2 reduction carry(%acc = %b : vector<4xi32> add) {
    %p = loop.load %x (d0)[s0] -> (s0 + d0)(%k) valid(0 : %n) : memref<16xi16>, vector<4xi16>
    %e = arith.extsi %p : vector<4xi16> to vector<4xi32>
    %m = arith.muli %e, %e : vector<4xi32>
    %t = arith.addi %acc, %m : vector<4xi32>
    loop.yield %t : vector<4xi32>
  }
  %g = vector.broadcast %f : vector<4xi32> to vector<2x4xi32>
  %h = arith.addi %g, %d : vector<2x4xi32>
  loop.store %h, %y ()[s0, s1] -> (s0, s1)() : vector<2x4xi32>, memref<2x4xi32>
}
