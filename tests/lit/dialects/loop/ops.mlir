// RUN: stepwell-opt %s | filecheck %s
// RUN: stepwell-opt %s | stepwell-opt | filecheck %s
// RUN: stepwell-opt %s --print-op-generic | stepwell-opt | filecheck %s

// CHECK-LABEL: loop.kernel @scheduled() -> () attributes {loop.schedule = "split(i, 4, tail=mask); tiles(i0)"} {
loop.kernel @scheduled() -> () attributes {loop.schedule = "split(i, 4, tail=mask); tiles(i0)"} {
}

// CHECK-LABEL: loop.kernel @vectors
// CHECK-SAME:    {loop.vectors = #loop.vectors<hoist 16, 48 = [16, 16, 16], 23 = [16, 7 of 8], merged [3, 4, 2], merged [2, 4]>} {
loop.kernel @vectors() -> () attributes {loop.vectors = #loop.vectors<hoist 16, 48 = [16, 16, 16], 23 = [16, 7 of 8], merged [3, 4, 2], merged [2, 4]>} {
}
// CHECK-LABEL: loop.kernel @no_vectors() -> () attributes {loop.vectors = #loop.vectors<hoist 0>} {
loop.kernel @no_vectors() -> () attributes {loop.vectors = #loop.vectors<hoist 0>} {
}

// CHECK-LABEL: loop.kernel @dense
// CHECK-SAME: (%x: memref<?x9xf32>, %w: memref<20x9xf32> {loop.constant}, %b: memref<20xf32>) -> (%y: memref<?x20xf32>) {
// CHECK:       loop.for "i" %i to %n {
// CHECK-NEXT:    loop.for "j" %j to 20 tiles {
// CHECK-NEXT:      %[[b:.*]] = loop.load %b (d0) -> (d0)(%j) : memref<20xf32>, f32
// CHECK-NEXT:      %[[s:.*]] = loop.for "k" %k to 9 reduction unroll 4 carry(%[[acc:.*]] = %[[b]] : f32 add) {
// CHECK:             %[[t:.*]] = math.fma %{{.*}}, %{{.*}}, %[[acc]] : f32
// CHECK-NEXT:        loop.yield %[[t]] : f32
// CHECK-NEXT:      }
// CHECK-NEXT:      loop.store %[[s]], %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x20xf32>
loop.kernel @dense(%x: memref<?x9xf32>, %w: memref<20x9xf32> {loop.constant}, %b: memref<20xf32>) -> (%y: memref<?x20xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x9xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 20 tiles {
      %b0 = loop.load %b (d0) -> (d0)(%j) : memref<20xf32>, f32
      %s = loop.for "k" %k to 9 reduction unroll 4 carry(%acc = %b0 : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<20x9xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x20xf32>
    }
  }
}

// CHECK-LABEL: loop.kernel @on_a_device
// CHECK-NEXT:  loop.for "i" %i to 3 threads {
// CHECK-NEXT:    loop.for "j" %j to 4 threads {
loop.kernel @on_a_device() -> (%y: memref<3x4xf32>) {
  loop.for "i" %i to 3 threads {
    loop.for "j" %j to 4 threads {
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x4xf32>
    }
  }
}

// CHECK-LABEL: loop.kernel @levels
// CHECK-NEXT:  loop.for "i" %i to 3 blocks {
// CHECK-NEXT:    loop.for "j" %j to 4 blocks {
// CHECK-NEXT:      loop.local : memref<32xf32, #loop<space shared>>
// CHECK-NEXT:      loop.local : memref<32x2xf32, #loop<space threads>>
// CHECK-NEXT:      loop.for "k" %k to 5 serial {
// CHECK-NEXT:        loop.for "t" %t to 32 threads {
loop.kernel @levels() -> () {
  loop.for "i" %i to 3 blocks {
    loop.for "j" %j to 4 blocks {
      %s = loop.local : memref<32xf32, #loop<space shared>>
      %r = loop.local : memref<32x2xf32, #loop<space threads>>
      loop.for "k" %k to 5 serial {
        loop.for "t" %t to 32 threads {
          %zero = arith.constant 0.0 : f32
          loop.store %zero, %s (d0) -> (d0)(%t) : f32, memref<32xf32, #loop<space shared>>
          loop.store %zero, %r (d0) -> (d0, 1)(%t) : f32, memref<32x2xf32, #loop<space threads>>
        }
      }
    }
  }
}

// CHECK-LABEL: loop.kernel @bounds
// CHECK:       loop.for "i" %i to min (d0) -> (16, ((d0 * -16) + 100))(%n) serial {
// CHECK:       loop.for "j" %j to min () -> (16, 10)() unroll {
loop.kernel @bounds(%n: index) -> (%y: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to min (d0) -> (16, d0 * -16 + 100)(%n) serial {
    loop.store %zero, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
  loop.for "j" %j to min () -> (16, 10)() unroll {
    loop.store %zero, %y (d0) -> (d0)(%j) : f32, memref<?xf32>
  }
}

// CHECK-LABEL: loop.kernel @entries
// CHECK:       %[[s:.*]] = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction unroll 2 cascade 512 carry(%[[acc:.*]] = %[[low:.*]] : f32 max) : memref<?xi32>, memref<?xi64> {
// CHECK-NEXT:    %[[v:.*]] = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
// CHECK:         loop.yield
// CHECK-NEXT:  }
loop.kernel @entries(%indptr: memref<?xi32>, %indices: memref<?xi64>, %values: memref<?xf32>, %n: index) -> (%y: memref<?xf32>) {
  %low = arith.constant 0xFF800000 : f32
  loop.for "i" %i to %n {
    %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction unroll 2 cascade 512 carry(%acc = %low : f32 max) : memref<?xi32>, memref<?xi64> {
      %v = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
      %t = arith.maximumf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// CHECK-LABEL: loop.kernel @blocks
// CHECK:       %[[local:.*]] = loop.local : memref<4x16xf32>
// CHECK-NEXT:  %[[e:.*]] = affine.min affine_map<(d0) -> (16, (d0 mod 16))> (%n)
// CHECK-NEXT:  %[[l:.*]] = loop.load %x (d0)[s0, s1] -> (((d0 * 4) + s0), s1)(%n) valid(1 : %[[e]]) : memref<?x16xf32>, vector<4x16xf32>
// CHECK-NEXT:  loop.store %[[l]], %[[local]] ()[s0, s1] -> (s0, s1)() : vector<4x16xf32>, memref<4x16xf32>
// CHECK-NEXT:  %[[f:.*]] = loop.fold %[[l]] axis 1 add : vector<4x16xf32> -> vector<4x1xf32>
// CHECK-NEXT:  loop.store %[[f]], %y ()[s0, s1] -> (s0)() valid(0 : %[[e]]) : vector<4x1xf32>, memref<?xf32>
loop.kernel @blocks(%x: memref<?x16xf32>, %n: index) -> (%y: memref<?xf32>) {
  %h = loop.local : memref<4x16xf32>
  %e = affine.min affine_map<(d0) -> (16, d0 mod 16)> (%n)
  %l = loop.load %x (d0)[s0, s1] -> (d0 * 4 + s0, s1)(%n) valid(1 : %e) : memref<?x16xf32>, vector<4x16xf32>
  loop.store %l, %h ()[s0, s1] -> (s0, s1)() : vector<4x16xf32>, memref<4x16xf32>
  %f = loop.fold %l axis 1 add : vector<4x16xf32> -> vector<4x1xf32>
  loop.store %f, %y ()[s0, s1] -> (s0)() valid(0 : %e) : vector<4x1xf32>, memref<?xf32>
}

// CHECK-LABEL: loop.kernel @pairs
// CHECK:       loop.instruction "vpmaddwd"(%a, %b) : (vector<2x2xi16>, vector<1x8xi16>) -> vector<2x4xi32>
loop.kernel @pairs(%x: memref<4xi16>, %w: memref<8xi16>) -> (%y: memref<2x4xi32>) {
  %a = loop.load %x ()[s0, s1] -> (s0 * 2 + s1)() : memref<4xi16>, vector<2x2xi16>
  %b = loop.load %w ()[s0, s1] -> (s1)() : memref<8xi16>, vector<1x8xi16>
  %p = loop.instruction "vpmaddwd"(%a, %b) : (vector<2x2xi16>, vector<1x8xi16>) -> vector<2x4xi32>
  loop.store %p, %y ()[s0, s1] -> (s0, s1)() : vector<2x4xi32>, memref<2x4xi32>
}

// A hint may be for what lies behind the end of a row.
// CHECK-LABEL: loop.kernel @hint
// CHECK:       loop.prefetch %w (d0) -> (8, (d0 * 32))(%i) {note = "kept"} : memref<9x32xf32>
loop.kernel @hint(%w: memref<9x32xf32>, %i: index) -> () {
  loop.prefetch %w (d0) -> (8, d0 * 32)(%i) {note = "kept"} : memref<9x32xf32>
}

// The rows of a CSR matrix in parts of about as many entries.
// CHECK-LABEL: loop.kernel @parts
// CHECK:       loop.partition_point %indptr rows %n part %t of %n weight 4 {note = "kept"} : memref<?xi64>
loop.kernel @parts(%indptr: memref<?xi64>, %n: index, %t: index) -> () {
  %r = loop.partition_point %indptr rows %n part %t of %n weight 4 {note = "kept"} : memref<?xi64>
}

// Parts that own what they write may run at the same time.
// CHECK-LABEL: loop.kernel @owners
// CHECK:           %m = loop.owned %q part %t size %n {note = "kept"}
// CHECK-NEXT:      loop.for "o" %o to %m {
loop.kernel @owners(%at: memref<?xi64>, %n: index, %v: memref<1xf32>) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  loop.for "t" %t to 4 {
    loop.for "k" %k to 100 serial {
      %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi64>, i64
      %q = arith.index_cast %p : i64 to index
      %m = loop.owned %q part %t size %n {note = "kept"}
      loop.for "o" %o to %m {
        loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
      }
    }
  }
}

// CHECK-LABEL: loop.kernel @packed
// CHECK-SAME: %w: memref<2x9x16xf32> {loop.constant, loop.packing = affine_map<(d0, d1, d2) -> (((d0 * 16) + d2), d1)>}
// CHECK-SAME: attributes {note = "kept"}
loop.kernel @packed(%w: memref<2x9x16xf32> {loop.constant, loop.packing = affine_map<(d0, d1, d2) -> (d0 * 16 + d2, d1)>}) -> (%y: memref<1xf32>) attributes {note = "kept"} {
  %v = loop.load %w () -> (0, 0, 0)() : memref<2x9x16xf32>, f32
  loop.store %v, %y () -> (0)() : f32, memref<1xf32>
}

// Several values are carried, in order or with a combiner for each.
// CHECK-LABEL: loop.kernel @carried
// CHECK:       %[[S:.*]], %[[M:.*]] = loop.for "k" %k to 9 reduction unroll 2 carry(%[[a:.*]] = %z : f32 add, %[[b:.*]] = %z : f32 max) {
// CHECK:         loop.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NEXT:  } {note = "kept"}
// CHECK-NEXT:  %{{.*}}, %{{.*}} = loop.for "t" %t to 9 serial carry(%h = %[[S]] : f32, %n = %c0 : index) {
// CHECK:         loop.yield %{{.*}}, %t : f32, index
// CHECK:       loop.for "o" %o to 9 reduction carry(%{{.*}} = %z : f32 max, %{{.*}} = %z : f32 custom) {
loop.kernel @carried(%x: memref<9xf32>) -> (%y: memref<9xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %s, %m = loop.for "k" %k to 9 reduction unroll 2 carry(%a = %z : f32 add, %b = %z : f32 max) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<9xf32>, f32
    %p = arith.addf %a, %v : f32
    %q = arith.maximumf %b, %v : f32
    loop.yield %p, %q : f32, f32
  } {note = "kept"}
  %e, %g = loop.for "t" %t to 9 serial carry(%h = %s : f32, %n = %c0 : index) {
    %v = loop.load %x (d0) -> (d0)(%n) : memref<9xf32>, f32
    %p = arith.addf %h, %v : f32
    loop.store %p, %y (d0) -> (d0)(%t) : f32, memref<9xf32>
    loop.yield %p, %t : f32, index
  }
  %i, %j = loop.for "o" %o to 9 reduction carry(%a = %z : f32 max, %b = %z : f32 custom) {
    %v = loop.load %x (d0) -> (d0)(%o) : memref<9xf32>, f32
    %p = arith.maximumf %a, %v : f32
    %q = arith.mulf %b, %p : f32
    loop.yield %p, %q : f32, f32
  }
}

// The entries of a row, one after the other or in any order.
// CHECK-LABEL: loop.kernel @rows
// CHECK:       loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) : memref<?xi32>, memref<?xi32> {
// CHECK:       %{{.*}} = loop.for "g" %q, %d of %indptr, %indices row (d0) -> ((d0 + 1))(%i) serial carry(%h = %z : f32) : memref<?xi32>, memref<?xi32> {
loop.kernel @rows(%indptr: memref<?xi32>, %indices: memref<?xi32>) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 8 {
    loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) : memref<?xi32>, memref<?xi32> {
      loop.store %z, %y (d0) -> (d0)(%p) : f32, memref<?xf32>
    }
    %s = loop.for "g" %q, %d of %indptr, %indices row (d0) -> (d0 + 1)(%i) serial carry(%h = %z : f32) : memref<?xi32>, memref<?xi32> {
      %t = arith.addf %h, %h : f32
      loop.yield %t : f32
    }
  }
}

// CHECK-LABEL: loop.kernel @accumulate
// CHECK:       loop.store %z, %y ()[s0, s1] -> (s0, s1)() : vector<2x4xf32>, memref<2x4xf32>
// CHECK-NEXT:  loop.store add %z, %y ()[s0, s1] -> (s0, s1)() valid(1 : %n) : vector<2x4xf32>, memref<2x4xf32>
// CHECK-NEXT:  loop.store maxnum %z, %y ()[s0, s1] -> (s0, s1)() {note} : vector<2x4xf32>, memref<2x4xf32>
loop.kernel @accumulate(%n: index) -> (%y: memref<2x4xf32>) {
  %z = arith.constant dense<1.0> : vector<2x4xf32>
  loop.store %z, %y ()[s0, s1] -> (s0, s1)() : vector<2x4xf32>, memref<2x4xf32>
  loop.store add %z, %y ()[s0, s1] -> (s0, s1)() valid(1 : %n) : vector<2x4xf32>, memref<2x4xf32>
  loop.store maxnum %z, %y ()[s0, s1] -> (s0, s1)() {note} : vector<2x4xf32>, memref<2x4xf32>
}

// Iterations of a reduction may accumulate to one place in any order.
// CHECK-LABEL: loop.kernel @in_any_order
// CHECK:         loop.store max %v, %y () -> (0)() : f32, memref<1xf32>
loop.kernel @in_any_order(%x: memref<4xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  loop.store %z, %y () -> (0)() : f32, memref<1xf32>
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    loop.store max %v, %y () -> (0)() : f32, memref<1xf32>
    loop.yield %acc : f32
  }
}

// CHECK-LABEL: loop.kernel @spaces
// CHECK-NEXT:  loop.local : memref<4xf32>
// CHECK-NEXT:  loop.local : memref<4xf32, #loop<space shared>>
// CHECK-NEXT:  loop.local(%n) : memref<2x?xf32>
loop.kernel @spaces(%n: index) -> () {
  %a = loop.local : memref<4xf32>
  %b = loop.local : memref<4xf32, #loop<space shared>>
  %c = loop.local(%n) : memref<2x?xf32>
}
