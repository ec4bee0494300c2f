// RUN: stepwell-opt %s -p "loop-prefetch{kernel=twice argument=0 loop=k ahead=128}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=entries argument=1 loop=e}" 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=twice argument=1 loop=k}" 2>&1 | filecheck %s --check-prefix=INPUT
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=others argument=0 loop=a}" 2>&1 | filecheck %s --check-prefix=READS
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=others argument=0 loop=b}" 2>&1 | filecheck %s --check-prefix=STEPS
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=others argument=0 loop=c}" 2>&1 | filecheck %s --check-prefix=PART
// RUN: stepwell-opt %s -p "loop-prefetch{kernel=others argument=0 loop=d}" | filecheck %s --check-prefix=UNKNOWN
// RUN: stepwell-opt %s -p "loop-prefetch{kernel=unknown argument=0 loop=k ahead=128}" | filecheck %s --check-prefix=EACH
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=others argument=0 loop=e}" 2>&1 | filecheck %s --check-prefix=OFTEN

// RUN: stepwell-opt %s -p "loop-prefetch{kernel=rows argument=0 loop=k ahead=128}" | filecheck %s --check-prefix=ROWS

// RUN: stepwell-opt %s -p "loop-prefetch{kernel=blocks argument=0 loop=j ahead=256}" | filecheck %s --check-prefix=BLOCKS
// RUN: stepwell-opt %s -p "loop-prefetch{kernel=blocks argument=0 loop=t}" | filecheck %s --check-prefix=SEVERAL
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=blocks argument=0 loop=i}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=tall argument=1 loop=i}" 2>&1 | filecheck %s --check-prefix=TALL
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=tall argument=1 loop=g}" 2>&1 | filecheck %s --check-prefix=GATHER
// RUN: stepwell-opt %s -p "loop-prefetch{kernel=beside argument=0 loop=k},loop-prefetch{kernel=beside argument=0 loop=m}" | filecheck %s --check-prefix=BESIDE

// RUN: stepwell-opt %s -p "loop-prefetch{kernel=parts argument=0 loop=k ahead=256}" | filecheck %s --check-prefix=PARTS
// RUN: not stepwell-opt %s -p "loop-prefetch{kernel=apart argument=0 loop=k}" 2>&1 | filecheck %s --check-prefix=APART

// APART: loop-prefetch: loop "k" of @apart: reads rows in several places, expected 1, got 2
// KIND: loop-prefetch: loop "e" of @entries: is over the entries of a row

// NONE: loop-prefetch: loop "i" of @blocks: does not read argument 0
// TALL: loop-prefetch: loop "i" of @tall: too many hints, expected at most 64, got 65
// GATHER: loop-prefetch: loop "g" of @tall: reads at an index that it computes
// INPUT: loop-prefetch: loop "k" of @twice: no such input, expected 0 <= number < 1, got 1
// READS: loop-prefetch: loop "a" of @others: does not read argument 0
// STEPS: loop-prefetch: loop "b" of @others: does not read one row after the other
// PART: loop-prefetch: loop "c" of @others: does not read all of the rows, or parts of them
// OFTEN: loop-prefetch: loop "e" of @others: is repeated too often to share a row, expected at most 16, got 17

// Each panel is read twice: an iteration asks for half a row, from the middle on; two rows are 128 bytes.
// CHECK-LABEL: loop.kernel @twice
// CHECK:         loop.for "k"
// CHECK-NEXT:      loop.prefetch %w (d0, d1, d2) -> (d0, 6, ((d1 * 64) + (d2 * 8)))(%j, %i, %k) : memref<4x8x16xf32>
// CHECK-NEXT:      loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %k)
loop.kernel @twice(%w: memref<4x8x16xf32>) -> (%y: memref<4x2x16xf32>) {
  %z = arith.constant dense<0.0> : vector<16xf32>
  loop.for "j" %j to 4 {
    loop.for "i" %i to 2 {
      %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<16xf32> add) {
        %v = loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %k) : memref<4x8x16xf32>, vector<16xf32>
        %t = arith.addf %acc, %v : vector<16xf32>
        loop.yield %t : vector<16xf32>
      }
      loop.store %s, %y (d0, d1)[s0] -> (d0, d1, s0)(%j, %i) : vector<16xf32>, memref<4x2x16xf32>
    }
  }
}

// Four rows are read along their columns: the next four are asked for, four elements at a time.
// ROWS-LABEL: loop.kernel @rows
// ROWS:         loop.for "k"
// ROWS-NEXT:      loop.prefetch %x (d0, d1) -> ((d0 * 4), ((d1 * 4) + 96))(%i, %k) : memref<12x16xf32>
// ROWS-NEXT:      loop.load %x
loop.kernel @rows(%x: memref<12x16xf32>) -> (%y: memref<12x1xf32>) {
  %z = arith.constant dense<0.0> : vector<4x1xf32>
  loop.for "i" %i to 3 {
    %s = loop.for "k" %k to 16 reduction carry(%acc = %z : vector<4x1xf32> add) {
      %v = loop.load %x (d0, d1)[s0, s1] -> (d0 * 4 + s0, d1)(%i, %k) : memref<12x16xf32>, vector<4x1xf32>
      %t = arith.addf %acc, %v : vector<4x1xf32>
      loop.yield %t : vector<4x1xf32>
    }
    loop.store %s, %y (d0)[s0, s1] -> (d0 * 4 + s0, s1)(%i) : vector<4x1xf32>, memref<12x1xf32>
  }
}

// Each repetition prefetches all, as it is not known how many there are.
// EACH-LABEL: loop.kernel @unknown
// EACH-SAME:    attributes {loop.schedule = "prefetch(0, k, 128)"}
// EACH:         loop.for "k"
// EACH-NEXT:      loop.prefetch %w (d0, d1) -> (d0, 2, (d1 * 16))(%j, %k) : memref<4x8x16xf32>
loop.kernel @unknown(%w: memref<4x8x16xf32>, %n: index) -> (%y: memref<4x?x16xf32>) {
  %z = arith.constant dense<0.0> : vector<16xf32>
  loop.for "j" %j to 4 {
    loop.for "i" %i to %n {
      %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<16xf32> add) {
        %v = loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %k) : memref<4x8x16xf32>, vector<16xf32>
        %t = arith.addf %acc, %v : vector<16xf32>
        loop.yield %t : vector<16xf32>
      }
      loop.store %s, %y (d0, d1)[s0] -> (d0, d1, s0)(%j, %i) : vector<16xf32>, memref<4x?x16xf32>
    }
  }
}

// UNKNOWN-LABEL: loop.kernel @others
// UNKNOWN:       loop.for "d"
// UNKNOWN-NEXT:    loop.prefetch %w (d0) -> (0, (d0 * 16))(%{{.*}}) : memref<8x16xf32>
// UNKNOWN-NEXT:    loop.load %w
loop.kernel @others(%w: memref<8x16xf32>, %n: index) -> (%y: memref<17xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %a = loop.for "a" %k to 8 reduction carry(%acc = %z : f32 add) {
    loop.yield %acc : f32
  }
  %b = loop.for "b" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %w (d0) -> (d0 * 2, 0)(%k) : memref<8x16xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  %c = loop.for "c" %k to 7 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %w (d0) -> (d0, 0)(%k) : memref<8x16xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.for "i" %i to %n {
    %d = loop.for "d" %k to 8 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %w (d0) -> (d0, 0)(%k) : memref<8x16xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %d, %y (d0) -> (d0)(%i) : f32, memref<17xf32>
  }
  loop.for "j" %j to 17 {
    %e = loop.for "e" %k to 8 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %w (d0) -> (d0, 0)(%k) : memref<8x16xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %e, %y (d0) -> (d0)(%j) : f32, memref<17xf32>
  }
  loop.store %a, %y () -> (0)() : f32, memref<17xf32>
  loop.store %b, %y () -> (1)() : f32, memref<17xf32>
  loop.store %c, %y () -> (2)() : f32, memref<17xf32>
}

// An iteration of a loop reads two lines of a row; those of the row after it are asked for.
// BLOCKS-LABEL: loop.kernel @blocks
// BLOCKS:         loop.for "j"
// BLOCKS-NEXT:      loop.prefetch %x (d0, d1) -> (d0, ((d1 * 32) + 64))(%i, %j) : memref<4x64xf32>
// BLOCKS-NEXT:      loop.prefetch %x (d0, d1) -> (d0, ((d1 * 32) + 80))(%i, %j) : memref<4x64xf32>
// BLOCKS-NEXT:      loop.load %x (d0, d1)[s0] -> (d0, ((d1 * 32) + s0))(%i, %j)
loop.kernel @blocks(%x: memref<4x64xf32>) -> (%y: memref<4x64xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 2 {
      %v = loop.load %x (d0, d1)[s0] -> (d0, d1 * 32 + s0)(%i, %j) : memref<4x64xf32>, vector<32xf32>
      loop.store %v, %y (d0, d1)[s0] -> (d0, d1 * 32 + s0)(%i, %j) : vector<32xf32>, memref<4x64xf32>
    }
  }
  // A line of each row, once: two loads read the last row.
  // SEVERAL-LABEL: loop.kernel @blocks
  // SEVERAL:       loop.for "t"
  // SEVERAL-NEXT:    loop.prefetch %x (d0) -> (3, (d0 * 16))(%{{.*}}) : memref<4x64xf32>
  // SEVERAL-NEXT:    loop.prefetch %x (d0) -> (3, ((d0 * 16) + 16))(%{{.*}}) : memref<4x64xf32>
  // SEVERAL-NEXT:    loop.prefetch %x (d0) -> (0, (d0 * 16))(%{{.*}}) : memref<4x64xf32>
  // SEVERAL-NEXT:    loop.prefetch %x (d0) -> (1, (d0 * 16))(%{{.*}}) : memref<4x64xf32>
  // SEVERAL-NEXT:    loop.prefetch %x (d0) -> (2, (d0 * 16))(%{{.*}}) : memref<4x64xf32>
  // SEVERAL-NEXT:    loop.load %x
  loop.for "t" %j to 4 {
    %u = loop.load %x (d0)[s0] -> (3, d0 * 16 + s0)(%j) : memref<4x64xf32>, vector<32xf32>
    %v = loop.load %x (d0)[s0, s1] -> (s0, d0 * 16 + s1)(%j) : memref<4x64xf32>, vector<4x16xf32>
    loop.store %v, %y (d0)[s0, s1] -> (s0, d0 * 16 + s1)(%j) : vector<4x16xf32>, memref<4x64xf32>
  }
}

loop.kernel @entries(%indptr: memref<?xi32>, %indices: memref<?xi32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 1.0 : f32
  %s = loop.for "e" %p, %c of %indptr, %indices row () -> (0)() reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
    %t = arith.addf %acc, %z : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// A row of interleaved parts is prefetched once, from its first part on: 32 elements in each iteration.
// PARTS-LABEL: loop.kernel @parts
// PARTS:         loop.for "k"
// PARTS-NEXT:      loop.prefetch %w (d0, d1) -> (d0, 2, 0, (d1 * 32))(%j, %k) : memref<4x8x2x16xf32>
// PARTS-NEXT:      loop.prefetch %w (d0, d1) -> (d0, 2, 0, ((d1 * 32) + 16))(%j, %k) : memref<4x8x2x16xf32>
// PARTS-NEXT:      loop.load %w (d0, d1)[s0] -> (d0, d1, 1, s0)(%j, %k)
loop.kernel @parts(%w: memref<4x8x2x16xf32>) -> (%y: memref<4x16xf32>) {
  %z = arith.constant dense<0.0> : vector<16xf32>
  loop.for "j" %j to 4 {
    %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<16xf32> add) {
      %v = loop.load %w (d0, d1)[s0] -> (d0, d1, 1, s0)(%j, %k) : memref<4x8x2x16xf32>, vector<16xf32>
      %u = loop.load %w (d0, d1)[s0] -> (d0, d1, 0, s0)(%j, %k) : memref<4x8x2x16xf32>, vector<16xf32>
      %r = arith.mulf %u, %v : vector<16xf32>
      %t = arith.addf %acc, %r : vector<16xf32>
      loop.yield %t : vector<16xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%j) : vector<16xf32>, memref<4x16xf32>
  }
}

loop.kernel @apart(%w: memref<4x9x16xf32>) -> (%y: memref<4x16xf32>) {
  %z = arith.constant dense<0.0> : vector<16xf32>
  loop.for "j" %j to 4 {
    %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<16xf32> add) {
      %v = loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %k) : memref<4x9x16xf32>, vector<16xf32>
      %u = loop.load %w (d0, d1)[s0] -> (d0, d1 + 1, s0)(%j, %k) : memref<4x9x16xf32>, vector<16xf32>
      %r = arith.mulf %u, %v : vector<16xf32>
      %t = arith.addf %acc, %r : vector<16xf32>
      loop.yield %t : vector<16xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%j) : vector<16xf32>, memref<4x16xf32>
  }
}

loop.kernel @tall(%at: memref<4xi32>, %x: memref<65x4xf32>) -> (%y: memref<65x4xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0)[s0] -> (s0, d0)(%i) : memref<65x4xf32>, vector<65xf32>
    loop.store %v, %y (d0)[s0] -> (s0, d0)(%i) : vector<65xf32>, memref<65x4xf32>
  }
  loop.for "g" %i to 4 {
    %n = loop.load %at (d0) -> (d0)(%i) : memref<4xi32>, i32
    %j = arith.index_cast %n : i32 to index
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%j) : memref<65x4xf32>, vector<4xf32>
    loop.store %v, %y (d0)[s0] -> (d0, s0)(%i) : vector<4xf32>, memref<65x4xf32>
  }
}

// Two nests read each panel, two times and three times: an iteration prefetches a fifth of a row.
// BESIDE-LABEL: loop.kernel @beside
// BESIDE:         loop.for "k"
// BESIDE-NEXT:      loop.prefetch %w (d0, d1, d2) -> (d0, 7, ((d1 * 32) + (d2 * 4)))(%j, %i, %k) : memref<4x8x16xf32>
// BESIDE:         loop.for "m"
// BESIDE-NEXT:      loop.prefetch %w (d0, d1, d2) -> (d0, 7, (((d1 * 32) + (d2 * 4)) + 64))(%j, %l, %m) : memref<4x8x16xf32>
loop.kernel @beside(%w: memref<4x8x16xf32>) -> (%y: memref<4x5x16xf32>) {
  %z = arith.constant dense<0.0> : vector<16xf32>
  loop.for "j" %j to 4 {
    loop.for "i" %i to 2 {
      %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<16xf32> add) {
        %v = loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %k) : memref<4x8x16xf32>, vector<16xf32>
        %t = arith.addf %acc, %v : vector<16xf32>
        loop.yield %t : vector<16xf32>
      }
      loop.store %s, %y (d0, d1)[s0] -> (d0, d1, s0)(%j, %i) : vector<16xf32>, memref<4x5x16xf32>
    }
    loop.for "l" %l to 3 {
      %s = loop.for "m" %m to 8 reduction carry(%acc = %z : vector<16xf32> add) {
        %v = loop.load %w (d0, d1)[s0] -> (d0, d1, s0)(%j, %m) : memref<4x8x16xf32>, vector<16xf32>
        %t = arith.addf %acc, %v : vector<16xf32>
        loop.yield %t : vector<16xf32>
      }
      loop.store %s, %y (d0, d1)[s0] -> (d0, d1 + 2, s0)(%j, %l) : vector<16xf32>, memref<4x5x16xf32>
    }
  }
}
