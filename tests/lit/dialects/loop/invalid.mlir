// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{loop.kernel: wrong argument type, expected a memref or index, got f32}}
loop.kernel @k(%x: f32) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.schedule, expected a string of steps: name(arguments); ..., got 3 : i64}}
loop.kernel @k() -> () attributes {loop.schedule = 3 : i64} {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.schedule, expected a string of steps: name(arguments); ..., got "garbage((("}}
loop.kernel @k() -> () attributes {loop.schedule = "garbage((("} {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.schedule, expected a string of steps: name(arguments); ..., got "@other: unroll(i)"}}
loop.kernel @k() -> () attributes {loop.schedule = "@other: unroll(i)"} {
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "i" %i to %n {
  }
  // expected-error @+1 {{loop.for: two loops are called "i", expected unique names}}
  loop.for "i" %j to %n {
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.for: wrong bound, expected a map over 1 indices, got (d0)[s0] -> ((d0 + s0))}}
  "loop.for"(%n) <{loop_name = "i", bound = affine_map<(d0)[s0] -> (d0 + s0)>, kind = #loop<kind parallel>}> ({
  ^bb0(%i: index):
  }) : (index) -> ()
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.for: wrong block arguments, expected index}}
  "loop.for"(%n) <{loop_name = "i", bound = affine_map<(d0) -> (d0)>, kind = #loop<kind parallel>}> ({
  ^bb0(%i: i32):
  }) : (index) -> ()
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %d = arith.constant 0.0 : f64
  // expected-error @+1 {{loop.for: yielded types differ from those that are carried, expected f32, got f64}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    loop.yield %d : f64
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong unroll, expected at least 1, got 0}}
  %s = loop.for "k" %k to %n reduction unroll 0 carry(%acc = %z : f32 add) {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: a custom reduction cannot be split into several accumulators}}
  %s = loop.for "k" %k to %n reduction unroll 4 carry(%acc = %z : f32 custom) {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: body has no loop.yield at its end}}
  %s = "loop.for"(%z) <{loop_name = "k", bound = affine_map<() -> (4)>, kind = #loop<kind reduction>, combiners = [#loop<combine add>]}> ({
  ^bb0(%k: index, %acc: f32):
    "test.termop"() : () -> ()
  }) : (f32) -> f32
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: yielded types differ from those that are carried, expected f32, f32, got f32}}
  %s, %t = loop.for "k" %k to %n serial carry(%a = %z : f32, %b = %z : f32) {
    loop.yield %a : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: result types differ from those that are carried, expected f32, got f64}}
  %s = "loop.for"(%z) <{loop_name = "k", bound = affine_map<() -> (4)>, kind = #loop<kind serial>}> ({
  ^bb0(%k: index, %a: f32):
    loop.yield %a : f32
  }) : (f32) -> f64
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong block arguments, expected index, f32}}
  %s = "loop.for"(%z) <{loop_name = "k", bound = affine_map<() -> (4)>, kind = #loop<kind serial>}> ({
  ^bb0(%k: index):
    loop.yield %z : f32
  }) : (f32) -> f32
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "i" %i to %n serial {
    // expected-error @+1 {{loop.for: threads inside of another loop, expected a loop of threads around it, got serial}}
    loop.for "j" %j to %n threads {
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "i" %i to %n serial {
    // expected-error @+1 {{loop.for: blocks inside of another loop, expected a loop of blocks around it, got serial}}
    loop.for "j" %j to %n blocks {
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "b" %b to %n blocks {
    loop.for "t" %t to %n threads {
      loop.for "i" %i to %n serial {
        // expected-error @+1 {{loop.for: threads inside of another loop, expected a loop of threads around it, got serial}}
        loop.for "u" %u to %n threads {
        }
      }
    }
  }
}

// -----

loop.kernel @k(%n: index) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to %n blocks {
    loop.for "t" %t to %n threads {
    }
    // expected-error @+1 {{loop.store: a store of each thread of the block, expected a loop of threads around it}}
    loop.store %z, %y (d0) -> (d0)(%b) : f32, memref<?xf32>
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "b" %b to %n blocks {
    // expected-error @+1 {{loop.local: a buffer of a block has no memory space, expected #loop<space shared> or #loop<space threads>, got memref<4xf32>}}
    %h = loop.local : memref<4xf32>
    loop.for "t" %t to 4 threads {
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to %n blocks {
    %r = loop.local : memref<4x4xf32, #loop<space threads>>
    loop.for "t" %t to 4 threads {
      // expected-error @+1 {{loop.store: not the part of the thread in a buffer of space threads, expected t}}
      loop.store %z, %r (d0) -> (0, d0)(%t) : f32, memref<4x4xf32, #loop<space threads>>
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to %n blocks {
    %r = loop.local : memref<8xf32, #loop<space threads>>
    loop.for "t" %t to 4 threads {
      // expected-error @+1 {{loop.store: the threads around it are not those that have parts, expected (8,), got (4,)}}
      loop.store %z, %r (d0) -> (d0)(%t) : f32, memref<8xf32, #loop<space threads>>
    }
  }
}

// -----

// Another thread's part is that of the same warp.
loop.kernel @k(%n: index) -> () {
  loop.for "b" %b to %n blocks {
    %r = loop.local : memref<64xf32, #loop<space threads>>
    loop.for "t" %t to 64 threads {
      // expected-error @+1 {{loop.load: not the part of the thread in a buffer of space threads, expected t}}
      %v = loop.load %r (d0) -> ((d0 + 1) mod 64)(%t) : memref<64xf32, #loop<space threads>>, f32
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "b" %b to %n blocks {
    %r = loop.local : memref<32xf32, #loop<space threads>>
    loop.for "t" %t to 32 threads {
      // expected-error @+1 {{loop.load: not the part of the thread in a buffer of space threads, expected t}}
      %v = loop.load %r (d0) -> ((d0 * 3) mod 32)(%t) : memref<32xf32, #loop<space threads>>, f32
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  loop.for "b" %b to %n blocks {
    %r = loop.local : memref<32xi8, #loop<space threads>>
    loop.for "t" %t to 32 threads {
      // expected-error @+1 {{loop.load: not the part of the thread in a buffer of space threads, expected t}}
      %v = loop.load %r (d0) -> ((d0 + 1) mod 32)(%t) : memref<32xi8, #loop<space threads>>, i8
    }
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.local: size of a buffer of a block is not known, expected a static shape, got memref<?xf32, #loop<space shared>>}}
  %h = loop.local(%n) : memref<?xf32, #loop<space shared>>
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong kind of a loop that carries values, expected serial or reduction, got tiles}}
  %s = loop.for "k" %k to %n tiles carry(%a = %z : f32) {
    loop.yield %a : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: has combiners or accumulators, expected a reduction, got serial}}
  %s = loop.for "k" %k to %n serial carry(%a = %z : f32 add) {
    loop.yield %a : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.for: a reduction carries nothing, expected at least one value}}
  loop.for "k" %k to %n reduction {
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong number of combiners, expected 2, got 1}}
  %s, %t = loop.for "k" %k to %n reduction carry(%a = %z : f32 add, %b = %z : f32) {
    loop.yield %a, %b : f32, f32
  }
}

// -----

// A sum of what a running maximum rescales does not join on its own.
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 1 depends on another one, expected the combiner custom, got add}}
  %s, %t = loop.for "k" %k to %n reduction carry(%m = %z : f32 max, %b = %z : f32 add) {
    %u = arith.addf %b, %m : f32
    loop.yield %m, %u : f32, f32
  }
}

// -----

// Nor does one of what comes by way of memory.
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %l = loop.local : memref<1xf32>
  // expected-error @+1 {{loop.for: carried value 1 depends on another one, expected the combiner custom, got add}}
  %s, %t = loop.for "k" %k to %n reduction carry(%m = %z : f32 max, %b = %z : f32 add) {
    loop.store %m, %l () -> (0)() : f32, memref<1xf32>
    %v = loop.load %l () -> (0)() : memref<1xf32>, f32
    %u = arith.addf %b, %v : f32
    loop.yield %m, %u : f32, f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carries nothing, but has a loop.yield at its end}}
  loop.for "k" %k to %n {
    loop.yield %z : f32
  }
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: a loop over a bound is no cascade, expected two loops}}
  %s = loop.for "k" %k to %n reduction cascade 4 carry(%acc = %z : f32 add) {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong cascade, expected at least 1, got 0}}
  %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%n) reduction cascade 0 carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: chunks of a custom reduction cannot be combined}}
  %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%n) reduction cascade 4 carry(%acc = %z : f32 custom) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> () {
  // expected-error @+1 {{loop.for: rows differ in length, expected a loop that is not cut into equal parts, got unroll}}
  loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%n) unroll : memref<?xi32>, memref<?xi32> {
  }
}

// -----

loop.kernel @k(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong row map, expected one result over 1 indices}}
  %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0, d0)(%n) reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%indptr: memref<?xf32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: wrong index array, expected a memref of integers of rank 1, got memref<?xf32>}}
  %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%n) reduction carry(%acc = %z : f32 add) : memref<?xf32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  // expected-error @+1 {{loop.load: element types differ, expected f32, got f64}}
  %v = loop.load %x () -> (0)() : memref<4xf32>, f64
}

// -----

loop.kernel @k(%x: memref<4x4xf32>) -> () {
  // expected-error @+1 {{loop.load: map has the wrong number of results, expected 2}}
  %v = loop.load %x () -> (0)() : memref<4x4xf32>, f32
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  // expected-error @+1 {{loop.load: map has the wrong number of symbols, expected 1}}
  %v = loop.load %x () -> (0)() : memref<4xf32>, vector<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  // expected-error @+1 {{loop.load: axis 0 is used, but has one lane}}
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<1xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>, %n: index) -> () {
  // expected-error @+1 {{loop.load: no such axis, expected below 1, got 1}}
  %v = loop.load %x ()[s0] -> (s0)() valid(1 : %n) : memref<4xf32>, vector<4xf32>
}

// -----

loop.kernel @k(%n: index, %m: index) -> (%y: memref<4xf32>) {
  %f = arith.constant dense<0.0> : vector<4xf32>
  // expected-error @+1 {{loop.store: an axis has two limits, expected one for each, got [0, 0]}}
  loop.store %f, %y ()[s0] -> (s0)() valid(0 : %n, 0 : %m) : vector<4xf32>, memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  // expected-error @+1 {{loop.store: lanes of axis 0 are stored to one place}}
  loop.store %v, %y ()[s0] -> (0)() : vector<4xf32>, memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<8xi16>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xi16>, vector<8xi16>
  // expected-error @+1 {{loop.instruction: no such instruction, expected fma, }}
  %p = loop.instruction "dot"(%v, %v) : (vector<8xi16>, vector<8xi16>) -> vector<4xi32>
}

// -----

loop.kernel @k(%x: memref<8xi16>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xi16>, vector<8xi16>
  // expected-error @+1 {{loop.instruction: wrong number of operands, expected 2, got 1}}
  %p = loop.instruction "vpmaddwd"(%v) : (vector<8xi16>) -> vector<4xi32>
}

// -----

loop.kernel @k(%x: memref<8xi16>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xi16>, vector<8xi16>
  // expected-error @+1 {{loop.instruction: wrong result, expected a vector of i32, got vector<4xi16>}}
  %p = loop.instruction "vpmaddwd"(%v, %v) : (vector<8xi16>, vector<8xi16>) -> vector<4xi16>
}

// -----

loop.kernel @k(%x: memref<8xi16>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xi16>, vector<8xi16>
  // expected-error @+1 {{loop.instruction: wrong operand, expected [6] of i16, got vector<8xi16>}}
  %p = loop.instruction "vpmaddwd"(%v, %v) : (vector<8xi16>, vector<8xi16>) -> vector<3xi32>
}

// -----

loop.kernel @k(%x: memref<8xi8>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xi8>, vector<8xi8>
  // expected-error @+1 {{loop.instruction: wrong operand, expected [8] of i16, got vector<8xi8>}}
  %p = loop.instruction "vpmaddwd"(%v, %v) : (vector<8xi8>, vector<8xi8>) -> vector<4xi32>
}

// -----

loop.kernel @k(%x: memref<8xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<8xf32>, vector<8xf32>
  %w = loop.load %x ()[s0] -> (s0)() : memref<8xf32>, vector<4xf32>
  // expected-error @+1 {{loop.instruction: wrong operand, expected [8] of f32, got vector<4xf32>}}
  %p = loop.instruction "fma"(%v, %v, %w) : (vector<8xf32>, vector<8xf32>, vector<4xf32>) -> vector<8xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  // expected-error @+1 {{loop.fold: no such axis, expected below 1, got 1}}
  %f = loop.fold %v axis 1 add : vector<4xf32> -> vector<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  // expected-error @+1 {{loop.fold: wrong result shape, expected (1,), got vector<2xf32>}}
  %f = loop.fold %v axis 0 add : vector<4xf32> -> vector<2xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  // expected-error @+1 {{loop.fold: a custom reduction cannot be reassociated}}
  %f = loop.fold %v axis 0 custom : vector<4xf32> -> vector<1xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  // expected-error @+1 {{loop.prefetch: map has the wrong number of results, expected 1, got}}
  loop.prefetch %x (d0) -> (d0, 0)(%i) : memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  // expected-error @+1 {{loop.prefetch: map has the wrong number of dimensions, expected 1, got}}
  loop.prefetch %x (d0)[s0] -> (d0 + s0)(%i) : memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<4x4xi32>, %i: index) -> () {
  // expected-error @+1 {{loop.partition_point: wrong row pointer, expected a memref of integers of rank 1, got memref<4x4xi32>}}
  %r = loop.partition_point %x rows %i part %i of %i weight 1 : memref<4x4xi32>
}

// -----

loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  // expected-error @+1 {{loop.partition_point: wrong row pointer, expected a memref of integers of rank 1, got memref<4xf32>}}
  %r = loop.partition_point %x rows %i part %i of %i weight 1 : memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xi32>, %i: index) -> () {
  // expected-error @+1 {{loop.partition_point: wrong weight, expected 1 to 65536, got 0}}
  %r = loop.partition_point %x rows %i part %i of %i weight 0 : memref<4xi32>
}

// -----

loop.kernel @k(%x: memref<4xi32>, %i: index) -> () {
  // expected-error @+1 {{loop.partition_point: wrong weight, expected 1 to 65536, got 65537}}
  %r = loop.partition_point %x rows %i part %i of %i weight 65537 : memref<4xi32>
}

// -----

loop.kernel @k() -> () {
  // expected-error @+1 {{loop.local: wrong number of sizes of memref<?xf32>, expected 1, got 0}}
  %h = loop.local : memref<?xf32>
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.local: wrong number of sizes of memref<4xf32>, expected 0, got 1}}
  %h = loop.local(%n) : memref<4xf32>
}

// -----

loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  // expected-error @+1 {{map has 1 dimensions, but 2 operands}}
  %v = loop.load %x (d0) -> (d0)(%i, %i) : memref<4xf32>, f32
}

// -----

loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    // expected-error @+1 {{'loop.yield' must be the last operation in its parent block}}
    loop.yield %acc : f32
    %q = arith.constant 1.0 : f32
  }
}

// -----

// A product is no sum.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.mulf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.mulf %acc, %v : f32
    loop.yield %t : f32
  }
}

// -----

// The last value is no sum either.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got another value}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.addf %v, %v : f32
    loop.yield %t : f32
  }
}

// -----

// What is accumulated occurs once.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.addf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.addf %acc, %acc : f32
    loop.yield %t : f32
  }
}

// -----

// A term may not depend on it.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.addf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %e = arith.mulf %acc, %v : f32
    %t = arith.addf %acc, %e : f32
    loop.yield %t : f32
  }
}

// -----

// Nor by way of memory.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.addf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %l = loop.local : memref<1xf32>
    loop.store %acc, %l () -> (0)() : f32, memref<1xf32>
    %e = loop.load %l () -> (0)() : memref<1xf32>, f32
    %t = arith.addf %acc, %e : f32
    loop.yield %t : f32
  }
}

// -----

// A difference accumulates what it is taken from.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.subf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.subf %v, %acc : f32
    loop.yield %t : f32
  }
}

// -----

// A factor is not accumulated.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got math.fma}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = math.fma %acc, %v, %v : f32
    loop.yield %t : f32
  }
}

// -----

// One way leads past it.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.select}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %c = arith.cmpf ogt, %v, %z : f32
    %u = arith.addf %acc, %v : f32
    %t = arith.select %c, %u, %v : f32
    loop.yield %t : f32
  }
}

// -----

// A NaN that is larger than nothing is not passed over.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected maxnum of it and a value that does not depend on it, got arith.select}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 maxnum) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %c = arith.cmpf ogt, %acc, %v : f32
    %t = arith.select %c, %acc, %v : f32
    loop.yield %t : f32
  }
}

// -----

loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %nan = arith.constant 0x7FC00000 : f32
  // expected-error @+1 {{loop.for: carried value 0 starts from NaN, which maxnum ignores, expected a number, got nan}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %nan : f32 maxnum) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = arith.maxnumf %v, %acc : f32
    loop.yield %t : f32
  }
}

// -----

loop.kernel @k(%n: index, %x: memref<?x2xf32>) -> () {
  %nan = arith.constant dense<[0.0, 0x7FC00000]> : vector<2xf32>
  // expected-error @+1 {{loop.for: carried value 0 starts from NaN, which maxnum ignores, expected a number, got nan}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %nan : vector<2xf32> maxnum) {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%k) : memref<?x2xf32>, vector<2xf32>
    %t = arith.maxnumf %v, %acc : vector<2xf32>
    loop.yield %t : vector<2xf32>
  }
}

// -----

// The loop inside multiplies.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got arith.mulf}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = loop.for "l" %l to %n serial carry(%in = %acc : f32) {
      %u = arith.mulf %in, %v : f32
      loop.yield %u : f32
    }
    loop.yield %t : f32
  }
}

// -----

// The loop inside reads it in each iteration.
loop.kernel @k(%n: index, %x: memref<?xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: carried value 0 is not accumulated by its combiner, expected add of it and a value that does not depend on it, got another value}}
  %s = loop.for "k" %k to %n reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = loop.for "l" %l to %n serial carry(%in = %v : f32) {
      %u = arith.addf %in, %acc : f32
      loop.yield %u : f32
    }
    loop.yield %t : f32
  }
}

// -----

// A sum so far is not stored.
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.for: a store in the loop depends on carried value 0, expected a serial loop that carries it, such as k.carry, got a reduction by add}}
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.store %t, %y (d0) -> (d0)(%k) : f32, memref<4xf32>
    loop.yield %t : f32
  }
}

// -----

// Nor is it an index of a store, here in a loop that carries it on.
loop.kernel @k(%x: memref<4xi32>) -> (%y: memref<4x4xi32>) {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{loop.for: a store in the loop depends on carried value 0, expected a serial loop that carries it, such as k.carry, got a reduction by max}}
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : i32 max) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xi32>, i32
    %t = arith.maxsi %acc, %v : i32
    %u = loop.for "l" %l to 4 serial carry(%in = %t : i32) {
      %n = arith.index_cast %in : i32 to index
      loop.store %v, %y (d0, d1) -> (d0, d1 mod 4)(%k, %n) : i32, memref<4x4xi32>
      loop.yield %in : i32
    }
    loop.yield %t : i32
  }
}

// -----

// Nor does it say how often something is stored.
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1 : i32
  %none = arith.constant 0 : i32
  // expected-error @+1 {{loop.for: a store in the loop depends on carried value 1, expected a serial loop that carries it, such as k.carry, got a reduction by add}}
  %s:2 = loop.for "k" %k to 4 reduction carry(%c = %one : i32 max, %acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %d = arith.maxsi %c, %none : i32
    %t = arith.addf %acc, %v : f32
    %large = arith.cmpf ogt, %t, %v : f32
    %often = arith.select %large, %one, %none : i32
    %n = arith.index_cast %often : i32 to index
    loop.for "l" %l to min (d0) -> (d0)(%n) serial {
      loop.for "m" %m to 1 serial {
        loop.store %z, %y (d0) -> (d0)(%k) : f32, memref<4xf32>
      }
    }
    loop.yield %d, %t : i32, f32
  }
}

// -----

loop.kernel @k() -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.store: cannot accumulate by an unknown combiner, expected add, mul, max or min}}
  loop.store custom %z, %y () -> (0)() : f32, memref<4xf32>
}

// -----

loop.kernel @k(%z: i1) -> (%y: memref<4xi1>) {
  // expected-error @+1 {{loop.store: cannot accumulate, expected numbers, got i1}}
  loop.store add %z, %y () -> (0)() : i1, memref<4xi1>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> () {
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{loop.store: x[0] is stored to, expected an output or a loop.local, got an input}}
  loop.store add %z, %x () -> (0)() : f32, memref<4xf32>
}

// -----

// It reads what it adds to.
loop.kernel @k() -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.store %z, %y () -> (0)() : f32, memref<4xf32>
  // expected-error @+1 {{loop.store: y[1] is read, but nothing is stored there before}}
  loop.store add %z, %y () -> (1)() : f32, memref<4xf32>
}

// -----

// Threads would meet.
loop.kernel @k() -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.store %z, %y () -> (0)() : f32, memref<4xf32>
  // expected-error @+1 {{loop.for: iterations of loop "i" may depend on one another: one stores y[0], another stores y[0], expected independent iterations}}
  loop.for "i" %i to 4 {
    loop.store add %z, %y () -> (0)() : f32, memref<4xf32>
  }
}

// -----

// The part is the same one in all iterations.
loop.kernel @k(%at: memref<?xi64>, %n: index, %v: memref<1xf32>) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  // expected-error @+1 {{loop.for: iterations of loop "t" may depend on one another: one stores y[q], another stores y[q], expected independent iterations}}
  loop.for "t" %t to 4 {
    loop.for "k" %k to 100 serial {
      %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi64>, i64
      %q = arith.index_cast %p : i64 to index
      %m = loop.owned %q part %n size %n
      loop.for "o" %o to %m {
        loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
      }
    }
  }
}

// -----

// Another place is owned.
loop.kernel @k(%at: memref<?xi64>, %n: index, %v: memref<1xf32>) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  // expected-error @+1 {{loop.for: iterations of loop "t" may depend on one another: one stores y[q], another stores y[q], expected independent iterations}}
  loop.for "t" %t to 4 {
    loop.for "k" %k to 100 serial {
      %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi64>, i64
      %q = arith.index_cast %p : i64 to index
      %m = loop.owned %k part %t size %n
      loop.for "o" %o to %m {
        loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
      }
    }
  }
}

// -----

// Parts of different sizes overlap.
loop.kernel @k(%at: memref<?xi64>, %n: index, %v: memref<1xf32>) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  // expected-error @+1 {{loop.for: iterations of loop "t" may depend on one another: one stores y[q], another stores y[q], expected independent iterations}}
  loop.for "t" %t to 4 {
    loop.for "k" %k to 100 serial {
      %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi64>, i64
      %q = arith.index_cast %p : i64 to index
      %m = loop.owned %q part %t size %t
      loop.for "o" %o to %m {
        loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
      }
    }
  }
}

// -----

// Nothing is left out.
loop.kernel @k(%at: memref<?xi64>, %n: index, %v: memref<1xf32>) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  // expected-error @+1 {{loop.for: iterations of loop "t" may depend on one another: one stores y[q], another stores y[q], expected independent iterations}}
  loop.for "t" %t to 4 {
    loop.for "k" %k to 100 serial {
      %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi64>, i64
      %q = arith.index_cast %p : i64 to index
      %m = loop.owned %q part %t size %n
      loop.for "o" %o to min (d0) -> (d0 + 1)(%m) {
        loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
      }
    }
  }
}

// -----

// A sum and a maximum do not commute.
loop.kernel @k() -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.store %z, %y () -> (0)() : f32, memref<4xf32>
  // expected-error @+1 {{loop.for: iterations of loop "k" may depend on one another: one stores y[0], another stores y[0], expected independent iterations}}
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    loop.store add %z, %y () -> (0)() : f32, memref<4xf32>
    loop.store max %z, %y () -> (0)() : f32, memref<4xf32>
    loop.yield %acc : f32
  }
}

// -----

loop.kernel @k() -> () {
  // expected-error @+1 {{loop.local: unknown memory space, expected none, or #loop<space shared>, got 3 : i64}}
  %h = loop.local : memref<4xf32, 3 : i64>
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %c = arith.constant true
  // expected-error @+1 {{scf.if: has a body, expected loop.for as the only such operation in a kernel}}
  scf.if %c {
  }
}

// -----

loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  // expected-error @+1 {{loop.load: map has the wrong number of dimensions, expected 2, got}}
  %v = "loop.load"(%x, %i, %i) <{map = affine_map<(d0) -> (d0)>, limited = array<i64>}> : (memref<4xf32>, index, index) -> f32
}

// -----

loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    // expected-error @+1 {{loop.load: x[i + 1] is outside of dimension 0, expected 0 <= index < 4, got 4}}
    %v = loop.load %x (d0) -> (d0 + 1)(%i) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

// -----

loop.kernel @k(%x: memref<?x4xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    // expected-error @+1 {{loop.load: x[i * -1 + 2, i] is outside of dimension 0, expected 0 <= index, got -1}}
    %v = loop.load %x (d0) -> (d0 * -1 + 2, d0)(%i) : memref<?x4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.sizes of argument 0, expected an array of conditions such as "x0.1 >= 10", got ["x0.0 = 4"]}}
loop.kernel @k(%x: memref<?xf32> {loop.sizes = ["x0.0 = 4"]}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.sizes of argument 0, expected an array of conditions such as "x0.1 >= 10", got 4 : i64}}
loop.kernel @k(%x: memref<?xf32> {loop.sizes = 4 : i64}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.bounds of argument 0, expected an array of sizes such as "x0.1", got ["x0.0 >= 1"]}}
loop.kernel @k(%x: memref<?xi64> {loop.bounds = ["x0.0 >= 1"]}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.offsets of argument 0, expected an array of sizes such as "x0.1", got [4 : i64]}}
loop.kernel @k(%x: memref<?xi64> {loop.offsets = [4 : i64]}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.fits of argument 0, expected an array of comparisons such as "x0.0 <= x1.1+2", got ["x0.0"]}}
loop.kernel @k(%x: memref<?xi64> {loop.fits = ["x0.0"]}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.sizes of argument 0, expected an array of conditions such as "x0.1 >= 10", got ["x0.0 >= 9223372036854775808"]}}
loop.kernel @k(%x: memref<?xf32> {loop.sizes = ["x0.0 >= 9223372036854775808"]}) -> () {
}

// -----

// expected-error @+1 {{loop.kernel: wrong loop.bounds of argument 0, expected an array of sizes such as "x0.1", got ["x0.0*4294967296*4294967296"]}}
loop.kernel @k(%x: memref<?xi64> {loop.bounds = ["x0.0*4294967296*4294967296"]}) -> () {
}

// -----

loop.kernel @k(%n: index) -> () {
  // expected-error @+1 {{loop.for: wrong bound, expected positive divisors, got (d0) -> ((d0 ceildiv 0))}}
  loop.for "i" %i to min (d0) -> (d0 ceildiv 0)(%n) {
  }
}

// -----

loop.kernel @copy_of_too_much(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "b" %b to 1 blocks {
    %s = loop.local : memref<8xf32, #loop<space shared>>
    loop.for "t" %t to 1 threads {
      // expected-error @+1 {{loop.for: no asynchronous copy, expected a load of neighbours and a store to shared memory, of 16 bytes together}}
      loop.for "c" %c to 8 async {
        %v = loop.load %x (d0) -> (d0)(%c) : memref<8xf32>, f32
        loop.store %v, %s (d0) -> (d0)(%c) : f32, memref<8xf32, #loop<space shared>>
      }
    }
  }
}

// -----

loop.kernel @copy_of_every_other_element(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "b" %b to 1 blocks {
    %s = loop.local : memref<8xf32, #loop<space shared>>
    loop.for "t" %t to 1 threads {
      // expected-error @+1 {{loop.for: no asynchronous copy, expected a load of neighbours}}
      loop.for "c" %c to 4 async {
        %v = loop.load %x (d0) -> (d0 * 2)(%c) : memref<8xf32>, f32
        loop.store %v, %s (d0) -> (d0)(%c) : f32, memref<8xf32, #loop<space shared>>
      }
    }
  }
}
