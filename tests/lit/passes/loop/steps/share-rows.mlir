// RUN: stepwell-opt %s -p "loop-share-rows{kernel=rows loop=i}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-share-rows{kernel=rows loop=i threads=64}" | filecheck %s --check-prefix=WARPS
// RUN: stepwell-opt %s -p "loop-share-rows{kernel=rows loop=i threads=20}" | filecheck %s --check-prefix=FEW
// RUN: stepwell-opt %s -p "loop-share-rows{kernel=tile loop=i}" | filecheck %s --check-prefix=TILE
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=rows loop=k}" 2>&1 | filecheck %s --check-prefix=CARRIES
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=rows loop=i threads=2000}" 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=serial loop=i}" 2>&1 | filecheck %s --check-prefix=SERIAL
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=serial loop=j}" 2>&1 | filecheck %s --check-prefix=AROUND
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=large loop=i}" 2>&1 | filecheck %s --check-prefix=LARGE

// CARRIES: loop-share-rows: loop "k" of @rows: it carries values
// MANY: loop-share-rows: loop "i" of @rows: wrong number of threads, expected at most 1024, got 2000
// SERIAL: loop-share-rows: loop "i" of @serial: "j" in it is neither parallel nor a reduction of a bound
// AROUND: loop-share-rows: loop "j" of @serial: wrong kind, expected parallel, got serial
// LARGE: loop-share-rows: loop "i" of @large: its buffers are too large for shared memory, expected at most 49152 bytes, got 80000

// Each thread sums every 32nd element, and the warp joins the parts in steps over fewer and fewer
// threads. A buffer is shared, and a store of the block is one of its first thread.
// CHECK-LABEL: loop.kernel @rows(
// CHECK:       loop.for "b" %b to 2 blocks {
// CHECK-NEXT:    loop.for "i" %i to 4 blocks {
// CHECK-NEXT:      %[[H:.*]] = loop.local : memref<70xf32, #loop<space shared>>
// CHECK-NEXT:      loop.for "j" %j to 70 threads {
// CHECK:             loop.store %{{.*}}, %[[H]]
// CHECK:           %[[P:.*]] = loop.local : memref<32xf32, #loop<space threads>>
// CHECK-NEXT:      loop.for "kt" %kt to 32 threads {
// CHECK:             %[[S:.*]] = loop.for "k" %k to {{.*}}(%kt) reduction carry(
// CHECK-NEXT:          loop.load %[[H]] (d0, d1) -> ((d0 + (d1 * 32)))(%kt, %k)
// CHECK:             loop.store %[[S]], %[[P]] (d0) -> (d0)(%kt)
// CHECK:           %[[Q:.*]] = loop.local : memref<32xf32, #loop<space threads>>
// CHECK-NEXT:      loop.for "kt16" %[[T:.*]] to 32 threads {
// CHECK-NEXT:        loop.load %[[P]] (d0) -> (d0)(%[[T]])
// CHECK-NEXT:        loop.load %[[P]] (d0) -> (((d0 + 16) mod 32))(%[[T]])
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        loop.store %{{.*}}, %[[Q]] (d0) -> (d0)(%[[T]])
// CHECK:           loop.for "kt8"
// CHECK:           loop.for "kt4"
// CHECK:           loop.for "kt2"
// CHECK:           %[[R:.*]] = loop.local : memref<32xf32, #loop<space threads>>
// CHECK-NEXT:      loop.for "kt1"
// CHECK:             loop.store %{{.*}}, %[[R]]
// CHECK:           %[[V:.*]] = loop.load %[[R]] () -> (0)()
// CHECK-NEXT:      %[[ALL:.*]] = arith.addf %first, %[[V]] : f32
// CHECK:           loop.for "is" %{{.*}} to 1 threads {
// CHECK-NEXT:        loop.store %[[ALL]], %y
// Several warps join their results in shared memory.
// WARPS-LABEL: loop.kernel @rows(
// WARPS:         loop.for "ktw" %[[W:.*]] to 2 threads {
// WARPS-NEXT:      loop.for "kt" %[[L:.*]] to 32 threads {
// WARPS:             loop.for "k" %k to {{.*}}(%[[W]], %[[L]]) reduction carry(
// WARPS:         %[[P:.*]] = loop.local : memref<2x32xf32, #loop<space shared>>
// WARPS-NEXT:    loop.for "kt1w"
// WARPS:         loop.for "kp" %[[N:.*]] to 2 reduction carry(%{{.*}} = %first : f32 add) {
// WARPS-NEXT:      loop.load %[[P]] (d0) -> (d0, 0)(%[[N]])

// Threads that are no whole warps have no shuffles.
// FEW-LABEL:   loop.kernel @rows(
// FEW:           %[[P:.*]] = loop.local : memref<20xf32, #loop<space shared>>
// FEW-NEXT:      loop.for "kt" %{{.*}} to 20 threads {
// FEW:           loop.for "kp" %[[N:.*]] to 20 reduction carry(%{{.*}} = %first : f32 add) {
// FEW-NEXT:        loop.load %[[P]] (d0) -> (d0)(%[[N]])

loop.kernel @rows(%x: memref<2x4x70xf32>) -> (%y: memref<2x4xf32>) {
  %first = arith.constant 1.0 : f32
  loop.for "b" %b to 2 {
    loop.for "i" %i to 4 {
      %h = loop.local : memref<70xf32>
      loop.for "j" %j to 70 {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %i, %j) : memref<2x4x70xf32>, f32
        loop.store %v, %h (d0) -> (d0)(%j) : f32, memref<70xf32>
      }
      %s = loop.for "k" %k to 70 reduction carry(%a = %first : f32 add) {
        %v = loop.load %h (d0) -> (d0)(%k) : memref<70xf32>, f32
        %u = arith.addf %a, %v : f32
        loop.yield %u : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %i) : f32, memref<2x4xf32>
    }
  }
}

// Perfectly nested loops are threads together, and rows of a buffer are odd.
// TILE-LABEL: loop.kernel @tile(
// TILE:         %[[H:.*]] = loop.local : memref<8x41xf32, #loop<space shared>>
// TILE-NEXT:    loop.for "r" %[[R:.*]] to 8 threads {
// TILE-NEXT:      loop.for "c" %[[C:.*]] to 40 threads {
// TILE:             loop.store %{{.*}}, %[[H]] (d0, d1) -> (d0, d1)(%[[R]], %[[C]])
// TILE:         loop.for "d" %[[D:.*]] to 40 threads {
// TILE-NEXT:      loop.for "s" %{{.*}} to 8 serial {
loop.kernel @tile(%x: memref<4x8x40xf32>) -> (%y: memref<4x40x8xf32>) {
  loop.for "i" %i to 4 {
    %h = loop.local : memref<8x40xf32>
    loop.for "r" %r to 8 {
      loop.for "c" %c to 40 {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %r, %c) : memref<4x8x40xf32>, f32
        loop.store %v, %h (d0, d1) -> (d0, d1)(%r, %c) : f32, memref<8x40xf32>
      }
    }
    loop.for "d" %d to 40 {
      loop.for "s" %s to 8 serial {
        %v = loop.load %h (d0, d1) -> (d0, d1)(%s, %d) : memref<8x40xf32>, f32
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %d, %s) : f32, memref<4x40x8xf32>
      }
    }
  }
}

loop.kernel @serial(%x: memref<4x70xf32>) -> (%y: memref<4x70xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 70 serial {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x70xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x70xf32>
    }
  }
}

loop.kernel @large(%x: memref<4x20000xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %h = loop.local : memref<20000xf32>
    loop.for "j" %j to 20000 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x20000xf32>, f32
      loop.store %v, %h (d0) -> (d0)(%j) : f32, memref<20000xf32>
    }
    %w = loop.load %h () -> (7)() : memref<20000xf32>, f32
    loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}
