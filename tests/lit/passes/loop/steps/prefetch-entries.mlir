// RUN: stepwell-opt %s -p "loop-prefetch-entries{kernel=rows argument=2 loop=e ahead=4}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-prefetch-entries{kernel=rows argument=3 loop=e}" 2>&1 | filecheck %s --check-prefix=PLACE
// RUN: not stepwell-opt %s -p "loop-prefetch-entries{kernel=rows argument=9 loop=e}" 2>&1 | filecheck %s --check-prefix=INPUT
// RUN: not stepwell-opt %s -p "loop-prefetch-entries{kernel=rows argument=2 loop=i}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-prefetch-entries{kernel=long argument=2 loop=e}" 2>&1 | filecheck %s --check-prefix=MANY

// PLACE: loop-prefetch-entries: loop "e" of @rows: does not read argument 3 at columns
// INPUT: loop-prefetch-entries: loop "e" of @rows: no such input, expected 0 <= number < 5, got 9
// KIND: loop-prefetch-entries: loop "i" of @rows: is not over the entries of a row
// MANY: loop-prefetch-entries: loop "e" of @long: too many hints, expected at most 64, got 65

// A row of two lines is read at the column, and the value of the entry at its place.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         loop.for "e" %[[p:.*]], %[[c:.*]] of
// CHECK:           %[[size:.*]] = memref.dim %j
// CHECK-NEXT:      %[[last:.*]] = arith.subi %[[size]]
// CHECK-NEXT:      %[[later:.*]] = arith.addi %[[p]], %
// CHECK-NEXT:      %[[q:.*]] = arith.minsi %[[later]], %[[last]]
// CHECK-NEXT:      %[[d:.*]] = loop.load %j (d0) -> (d0)(%[[q]])
// CHECK-NEXT:      %[[column:.*]] = arith.index_cast %[[d]]
// CHECK-NEXT:      loop.prefetch %x (d0) -> (d0, 0)(%[[column]]) : memref<?x32xf32>
// CHECK-NEXT:      loop.prefetch %x (d0) -> (d0, 16)(%[[column]]) : memref<?x32xf32>
// CHECK-NEXT:      loop.load %x (d0)[s0] -> (d0, s0)(%[[c]])
loop.kernel @rows(%p: memref<?xi32> {loop.indptr}, %j: memref<?xi32>, %x: memref<?x32xf32>, %v: memref<?xf32>, %n: index) -> (%y: memref<?x32xf32>) {
  %z = arith.constant dense<0.0> : vector<32xf32>
  loop.for "i" %i to %n {
    %s = loop.for "e" %q, %c of %p, %j row (d0) -> (d0)(%i) reduction carry(%acc = %z : vector<32xf32> add) : memref<?xi32>, memref<?xi32> {
      %w = loop.load %x (d0)[s0] -> (d0, s0)(%c) : memref<?x32xf32>, vector<32xf32>
      %u = loop.load %v (d0) -> (d0)(%q) : memref<?xf32>, f32
      %b = vector.broadcast %u : f32 to vector<32xf32>
      %t = math.fma %w, %b, %acc : vector<32xf32>
      loop.yield %t : vector<32xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%i) : vector<32xf32>, memref<?x32xf32>
  }
}

loop.kernel @long(%p: memref<2xi32> {loop.indptr}, %j: memref<?xi32>, %x: memref<?x1040xf32>) -> (%y: memref<1040xf32>) {
  %z = arith.constant dense<0.0> : vector<1040xf32>
  %i = arith.constant 0 : index
  %s = loop.for "e" %q, %c of %p, %j row (d0) -> (d0)(%i) reduction carry(%acc = %z : vector<1040xf32> add) : memref<2xi32>, memref<?xi32> {
    %w = loop.load %x (d0)[s0] -> (d0, s0)(%c) : memref<?x1040xf32>, vector<1040xf32>
    %t = arith.addf %acc, %w : vector<1040xf32>
    loop.yield %t : vector<1040xf32>
  }
  loop.store %s, %y ()[s0] -> (s0)() : vector<1040xf32>, memref<1040xf32>
}
