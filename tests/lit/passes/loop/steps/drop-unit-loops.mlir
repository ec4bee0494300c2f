// RUN: stepwell-opt %s -p loop-drop-unit-loops | filecheck %s

// CHECK-LABEL: loop.kernel @units
// CHECK-NEXT:  %[[z:.*]] = arith.constant
// CHECK-NEXT:  loop.for "j" %j to 4 {
// CHECK-NEXT:    %[[v:.*]] = loop.load %x (d0) -> (d0)(%j) : memref<4xf32>, f32
// CHECK-NEXT:    %[[t:.*]] = arith.addf %[[z]], %[[v]] : f32
// CHECK-NEXT:    loop.store %[[t]], %y (d0) -> (0, d0)(%j) : f32, memref<1x4xf32>
// CHECK-NEXT:  }
// CHECK-NEXT: }
loop.kernel @units(%x: memref<4xf32>) -> (%y: memref<1x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 1 {
    loop.for "j" %j to 4 {
      %s = loop.for "k" %k to 1 reduction carry(%acc = %z : f32 add) {
        %v = loop.load %x (d0, d1) -> (d0 + d1)(%j, %k) : memref<4xf32>, f32
        %t = arith.addf %acc, %v : f32
        loop.yield %t : f32
      }
      %r = loop.for "l" %l to 0 reduction carry(%acc = %s : f32 add) {
        %t = arith.addf %acc, %z : f32
        loop.yield %t : f32
      }
      loop.for "m" %m to min (d0) -> (0, d0)(%i) {
        loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %m) : f32, memref<1x4xf32>
      }
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<1x4xf32>
    }
  }
}

// Sizes that are not known may be 1, and stay.
// CHECK-LABEL: loop.kernel @unknown
// CHECK:       loop.for "i" %i to min (d0) -> (1, d0)(%n) {
loop.kernel @unknown(%n: index) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to min (d0) -> (1, d0)(%n) {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// An index that is computed from one that is dropped and another: its uses compute it.
// CHECK-LABEL: loop.kernel @computed
// CHECK:       loop.load %x (d0, d1, d2) -> (d0, ((d1 * 2) + d2))(%m, %j, %k)
// CHECK-NEXT:  loop.store %{{.*}}, %y (d0, d1, d2) -> (d0, ((d1 * 2) + d2))(%m, %j, %k)
loop.kernel @computed(%x: memref<8x9xf32>) -> (%y: memref<8x9xf32>) {
  loop.for "m" %m to 8 {
    loop.for "i" %i to 1 {
      loop.for "j" %j to 3 {
        %a = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2)> (%i, %j)
        loop.for "k" %k to 2 {
          %v = loop.load %x (d0, d1, d2) -> (d0, d1 + d2)(%m, %k, %a) : memref<8x9xf32>, f32
          loop.store %v, %y (d0, d1, d2) -> (d0, d1 + d2)(%m, %k, %a) : f32, memref<8x9xf32>
        }
      }
    }
  }
}

// One bound of 0 is enough, whatever the others are.
// CHECK-LABEL: loop.kernel @never
// CHECK-NOT:   loop.for
// CHECK:       }
loop.kernel @never(%n: index) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to min (d0) -> (0, d0)(%n) {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// Those on a device stay, whether they run once or not.
// CHECK-LABEL: loop.kernel @bound
// CHECK-NEXT:  loop.for "i" %i to 1 blocks {
// CHECK-NEXT:    loop.for "j" %j to 1 threads {
// CHECK-NEXT:      %[[v:.*]] = loop.load %x () -> (0)() : memref<1xf32>, f32
loop.kernel @bound(%x: memref<1xf32>) -> (%y: memref<1xf32>) {
  loop.for "i" %i to 1 blocks {
    loop.for "j" %j to 1 threads {
      loop.for "k" %k to 1 {
        %v = loop.load %x (d0) -> (d0)(%k) : memref<1xf32>, f32
        loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<1xf32>
      }
    }
  }
}
