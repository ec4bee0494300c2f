// RUN: stepwell-opt %s -p "loop-compute-at{kernel=window nest=a loop=i}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-split{kernel=window loop=i factor=4 tail=mask},loop-compute-at{kernel=window nest=a loop=i0}" | filecheck %s --check-prefix=CHUNK
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=window nest=i loop=a}" 2>&1 | filecheck %s --check-prefix=FILLS
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=a loop=i}" 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=b loop=c}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=d loop=e}" 2>&1 | filecheck %s --check-prefix=WRITES
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=f loop=g}" 2>&1 | filecheck %s --check-prefix=COLUMN
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=f loop=k}" 2>&1 | filecheck %s --check-prefix=REDUCTION
// RUN: not stepwell-opt %s -p "loop-compute-at{kernel=refused nest=d loop=d}" 2>&1 | filecheck %s --check-prefix=ITSELF

// FILLS: loop-compute-at: loop "i" of @window: does not fill one local buffer
// OTHER: loop-compute-at: loop "i" of @refused: another loop.store uses the buffer, expected loads in it
// TWICE: loop-compute-at: loop "b" of @refused: does not store each element once, expected (8,)
// WRITES: loop-compute-at: loop "e" of @refused: what "d" reads is written to after it
// COLUMN: loop-compute-at: loop "g" of @refused: reads at an index that its body computes
// REDUCTION: loop-compute-at: loop "k" of @refused: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// ITSELF: loop-compute-at: loop "d" of @refused: another loop.load uses the buffer, expected loads in it

// Of two that lie beside each other an iteration needs just those.
// CHECK-LABEL: loop.kernel @window
// CHECK-NEXT:  loop.for "i" %i to 8 {
// CHECK-NEXT:    %[[h:.*]] = loop.local : memref<2xf32>
// CHECK-NEXT:    loop.for "a" %a to 2 {
// CHECK-NEXT:      %[[v:.*]] = loop.load %x (d0, d1) -> ((d0 + d1))(%i, %a) : memref<9xf32>, f32
// CHECK-NEXT:      %[[e:.*]] = math.exp %[[v]] : f32
// CHECK-NEXT:      loop.store %[[e]], %[[h]] (d0) -> (d0)(%a) : f32, memref<2xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.load %[[h]] () -> (0)() : memref<2xf32>, f32
// CHECK-NEXT:    loop.load %[[h]] () -> (1)() : memref<2xf32>, f32

// A chunk needs its own and one more, and no more than there are.
// CHUNK-LABEL: loop.kernel @window
// CHUNK-NEXT:  loop.for "i0" %i0 to 2 {
// CHUNK-NEXT:    %[[h:.*]] = loop.local : memref<5xf32>
// CHUNK-NEXT:    loop.for "a" %a to 5 {
// CHUNK-NEXT:      loop.load %x (d0, d1) -> (((d0 * 4) + d1))(%i0, %a)
// CHUNK:         loop.for "i1" %i1 to 4 {
// CHUNK-NEXT:      loop.load %[[h]] (d0) -> (d0)(%i1) : memref<5xf32>, f32
// CHUNK-NEXT:      loop.load %[[h]] (d0) -> ((d0 + 1))(%i1) : memref<5xf32>, f32
loop.kernel @window(%x: memref<9xf32>) -> (%y: memref<8xf32>) {
  %h = loop.local : memref<9xf32>
  loop.for "a" %a to 9 {
    %v = loop.load %x (d0) -> (d0)(%a) : memref<9xf32>, f32
    %e = math.exp %v : f32
    loop.store %e, %h (d0) -> (d0)(%a) : f32, memref<9xf32>
  }
  loop.for "i" %i to 8 {
    %p = loop.load %h (d0) -> (d0)(%i) : memref<9xf32>, f32
    %q = loop.load %h (d0) -> (d0 + 1)(%i) : memref<9xf32>, f32
    %s = arith.addf %p, %q : f32
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

loop.kernel @refused(%w: memref<8xi32>) -> (%y: memref<8xf32>) {
  %z = arith.constant 0.0 : f32
  %h = loop.local : memref<8xf32>
  %t = loop.local : memref<8xf32>
  %u = loop.local : memref<8xf32>
  %o = loop.local : memref<8xf32>
  loop.for "a" %a to 8 {
    loop.store %z, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
  }
  loop.for "i" %i to 8 {
    %p = loop.load %h (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "b" %a to 8 {
    loop.for "b2" %a2 to 2 serial {
      loop.store %z, %t (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
  }
  loop.for "c" %i to 8 {
    %p = loop.load %t (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "d" %a to 8 {
    %p = loop.load %h (d0) -> (d0)(%a) : memref<8xf32>, f32
    loop.store %p, %u (d0) -> (d0)(%a) : f32, memref<8xf32>
  }
  loop.for "e" %i to 8 {
    %p = loop.load %u (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %p, %h (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "f" %a to 8 {
    loop.store %z, %o (d0) -> (d0)(%a) : f32, memref<8xf32>
  }
  loop.for "g" %i to 8 {
    %c = loop.load %w (d0) -> (d0)(%i) : memref<8xi32>, i32
    %n = arith.index_cast %c : i32 to index
    %p = loop.load %o (d0) -> (d0)(%n) : memref<8xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  %s = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add) {
    %q = arith.addf %acc, %z : f32
    loop.yield %q : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<8xf32>
}
