// RUN: stepwell-opt %s -p "loop-unroll{kernel=entries loop=e factor=4}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-unroll{kernel=entries loop=i}" | filecheck %s --check-prefix=ALL
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=entries loop=i factor=4}" 2>&1 | filecheck %s --check-prefix=PART
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=entries loop=e}" 2>&1 | filecheck %s --check-prefix=FACTOR
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=custom loop=k factor=2}" 2>&1 | filecheck %s --check-prefix=CUSTOM
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=custom loop=i}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=custom loop=t}" 2>&1 | filecheck %s --check-prefix=TILES
// RUN: not stepwell-opt %s -p "loop-unroll{kernel=custom loop=s}" 2>&1 | filecheck %s --check-prefix=SERIAL

// PART: loop-unroll: loop "i" of @entries: only all of it can be unrolled, expected 3, got 4
// FACTOR: loop-unroll: loop "e" of @entries: wrong factor, expected at least 1
// CUSTOM: loop-unroll: loop "k" of @custom: its accumulators cannot be combined, expected add, mul, max or min, got custom
// SIZE: loop-unroll: loop "i" of @custom: its size is not known, expected a constant bound
// TILES: loop-unroll: loop "t" of @custom: its iterations are distributed over threads
// SERIAL: loop-unroll: loop "s" of @custom: its iterations keep their order

// CHECK-LABEL: loop.kernel @entries
// CHECK:       loop.for "i" %i to 3 {
// CHECK-NEXT:    loop.for "e" {{.*}} reduction unroll 4 carry({{.*}} add)

// ALL-LABEL: loop.kernel @entries
// ALL:       loop.for "i" %i to 3 unroll {
// ALL-NEXT:    loop.for "e" {{.*}} reduction carry({{.*}} add)
loop.kernel @entries(%indptr: memref<4xi32>, %indices: memref<?xi32>, %x: memref<?xf32>) -> (%y: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<4xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%p) : memref<?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}

loop.kernel @custom(%x: memref<?xf32>, %n: index) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to %n {
    %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 custom) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
      %t = arith.subf %v, %acc : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
  loop.for "t" %i to 4 tiles {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
  loop.for "s" %i to 4 serial {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
