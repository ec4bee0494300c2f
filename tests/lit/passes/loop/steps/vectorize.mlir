// RUN: stepwell-opt %s -p "loop-split{kernel=dense loop=j factor=8 tail=mask},loop-vectorize{kernel=dense loops=i,j1}" | filecheck %s --check-prefix=TILE
// RUN: stepwell-opt %s -p "loop-split{kernel=largest loop=k factor=8},loop-vectorize{kernel=largest loops=k1}" | filecheck %s --check-prefix=FOLD
// RUN: stepwell-opt %s -p "loop-vectorize{kernel=spmm loops=j}" | filecheck %s --check-prefix=ENTRIES
// RUN: stepwell-opt %s -p "loop-split{kernel=numbers loop=i factor=4},loop-vectorize{kernel=numbers loops=i1}" | filecheck %s --check-prefix=NUMBERS
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=spmm loops=i,j}" 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=spmm loops=e}" 2>&1 | filecheck %s --check-prefix=ENTRY
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=dense loops=k}" 2>&1 | filecheck %s --check-prefix=WHOLE
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=dense loops=j,j}" 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=n}" 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: stepwell-opt %s -p "loop-vectorize{kernel=apart loops=j,l}" | filecheck %s --check-prefix=EACH
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=apart loops=i,j,l}" 2>&1 | filecheck %s --check-prefix=APART
// RUN: stepwell-opt %s -p "loop-split{kernel=any_rows loop=i factor=3 tail=cases},loop-vectorize{kernel=any_rows loops=i1,j,i1t1,jt1,i1t2,jt2}" | filecheck %s --check-prefix=CASES
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=b}" 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=c}" 2>&1 | filecheck %s --check-prefix=LOCAL
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=d}" 2>&1 | filecheck %s --check-prefix=BOUND
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=g}" 2>&1 | filecheck %s --check-prefix=GATHER
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=s}" 2>&1 | filecheck %s --check-prefix=SERIAL
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=refused loops=z}" 2>&1 | filecheck %s --check-prefix=LANES
// RUN: not stepwell-opt %s -p "loop-split{kernel=refused loop=q factor=4},loop-vectorize{kernel=refused loops=q1}" 2>&1 | filecheck %s --check-prefix=CUSTOM
// RUN: not stepwell-opt %s -p "loop-vectorize{kernel=dense loops=j},loop-vectorize{kernel=dense loops=i}" 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: stepwell-opt %s -p "loop-split{kernel=beside loop=k factor=2},loop-split{kernel=beside loop=l factor=2},loop-vectorize{kernel=beside loops=k1,l1,j}" | filecheck %s --check-prefix=BESIDE
// RUN: not stepwell-opt %s -p "loop-split{kernel=dense loop=k factor=9},loop-split{kernel=dense loop=k1 factor=3},loop-vectorize{kernel=dense loops=k10,k11}" 2>&1 | filecheck %s --check-prefix=HALVES

// ROWS: loop-vectorize: loop "i" of @spmm: its rows differ in length, see "e"
// ENTRY: loop-vectorize: loop "e" of @spmm: rows differ in length, so entries cannot be an axis
// WHOLE: loop-vectorize: loop "k" of @dense: is not the whole body of another reduction; split it first
// HALVES: loop-vectorize: loop "k11" of @dense: its partial sums are those of "k10", an axis as well
// TWICE: loop-vectorize: loop "j" of @dense: is named twice
// SIZE: loop-vectorize: loop "n" of @refused: its size is not known, expected a constant bound; split it first
// APART: loop-vectorize: loop "l" of @apart: is not inside of loop "j"
// VALUE: loop-vectorize: loop "b" of @refused: its variable is used as a value by affine.apply
// LOCAL: loop-vectorize: loop "c" of @refused: each of its iterations has a local buffer
// BOUND: loop-vectorize: loop "d" of @refused: the bound of "d2" depends on it
// GATHER: loop-vectorize: loop "g" of @refused: an index of loop.load is computed from it
// SERIAL: loop-vectorize: loop "s" of @refused: wrong kind, expected parallel, got serial
// LANES: loop-vectorize: loop "z" of @refused: wrong number of lanes, expected at least 1, got 0
// CUSTOM: loop-vectorize: loop "q1" of @refused: its accumulators cannot be combined
// AGAIN: loop-vectorize: loop "i" of @dense: has blocks already; all axes are made at once

// Loops of one length beside one another become one axis.
// BESIDE-LABEL: loop.kernel @beside
// BESIDE:       %[[s:.*]] = loop.for "k0" %k0 to 3 reduction carry(%{{.*}} = %{{.*}} : vector<2x4xf32> add) {
// BESIDE-NEXT:    loop.load %x (d0)[s0, s1] -> (((d0 * 2) + s0), s1)(%k0) : memref<6x4xf32>, vector<2x4xf32>
// BESIDE:       %[[f:.*]] = loop.fold %[[s]] axis 0 add
// BESIDE:       vector.broadcast %[[f]] : vector<1x4xf32> to vector<2x4xf32>
// BESIDE:       loop.for "l0" %l0 to 3 {
// BESIDE-NEXT:    %[[v:.*]] = loop.load %x (d0)[s0, s1] -> (((d0 * 2) + s0), s1)(%l0) : memref<6x4xf32>, vector<2x4xf32>
// BESIDE:         arith.subf %[[v]], %{{.*}} : vector<2x4xf32>

// TILE-LABEL: loop.kernel @dense
// TILE:       loop.for "j0" %j0 to 3 {
// TILE:         %[[e:.*]] = affine.min affine_map<(d0) -> (8, ((d0 * -8) + 20))> (%j0)
// TILE-NEXT:    %[[b:.*]] = loop.load %b (d0)[s0, s1] -> (((d0 * 8) + s1))(%j0) valid(1 : %[[e]]) : memref<20xf32>, vector<1x8xf32>
// TILE-NEXT:    %[[bb:.*]] = vector.broadcast %[[b]] : vector<1x8xf32> to vector<4x8xf32>
// TILE-NEXT:    %[[s:.*]] = loop.for "k" %k to 9 reduction carry(%[[acc:.*]] = %[[bb]] : vector<4x8xf32> add) {
// TILE-NEXT:      %[[p:.*]] = loop.load %x (d0)[s0, s1] -> (s0, d0)(%k) : memref<4x9xf32>, vector<4x1xf32>
// TILE-NEXT:      %[[q:.*]] = loop.load %w (d0, d1)[s0, s1] -> (((d0 * 8) + s1), d1)(%j0, %k) valid(1 : %[[e]]) : memref<20x9xf32>, vector<1x8xf32>
// TILE-NEXT:      %[[pp:.*]] = vector.broadcast %[[p]] : vector<4x1xf32> to vector<4x8xf32>
// TILE-NEXT:      %[[qq:.*]] = vector.broadcast %[[q]] : vector<1x8xf32> to vector<4x8xf32>
// TILE-NEXT:      %[[t:.*]] = math.fma %[[pp]], %[[qq]], %[[acc]] : vector<4x8xf32>
// TILE-NEXT:      loop.yield %[[t]] : vector<4x8xf32>
// TILE:         loop.store %[[s]], %y (d0)[s0, s1] -> (s0, ((d0 * 8) + s1))(%j0) valid(1 : %[[e]]) : vector<4x8xf32>, memref<4x20xf32>
loop.kernel @dense(%x: memref<4x9xf32>, %w: memref<20x9xf32>, %b: memref<20xf32>) -> (%y: memref<4x20xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 20 {
      %b0 = loop.load %b (d0) -> (d0)(%j) : memref<20xf32>, f32
      %s = loop.for "k" %k to 9 reduction carry(%acc = %b0 : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<4x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<20x9xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x20xf32>
    }
  }
}

// FOLD-LABEL: loop.kernel @largest
// FOLD:       %[[low:.*]] = arith.constant 0xff800000 : f32
// FOLD-NEXT:  %[[lows:.*]] = vector.broadcast %[[low]] : f32 to vector<8xf32>
// FOLD-NEXT:  %[[r:.*]] = loop.for "k0" %k0 to 4 reduction carry(%[[acc:.*]] = %[[lows]] : vector<8xf32> max) {
// FOLD-NEXT:    %[[v:.*]] = loop.load %x (d0)[s0] -> (((d0 * 8) + s0))(%k0) : memref<32xf32>, vector<8xf32>
// FOLD-NEXT:    %[[t:.*]] = arith.maximumf %[[acc]], %[[v]] : vector<8xf32>
// FOLD-NEXT:    loop.yield %[[t]] : vector<8xf32>
// FOLD-NEXT:  }
// FOLD-NEXT:  %[[f:.*]] = loop.fold %[[r]] axis 0 max : vector<8xf32> -> vector<1xf32>
// FOLD-NEXT:  %[[m:.*]] = vector.extract %[[f]][0] : f32 from vector<1xf32>
// FOLD-NEXT:  %[[all:.*]] = arith.maximumf %{{.*}}, %[[m]] : f32
// FOLD-NEXT:  loop.store %[[all]]
loop.kernel @largest(%x: memref<32xf32>, %first: memref<1xf32>) -> (%y: memref<1xf32>) {
  %f = loop.load %first () -> (0)() : memref<1xf32>, f32
  %s = loop.for "k" %k to 32 reduction carry(%acc = %f : f32 max) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<32xf32>, f32
    %t = arith.maximumf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// ENTRIES-LABEL: loop.kernel @spmm
// ENTRIES:       loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%{{.*}} = %{{.*}} : vector<7xf32> add)
// ENTRIES-NEXT:    %[[a:.*]] = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
// ENTRIES-NEXT:    %[[b:.*]] = loop.load %x (d0)[s0] -> (d0, s0)(%c) : memref<?x7xf32>, vector<7xf32>
loop.kernel @spmm(%indptr: memref<6xi32>, %indices: memref<?xi32>, %values: memref<?xf32>, %x: memref<?x7xf32>) -> (%y: memref<5x7xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 5 {
    loop.for "j" %j to 7 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<6xi32>, memref<?xi32> {
        %a = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x7xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x7xf32>
    }
  }
}

// A variable that is a value has a lane for each number.
// NUMBERS-LABEL: loop.kernel @numbers
// NUMBERS:       loop.for "i0" %i0 to 2 {
// NUMBERS:         %[[start:.*]] = arith.muli %i0, %{{.*}} : index
// NUMBERS-NEXT:    %[[wide:.*]] = vector.broadcast %[[start]] : index to vector<4xindex>
// NUMBERS-NEXT:    %[[lanes:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
// NUMBERS-NEXT:    %[[place:.*]] = arith.addi %[[wide]], %[[lanes]] : vector<4xindex>
// NUMBERS-NEXT:    %[[v:.*]] = arith.index_cast %[[place]] : vector<4xindex> to vector<4xi32>
// NUMBERS-NEXT:    loop.store %[[v]], %y (d0)[s0] -> (((d0 * 4) + s0))(%i0) : vector<4xi32>, memref<8xi32>
loop.kernel @numbers() -> (%y: memref<8xi32>) {
  loop.for "i" %i to 8 {
    %v = arith.index_cast %i : index to i32
    loop.store %v, %y (d0) -> (d0)(%i) : i32, memref<8xi32>
  }
}

loop.kernel @refused(%x: memref<?xf32>, %w: memref<8xi32>, %n: index) -> (%y: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "n" %i to %n {
    loop.store %zero, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "a" %i to 8 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "b" %i to 8 {
    %t = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    %u = arith.index_cast %t : index to i32
    %v = arith.sitofp %u : i32 to f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "c" %i to 8 {
    %h = loop.local : memref<1xf32>
    loop.store %zero, %h () -> (0)() : f32, memref<1xf32>
  }
  loop.for "d" %i to 8 {
    loop.for "d2" %j to %i serial {
      loop.store %zero, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
    }
  }
  loop.for "g" %i to 8 {
    %u = loop.load %w (d0) -> (d0)(%i) : memref<8xi32>, i32
    %j = arith.index_cast %u : i32 to index
    %v = loop.load %x (d0) -> (d0)(%j) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "s" %i to 8 serial {
    loop.store %zero, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "z" %i to 0 {
    loop.store %zero, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  %q = loop.for "q" %k to 8 reduction carry(%acc = %zero : f32 custom) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.subf %v, %acc : f32
    loop.yield %t : f32
  }
  loop.store %q, %y () -> (0)() : f32, memref<8xf32>
}

// Loops that are not in one another become axes of different blocks.
// EACH-LABEL: loop.kernel @apart
// EACH-SAME:    loop.schedule = "vectorize(j, l)"
// EACH-NEXT:    loop.for "i" %i to 4 {
// EACH-NEXT:      %[[v:.*]] = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<4x8xf32>, vector<8xf32>
// EACH-NEXT:      loop.store %[[v]], %y (d0)[s0] -> (d0, s0)(%i) : vector<8xf32>, memref<4x8xf32>
// EACH-NEXT:      %[[w:.*]] = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<4x8xf32>, vector<5xf32>
// EACH-NEXT:      loop.store %[[w]], %z (d0)[s0] -> (d0, s0)(%i) : vector<5xf32>, memref<4x5xf32>
// EACH-NEXT:    }
loop.kernel @apart(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>, %z: memref<4x5xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
    loop.for "l" %l to 5 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %l) : memref<4x8xf32>, f32
      loop.store %v, %z (d0, d1) -> (d0, d1)(%i, %l) : f32, memref<4x5xf32>
    }
  }
}

// So do those of the nests that a split makes for the rows that may be left.
// CASES-LABEL: loop.kernel @any_rows
// CASES:         loop.for "i0"
// CASES-NEXT:      loop.load %x {{.*}} : memref<?x8xf32>, vector<3x8xf32>
// CASES:         loop.for "i0t1"
// CASES-NEXT:      loop.load %x {{.*}} : memref<?x8xf32>, vector<1x8xf32>
// CASES:         loop.for "i0t2"
// CASES-NEXT:      loop.load %x {{.*}} : memref<?x8xf32>, vector<2x8xf32>
loop.kernel @any_rows(%x: memref<?x8xf32>, %n: index) -> (%y: memref<?x8xf32>) {
  loop.for "i" %i to %n {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x8xf32>
    }
  }
}

loop.kernel @beside(%x: memref<6x4xf32>, %z: memref<1xf32>) -> (%y: memref<6x4xf32>) {
  loop.for "j" %j to 4 {
    %c = arith.constant 0.0 : f32
    %s = loop.for "k" %k to 6 reduction carry(%a = %c : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %j) : memref<6x4xf32>, f32
      %t = arith.addf %a, %v : f32
      loop.yield %t : f32
    }
    loop.for "l" %l to 6 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%l, %j) : memref<6x4xf32>, f32
      %w = arith.subf %v, %s : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%l, %j) : f32, memref<6x4xf32>
    }
  }
}
