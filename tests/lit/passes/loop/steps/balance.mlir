// RUN: stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=e factor=16 weight=4}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=e factor=16},loop-tiles{kernel=sums loop=i0}" | filecheck %s --check-prefix=TILES
// RUN: not stepwell-opt %s -p "loop-balance{kernel=sums loop=e entries=e factor=16}" 2>&1 | filecheck %s --check-prefix=SUM
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=sums loop=i},loop-balance{kernel=sums loop=i entries=e factor=16}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=e factor=0}" 2>&1 | filecheck %s --check-prefix=FACTOR
// RUN: not stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=e factor=4 weight=0}" 2>&1 | filecheck %s --check-prefix=WEIGHT
// RUN: not stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=i factor=4}" 2>&1 | filecheck %s --check-prefix=ITSELF
// RUN: not stepwell-opt %s -p "loop-balance{kernel=sums loop=i entries=f factor=4}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not stepwell-opt %s -p "loop-balance{kernel=others loop=a entries=b factor=4}" 2>&1 | filecheck %s --check-prefix=OUTSIDE
// RUN: not stepwell-opt %s -p "loop-balance{kernel=others loop=c entries=b factor=4}" 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not stepwell-opt %s -p "loop-split{kernel=sums loop=i factor=4 tail=mask},loop-balance{kernel=sums loop=i1 entries=e factor=4}" 2>&1 | filecheck %s --check-prefix=BOUND

// SUM: loop-balance: loop "e" of @sums: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// KIND: loop-balance: loop "i" of @sums: wrong kind, expected parallel, got tiles
// FACTOR: loop-balance: loop "i" of @sums: wrong factor, expected at least 1, got 0
// WEIGHT: loop-balance: loop "i" of @sums: wrong weight, expected 1 to 65536, got 0
// ITSELF: loop-balance: loop "i" of @sums: "i" is no loop over entries in it
// NONE: loop-balance: no loop "f" in @sums, expected "i", "e"
// OUTSIDE: loop-balance: loop "a" of @others: "b" is no loop over entries in it
// ROWS: loop-balance: loop "c" of @others: does not go through the rows of "b"
// BOUND: loop-balance: loop "i1" of @sums: its bound is the smaller of several

// CHECK-LABEL: loop.kernel @sums
// CHECK:         %[[N:.*]] = memref.dim %y
// CHECK-NEXT:    loop.for "i0" %i0 to min (d0) -> ((d0 ceildiv 16))(%[[N]]) {
// CHECK:           %[[T:.*]] = arith.ceildivsi %[[N]], %{{.*}} : index
// CHECK-NEXT:      %[[A:.*]] = loop.partition_point %ptr rows %[[N]] part %i0 of %[[T]] weight 4 : memref<?xi64>
// CHECK:           %[[NEXT:.*]] = arith.addi %i0, %{{.*}} : index
// CHECK-NEXT:      %[[B:.*]] = loop.partition_point %ptr rows %[[N]] part %[[NEXT]] of %[[T]] weight 4 : memref<?xi64>
// CHECK-NEXT:      loop.for "i1" %i1 to min (d0, d1) -> (((d0 * -1) + d1))(%[[A]], %[[B]]) {
// CHECK-NEXT:        loop.for "e" %p, %j of %ptr, %col row (d0, d1) -> ((d0 + d1))(%[[A]], %i1)
// CHECK:             loop.store %{{.*}}, %y (d0, d1) -> ((d0 + d1))(%[[A]], %i1)
// TILES:       loop.for "i0" %i0 to min {{.*}} tiles {
loop.kernel @sums(%ptr: memref<?xi64>, %col: memref<?xi64>, %x: memref<9xf32>) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %s = loop.for "e" %p, %j of %ptr, %col row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<?xi64>, memref<?xi64> {
      %v = loop.load %x (d0) -> (d0)(%j) : memref<9xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

loop.kernel @others(%ptr: memref<?xi32>, %col: memref<?xi32>) -> (%y: memref<9xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "a" %a to 9 {
    loop.store %z, %y (d0) -> (d0)(%a) : f32, memref<9xf32>
  }
  loop.for "c" %c to 8 {
    %s = loop.for "b" %p, %j of %ptr, %col row (d0) -> (d0 + 1)(%c) reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
      %t = arith.addf %acc, %z : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%c) : f32, memref<9xf32>
  }
}
