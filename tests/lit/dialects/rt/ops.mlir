// RUN: stepwell-opt %s --split-input-file | filecheck %s
// RUN: stepwell-opt %s --split-input-file --print-op-generic | stepwell-opt --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main(%ctx: !rt.context, %b: memref<4xi8>, %x: memref<?x784xf32>, %n: index) -> i32
func.func @main(%ctx: !rt.context, %b: memref<4xi8>, %x: memref<?x784xf32>, %n: index) -> i32 {
  // CHECK-NEXT: %w = rt.constant %ctx, 3 "w0" : memref<128x784xf32>
  %w = rt.constant %ctx, 3 "w0" : memref<128x784xf32>
  // CHECK-NEXT: %p = rt.constant %ctx, 4 "w1" {packing = affine_map<(d0, d1, d2) -> (((d0 * 32) + d2), d1)>} : memref<4x784x32xf32>
  %p = rt.constant %ctx, 4 "w1" {packing = affine_map<(d0, d1, d2) -> (d0 * 32 + d2, d1)>} : memref<4x784x32xf32>
  // CHECK-NEXT: %arena = rt.arena %ctx, %n : memref<?xi8>
  %arena = rt.arena %ctx, %n : memref<?xi8>
  // CHECK-NEXT: %more = rt.arena %ctx, %n growing : memref<?xi8>
  %more = rt.arena %ctx, %n growing : memref<?xi8>
  // CHECK-NEXT: rt.call @kernel(%x, %w) : memref<?x784xf32>, memref<128x784xf32>
  rt.call @kernel(%x, %w) : memref<?x784xf32>, memref<128x784xf32>
  // CHECK-NEXT: rt.to_device %x : memref<?x784xf32>
  rt.to_device %x : memref<?x784xf32>
  // CHECK-NEXT: rt.call @kernel(%x, %w) device writes 1 : memref<?x784xf32>, memref<128x784xf32>
  rt.call @kernel(%x, %w) device writes 1 : memref<?x784xf32>, memref<128x784xf32>
  // CHECK-NEXT: rt.to_host %w : memref<128x784xf32>
  rt.to_host %w : memref<128x784xf32>
  // CHECK-NEXT: %row = rt.slice %x, %n : memref<?x784xf32> to memref<784xf32>
  %row = rt.slice %x, %n : memref<?x784xf32> to memref<784xf32>
  // CHECK-NEXT: rt.call @nothing()
  rt.call @nothing()
  // CHECK-NEXT: rt.call_packed %ctx, 0 "env.linear" ins(%x, %w : memref<?x784xf32>, memref<128x784xf32>) outs(%p : memref<4x784x32xf32>)
  rt.call_packed %ctx, 0 "env.linear" ins(%x, %w : memref<?x784xf32>, memref<128x784xf32>) outs(%p : memref<4x784x32xf32>)
  // CHECK-NEXT: rt.call_packed %ctx, 1 "env.tick"
  rt.call_packed %ctx, 1 "env.tick"
  // CHECK-NEXT: rt.call_packed %ctx, 2 "env.all" ins(%b : memref<4xi8>) as (tensor<4xi1>) -> ()
  rt.call_packed %ctx, 2 "env.all" ins(%b : memref<4xi8>) as (tensor<4xi1>) -> ()
  %z = arith.constant 0 : i32
  func.return %z : i32
}
func.func private @kernel(memref<?x784xf32>, memref<128x784xf32>)
func.func private @nothing()

// -----

// CHECK-LABEL: func.func @checks
func.func @checks(%ctx: !rt.context, %ok: i1, %p: memref<?xi32>, %i: memref<?xi64>, %n: index) -> i32 {
  // CHECK-NEXT: rt.check %ctx, %ok, "x: rank differs"
  rt.check %ctx, %ok, "x: rank differs"
  // CHECK-NEXT: rt.check %ctx, %ok, "x: sizes differ, expected {0}, got {1}"(%n, %n)
  rt.check %ctx, %ok, "x: sizes differ, expected {0}, got {1}"(%n, %n)
  // CHECK-NEXT: rt.check_csr %ctx, %p, %i, %n "graph" : memref<?xi32>, memref<?xi64>
  rt.check_csr %ctx, %p, %i, %n "graph" : memref<?xi32>, memref<?xi64>
  // CHECK-NEXT: %c = rt.iteration %ctx, %n "graph.loop"
  %c = rt.iteration %ctx, %n "graph.loop"
  // CHECK-NEXT: rt.check_index %c, %i, %n "ids" : memref<?xi64>
  rt.check_index %c, %i, %n "ids" : memref<?xi64>
  // CHECK-NEXT: rt.check_index %ctx, %i, %n "ids" : memref<?xi64>
  rt.check_index %ctx, %i, %n "ids" : memref<?xi64>
  // CHECK-NEXT: rt.check_index %ctx, %i, %n "ids" from_front : memref<?xi64>
  rt.check_index %ctx, %i, %n "ids" from_front : memref<?xi64>
  // CHECK-NEXT: rt.check_offsets %ctx, %i, %n "parts" : memref<?xi64>
  rt.check_offsets %ctx, %i, %n "parts" : memref<?xi64>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// CHECK-LABEL: func.func @tiles
func.func @tiles(%x: memref<?xf32>, %n: index) {
  // CHECK-NEXT: rt.parallel_tiles %n captures(%x, %n : memref<?xf32>, index) {
  // CHECK-NEXT: ^bb0(%tile: index, %a: memref<?xf32>, %m: index):
  // CHECK-NEXT: rt.yield
  // CHECK-NEXT: }
  rt.parallel_tiles %n captures(%x, %n : memref<?xf32>, index) {
  ^bb0(%tile: index, %a: memref<?xf32>, %m: index):
    rt.yield
  }
  // CHECK-NEXT: rt.parallel_tiles %n alternating {
  // CHECK-NEXT: ^{{.*}}(%tile2: index):
  // CHECK-NEXT: rt.yield
  // CHECK-NEXT: }
  rt.parallel_tiles %n alternating {
  ^bb1(%tile2: index):
    rt.yield
  }
  // CHECK-NEXT: rt.parallel_tiles %n device {
  // CHECK-NEXT: ^{{.*}}(%thread: index):
  // CHECK-NEXT: rt.yield
  // CHECK-NEXT: }
  rt.parallel_tiles %n device {
  ^bb2(%thread: index):
    rt.yield
  }
  // CHECK-NEXT: rt.call_tiles %n, @tile(%x) : memref<?xf32>
  rt.call_tiles %n, @tile(%x) : memref<?xf32>
  // CHECK-NEXT: rt.call_tiles %n alternating, @tile(%x) : memref<?xf32>
  rt.call_tiles %n alternating, @tile(%x) : memref<?xf32>
  // CHECK-NEXT: rt.call_tiles %n device, @tile(%x) : memref<?xf32>
  rt.call_tiles %n device, @tile(%x) : memref<?xf32>
  // CHECK-NEXT: rt.call_tiles %n device block 64, @tile(%x) : memref<?xf32>
  rt.call_tiles %n device block 64, @tile(%x) : memref<?xf32>
  // CHECK-NEXT: rt.parallel_tiles %n device block 64 {
  // CHECK-NEXT: ^{{.*}}(%block: index):
  // CHECK-NEXT: rt.barrier
  // CHECK-NEXT: rt.yield
  // CHECK-NEXT: }
  rt.parallel_tiles %n device block 64 {
  ^bb3(%block: index):
    rt.barrier
    rt.yield
  }
  func.return
}
func.func private @tile(index, memref<?xf32>)

// -----

// CHECK-LABEL: func.func @shuffles(%p: memref<32xi64>, %n: index) {
func.func @shuffles(%p: memref<32xi64>, %n: index) {
  // CHECK-NEXT: rt.shuffle %p, %n {rt.parts = 32 : i64} : memref<32xi64>
  %v = rt.shuffle %p, %n {rt.parts = 32 : i64} : memref<32xi64>
  func.return
}

// -----

// CHECK-LABEL: func.func @clocks(%times: memref<4x2xi64>) {
func.func @clocks(%times: memref<4x2xi64>) {
  // CHECK-NEXT: %since = rt.clock : i64
  %since = rt.clock : i64
  // CHECK-NEXT: rt.record %since, %times 3 : memref<4x2xi64>
  rt.record %since, %times 3 : memref<4x2xi64>
  func.return
}

// -----

// CHECK-LABEL: func.func @copies(
func.func @copies(%x: memref<4x8xf32>, %s: memref<8xf32>, %n: index) {
  // CHECK-NEXT: rt.copy_async %x[%n, %n] to %s[%n] {rt.shared} : memref<4x8xf32> to memref<8xf32>
  rt.copy_async %x[%n, %n] to %s[%n] {rt.shared} : memref<4x8xf32> to memref<8xf32>
  func.return
}
