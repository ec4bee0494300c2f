// RUN: stepwell-opt %s -p "loop-count-entries{kernel=spmm loop=e}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-count-entries{kernel=spmm loop=e},loop-hoist{kernel=spmm loop=j},loop-cascade{kernel=spmm loop=e factor=32},loop-share-rows{kernel=spmm loop=i},loop-stage-panels{kernel=spmm loop=e0}" | filecheck %s --check-prefix=BLOCK
// RUN: not stepwell-opt %s -p "loop-count-entries{kernel=spmm loop=j}" 2>&1 | filecheck %s --check-prefix=BOUND
// RUN: not stepwell-opt %s -p "loop-cascade{kernel=spmm loop=e factor=8},loop-count-entries{kernel=spmm loop=e}" 2>&1 | filecheck %s --check-prefix=CASCADE

// BOUND: loop-count-entries: loop "j" of @spmm: is not over the entries of a row
// CASCADE: loop-count-entries: loop "e" of @spmm: is a cascade

// The row pointers are marked, as no loop says any more that they are such.
// CHECK-LABEL: loop.kernel @spmm(
// CHECK-SAME:    %indptr: memref<5xi32> {loop.indptr}
// CHECK:         loop.for "j" %j to 40 {
// CHECK-NEXT:      %[[B:.*]] = loop.load %indptr (d0) -> (d0)(%i)
// CHECK-NEXT:      %[[BEGIN:.*]] = arith.index_cast %[[B]]
// CHECK-NEXT:      %[[E:.*]] = loop.load %indptr (d0) -> ((d0 + 1))(%i)
// CHECK-NEXT:      %[[END:.*]] = arith.index_cast %[[E]]
// CHECK-NEXT:      loop.for "e" %[[K:.*]] to min (d0, d1) -> (((d0 * -1) + d1))(%[[BEGIN]], %[[END]]) reduction carry({{.*}} : f32 add) {
// CHECK-NEXT:        %[[AT:.*]] = loop.load %indices (d0, d1) -> ((d0 + d1))(%[[BEGIN]], %[[K]])
// CHECK-NEXT:        %[[C:.*]] = arith.index_cast %[[AT]]
// CHECK-NEXT:        loop.load %values (d0, d1) -> ((d0 + d1))(%[[BEGIN]], %[[K]])
// CHECK-NEXT:        loop.load %x (d0, d1) -> (d0, d1)(%[[C]], %j)

// Threads along features use columns and weights that each of them has read for some entries.
// BLOCK-LABEL: loop.kernel @spmm(
// BLOCK:         loop.for "i" %i to 4 blocks {
// BLOCK:           loop.for "e0" %[[K:.*]] to {{.*}} ceildiv 32{{.*}} serial {
// BLOCK-NEXT:        %[[C:.*]] = loop.local : memref<32xi32, #loop<space shared>>
// BLOCK-NEXT:        %[[V:.*]] = loop.local : memref<32xf32, #loop<space shared>>
// BLOCK-NEXT:        loop.for "e0p" %[[P:.*]] to min (d0, d1, d2) -> (32, {{.*}}) threads {
// BLOCK:               loop.store %{{.*}}, %[[C]] (d0) -> (d0)(%[[P]])
// BLOCK-NEXT:          loop.store %{{.*}}, %[[V]] (d0) -> (d0)(%[[P]])
// BLOCK:             loop.for "j" %j to 40 threads {
// BLOCK:               loop.for "e1" %[[E:.*]] to {{.*}} reduction
// BLOCK-NEXT:            %[[I:.*]] = loop.load %[[C]] (d0) -> (d0)(%[[E]])
// BLOCK-NEXT:            %[[COLUMN:.*]] = arith.index_cast %[[I]]
// BLOCK-NEXT:            loop.load %[[V]] (d0) -> (d0)(%[[E]])
// BLOCK-NEXT:            loop.load %x (d0, d1) -> (d0, d1)(%[[COLUMN]], %j)
loop.kernel @spmm(%indptr: memref<5xi32>, %indices: memref<?xi32>, %values: memref<?xf32>,
                  %x: memref<?x40xf32>) -> (%y: memref<4x40xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    loop.for "j" %j to 40 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i)
          reduction carry(%a = %zero : f32 add) : memref<5xi32>, memref<?xi32> {
        %v = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %w = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x40xf32>, f32
        %t = math.fma %v, %w, %a : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x40xf32>
    }
  }
}
