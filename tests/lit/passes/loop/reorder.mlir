// RUN: stepwell-opt %s -p "loop-reorder{kernel=copy loops=k,i,j}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=between loops=j,i}" 2>&1 | filecheck %s --check-prefix=BETWEEN
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=depends loops=j,i}" 2>&1 | filecheck %s --check-prefix=DEPENDS
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=copy loops=k,i,k}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=serial loops=j,i}" 2>&1 | filecheck %s --check-prefix=SERIAL
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=sum loops=k,i}" 2>&1 | filecheck %s --check-prefix=REDUCTION

// BETWEEN: loop-reorder: loop "j" of @between: is not perfectly nested in "i"
// DEPENDS: loop-reorder: loop "j" of @depends: its bound depends on loop "i"
// TWICE: loop-reorder: loop "k" of @copy: is named twice
// SERIAL: loop-reorder: loop "i" of @serial: its iterations keep their order
// REDUCTION: loop-reorder: loop "k" of @sum: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction

// CHECK-LABEL: loop.kernel @copy
// CHECK-NEXT:  loop.for "k" %k to 5 {
// CHECK-NEXT:    loop.for "i" %i to 3 {
// CHECK-NEXT:      loop.for "j" %j to 4 {
// CHECK-NEXT:        %[[v:.*]] = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k)
// CHECK-NEXT:        loop.store %[[v]], %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k)
loop.kernel @copy(%x: memref<3x4x5xf32>) -> (%y: memref<3x4x5xf32>) {
  loop.for "i" %i to 3 {
    loop.for "j" %j to 4 {
      loop.for "k" %k to 5 {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : memref<3x4x5xf32>, f32
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : f32, memref<3x4x5xf32>
      }
    }
  }
}

loop.kernel @between(%x: memref<3xf32>) -> (%y: memref<3x4xf32>) {
  loop.for "i" %i to 3 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<3xf32>, f32
    loop.for "j" %j to 4 {
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @depends() -> (%y: memref<3x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    loop.for "j" %j to min (d0) -> (d0 + 1)(%i) {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @serial() -> (%y: memref<3x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 serial {
    loop.for "j" %j to 4 {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @sum(%x: memref<3x4xf32>) -> (%y: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<3x4xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}
