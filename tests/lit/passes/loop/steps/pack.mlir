// RUN: stepwell-opt %s -p "loop-split{kernel=product loop=j factor=8 tail=mask},loop-pack{kernel=product argument=1 loops=j0,k,j1}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-split{kernel=narrow loop=j factor=8 tail=mask},loop-pack{kernel=narrow argument=0 loops=j0,j1}" | filecheck %s --check-prefix=NARROW
// RUN: not stepwell-opt %s -p "loop-pack{kernel=product argument=0 loops=i,k}" 2>&1 | filecheck %s --check-prefix=VARIES
// RUN: not stepwell-opt %s -p "loop-pack{kernel=product argument=7 loops=i,k}" 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not stepwell-opt %s -p "loop-pack{kernel=product argument=1 loops=j}" 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not stepwell-opt %s -p "loop-pack{kernel=product argument=1 loops=i,j,k}" 2>&1 | filecheck %s --check-prefix=UNUSED
// RUN: not stepwell-opt %s -p "loop-pack{kernel=twice argument=0 loops=i,j}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not stepwell-opt %s -p "loop-pack{kernel=any argument=0 loops=i}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-pack{kernel=blocks argument=0 loops=i}" 2>&1 | filecheck %s --check-prefix=BLOCKS
// RUN: not stepwell-opt %s -p "loop-pack{kernel=unread argument=0 loops=i}" 2>&1 | filecheck %s --check-prefix=UNREAD
// RUN: not stepwell-opt %s -p "loop-pack{kernel=sized argument=0 loops=i}" 2>&1 | filecheck %s --check-prefix=SIZED
// RUN: not stepwell-opt %s -p "loop-pack{kernel=once argument=0 loops=i},loop-pack{kernel=once argument=0 loops=i}" 2>&1 | filecheck %s --check-prefix=AGAIN

// RUN: stepwell-opt %s -p "loop-pack{kernel=parts argument=0 loops=i,j}" | filecheck %s --check-prefix=PARTS
// RUN: not stepwell-opt %s -p "loop-pack{kernel=unequal argument=0 loops=j}" 2>&1 | filecheck %s --check-prefix=UNEQUAL

// UNEQUAL: loop-pack: argument 0 of @unequal: is read by parts that are not equally far apart, expected steps of (4,), got (7,)
// VARIES: loop-pack: argument 0 of @product: is not a constant, expected loop.constant; stage copies an argument of each call
// NUMBER: loop-pack: argument 7 of @product: no such input, expected 0 <= number < 2, got 7
// OTHER: loop-pack: argument 1 of @product: is read at an index of other loops, expected j
// UNUSED: loop-pack: argument 1 of @product: its index does not depend on loop "i"
// TWICE: loop-pack: argument 0 of @twice: is read by several maps, expected (d0, d1) -> (d{{.}}, d{{.}}), got (d0, d1) -> (d{{.}}, d{{.}})
// SIZE: loop-pack: loop "i" of @any: its size is not known, expected a constant bound
// BLOCKS: loop-pack: argument 0 of @blocks: is read by blocks; pack before vectorize
// UNREAD: loop-pack: argument 0 of @unread: is not read
// SIZED: loop-pack: argument 0 of @sized: is used by memref.dim, expected loads only
// AGAIN: loop-pack: argument 0 of @once: is packed already

// CHECK-LABEL: loop.kernel @product
// CHECK-SAME: %w: memref<3x5x8xf32> {loop.constant, loop.packing = affine_map<(d0, d1, d2) -> (((d0 * 8) + d2), d1)>}
// CHECK:       loop.load %w (d0, d1, d2) -> (d0, d1, d2)(%j0, %k, %j1) : memref<3x5x8xf32>, f32
loop.kernel @product(%x: memref<4x5xf32>, %w: memref<20x5xf32> {loop.constant}) -> (%y: memref<4x20xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    loop.for "j" %j to 20 {
      %s = loop.for "k" %k to 5 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<4x5xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<20x5xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x20xf32>
    }
  }
}

loop.kernel @twice(%w: memref<4x4xf32> {loop.constant}) -> (%y: memref<4x4xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 4 {
      %p = loop.load %w (d0, d1) -> (d0, d1)(%i, %j) : memref<4x4xf32>, f32
      %q = loop.load %w (d0, d1) -> (d1, d0)(%i, %j) : memref<4x4xf32>, f32
      %t = arith.addf %p, %q : f32
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x4xf32>
    }
  }
}

loop.kernel @any(%w: memref<?xf32> {loop.constant}, %n: index) -> (%y: memref<?xf32>) {
  loop.for "i" %i to %n {
    %p = loop.load %w (d0) -> (d0)(%i) : memref<?xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

loop.kernel @blocks(%w: memref<4xf32> {loop.constant}) -> (%y: memref<16xf32>) {
  loop.for "i" %i to 4 {
    %p = loop.load %w ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
    loop.store %p, %y (d0)[s0] -> (d0 * 4 + s0)(%i) : vector<4xf32>, memref<16xf32>
  }
}

loop.kernel @unread(%w: memref<4xf32> {loop.constant}) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
  }
}

loop.kernel @sized(%w: memref<4xf32> {loop.constant}) -> (%y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %w, %c0 : memref<4xf32>
  loop.for "i" %i to 4 {
    %p = loop.load %w (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

loop.kernel @once(%w: memref<4xf32> {loop.constant}) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %p = loop.load %w (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

// A chunk of 8 is read whole although the loop ends after 5 iterations.
// NARROW-LABEL: loop.kernel @narrow
// NARROW-SAME: %w: memref<1x8xf32>
loop.kernel @narrow(%w: memref<5xf32> {loop.constant}) -> (%y: memref<5xf32>) {
  loop.for "j" %j to 5 {
    %p = loop.load %w (d0) -> (d0)(%j) : memref<5xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%j) : f32, memref<5xf32>
  }
}

// Three parts are interleaved, by their order in the constant.
// PARTS-LABEL: loop.kernel @parts
// PARTS-SAME: %w: memref<2x3x5xf32> {loop.constant, loop.packing = affine_map<(d0, d1, d2) -> (d0, ((d1 * 5) + d2))>}
// PARTS:      loop.load %w (d0, d1) -> (d0, 2, d1)(%i, %j) : memref<2x3x5xf32>, f32
// PARTS-NEXT: loop.load %w (d0, d1) -> (d0, 0, d1)(%i, %j) : memref<2x3x5xf32>, f32
// PARTS-NEXT: loop.load %w (d0, d1) -> (d0, 1, d1)(%i, %j) : memref<2x3x5xf32>, f32
loop.kernel @parts(%w: memref<2x15xf32> {loop.constant}) -> (%y: memref<2x5xf32>) {
  loop.for "i" %i to 2 {
    loop.for "j" %j to 5 {
      %p = loop.load %w (d0, d1) -> (d0, d1 + 10)(%i, %j) : memref<2x15xf32>, f32
      %q = loop.load %w (d0, d1) -> (d0, d1)(%i, %j) : memref<2x15xf32>, f32
      %r = loop.load %w (d0, d1) -> (d0, d1 + 5)(%i, %j) : memref<2x15xf32>, f32
      %s = arith.addf %p, %q : f32
      %t = arith.mulf %s, %r : f32
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<2x5xf32>
    }
  }
}

loop.kernel @unequal(%w: memref<12xf32> {loop.constant}) -> (%y: memref<4xf32>) {
  loop.for "j" %j to 4 {
    %p = loop.load %w (d0) -> (d0)(%j) : memref<12xf32>, f32
    %q = loop.load %w (d0) -> (d0 + 4)(%j) : memref<12xf32>, f32
    %r = loop.load %w (d0) -> (d0 + 7)(%j) : memref<12xf32>, f32
    %s = arith.addf %p, %q : f32
    %t = arith.mulf %s, %r : f32
    loop.store %t, %y (d0) -> (d0)(%j) : f32, memref<4xf32>
  }
}
