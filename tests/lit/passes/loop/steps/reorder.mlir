// RUN: stepwell-opt %s -p "loop-reorder{kernel=copy loops=k,i,j}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=between loops=j,i}" 2>&1 | filecheck %s --check-prefix=BETWEEN
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=depends loops=j,i}" 2>&1 | filecheck %s --check-prefix=DEPENDS
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=copy loops=k,i,k}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: stepwell-opt %s -p "loop-reorder{kernel=serial loops=j,i}" | filecheck %s --check-prefix=SERIAL
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=two loops=j,i}" 2>&1 | filecheck %s --check-prefix=TWO
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=meets loops=j,i}" 2>&1 | filecheck %s --check-prefix=MEETS
// RUN: not stepwell-opt %s -p "loop-reorder{kernel=sum loops=k,i}" 2>&1 | filecheck %s --check-prefix=REDUCTION

// BETWEEN: loop-reorder: loop "j" of @between: is not perfectly nested in "i"
// DEPENDS: loop-reorder: loop "j" of @depends: its bound depends on loop "i"
// TWICE: loop-reorder: loop "k" of @copy: is named twice
// TWO: loop-reorder: loop "i" of @two: its iterations keep their order
// MEETS: loop-reorder: loop "i" of @meets: "j" may not leave it: iterations of loop "j" may depend on one another: one stores y[j + i], another stores y[j + i]
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

// The computed row does not matter: each "j" has a column of its own.
// SERIAL-LABEL: loop.kernel @serial
// SERIAL-NEXT:  loop.for "j" %j to 4 {
// SERIAL-NEXT:    loop.for "i" %i to 3 serial {
// SERIAL-NEXT:      %[[q:.*]] = loop.load %p (d0, d1) -> (d0, d1)(%i, %j)
// SERIAL-NEXT:      loop.store %x, %y (d0, d1) -> (d0, d1)(%[[q]], %j)
loop.kernel @serial(%p: memref<3x4xindex> {loop.bounds = ["5"]}, %x: index) -> (%y: memref<5x4xindex>) {
  loop.for "i" %i to 3 serial {
    loop.for "j" %j to 4 {
      %q = loop.load %p (d0, d1) -> (d0, d1)(%i, %j) : memref<3x4xindex>, index
      loop.store %x, %y (d0, d1) -> (d0, d1)(%q, %j) : index, memref<5x4xindex>
    }
  }
}

loop.kernel @two() -> (%y: memref<3x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 serial {
    loop.for "j" %j to 4 serial {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @meets() -> (%y: memref<6xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 serial {
    loop.for "j" %j to 4 {
      loop.store %z, %y (d0, d1) -> (d0 + d1)(%i, %j) : f32, memref<6xf32>
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
