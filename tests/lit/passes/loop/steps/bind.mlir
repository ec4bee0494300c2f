// RUN: stepwell-opt %s -p "loop-bind{kernel=copy loops=i,j}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-bind{kernel=copy loops=i}" | filecheck %s --check-prefix=OUTER
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=j}" 2>&1 | filecheck %s --check-prefix=INSIDE
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=j,i}" 2>&1 | filecheck %s --check-prefix=ORDER
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=i},loop-bind{kernel=copy loops=i}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-bind{kernel=sum loops=k}" 2>&1 | filecheck %s --check-prefix=SUM
// RUN: stepwell-opt %s -p "loop-bind{kernel=copy loops=i level=blocks},loop-bind{kernel=copy loops=j}" | filecheck %s --check-prefix=LEVELS
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=i level=blocks},loop-bind{kernel=copy loops=j level=blocks}" 2>&1 | filecheck %s --check-prefix=BLOCKS
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=i level=warps}" 2>&1 | filecheck %s --check-prefix=LEVEL
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=i,j},loop-split{kernel=copy loop=i factor=2}" 2>&1 | filecheck %s --check-prefix=SPLIT
// RUN: not stepwell-opt %s -p "loop-bind{kernel=copy loops=i level=blocks},loop-bind{kernel=copy loops=j},loop-reorder{kernel=copy loops=j,i}" 2>&1 | filecheck %s --check-prefix=REORDER
// RUN: not stepwell-opt %s -p "loop-share-rows{kernel=rows loop=i threads=32},loop-pad{kernel=rows loop=kt multiple=3}" 2>&1 | filecheck %s --check-prefix=PAD
// RUN: stepwell-opt %s -p "loop-bind{kernel=copy loops=i,j},loop-split{kernel=copy loop=j factor=2}" | filecheck %s --check-prefix=CUT

// Whatever the step is, it is refused if a loop of a device would be where none can be.
// SPLIT: loop-split: the levels of a device in @copy do not allow it: loop.for: threads inside of another loop, expected a loop of threads around it, got parallel; take the step before loops are bound
// REORDER: loop-reorder: the levels of a device in @copy do not allow it: loop.for: blocks inside of another loop, expected a loop of blocks around it, got threads; take
// PAD: loop-pad: the levels of a device in @rows do not allow it: loop.store: the threads around it are not those that have parts, expected (33,), got (32,); take
// CUT: loop.schedule = "bind(i, j); split(j, 2, tail=peel)"
// CUT-NEXT:  loop.for "i" %i to 3 threads {
// CUT-NEXT:    loop.for "j0" %j0 to 2 threads {
// CUT-NEXT:      loop.for "j1" %j1 to 2 {

// INSIDE: loop-bind: loop "j" of @copy: is inside of "i"
// ORDER: loop-bind: loop "i" of @copy: is not perfectly nested in "j"
// KIND: loop-bind: loop "i" of @copy: wrong kind, expected parallel, got threads
// SUM: loop-bind: loop "k" of @sum: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// BLOCKS: loop-bind: loop "j" of @copy: is inside of "i"
// LEVEL: loop-bind: unknown level, expected threads, blocks, got warps

// LEVELS: loop.schedule = "bind(i, level=blocks); bind(j)"
// LEVELS-NEXT:  loop.for "i" %i to 3 blocks {
// LEVELS-NEXT:    loop.for "j" %j to 4 threads {

// OUTER: loop.schedule = "bind(i)"
// OUTER-NEXT:  loop.for "i" %i to 3 threads {
// OUTER-NEXT:    loop.for "j" %j to 4 {

// CHECK-LABEL: loop.kernel @copy
// CHECK-SAME: loop.schedule = "bind(i, j)"
// CHECK-NEXT:  loop.for "i" %i to 3 threads {
// CHECK-NEXT:    loop.for "j" %j to 4 threads {
loop.kernel @copy(%x: memref<3x4xf32>) -> (%y: memref<3x4xf32>) {
  loop.for "i" %i to 3 {
    loop.for "j" %j to 4 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<3x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @sum(%x: memref<4xf32>) -> (%y: memref<f32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> ()() : f32, memref<f32>
}

loop.kernel @rows(%x: memref<3x64xf32>) -> (%y: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    %s = loop.for "k" %k to 64 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<3x64xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}
