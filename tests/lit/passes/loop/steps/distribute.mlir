// RUN: stepwell-opt %s -p "loop-distribute{kernel=rows loop=i after=a}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-split{kernel=any loop=i factor=4 tail=mask},loop-distribute{kernel=any loop=i1 after=a}" | filecheck %s --check-prefix=TILE
// RUN: stepwell-opt %s -p "loop-distribute{kernel=sums loop=i after=a}" | filecheck %s --check-prefix=MOVED
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=refused loop=c after=e}" 2>&1 | filecheck %s --check-prefix=STORED
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=any loop=i after=a}" 2>&1 | filecheck %s --check-prefix=LIMIT
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=rows loop=i after=j}" 2>&1 | filecheck %s --check-prefix=LAST
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=rows loop=a after=j}" 2>&1 | filecheck %s --check-prefix=ELSEWHERE
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=refused loop=i after=k}" 2>&1 | filecheck %s --check-prefix=SUM
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=refused loop=s after=t}" 2>&1 | filecheck %s --check-prefix=SERIAL
// RUN: not stepwell-opt %s -p "loop-distribute{kernel=symbolic loop=i after=a}" 2>&1 | filecheck %s --check-prefix=SYMBOLIC

// SYMBOLIC: loop-distribute: loop "i" of @symbolic: both parts use a local buffer of symbolic size, expected static sizes
// LIMIT: loop-distribute: loop "i" of @any: no limit of its iterations is known
// LAST: loop-distribute: loop "i" of @rows: nothing comes after "j"
// ELSEWHERE: loop-distribute: loop "a" of @rows: "j" is not one of the nests of its body
// SUM: loop-distribute: loop "i" of @refused: what comes after "k" needs a value of loop.for, expected a scalar that can be computed again
// STORED: loop-distribute: loop "c" of @refused: loop.for reads what is stored to before the second part
// SERIAL: loop-distribute: loop "s" of @refused: wrong kind, expected parallel, got serial

// The buffer that both parts use gets a dimension, that of the second part stays, and the scalar
// is loaded in both.
// CHECK-LABEL: loop.kernel @rows
// CHECK-SAME:  attributes {loop.schedule = "distribute(i, a)"} {
// CHECK-NEXT:  %[[h:.*]] = loop.local : memref<4x8xf32>
// CHECK-NEXT:  loop.for "ia" %ia to 4 {
// CHECK-NEXT:    %[[s:.*]] = loop.load %c (d0) -> (d0)(%ia)
// CHECK-NEXT:    loop.for "a" %a to 8 {
// CHECK-NEXT:      %[[v:.*]] = loop.load %x (d0, d1) -> (d0, d1)(%ia, %a)
// CHECK-NEXT:      %[[m:.*]] = arith.mulf %[[v]], %[[s]] : f32
// CHECK-NEXT:      loop.store %[[m]], %[[h]] (d0, d1) -> (d0, d1)(%ia, %a) : f32, memref<4x8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  loop.for "ib" %ib to 4 {
// CHECK-NEXT:    %[[s:.*]] = loop.load %c (d0) -> (d0)(%ib)
// CHECK-NEXT:    %[[g:.*]] = loop.local : memref<8xf32>
// CHECK-NEXT:    loop.for "b" %b to 8 {
// CHECK-NEXT:      %[[w:.*]] = loop.load %[[h]] (d0, d1) -> (d0, ((d1 * -1) + 7))(%ib, %b) : memref<4x8xf32>, f32
// CHECK-NEXT:      loop.store %[[w]], %[[g]] (d0) -> (d0)(%b) : f32, memref<8xf32>
// CHECK:         loop.for "j" %j to 8 {
// CHECK-NEXT:      loop.load %[[g]] (d0) -> (d0)(%j) : memref<8xf32>, f32
// CHECK-NEXT:      arith.mulf %{{.*}}, %[[s]] : f32
// CHECK-NEXT:      loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%ib, %j)
loop.kernel @rows(%x: memref<4x8xf32>, %c: memref<4xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    %s = loop.load %c (d0) -> (d0)(%i) : memref<4xf32>, f32
    %h = loop.local : memref<8xf32>
    %g = loop.local : memref<8xf32>
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x8xf32>, f32
      %m = arith.mulf %v, %s : f32
      loop.store %m, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
    loop.for "b" %b to 8 {
      %w = loop.load %h (d0) -> (-d0 + 7)(%b) : memref<8xf32>, f32
      loop.store %w, %g (d0) -> (d0)(%b) : f32, memref<8xf32>
    }
    loop.for "j" %j to 8 {
      %w = loop.load %g (d0) -> (d0)(%j) : memref<8xf32>, f32
      %r = arith.mulf %w, %s : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}

// Of any number of rows a tile has a limit: the last one is cut short in both parts.
// TILE-LABEL: loop.kernel @any
// TILE:         loop.for "i0" %i0 to min (d0) -> ((d0 ceildiv 4))(%n) {
// TILE-NEXT:      %[[h:.*]] = loop.local : memref<4x8xf32>
// TILE-NEXT:      loop.for "i1a" %i1a to min (d0, d1) -> (4, (d0 + (d1 * -4)))(%n, %i0) {
// TILE-NEXT:        loop.for "a" %a to 8 {
// TILE-NEXT:          loop.load %x (d0, d1, d2) -> (((d0 * 4) + d1), d2)(%i0, %i1a, %a)
// TILE:           loop.for "i1b" %i1b to min (d0, d1) -> (4, (d0 + (d1 * -4)))(%n, %i0) {
// TILE-NEXT:        loop.for "j" %j to 8 {
// TILE-NEXT:          loop.load %[[h]] (d0, d1) -> (d0, d1)(%i1b, %j) : memref<4x8xf32>, f32
loop.kernel @any(%x: memref<?x8xf32>, %n: index) -> (%y: memref<?x8xf32>) {
  loop.for "i" %i to %n {
    %h = loop.local : memref<8xf32>
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<?x8xf32>, f32
      loop.store %v, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
    loop.for "j" %j to 8 {
      %w = loop.load %h (d0) -> (d0)(%j) : memref<8xf32>, f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x8xf32>
    }
  }
}

// A sum that the nest does not need moves behind it.
// MOVED-LABEL: loop.kernel @sums
// MOVED:         loop.for "ia" %ia to 4 {
// MOVED-NEXT:      loop.for "a" %a to 8 {
// MOVED:         loop.for "ib" %ib to 4 {
// MOVED-NEXT:      %[[s:.*]] = loop.for "k" %k to 8 reduction
// MOVED:           loop.for "j" %j to 8 {
// MOVED-NEXT:        loop.load %{{.*}} (d0, d1) -> (d0, d1)(%ib, %j) : memref<4x8xf32>, f32
// MOVED-NEXT:        arith.mulf %{{.*}}, %[[s]] : f32
loop.kernel @sums(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    %h = loop.local : memref<8xf32>
    %s = loop.for "k" %k to 8 reduction carry(%acc = %zero : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<4x8xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x8xf32>, f32
      %e = math.exp %v : f32
      loop.store %e, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
    loop.for "j" %j to 8 {
      %v = loop.load %h (d0) -> (d0)(%j) : memref<8xf32>, f32
      %r = arith.mulf %v, %s : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}

loop.kernel @refused(%x: memref<4xf32>) -> (%y: memref<4xf32>, %z: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    %s = loop.for "k" %k to 4 reduction carry(%acc = %zero : f32 add) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
  loop.for "c" %i to 4 {
    %h = loop.local : memref<4xf32>
    loop.for "d" %d to 4 {
      loop.store %zero, %h (d0) -> (d0)(%d) : f32, memref<4xf32>
    }
    %s = loop.for "k1" %k to 4 reduction carry(%acc = %zero : f32 add) {
      %v = loop.load %h (d0) -> (d0)(%k) : memref<4xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.for "e" %e to 4 {
      %v = loop.load %x (d0) -> (d0)(%e) : memref<4xf32>, f32
      loop.store %v, %h (d0) -> (d0)(%e) : f32, memref<4xf32>
    }
    loop.for "f" %f to 4 {
      %v = loop.load %h (d0) -> (d0)(%f) : memref<4xf32>, f32
      %r = arith.addf %v, %s : f32
      loop.store %r, %z (d0, d1) -> (d0, d1)(%i, %f) : f32, memref<4x4xf32>
    }
  }
  loop.for "s" %s to 4 serial {
    loop.for "t" %t to 4 {
      loop.store %zero, %z (d0, d1) -> (d0, d1)(%s, %t) : f32, memref<4x4xf32>
    }
    loop.store %zero, %y (d0) -> (d0)(%s) : f32, memref<4xf32>
  }
}

loop.kernel @symbolic(%x: memref<4x?xf32>, %n: index) -> (%y: memref<4x?xf32>) {
  loop.for "i" %i to 4 {
    %h = loop.local(%n) : memref<?xf32>
    loop.for "a" %a to %n {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x?xf32>, f32
      loop.store %v, %h (d0) -> (d0)(%a) : f32, memref<?xf32>
    }
    loop.for "j" %j to %n {
      %v = loop.load %h (d0) -> (d0)(%j) : memref<?xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x?xf32>
    }
  }
}
