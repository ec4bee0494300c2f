// RUN: stepwell-opt %s -p "loop-tiles{kernel=copy loop=i}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=copy loop=i},loop-tiles{kernel=copy loop=j}" 2>&1 | filecheck %s --check-prefix=INSIDE
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=copy loop=i},loop-tiles{kernel=copy loop=i}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=sum loop=k}" 2>&1 | filecheck %s --check-prefix=SUM
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=sum loop=i}" 2>&1 | filecheck %s --check-prefix=REDUCTION

// RUN: stepwell-opt %s -p "loop-tiles{kernel=copy loop=i order=alternating}" | filecheck %s --check-prefix=ALTERNATING
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=copy loop=i order=random}" 2>&1 | filecheck %s --check-prefix=ORDER

// ORDER: loop-tiles: loop "i" of @copy: unknown order, expected any, alternating, got random
// ALTERNATING: loop.schedule = "tiles(i, order=alternating)"
// ALTERNATING-NEXT:  loop.for "i" %i to 3 alternating_tiles {
// INSIDE: loop-tiles: loop "j" of @copy: is inside of the tiles of "i"
// KIND: loop-tiles: loop "i" of @copy: wrong kind, expected parallel, got tiles
// SUM: loop-tiles: loop "k" of @sum: it carries values from one iteration to the next, expected a loop that carries nothing, got serial
// REDUCTION: loop-tiles: loop "i" of @sum: is inside of "k", which carries values

// CHECK-LABEL: loop.kernel @copy
// CHECK-NEXT:  loop.for "i" %i to 3 tiles {
// CHECK-NEXT:    loop.for "j" %j to 4 {
loop.kernel @copy(%x: memref<3x4xf32>) -> (%y: memref<3x4xf32>) {
  loop.for "i" %i to 3 {
    loop.for "j" %j to 4 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<3x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @sum(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 4 serial carry(%acc = %z : f32) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.for "i" %i to 4 {
      loop.store %t, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
    }
    loop.yield %t : f32
  }
}
