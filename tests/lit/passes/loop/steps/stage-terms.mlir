// RUN: stepwell-opt %s -p "loop-stage-terms{kernel=messages loop=k}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-stage-terms{kernel=others loop=i}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-stage-terms{kernel=messages loop=e}" 2>&1 | filecheck %s --check-prefix=ENTRIES
// RUN: not stepwell-opt %s -p "loop-stage-terms{kernel=others loop=a}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-stage-terms{kernel=others loop=b}" 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not stepwell-opt %s -p "loop-stage-terms{kernel=others loop=c}" 2>&1 | filecheck %s --check-prefix=NONE

// KIND: loop-stage-terms: loop "i" of @others: is no reduction over a bound
// ENTRIES: loop-stage-terms: loop "e" of @messages: is no reduction over a bound
// SIZE: loop-stage-terms: loop "a" of @others: has an unknown size
// NESTED: loop-stage-terms: loop "b" of @others: has a loop in its body
// NONE: loop-stage-terms: loop "c" of @others: computes no scalar for its blocks

// The buffer is that of one entry. The weights, which are blocks, are read where they were.
// CHECK-LABEL: loop.kernel @messages
// CHECK-SAME:    loop.schedule = "stage_terms(k)"
// CHECK:       loop.for "e" %p, %j of %indptr, %indices
// CHECK-NEXT:    %[[t:.*]] = loop.local : memref<8xf32>
// CHECK-NEXT:    loop.for "k_" %k_ to 8 {
// CHECK-NEXT:      %[[a:.*]] = loop.load %x (d0, d1) -> (d0, d1)(%j, %k_)
// CHECK-NEXT:      %[[m:.*]] = arith.maximumf %[[a]], %z
// CHECK-NEXT:      loop.store %[[m]], %[[t]] (d0) -> (d0)(%k_)
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for "k" %k to 8 reduction
// CHECK-NEXT:      %[[v:.*]] = loop.load %[[t]] (d0) -> (d0)(%k) : memref<8xf32>, f32
// CHECK-NEXT:      loop.load %w (d0)[s0] -> (d0, s0)(%k)
// CHECK-NEXT:      vector.broadcast %[[v]]
loop.kernel @messages(%indptr: memref<5xi32> {loop.indptr}, %indices: memref<?xi32>, %x: memref<9x8xf32>, %w: memref<8x16xf32>) -> (%y: memref<4x16xf32>) {
  %z = arith.constant 0.0 : f32
  %zero = vector.broadcast %z : f32 to vector<16xf32>
  loop.for "i" %i to 4 {
    %s = loop.for "e" %p, %j of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%most = %zero : vector<16xf32> max) : memref<5xi32>, memref<?xi32> {
      %d = loop.for "k" %k to 8 reduction carry(%acc = %zero : vector<16xf32> add) {
        %a = loop.load %x (d0, d1) -> (d0, d1)(%j, %k) : memref<9x8xf32>, f32
        %m = arith.maximumf %a, %z : f32
        %b = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<8x16xf32>, vector<16xf32>
        %v = vector.broadcast %m : f32 to vector<16xf32>
        %t = math.fma %v, %b, %acc : vector<16xf32>
        loop.yield %t : vector<16xf32>
      }
      %n = arith.maximumf %most, %d : vector<16xf32>
      loop.yield %n : vector<16xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%i) : vector<16xf32>, memref<4x16xf32>
  }
}

loop.kernel @others(%x: memref<9x9xf32>, %n: index) -> (%y: memref<9xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 9 {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
  %a = loop.for "a" %k to min (d0) -> (d0)(%n) reduction carry(%acc = %z : f32 add) {
    loop.yield %acc : f32
  }
  loop.store %a, %y () -> (0)() : f32, memref<9xf32>
  %b = loop.for "b" %k to 9 reduction carry(%acc = %z : f32 add) {
    %d = loop.for "d" %l to 9 reduction carry(%inner = %acc : f32 add) {
      loop.yield %inner : f32
    }
    loop.yield %d : f32
  }
  loop.store %b, %y () -> (1)() : f32, memref<9xf32>
  %c = loop.for "c" %k to 9 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0, 0)(%k) : memref<9x9xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %c, %y () -> (2)() : f32, memref<9xf32>
}
