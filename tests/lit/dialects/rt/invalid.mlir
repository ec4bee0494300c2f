// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @constant_slot(%ctx: !rt.context) {
  // expected-error @+1 {{rt.constant: wrong slot, expected 0 <= slot < 2147483648, got -1}}
  %w = "rt.constant"(%ctx) <{slot = -1 : i64, weight = "w"}> : (!rt.context) -> memref<4xf32>
  func.return
}

// -----

func.func @constant_size(%ctx: !rt.context) {
  // expected-error @+1 {{rt.constant: symbolic size, expected a static shape, got memref<?xf32>}}
  %w = rt.constant %ctx, 0 "w" : memref<?xf32>
  func.return
}

// -----

func.func @constant_layout(%ctx: !rt.context) {
  // expected-error @+1 {{rt.constant: buffer is not contiguous, expected no layout, got memref<4xf32, strided<[2]>>}}
  %w = rt.constant %ctx, 0 "w" : memref<4xf32, strided<[2]>>
  func.return
}

// -----

func.func @slice_type(%x: memref<?x4xf32>, %n: index) {
  // expected-error @+1 {{rt.slice: wrong result type, expected memref<4xf32>, got memref<?xf32>}}
  %a = rt.slice %x, %n : memref<?x4xf32> to memref<?xf32>
  func.return
}

// -----

func.func @slice_of_scalar(%x: memref<f32>, %n: index) {
  // expected-error @+1 {{rt.slice: a scalar has no slices, got memref<f32>}}
  %a = rt.slice %x, %n : memref<f32> to memref<f32>
  func.return
}

// -----

func.func @arena_type(%ctx: !rt.context, %n: index) {
  // expected-error @+1 {{rt.arena: wrong result type, expected memref<?xi8>, got memref<?xf32>}}
  %a = rt.arena %ctx, %n : memref<?xf32>
  func.return
}

// -----

func.func @call_unknown(%x: memref<4xf32>) {
  // expected-error @+1 {{rt.call: unknown function, got @nowhere}}
  rt.call @nowhere(%x) : memref<4xf32>
  func.return
}

// -----

func.func private @kernel(memref<?xf32>)
func.func @call_arguments(%x: memref<4xf32>) {
  // expected-error @+1 {{rt.call: arguments of @kernel differ, expected (memref<?xf32>), got (memref<4xf32>)}}
  rt.call @kernel(%x) : memref<4xf32>
  func.return
}

// -----

func.func private @kernel() -> i32
func.func @call_results() {
  // expected-error @+1 {{rt.call: @kernel returns values, expected none, got 1}}
  rt.call @kernel()
  func.return
}

// -----

func.func private @kernel(memref<4xf32>)
func.func @call_writes(%x: memref<4xf32>) {
  // expected-error @+1 {{rt.call: wrong number of writes, expected 0 to 1 arguments, got 2}}
  rt.call @kernel(%x) device writes 2 : memref<4xf32>
  func.return
}

// -----

func.func @copied_layout(%x: memref<4xf32, strided<[2]>>) {
  // expected-error @+1 {{rt.to_device: buffer is not contiguous, expected no layout, got memref<4xf32, strided<[2]>>}}
  rt.to_device %x : memref<4xf32, strided<[2]>>
  func.return
}

// -----

func.func @copied_back_layout(%x: memref<4xf32, strided<[2]>>) {
  // expected-error @+1 {{rt.to_host: buffer is not contiguous, expected no layout, got memref<4xf32, strided<[2]>>}}
  rt.to_host %x : memref<4xf32, strided<[2]>>
  func.return
}

// -----

func.func @packed_slot(%ctx: !rt.context) {
  // expected-error @+1 {{rt.call_packed: wrong slot, expected 0 <= slot < 2147483648, got 2147483648}}
  "rt.call_packed"(%ctx) <{slot = 2147483648 : i64, callee = "env.f", operandSegmentSizes = array<i32: 1, 0, 0>}> : (!rt.context) -> ()
  func.return
}

// -----

func.func @packed_tensors(%ctx: !rt.context, %b: memref<4xi8>) {
  // expected-error @+1 {{rt.call_packed: wrong numbers of buffers for () -> tensor<4xi1>, expected [0, 1], got [1, 0]}}
  rt.call_packed %ctx, 0 "env.f" ins(%b : memref<4xi8>) as () -> tensor<4xi1>
  func.return
}

// -----

func.func @check_details(%ctx: !rt.context, %ok: i1, %n: index) {
  // expected-error @+1 {{rt.check: too many details, expected at most 3, got 4}}
  rt.check %ctx, %ok, "no"(%n, %n, %n, %n)
  func.return
}

// -----

func.func @csr_element(%ctx: !rt.context, %p: memref<?xi16>, %n: index) {
  // expected-error @+1 {{rt.check_csr: wrong element type, expected i32 or i64, got i16}}
  rt.check_csr %ctx, %p, %p, %n "graph" : memref<?xi16>, memref<?xi16>
  func.return
}

// -----

func.func @csr_rank(%ctx: !rt.context, %p: memref<?x2xi32>, %n: index) {
  // expected-error @+1 {{rt.check_csr: wrong rank, expected 1, got memref<?x2xi32>}}
  rt.check_csr %ctx, %p, %p, %n "graph" : memref<?x2xi32>, memref<?x2xi32>
  func.return
}

// -----

func.func @index_element(%ctx: !rt.context, %i: memref<?xf32>, %n: index) {
  // expected-error @+1 {{rt.check_index: wrong element type, expected i32 or i64, got f32}}
  rt.check_index %ctx, %i, %n "ids" : memref<?xf32>
  func.return
}

// -----

func.func @offset_element(%ctx: !rt.context, %i: memref<?xf32>, %n: index) {
  // expected-error @+1 {{rt.check_offsets: wrong element type, expected i32 or i64, got f32}}
  rt.check_offsets %ctx, %i, %n "ids" : memref<?xf32>
  func.return
}

// -----

func.func @offset_rank(%ctx: !rt.context, %i: memref<?x2xi32>, %n: index) {
  // expected-error @+1 {{rt.check_offsets: wrong rank, expected 1, got memref<?x2xi32>}}
  rt.check_offsets %ctx, %i, %n "ids" : memref<?x2xi32>
  func.return
}

// -----

func.func @tiles_arguments(%n: index, %x: memref<4xf32>) {
  // expected-error @+1 {{rt.parallel_tiles: body arguments differ from the captures, expected (index, memref<4xf32>), got (index, f32)}}
  rt.parallel_tiles %n captures(%x : memref<4xf32>) {
  ^bb0(%t: index, %y: f32):
    rt.yield
  }
  func.return
}

// -----

func.func @tiles_block(%n: index) {
  // expected-error @+1 {{rt.parallel_tiles: wrong block, expected threads of a device}}
  rt.parallel_tiles %n block 32 {
  ^bb0(%t: index):
    rt.yield
  }
  func.return
}

// -----

func.func @tiles_end(%n: index) {
  // expected-error @+1 {{rt.parallel_tiles: body does not end, expected rt.yield}}
  rt.parallel_tiles %n {
  ^bb0(%t: index):
    llvm.unreachable
  }
  func.return
}

// -----

func.func @tiles_isolated(%n: index, %x: memref<?xf32>) {
  // expected-error @+1 {{Operation using value defined out of its IsolatedFromAbove parent}}
  rt.parallel_tiles %n {
  ^bb0(%t: index):
    %v = memref.load %x[%t] : memref<?xf32>
    rt.yield
  }
  func.return
}

// -----

func.func @yield_alone() {
  // expected-error @+1 {{'rt.yield' expects parent op 'rt.parallel_tiles'}}
  rt.yield
}

// -----

func.func private @tile(memref<4xf32>)
func.func @call_tiles_arguments(%n: index, %x: memref<4xf32>) {
  // expected-error @+1 {{rt.call_tiles: arguments of @tile differ, expected (memref<4xf32>), got (index, memref<4xf32>)}}
  rt.call_tiles %n, @tile(%x) : memref<4xf32>
  func.return
}

// -----

func.func @record_row(%since: i64, %times: memref<4x2xi64>) {
  // expected-error @+1 {{rt.record: no such row, expected below 4, got 4}}
  rt.record %since, %times 4 : memref<4x2xi64>
  func.return
}

// -----

func.func @record_row_of_a_large_table(%since: i64, %times: memref<4294967296x2xi64>) {
  // expected-error @+1 {{rt.record: no such row, expected below 1073741824, got 1073741824}}
  rt.record %since, %times 1073741824 : memref<4294967296x2xi64>
  func.return
}

// -----

func.func @record_rows(%since: i64, %times: memref<?x2xi64>) {
  // expected-error @+1 {{rt.record: wrong table, expected a fixed number of rows of 2 i64, got memref<?x2xi64>}}
  rt.record %since, %times 0 : memref<?x2xi64>
  func.return
}

// -----

func.func @record_table(%since: i64, %times: memref<4x3xi64>) {
  // expected-error @+1 {{rt.record: wrong table, expected a fixed number of rows of 2 i64, got memref<4x3xi64>}}
  rt.record %since, %times 0 : memref<4x3xi64>
  func.return
}

// -----

func.func @clock_type() {
  // expected-error @+1 {{Expected attribute i64 but got i32}}
  %0 = rt.clock : i32
  func.return
}

// -----

func.func @iteration(%n: index) {
  // expected-error @+1 {{operand 'context' at position 0 does not verify}}
  %0 = "rt.iteration"(%n, %n) <{subject = "graph.loop"}> : (index, index) -> !rt.context
  func.return
}

// -----

func.func @barrier_of_what(%n: index) {
  // expected-error @+1 {{Expected 0 operands, but got 1}}
  "rt.barrier"(%n) : (index) -> ()
  func.return
}

// -----

func.func @shuffle_of_bytes(%p: memref<32xi8>, %n: index) {
  // expected-error @+1 {{rt.shuffle: wrong buffer, expected elements of 4 or 8 bytes, got memref<32xi8>}}
  %v = rt.shuffle %p, %n : memref<32xi8>
  func.return
}

// -----

func.func @shuffle_of_rows(%p: memref<32x2xf32>, %n: index) {
  // expected-error @+1 {{rt.shuffle: wrong buffer, expected elements of 4 or 8 bytes, got memref<32x2xf32>}}
  %v = rt.shuffle %p, %n : memref<32x2xf32>
  func.return
}

// -----

func.func @copy_of_a_row(%x: memref<4x8xf32>, %s: memref<8xf32>, %n: index) {
  // expected-error @+1 {{rt.copy_async: wrong number of indices, expected one for each dimension of memref<4x8xf32>, got 1}}
  rt.copy_async %x[%n] to %s[%n] : memref<4x8xf32> to memref<8xf32>
  func.return
}
