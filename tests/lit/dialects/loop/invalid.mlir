// RUN: stepwell-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: loop.kernel: wrong argument type, expected a memref or index, got f32
loop.kernel @k(%x: f32) -> () {
}

// -----

// CHECK: loop.kernel: wrong loop.schedule, expected a string, got 3 : i64
loop.kernel @k() -> () attributes {loop.schedule = 3 : i64} {
}

// -----

// CHECK: loop.kernel: two loops are called "i", expected unique names
loop.kernel @k(%n: index) -> () {
  loop.for "i" %i to %n {
  }
  loop.for "i" %j to %n {
  }
}

// -----

// CHECK: loop.for: wrong bound, expected a map over 1 indices, got (d0)[s0] -> ((d0 + s0))
loop.kernel @k(%n: index) -> () {
  "loop.for"(%n) <{loop_name = "i", bound = affine_map<(d0)[s0] -> (d0 + s0)>, kind = #loop<kind parallel>}> ({
  ^bb0(%i: index):
  }) : (index) -> ()
}

// -----

// CHECK: loop.for: wrong loop variable, expected one index
loop.kernel @k(%n: index) -> () {
  "loop.for"(%n) <{loop_name = "i", bound = affine_map<(d0) -> (d0)>, kind = #loop<kind parallel>}> ({
  ^bb0(%i: i32):
  }) : (index) -> ()
}

// -----

// CHECK: loop.reduce: yielded type differs from the accumulator's, expected f32, got f64
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %d = arith.constant 0.0 : f64
  %s = loop.reduce "k" %k to %n combine add carry(%acc = %z : f32) {
    loop.yield %d : f64
  }
}

// -----

// CHECK: loop.reduce: wrong unroll, expected at least 1, got 0
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.reduce "k" %k to %n combine add unroll 0 carry(%acc = %z : f32) {
    loop.yield %acc : f32
  }
}

// -----

// CHECK: loop.reduce: a custom reduction cannot be split into several accumulators
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.reduce "k" %k to %n combine custom unroll 4 carry(%acc = %z : f32) {
    loop.yield %acc : f32
  }
}

// -----

// CHECK: loop.reduce: body has no loop.yield at its end
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = "loop.reduce"(%z) <{loop_name = "k", bound = affine_map<() -> (4)>, combine = #loop<combine add>}> ({
  ^bb0(%k: index, %acc: f32):
    "test.termop"() : () -> ()
  }) : (f32) -> f32
}

// -----

// CHECK: loop.reduce_entries: wrong row map, expected one result over 1 indices
loop.kernel @k(%indptr: memref<?xi32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.reduce_entries "e" %p, %c of %indptr, %indices row (d0) -> (d0, d0)(%n) combine add carry(%acc = %z : f32) : memref<?xi32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

// CHECK: loop.reduce_entries: wrong index array, expected a memref of integers of rank 1, got memref<?xf32>
loop.kernel @k(%indptr: memref<?xf32>, %indices: memref<?xi32>, %n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.reduce_entries "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%n) combine add carry(%acc = %z : f32) : memref<?xf32>, memref<?xi32> {
    loop.yield %acc : f32
  }
}

// -----

// CHECK: loop.load: element types differ, expected f32, got f64
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x () -> (0)() : memref<4xf32>, f64
}

// -----

// CHECK: loop.load: map has the wrong number of results, expected 2
loop.kernel @k(%x: memref<4x4xf32>) -> () {
  %v = loop.load %x () -> (0)() : memref<4x4xf32>, f32
}

// -----

// CHECK: loop.load: map has not one symbol for each axis, expected 1
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x () -> (0)() : memref<4xf32>, vector<4xf32>
}

// -----

// CHECK: loop.load: axis 0 is used, but has one lane
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<1xf32>
}

// -----

// CHECK: loop.load: no such axis, expected below 1, got 1
loop.kernel @k(%x: memref<4xf32>, %n: index) -> () {
  %v = loop.load %x ()[s0] -> (s0)() valid(1 : %n) : memref<4xf32>, vector<4xf32>
}

// -----

// CHECK: loop.store: lanes of axis 0 are stored to one place
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  loop.store %v, %y ()[s0] -> (0)() : vector<4xf32>, memref<4xf32>
}

// -----

// CHECK: loop.fold: no such axis, expected below 1, got 1
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  %f = loop.fold %v axis 1 add : vector<4xf32> -> vector<4xf32>
}

// -----

// CHECK: loop.fold: wrong result shape, expected (1,), got vector<2xf32>
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  %f = loop.fold %v axis 0 add : vector<4xf32> -> vector<2xf32>
}

// -----

// CHECK: loop.fold: a custom reduction cannot be reassociated
loop.kernel @k(%x: memref<4xf32>) -> () {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  %f = loop.fold %v axis 0 custom : vector<4xf32> -> vector<1xf32>
}

// -----

// CHECK: loop.prefetch: map has the wrong number of results, expected 1, got
loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  loop.prefetch %x (d0) -> (d0, 0)(%i) : memref<4xf32>
}

// -----

// CHECK: loop.prefetch: map has the wrong number of dimensions, expected 1, got
loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  loop.prefetch %x (d0)[s0] -> (d0 + s0)(%i) : memref<4xf32>
}

// -----

// CHECK: loop.local: size is not static, expected a static shape, got memref<?xf32>
loop.kernel @k() -> () {
  %h = loop.local : memref<?xf32>
}

// -----

// CHECK: map has 1 dimensions, but 2 operands
loop.kernel @k(%x: memref<4xf32>, %i: index) -> () {
  %v = loop.load %x (d0) -> (d0)(%i, %i) : memref<4xf32>, f32
}

// -----

// CHECK: 'loop.yield' must be the last operation in its parent block
loop.kernel @k(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %s = loop.reduce "k" %k to %n combine add carry(%acc = %z : f32) {
    loop.yield %acc : f32
    %q = arith.constant 1.0 : f32
  }
}
