// RUN: stepwell-opt %s -p "loop-fuse{kernel=copy outer=i inner=j}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-fuse{kernel=copy outer=i inner=j},loop-tiles{kernel=copy loop=i_j}" | filecheck %s --check-prefix=TILES
// RUN: stepwell-opt %s -p "loop-fuse{kernel=once outer=i inner=j}" | filecheck %s --check-prefix=ONCE
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=copy outer=j inner=i}" 2>&1 | filecheck %s --check-prefix=ORDER
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=refused outer=a inner=b}" 2>&1 | filecheck %s --check-prefix=BETWEEN
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=refused outer=c inner=d}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=refused outer=e inner=f}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=refused outer=g inner=k}" 2>&1 | filecheck %s --check-prefix=REDUCTION
// RUN: not stepwell-opt %s -p "loop-fuse{kernel=refused outer=o inner=p}" 2>&1 | filecheck %s --check-prefix=NEVER

// ORDER: loop-fuse: loop "i" of @copy: is not perfectly nested in "j"
// BETWEEN: loop-fuse: loop "b" of @refused: is not perfectly nested in "a"
// SIZE: loop-fuse: loop "d" of @refused: its size is not known, expected a constant bound
// KIND: loop-fuse: loop "e" of @refused: wrong kind, expected parallel or serial, got tiles
// REDUCTION: loop-fuse: loop "k" of @refused: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// NEVER: loop-fuse: loop "p" of @refused: it never runs

// The outer size may be unknown.
// CHECK-LABEL: loop.kernel @copy
// CHECK-SAME: attributes {loop.schedule = "fuse(i, j)"} {
// CHECK:       loop.for "i_j" %i_j to min (d0) -> ((d0 * 8))(%n) {
// CHECK-NEXT:    %[[v:.*]] = loop.load %x (d0) -> ((d0 floordiv 8), (d0 mod 8))(%i_j) : memref<?x8xf32>, f32
// CHECK-NEXT:    loop.store %[[v]], %y (d0) -> ((d0 floordiv 8), (d0 mod 8))(%i_j)
// CHECK-LABEL: loop.kernel @refused
// CHECK-NOT:   loop.schedule
// TILES-LABEL: loop.kernel @copy
// TILES:       loop.for "i_j" %i_j to min (d0) -> ((d0 * 8))(%n) tiles {
loop.kernel @copy(%x: memref<?x8xf32>) -> (%y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x8xf32>
    }
  }
}

// The index of an outer loop that runs once is no quotient.
// ONCE-LABEL: loop.kernel @once
// ONCE:       loop.for "i_j" %i_j to 8 {
// ONCE-NEXT:    loop.load %x (d0) -> (0, d0)(%i_j)
loop.kernel @once(%x: memref<1x8xf32>) -> (%y: memref<1x8xf32>) {
  loop.for "i" %i to 1 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<1x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<1x8xf32>
    }
  }
}

loop.kernel @refused(%x: memref<4xf32>, %n: index) -> (%y: memref<4x8xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "a" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.for "b" %j to 8 {
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "c" %i to 4 {
    loop.for "d" %j to %n {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "e" %i to 4 tiles {
    loop.for "f" %j to 8 {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "g" %i to 4 {
    %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0, 0)(%i) : f32, memref<4x8xf32>
  }
  loop.for "o" %i to 4 {
    loop.for "p" %j to 0 {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
