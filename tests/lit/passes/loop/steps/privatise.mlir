// RUN: stepwell-opt %s -p "loop-privatise{kernel=count loop=k parts=2},loop-tiles{kernel=count loop=k0}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-privatise{kernel=symbolic loop=k parts=4 chunk=100}" | filecheck %s --check-prefix=SYMBOLIC
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=count loop=i}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=count loop=k parts=0}" 2>&1 | filecheck %s --check-prefix=PARTS
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=count loop=k parts=4097}" 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=count loop=k chunk=0}" 2>&1 | filecheck %s --check-prefix=CHUNK
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=sums loop=k}" 2>&1 | filecheck %s --check-prefix=SUMS
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=last loop=k}" 2>&1 | filecheck %s --check-prefix=LAST
// RUN: not stepwell-opt %s -p "loop-privatise{kernel=inner loop=k}" 2>&1 | filecheck %s --check-prefix=INNER

// KIND: loop-privatise: loop "i" of @count: wrong kind, expected serial, got parallel
// PARTS: loop-privatise: loop "k" of @count: wrong number of parts, expected at least 1, got 0
// MANY: loop-privatise: loop "k" of @count: wrong number of parts, expected at most 4096, got 4097
// CHUNK: loop-privatise: loop "k" of @count: wrong chunk, expected at least 1, got 0
// SUMS: loop-privatise: loop "k" of @sums: accumulates floats by add, expected integers, or a maximum or minimum, got f32
// LAST: loop-privatise: loop "k" of @last: does more, expected one store that accumulates, got 1 accesses
// INNER: loop-privatise: loop "k" of @inner: is inside of "i"

// CHECK-LABEL: loop.kernel @count
// CHECK-SAME:    loop.schedule = "privatise(k, 2, 1); tiles(k0)"
// CHECK:         %[[C:.*]] = loop.local : memref<2x9xi64>
// CHECK-NEXT:    loop.for "k0" %k0 to 2 tiles {
// CHECK-NEXT:      loop.for "k3" %k3 to 9 {
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT:        loop.store %[[ZERO]], %[[C]] (d0, d1) -> (d0, d1)(%k0, %k3)
// CHECK:           loop.for "k1" %k1 to min (d0) -> (30, ((d0 * -30) + 59))(%k0) serial {
// CHECK-NEXT:        %[[P:.*]] = loop.load %at (d0, d1) -> (((d0 * 30) + d1))(%k0, %k1)
// CHECK-NEXT:        %[[Q:.*]] = arith.index_cast %[[P]]
// CHECK-NEXT:        loop.store add %{{.*}}, %[[C]] (d0, d1) -> (d0, d1)(%k0, %[[Q]])
// CHECK:         loop.for "k4" %k4 to 9 {
// CHECK-NEXT:      loop.for "k2" %k2 to 2 serial {
// CHECK-NEXT:        %[[T:.*]] = loop.load %[[C]] (d0, d1) -> (d0, d1)(%k2, %k4)
// CHECK-NEXT:        loop.store add %[[T]], %y (d0) -> (d0)(%k4)
loop.kernel @count(%at: memref<59xi32>) -> (%y: memref<9xi64>) {
  %one = arith.constant 1 : i64
  loop.for "i" %i to 9 {
    loop.store %one, %y (d0) -> (d0)(%i) : i64, memref<9xi64>
  }
  loop.for "k" %k to 59 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<59xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.store add %one, %y (d0) -> (d0)(%q) : i64, memref<9xi64>
  }
}

// Where sizes are not known, they are computed, and so are the number of parts and where one begins.
// SYMBOLIC-LABEL: loop.kernel @symbolic
// SYMBOLIC:         loop.for "a"
// SYMBOLIC:         %[[ROWS:.*]] = memref.dim %y
// SYMBOLIC:         %[[C:.*]] = loop.local(%[[ROWS]]) : memref<4x?xf32>
// SYMBOLIC:         %[[COUNT:.*]] = affine.min affine_map<(d0) -> (4, (d0 ceildiv 100))> (%n)
// SYMBOLIC:         %[[EACH:.*]] = arith.ceildivsi %n, %{{.*}} : index
// SYMBOLIC:         loop.for "k0" %k0 to %[[COUNT]] {
// SYMBOLIC-NEXT:      loop.for "k3" %k3 to %[[ROWS]] {
// SYMBOLIC-NEXT:        arith.constant 0xff800000 : f32
// SYMBOLIC:           %[[FIRST:.*]] = arith.muli %k0, %[[EACH]] : index
// SYMBOLIC-NEXT:      loop.for "k1" %k1 to min (d0, d1, d2) -> (d0, (d1 + (d2 * -1)))(%[[EACH]], %n, %[[FIRST]]) serial {
// SYMBOLIC:             loop.store max %{{.*}}, %[[C]] (d0, d1) -> (d0, d1)(%k0, %{{.*}})
// SYMBOLIC:           loop.for "k2" %k2 to %[[COUNT]] serial {
loop.kernel @symbolic(%at: memref<?xi32>, %v: memref<?xf32>) -> (%y: memref<?xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %at, %c0 : memref<?xi32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  loop.for "a" %a to %m {
    loop.store %one, %y (d0) -> (d0)(%a) : f32, memref<?xf32>
  }
  loop.for "k" %k to %n serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi32>, i32
    %q = arith.index_cast %p : i32 to index
    %w = loop.load %v (d0) -> (d0)(%k) : memref<?xf32>, f32
    loop.store max %w, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
  }
}

loop.kernel @sums(%at: memref<60xi32>, %v: memref<60xf32>) -> (%y: memref<9xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "a" %a to 9 {
    loop.store %one, %y (d0) -> (d0)(%a) : f32, memref<9xf32>
  }
  loop.for "k" %k to 60 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
    %q = arith.index_cast %p : i32 to index
    %w = loop.load %v (d0) -> (d0)(%k) : memref<60xf32>, f32
    loop.store add %w, %y (d0) -> (d0)(%q) : f32, memref<9xf32>
  }
}

loop.kernel @last(%at: memref<60xi32>) -> (%y: memref<9xi32>) {
  loop.for "k" %k to 60 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<60xi32>, i32
    %q = arith.index_cast %p : i32 to index
    loop.store %p, %y (d0) -> (d0)(%q) : i32, memref<9xi32>
  }
}

loop.kernel @inner(%at: memref<4x60xi32>) -> (%y: memref<4x9xi32>) {
  %one = arith.constant 1 : i32
  loop.for "i" %i to 4 {
    loop.for "j" %j to 9 {
      loop.store %one, %y (d0, d1) -> (d0, d1)(%i, %j) : i32, memref<4x9xi32>
    }
    loop.for "k" %k to 60 serial {
      %p = loop.load %at (d0, d1) -> (d0, d1)(%i, %k) : memref<4x60xi32>, i32
      %q = arith.index_cast %p : i32 to index
      loop.store add %one, %y (d0, d1) -> (d0, d1)(%i, %q) : i32, memref<4x9xi32>
    }
  }
}
