// RUN: stepwell-opt %s -p "loop-split-border{kernel=pad loop=i before=1 after=2}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-split-border{kernel=pad loop=i before=2 after=0}" | filecheck %s --check-prefix=LESS
// RUN: not stepwell-opt %s -p "loop-split-border{kernel=pad loop=i before=7 after=7}" 2>&1 | filecheck %s --check-prefix=SHORT
// RUN: not stepwell-opt %s -p "loop-split-border{kernel=pad loop=i before=-1 after=1}" 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not stepwell-opt %s -p "loop-split-border{kernel=refused loop=a before=1}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not stepwell-opt %s -p "loop-split-border{kernel=refused loop=k before=1}" 2>&1 | filecheck %s --check-prefix=REDUCTION
// RUN: not stepwell-opt %s -p "loop-tiles{kernel=refused loop=a},loop-split-border{kernel=refused loop=a before=1}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: stepwell-opt %s -p "loop-split-border{kernel=copy loop=i before=1},loop-split-border{kernel=copy loop=j before=1}" | filecheck %s --check-prefix=TWICE
// RUN: stepwell-opt %s -p "loop-split-border{kernel=symbolic loop=i before=1 after=2}" | filecheck %s --check-prefix=SYMBOLIC
// RUN: not stepwell-opt %s -p "loop-split-border{kernel=symbolic loop=i before=1 after=3}" 2>&1 | filecheck %s --check-prefix=ONE-MORE
// ONE-MORE: loop-split-border: loop "i" of @symbolic: it may be shorter than its borders, expected a bound of 4 or more

// SHORT: loop-split-border: loop "i" of @pad: it is shorter than its borders, expected at least 14, got 11
// WRONG: loop-split-border: loop "i" of @pad: wrong border, expected at least 1, got -1, 1
// SIZE: loop-split-border: loop "a" of @refused: it may be shorter than its borders, expected a bound of 1 or more
// REDUCTION: loop-split-border: loop "k" of @refused: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction
// KIND: loop-split-border: loop "a" of @refused: wrong kind, expected parallel or serial, got tiles

// The borders are known to be outside, the interior to be inside.
// CHECK-LABEL: loop.kernel @pad
// CHECK:       %[[z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:  loop.for "ib" %ib to 1 {
// CHECK-NEXT:    loop.store %[[z]], %y () -> (0)() : f32, memref<11xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  loop.for "i" %i to 8 {
// CHECK-NEXT:    %[[v:.*]] = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
// CHECK-NEXT:    loop.store %[[v]], %y (d0) -> ((d0 + 1))(%i) : f32, memref<11xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  loop.for "ie" %ie to 2 {
// CHECK-NEXT:    loop.store %[[z]], %y (d0) -> ((d0 + 9))(%ie) : f32, memref<11xf32>
// CHECK-NEXT:  }

// What is decided in some iterations only stays a question.
// LESS-LABEL: loop.kernel @pad
// LESS:       loop.for "ib" %ib to 2 {
// LESS:         arith.cmpi ult
// LESS:         arith.select
// LESS:       loop.for "i" %i to 9 {
// LESS:         arith.cmpi ult
// LESS:         arith.minsi
// LESS-NOT:     arith.maxsi
// LESS:         arith.select
loop.kernel @pad(%x: memref<8xf32>) -> (%y: memref<11xf32>) {
  %z = arith.constant 0.0 : f32
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.constant 7 : index
  %size = arith.constant 8 : index
  loop.for "i" %i to 11 {
    %j = arith.subi %i, %one : index
    %c = arith.cmpi ult, %j, %size : index
    %k = arith.minsi %j, %last : index
    %l = arith.maxsi %k, %zero : index
    %v = loop.load %x (d0) -> (d0)(%l) : memref<8xf32>, f32
    %r = arith.select %c, %v, %z : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<11xf32>
  }
}

loop.kernel @refused(%x: memref<4xf32>, %n: index) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "a" %i to %n {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<4xf32>
}

// The border of the outer loop has taken the name "jb".
// TWICE-LABEL: loop.kernel @copy
// TWICE:       loop.for "ib" %ib to 1
// TWICE-NEXT:    loop.for "jb" %jb to 5
// TWICE:       loop.for "i" %i to 3
// TWICE-NEXT:    loop.for "jbb" %jbb to 1
// TWICE:         loop.for "j" %j to 4
loop.kernel @copy(%x: memref<4x5xf32>) -> (%y: memref<4x5xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 5 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x5xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x5xf32>
    }
  }
}

// A symbolic size is that of a buffer and of its borders: the interior has no test.
// SYMBOLIC-LABEL: loop.kernel @symbolic
// SYMBOLIC:       %[[n:.*]] = memref.dim
// SYMBOLIC:       loop.for "ib" %{{.*}} to 1 {
// SYMBOLIC:         loop.for "kb" %{{.*}} to 0 reduction
// SYMBOLIC:         loop.store %[[z:.*]], %y () -> (0)()
// SYMBOLIC:       loop.for "i" %[[i:.*]] to %[[n]] {
// SYMBOLIC-NEXT:    %[[s:.*]] = loop.for "k" %[[k:.*]] to 1 reduction
// SYMBOLIC-NEXT:      %{{.*}} = loop.load %x (d0, d1) -> ((d0 + d1))(%[[i]], %[[k]])
// SYMBOLIC:         loop.store %[[s]], %y (d0) -> ((d0 + 1))(%[[i]])
// SYMBOLIC:       loop.for "ie" %[[e:.*]] to 2 {
// SYMBOLIC:         loop.for "ke" %{{.*}} to 0 reduction
// SYMBOLIC:         loop.store %[[z]], %y (d0, d1) -> (((d0 + d1) + 1))(%[[n]], %[[e]])
loop.kernel @symbolic(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  loop.for "i" %i to min (d0) -> (d0 + 3)(%n) {
    %j = arith.subi %i, %one : index
    %c = arith.cmpi ult, %j, %n : index
    %t = arith.select %c, %one, %zero : index
    %s = loop.for "k" %k to %t reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0 + d1 - 1)(%i, %k) : memref<?xf32>, f32
      %a = arith.addf %acc, %v : f32
      loop.yield %a : f32
    }
    %r = arith.select %c, %s, %z : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
