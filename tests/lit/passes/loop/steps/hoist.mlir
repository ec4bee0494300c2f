// RUN: stepwell-opt %s -p "loop-hoist{kernel=scale loop=j},loop-hoist{kernel=sum loop=k}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-hoist{kernel=refused loop=a}" 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not stepwell-opt %s -p "loop-hoist{kernel=refused loop=b}" 2>&1 | filecheck %s --check-prefix=WRITES
// RUN: not stepwell-opt %s -p "loop-hoist{kernel=refused loop=c}" 2>&1 | filecheck %s --check-prefix=RUNS
// RUN: not stepwell-opt %s -p "loop-hoist{kernel=refused loop=d}" 2>&1 | filecheck %s --check-prefix=DIVIDES
// RUN: not stepwell-opt %s -p "loop-hoist{kernel=over loop=e}" 2>&1 | filecheck %s --check-prefix=OVER

// NOTHING: loop-hoist: loop "a" of @refused: nothing in its body is loop-invariant
// WRITES: loop-hoist: loop "b" of @refused: it writes to a buffer that is read in it
// RUNS: loop-hoist: loop "c" of @refused: the loop may not run, and hoisting would execute loop.load anyway
// DIVIDES: loop-hoist: loop "d" of @refused: the loop may not run, and hoisting would execute arith.divsi anyway
// OVER: loop-hoist: loop "e" of @over: it writes to a buffer that is read in it

// What depends on what is moved goes with it.
// CHECK-LABEL: loop.kernel @scale
// CHECK-NEXT:  loop.for "i" %i to 4 {
// CHECK-NEXT:    %[[a:.*]] = loop.load %s (d0) -> (d0)(%i) : memref<4xf32>, f32
// CHECK-NEXT:    %[[b:.*]] = math.exp %[[a]] : f32
// CHECK-NEXT:    loop.for "j" %j to 8 {
// CHECK-NEXT:      %[[v:.*]] = loop.load %x
// CHECK-NEXT:      arith.mulf %[[v]], %[[b]] : f32
loop.kernel @scale(%x: memref<4x8xf32>, %s: memref<4xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %a = loop.load %s (d0) -> (d0)(%i) : memref<4xf32>, f32
      %b = math.exp %a : f32
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      %r = arith.mulf %v, %b : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}

// CHECK-LABEL: loop.kernel @sum
// CHECK:       %[[s:.*]] = loop.load %s () -> (0)() : memref<4xf32>, f32
// CHECK-NEXT:  loop.for "k" {{.*}} {
// CHECK-NEXT:    %[[v:.*]] = loop.load %x
// CHECK-NEXT:    math.fma %[[v]], %[[s]], %acc : f32
loop.kernel @sum(%x: memref<8xf32>, %s: memref<4xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %t = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
    %a = loop.load %s () -> (0)() : memref<4xf32>, f32
    %u = math.fma %v, %a, %acc : f32
    loop.yield %u : f32
  }
  loop.store %t, %y () -> (0)() : f32, memref<1xf32>
}

loop.kernel @refused(%x: memref<8xf32>, %w: memref<1xi32>, %n: index, %m: index) -> (%y: memref<8xf32>, %q: memref<8xindex>) {
  loop.for "a" %i to 8 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "b" %i to 8 serial {
    %v = loop.load %y () -> (0)() : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "c" %i to %n {
    %v = loop.load %x () -> (0)() : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "d" %i to %n {
    %v = arith.divsi %n, %m : index
    loop.store %v, %q (d0) -> (d0)(%i) : index, memref<8xindex>
  }
}

// The output may be written over the input.
loop.kernel @over(%x: memref<8xf32>) -> (%y: memref<8xf32> {loop.in_place = [0]}) {
  loop.for "e" %i to 8 serial {
    %v = loop.load %x () -> (0)() : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}
