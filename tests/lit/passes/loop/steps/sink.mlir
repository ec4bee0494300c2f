// RUN: stepwell-opt %s -p "loop-sink{kernel=scale loop=i}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-sink{kernel=scale loop=j}" 2>&1 | filecheck %s --check-prefix=LAST
// RUN: not stepwell-opt %s -p "loop-sink{kernel=refused loop=a}" 2>&1 | filecheck %s --check-prefix=STORE
// RUN: not stepwell-opt %s -p "loop-sink{kernel=refused loop=b}" 2>&1 | filecheck %s --check-prefix=READ
// RUN: not stepwell-opt %s -p "loop-sink{kernel=refused loop=c}" 2>&1 | filecheck %s --check-prefix=BOUND
// RUN: not stepwell-opt %s -p "loop-sink{kernel=refused loop=d}" 2>&1 | filecheck %s --check-prefix=LOCAL

// LAST: loop-sink: loop "j" of @scale: its body does not end with a loop
// STORE: loop-sink: loop "a" of @refused: loop.store cannot be moved into a loop
// READ: loop-sink: loop "b" of @refused: loop "b2" writes to what is read before it
// BOUND: loop-sink: loop "c" of @refused: the bound of "c2" is computed before it
// LOCAL: loop-sink: loop "d" of @refused: loop.local cannot be moved into a loop

// CHECK-LABEL: loop.kernel @scale
// CHECK-NEXT:  loop.for "i" %i to 4 {
// CHECK-NEXT:    loop.for "j" %j to 8 {
// CHECK-NEXT:      %[[a:.*]] = loop.load %s (d0) -> (d0)(%i) : memref<4xf32>, f32
// CHECK-NEXT:      %[[b:.*]] = math.exp %[[a]] : f32
// CHECK-NEXT:      %[[v:.*]] = loop.load %x
// CHECK-NEXT:      arith.mulf %[[v]], %[[b]] : f32
loop.kernel @scale(%x: memref<4x8xf32>, %s: memref<4xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    %a = loop.load %s (d0) -> (d0)(%i) : memref<4xf32>, f32
    %b = math.exp %a : f32
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      %r = arith.mulf %v, %b : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}

loop.kernel @refused(%x: memref<4xf32>, %w: memref<4xi32>) -> (%y: memref<4x8xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "a" %i to 4 {
    loop.store %z, %y (d0) -> (d0, 0)(%i) : f32, memref<4x8xf32>
    loop.for "a2" %j to 7 {
      loop.store %z, %y (d0, d1) -> (d0, d1 + 1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "b" %i to 4 {
    %v = loop.load %y (d0) -> (d0, 0)(%i) : memref<4x8xf32>, f32
    loop.for "b2" %j to 8 {
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "c" %i to 4 {
    %u = loop.load %w (d0) -> (d0)(%i) : memref<4xi32>, i32
    %n = arith.index_cast %u : i32 to index
    loop.for "c2" %j to %n {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
  loop.for "d" %i to 4 {
    %h = loop.local : memref<8xf32>
    loop.for "d2" %j to 8 {
      loop.store %z, %h (d0) -> (d0)(%j) : f32, memref<8xf32>
    }
  }
}
