// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=16 tail=peel}" | filecheck %s --check-prefix=PEEL
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=16 tail=mask}" | filecheck %s --check-prefix=MASK
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=16 tail=split}" | filecheck %s --check-prefix=SPLIT
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=25}" | filecheck %s --check-prefix=EVEN
// RUN: stepwell-opt %s -p "loop-split{kernel=any loop=i factor=16 tail=split}" | filecheck %s --check-prefix=ANY
// RUN: stepwell-opt %s -p "loop-split{kernel=any loop=i factor=3 tail=cases}" | filecheck %s --check-prefix=CASES
// RUN: stepwell-opt %s -p "loop-split{kernel=any loop=i factor=3 tail=cases cases=4}" | filecheck %s --check-prefix=JOINED
// RUN: stepwell-opt %s -p "loop-split{kernel=any loop=i factor=3 tail=cases alone=2}" | filecheck %s --check-prefix=ALONE
// RUN: stepwell-opt %s -p "loop-split{kernel=smaller loop=i factor=3 tail=cases}" | filecheck %s --check-prefix=LEAST
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=16 tail=cases}" | filecheck %s --check-prefix=PEEL
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=40 tail=even}" | filecheck %s --check-prefix=NEARLY
// RUN: stepwell-opt %s -p "loop-split{kernel=row loop=i factor=27 tail=even}" | filecheck %s --check-prefix=EVEN
// RUN: stepwell-opt %s -p "loop-split{kernel=groups loop=i factor=4}" | filecheck %s --check-prefix=GROUPS
// RUN: not stepwell-opt %s -p "loop-split{kernel=any loop=i factor=3 tail=even}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: stepwell-opt %s -p "loop-split{kernel=sum loop=k factor=16}" | filecheck %s --check-prefix=SUM
// RUN: not stepwell-opt %s -p "loop-split{kernel=sum loop=k factor=16 tail=mask}" 2>&1 | filecheck %s --check-prefix=RAGGED
// RUN: not stepwell-opt %s -p "loop-split{kernel=row loop=j factor=4}" 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not stepwell-opt %s -p "loop-split{kernel=row loop=i factor=0}" 2>&1 | filecheck %s --check-prefix=FACTOR
// RUN: not stepwell-opt %s -p "loop-split{kernel=row loop=i factor=4 tail=cut}" 2>&1 | filecheck %s --check-prefix=TAIL
// RUN: not stepwell-opt %s -p "loop-split{kernel=any loop=i factor=4 tail=cases cases=4}" 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not stepwell-opt %s -p "loop-split{kernel=any loop=i factor=4 tail=cases alone=4}" 2>&1 | filecheck %s --check-prefix=MOST
// RUN: not stepwell-opt %s -p "loop-split{kernel=entries loop=e factor=4}" 2>&1 | filecheck %s --check-prefix=ENTRIES
// RUN: not stepwell-opt %s -p "loop-split{kernel=smaller loop=i factor=4}" 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: not stepwell-opt %s -p "loop-split{loop=i factor=4}" 2>&1 | filecheck %s --check-prefix=WHICH
// RUN: not stepwell-opt %s -p "loop-split{kernel=none loop=i factor=4}" 2>&1 | filecheck %s --check-prefix=KERNEL

// RAGGED: loop-split: loop "k" of @sum: it carries values, and has no masked tail, expected tail=peel, got mask
// NAME: loop-split: no loop "j" in @row, expected "i"
// FACTOR: loop-split: loop "i" of @row: wrong factor, expected at least 1, got 0
// TAIL: loop-split: loop "i" of @row: unknown tail, expected peel, mask, split, cases, even, got cut
// SIZE: loop-split: loop "i" of @any: its size is not known, expected a constant bound
// NUMBER: loop-split: loop "i" of @any: wrong number of cases, expected 3, or from 5 to 7, with tail=cases, got 4
// MOST: loop-split: loop "i" of @any: wrong number of iterations alone, expected 1 to 3, with tail=cases, got 4
// ENTRIES: loop-split: loop "e" of @entries: rows differ in length; unroll its entries
// SEVERAL: loop-split: loop "i" of @smaller: its bound is the smaller of several, which tail=peel cannot cut
// WHICH: loop-split: which kernel is meant is not said, expected one of @row, @any, @sum, @entries, @smaller, @groups
// KERNEL: loop-split: no such kernel, expected @row, @any, @sum, @entries, @smaller, @groups, got @none

// PEEL-LABEL: loop.kernel @row
// PEEL:       loop.for "i0" %i0 to 6 {
// PEEL-NEXT:    loop.for "i1" %i1 to 16 {
// PEEL-NEXT:      loop.load %x (d0, d1) -> (((d0 * 16) + d1))(%i0, %i1)
// PEEL:       loop.for "i1t" %i1t to 4 {
// PEEL-NEXT:    loop.load %x (d0) -> ((d0 + 96))(%i1t)

// MASK-LABEL: loop.kernel @row
// MASK:       loop.for "i0" %i0 to 7 {
// MASK-NEXT:    loop.for "i1" %i1 to min (d0) -> (16, ((d0 * -16) + 100))(%i0) {
// MASK-NEXT:      loop.load %x (d0, d1) -> (((d0 * 16) + d1))(%i0, %i1)

// SPLIT-LABEL: loop.kernel @row
// SPLIT:       loop.for "i0" %i0 to 6 {
// SPLIT-NEXT:    loop.for "i1" %i1 to 16 {
// SPLIT:       loop.for "i1t" %i1t to min () -> (16, 4)() {
// SPLIT-NEXT:    loop.load %x (d0) -> ((d0 + 96))(%i1t)

// Three chunks of at most 40 iterations, one of them larger than the others.
// NEARLY-LABEL: loop.kernel @row
// NEARLY:       loop.for "i0" %i0 to 1 {
// NEARLY-NEXT:    loop.for "i1" %i1 to 34 {
// NEARLY-NEXT:      loop.load %x (d0, d1) -> (((d0 * 34) + d1))(%i0, %i1)
// NEARLY:       loop.for "i0t" %i0t to 2 {
// NEARLY-NEXT:    loop.for "i1t" %i1t to 33 {
// NEARLY-NEXT:      loop.load %x (d0, d1) -> ((((d0 * 33) + d1) + 34))(%i0t, %i1t)
// NEARLY-NOT:     loop.for
// NEARLY-LABEL: loop.kernel @any

// EVEN-LABEL: loop.kernel @row
// EVEN:       loop.for "i0" %i0 to 4 {
// EVEN-NEXT:    loop.for "i1" %i1 to 25 {
// EVEN-NOT:     loop.for
// EVEN-LABEL: loop.kernel @any
loop.kernel @row(%x: memref<100xf32>) -> (%y: memref<100xf32>) {
  loop.for "i" %i to 100 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<100xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<100xf32>
  }
}

// CASES-LABEL: loop.kernel @any
// CASES:       loop.for "i0" %i0 to min (d0) -> ((d0 floordiv 3))(%n) {
// CASES-NEXT:    loop.for "i1" %i1 to 3 {
// CASES:       loop.for "i0t" %i0t to min (d0) -> (1, (d0 mod 3))(%n) {
// CASES-NEXT:    loop.for "i0t1" %i0t1 to min (d0) -> (1, (((d0 + 2) floordiv 3) + (((d0 + 1) floordiv 3) * -1)))(%n) {
// CASES-NEXT:      loop.for "i1t1" %i1t1 to 1 {
// CASES:         loop.for "i0t2" %i0t2 to min (d0) -> (1, (((d0 + 1) floordiv 3) + ((d0 floordiv 3) * -1)))(%n) {
// CASES-NEXT:      loop.for "i1t2" %i1t2 to 2 {
// CASES-NOT:     loop.for
// CASES-LABEL: loop.kernel @sum

// One iteration is left alone only where it is the only one; after a chunk it makes that larger.
// JOINED-LABEL: loop.kernel @any
// JOINED:       loop.for "i0" %i0 to min (d0) -> (((((d0 + 1) floordiv 3) + (d0 floordiv 3)) + (((d0 + 2) floordiv 3) * -1)))(%n) {
// JOINED-NEXT:    loop.for "i1" %i1 to 3 {
// JOINED:       loop.for "i0t" %i0t to min (d0) -> (1, (d0 mod 3))(%n) {
// JOINED-NEXT:    loop.for "i0t1" %i0t1 to min (d0) -> (1, (((d0 + 2) floordiv 3) + (((d0 + 1) floordiv 3) * -1)), ((d0 * -1) + 2))(%n) {
// JOINED-NEXT:      loop.for "i1t1" %i1t1 to 1 {
// JOINED:         loop.for "i0t2" %i0t2 to min (d0) -> (1, (((d0 + 1) floordiv 3) + ((d0 floordiv 3) * -1)))(%n) {
// JOINED-NEXT:      loop.for "i1t2" %i1t2 to 2 {
// JOINED:         loop.for "i0t4" %i0t4 to min (d0) -> (1, (((d0 + 2) floordiv 3) + (((d0 + 1) floordiv 3) * -1)), (d0 + -1))(%n) {
// JOINED-NEXT:      loop.for "i1t4" %i1t4 to 4 {
// JOINED-NEXT:        loop.load %x (d0, d1) -> (((d0 + d1) + -4))(%n, %i1t4)
// JOINED-LABEL: loop.kernel @sum

// ALONE-LABEL: loop.kernel @any
// ALONE:       loop.for "i0" %i0 to min (d0) -> ((d0 floordiv 3))(%n) {
// ALONE:         loop.for "i0t1" %i0t1 to min (d0) -> (1, (((d0 + 2) floordiv 3) + (((d0 + 1) floordiv 3) * -1)), ((d0 * -1) + 3))(%n) {
// ALONE-NEXT:      loop.for "i1t1" %i1t1 to 1 {
// ALONE:         loop.for "i0t2" %i0t2 to min (d0) -> (1, (((d0 + 1) floordiv 3) + ((d0 floordiv 3) * -1)), ((d0 * -1) + 3))(%n) {
// ALONE:         loop.for "i0t4" %i0t4 to min (d0) -> (1, (((d0 + 2) floordiv 3) + (((d0 + 1) floordiv 3) * -1)), (d0 + -2))(%n) {
// ALONE-NEXT:      loop.for "i1t4" %i1t4 to 1 {
// ALONE-NEXT:        loop.load %x (d0, d1) -> (((d0 + d1) + -1))(%n, %i1t4)
// ALONE:         loop.for "i0t5" %i0t5 to min (d0) -> (1, (((d0 + 1) floordiv 3) + ((d0 floordiv 3) * -1)), (d0 + -2))(%n) {
// ALONE-NEXT:      loop.for "i1t5" %i1t5 to 2 {
// ALONE-LABEL: loop.kernel @sum

// ANY-LABEL: loop.kernel @any
// ANY:       loop.for "i0" %i0 to min (d0) -> ((d0 floordiv 16))(%n) {
// ANY-NEXT:    loop.for "i1" %i1 to 16 {
// ANY:       loop.for "i0t" %i0t to min (d0) -> (((d0 mod 16) ceildiv 16))(%n) {
// ANY-NEXT:    loop.for "i1t" %i1t to min (d0) -> (16, (d0 mod 16))(%n) {
// ANY-NEXT:      loop.load %x (d0, d1) -> ((d0 + ((d1 floordiv 16) * 16)))(%i1t, %n)
loop.kernel @any(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// SUM-LABEL: loop.kernel @sum
// SUM:       %[[whole:.*]] = loop.for "k0" %k0 to 6 reduction carry(%[[a:.*]] = %{{.*}} : f32 add) {
// SUM-NEXT:    %[[part:.*]] = loop.for "k1" %k1 to 16 reduction carry(%{{.*}} = %[[a]] : f32 add) {
// SUM:         loop.yield %[[part]] : f32
// SUM:       %[[all:.*]] = loop.for "k1t" %k1t to 4 reduction carry(%{{.*}} = %[[whole]] : f32 add) {
// SUM-NEXT:    loop.load %x (d0) -> ((d0 + 96))(%k1t)
// SUM:       loop.store %[[all]]
loop.kernel @sum(%x: memref<100xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 100 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<100xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

loop.kernel @entries(%indptr: memref<?xi32>, %indices: memref<?xi32>, %x: memref<?xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "e" %p, %c of %indptr, %indices row () -> (0)() reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
    %v = loop.load %x (d0) -> (d0)(%p) : memref<?xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// A number that is no size may be negative: there are no iterations then.
// LEAST-LABEL: loop.kernel @smaller
// LEAST:       %[[m:.*]] = affine.min affine_map<(d0) -> (100, d0)> (%n)
// LEAST-NEXT:  loop.for "i0" %i0 to min (d0) -> ((d0 floordiv 3))(%[[m]]) {
// LEAST:       loop.for "i0t" %i0t to min (d0) -> (1, (d0 mod 3), d0)(%[[m]]) {
loop.kernel @smaller(%n: index) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to min (d0) -> (100, d0)(%n) {
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// The quotient of an index is the number of its chunk, and the remainder what is left.
// GROUPS-LABEL: loop.kernel @groups
// GROUPS:       loop.for "i1" %i1 to 4 {
// GROUPS-NEXT:    loop.load %x (d0, d1) -> (d0, d1)(%i0, %i1)
// GROUPS:       loop.for "i1t" %i1t to 2 {
// GROUPS-NEXT:    loop.load %x (d0) -> (3, d0)(%i1t)
loop.kernel @groups(%x: memref<4x4xf32>) -> (%y: memref<14xf32>) {
  loop.for "i" %i to 14 {
    %v = loop.load %x (d0) -> (d0 floordiv 4, d0 mod 4)(%i) : memref<4x4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<14xf32>
  }
}
