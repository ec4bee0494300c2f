// RUN: stepwell-opt %s -p "loop-own{kernel=scatter loop=k parts=2},loop-tiles{kernel=scatter loop=k0}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-own{kernel=symbolic loop=k parts=4 chunk=100}" | filecheck %s --check-prefix=SYMBOLIC
// RUN: not stepwell-opt %s -p "loop-own{kernel=scatter loop=j}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-own{kernel=scatter loop=k parts=0}" 2>&1 | filecheck %s --check-prefix=PARTS
// RUN: not stepwell-opt %s -p "loop-own{kernel=scatter loop=k chunk=0}" 2>&1 | filecheck %s --check-prefix=CHUNK
// RUN: not stepwell-opt %s -p "loop-own{kernel=two loop=k}" 2>&1 | filecheck %s --check-prefix=TWO
// RUN: not stepwell-opt %s -p "loop-own{kernel=fixed loop=k}" 2>&1 | filecheck %s --check-prefix=FIXED
// RUN: not stepwell-opt %s -p "loop-own{kernel=inner loop=k}" 2>&1 | filecheck %s --check-prefix=INNER
// RUN: not stepwell-opt %s -p "loop-split{kernel=bound loop=k factor=4 tail=mask},loop-own{kernel=bound loop=k1}" 2>&1 | filecheck %s --check-prefix=BOUND
// RUN: not stepwell-opt %s -p "loop-own{kernel=nothing loop=k}" 2>&1 | filecheck %s --check-prefix=NOTHING

// KIND: loop-own: loop "j" of @scatter: wrong kind, expected serial, got parallel
// PARTS: loop-own: loop "k" of @scatter: wrong number of parts, expected at least 1, got 0
// CHUNK: loop-own: loop "k" of @scatter: wrong chunk, expected at least 1, got 0
// TWO: loop-own: loop "k" of @two: it writes to several places, expected accesses to what it writes at one computed index
// FIXED: loop-own: loop "k" of @fixed: all of its iterations write to one place
// INNER: loop-own: loop "k" of @inner: a place is not computed where an iteration begins
// BOUND: loop-own: loop "k1" of @bound: its bound is the smaller of several
// NOTHING: loop-own: loop "k" of @nothing: it writes nothing

// CHECK-LABEL: loop.kernel @scatter
// CHECK-SAME:    loop.schedule = "own(k, 2, 1); tiles(k0)"
// CHECK:         %[[SIZE:.*]] = arith.constant 5 : index
// CHECK:         loop.for "k0" %k0 to 2 tiles {
// CHECK-NEXT:      %[[MINE:.*]] = loop.local : memref<60xindex>
// CHECK-NEXT:      loop.for "k1" %k1 to 1 serial {
// CHECK-NEXT:        %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT:        %[[M:.*]] = loop.for "k2" %k2 to min (d0) -> (60, ((d0 * -60) + 60))(%k1) serial carry(%[[C:.*]] = %[[NONE]] : index) {
// CHECK-NEXT:          %[[P:.*]] = loop.load %at (d0, d1) -> (((d0 * 60) + d1))(%k1, %k2)
// CHECK-NEXT:          %[[Q:.*]] = arith.index_cast %[[P]]
// CHECK-NEXT:          %[[N:.*]] = loop.owned %[[Q]] part %k0 size %[[SIZE]]
// CHECK-NEXT:          loop.store %k2, %[[MINE]] (d0) -> (d0)(%[[C]])
// CHECK-NEXT:          %[[D:.*]] = arith.addi %[[C]], %[[N]] : index
// CHECK-NEXT:          loop.yield %[[D]] : index
// CHECK:             loop.for "k3" %k3 to %[[M]] serial {
// CHECK-NEXT:          %[[L:.*]] = loop.load %[[MINE]] (d0) -> (d0)(%k3)
// CHECK-NEXT:          loop.load %at (d0, d1) -> (((d0 * 60) + d1))(%k1, %[[L]])
// CHECK-NEXT:          %[[R:.*]] = arith.index_cast
// CHECK-NEXT:          %[[O:.*]] = loop.owned %[[R]] part %k0 size %[[SIZE]]
// CHECK-NEXT:          loop.for "k4" %k4 to %[[O]] {
// CHECK-NEXT:            loop.for "j" %j to 4 {
// CHECK-NEXT:              loop.load %v (d0, d1, d2) -> (((d0 * 60) + d1), d2)(%k1, %[[L]], %j)
// CHECK-NEXT:              loop.store add %{{.*}}, %y (d0, d1) -> (d0, d1)(%[[R]], %j)
loop.kernel @scatter(%at: memref<60xi32>, %v: memref<60x4xf32>) -> (%y: memref<9x4xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "a" %a to 9 {
    loop.for "b" %b to 4 {
      loop.store %one, %y (d0, d1) -> (d0, d1)(%a, %b) : f32, memref<9x4xf32>
    }
  }
  loop.for "k" %k to 60 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.for "j" %j to 4 {
      %w = loop.load %v (d0, d1) -> (d0, d1)(%k, %j) : memref<60x4xf32>, f32
      loop.store add %w, %y (d0, d1) -> (d0, d1)(%q, %j) : f32, memref<9x4xf32>
    }
  }
}

// Where sizes are not known, the number of parts and their size are computed.
// SYMBOLIC-LABEL: loop.kernel @symbolic
// SYMBOLIC:         %[[COUNT:.*]] = affine.min affine_map<(d0) -> (4, (d0 ceildiv 100))> (%n)
// SYMBOLIC:         %[[ROWS:.*]] = memref.dim %y
// SYMBOLIC:         %[[BY:.*]] = arith.maxsi %[[COUNT]], %{{.*}} : index
// SYMBOLIC-NEXT:    %[[SIZE:.*]] = arith.ceildivsi %[[ROWS]], %[[BY]] : index
// SYMBOLIC-NEXT:    loop.for "k0" %k0 to %[[COUNT]] {
// SYMBOLIC:           loop.owned %{{.*}} part %k0 size %[[SIZE]]
loop.kernel @symbolic(%at: memref<?xi32>) -> (%y: memref<?xi32>) {
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %n = memref.dim %at, %c0 : memref<?xi32>
  %m = memref.dim %y, %c0 : memref<?xi32>
  loop.for "a" %a to %m {
    loop.store %one, %y (d0) -> (d0)(%a) : i32, memref<?xi32>
  }
  loop.for "k" %k to %n serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.store add %one, %y (d0) -> (d0)(%q) : i32, memref<?xi32>
  }
}

loop.kernel @two(%at: memref<60xi32>) -> (%y: memref<9xi32>) {
  %one = arith.constant 1 : i32
  loop.for "k" %k to 60 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.store %one, %y (d0) -> (d0)(%q) : i32, memref<9xi32>
    loop.store %one, %y () -> (3)() : i32, memref<9xi32>
  }
}

loop.kernel @fixed(%at: memref<60xi32>, %z: memref<1xi32>) -> (%y: memref<9xi32>) {
  %p = loop.load %z () -> (0)() : memref<1xi32>, i32
  %q = arith.index_cast %p : i32 to index
  loop.for "k" %k to 60 serial {
    %w = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
    loop.store %w, %y (d0) -> (d0)(%q) : i32, memref<9xi32>
  }
}

loop.kernel @inner(%at: memref<60x4xi32>) -> (%y: memref<9x4xi32>) {
  %one = arith.constant 1 : i32
  loop.for "k" %k to 60 serial {
    loop.for "j" %j to 4 {
      %p = loop.load %at (d0, d1) -> (d0, d1)(%k, %j) : memref<60x4xi32>, i32
      %q = arith.index_cast %p : i32 to index
      loop.store %one, %y (d0, d1) -> (d0, d1)(%q, %j) : i32, memref<9x4xi32>
    }
  }
}

loop.kernel @bound(%at: memref<61xi32>) -> (%y: memref<9xi32>) {
  %one = arith.constant 1 : i32
  loop.for "k" %k to 61 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<61xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.store %one, %y (d0) -> (d0)(%q) : i32, memref<9xi32>
  }
}

loop.kernel @nothing(%at: memref<60xi32>) -> (%y: memref<9xi32>) {
  loop.for "k" %k to 60 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
  }
}
