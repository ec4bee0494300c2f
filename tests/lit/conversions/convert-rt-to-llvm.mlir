// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-rt-to-llvm | filecheck %s

// Tables of the context are read once, at the entry.
// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %ctx: !rt.context, %i: index) -> f32 attributes
// CHECK-SAME: {rt.constants = [{slot = 0 : i64, weight = "w0", type = memref<4xf32>}, {slot = 3 : i64, weight = "w3", type = memref<4xf32>}]} {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %ctx : !rt.context to !llvm.ptr
// CHECK-NEXT: %[[V1:.*]] = llvm.load %[[V0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %w = llvm.load %[[V1]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V2:.*]] = llvm.getelementptr %[[V1]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %v = llvm.load %[[V2]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %v_1 = builtin.unrealized_conversion_cast %v : !llvm.ptr to memref<4xf32>
// CHECK-NEXT: %w_1 = builtin.unrealized_conversion_cast %w : !llvm.ptr to memref<4xf32>
// CHECK-NEXT: cf.br ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %[[V3:.*]] = memref.load %w_1[%i] : memref<4xf32>
// CHECK-NEXT: %[[V4:.*]] = memref.load %v_1[%i] : memref<4xf32>
// CHECK-NEXT: %[[V5:.*]] = arith.addf %[[V3]], %[[V4]] : f32
// CHECK-NEXT: func.return %[[V5]] : f32
func.func @constants(%ctx: !rt.context, %i: index) -> f32 {
  cf.br ^bb1
^bb1:
  %w = rt.constant %ctx, 0 "w0" : memref<4xf32>
  %v = rt.constant %ctx, 3 "w3" : memref<4xf32>
  %0 = memref.load %w[%i] : memref<4xf32>
  %1 = memref.load %v[%i] : memref<4xf32>
  %2 = arith.addf %0, %1 : f32
  func.return %2 : f32
}

// -----

// An arena that is too small ends the call with -1 and leaves the bytes wanted.
// CHECK-LABEL: func.func @arena(
// CHECK-SAME: %ctx: !rt.context, %n: index) -> i32 {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %ctx : !rt.context to !llvm.ptr
// CHECK-NEXT: %[[V1:.*]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK-NEXT: %[[V2:.*]] = llvm.getelementptr %[[V0]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V3:.*]] = llvm.load %[[V2]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK-NEXT: %[[V4:.*]] = llvm.getelementptr %[[V0]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %a = llvm.load %[[V4]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT: %[[V6:.*]] = llvm.getelementptr %[[V0]][6] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %a_1 = builtin.unrealized_conversion_cast %a, %[[V1]] : !llvm.ptr, i64 to memref<?xi8>
// CHECK-NEXT: %[[V7:.*]] = llvm.icmp "sle" %[[V1]], %[[V3]] : i64
// CHECK-NEXT: cf.cond_br %[[V7]], ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: func.call @use(%a_1) : (memref<?xi8>) -> ()
// CHECK-NEXT: %z = arith.constant 0 : i32
// CHECK-NEXT: func.return %z : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: llvm.store %[[V1]], %[[V6]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: func.return %[[V5]] : i32
// CHECK-LABEL: func.func private @use(
// CHECK-SAME: memref<?xi8>) -> ()
func.func @arena(%ctx: !rt.context, %n: index) -> i32 {
  %a = rt.arena %ctx, %n : memref<?xi8>
  rt.call @use(%a) : memref<?xi8>
  %z = arith.constant 0 : i32
  func.return %z : i32
}
func.func private @use(memref<?xi8>)

// -----

// One that may grow asks for half as much again.
// CHECK-LABEL: func.func @growing(
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1) : i64
// CHECK: %[[HALF:.*]] = llvm.lshr %[[N:.*]], %[[ONE]] : i64
// CHECK-NEXT: %[[MORE:.*]] = llvm.add %[[N]], %[[HALF]] : i64
// CHECK: llvm.store %[[MORE]], %{{.*}} {alignment = 8 : i64} : i64, !llvm.ptr
func.func @growing(%ctx: !rt.context, %n: index) -> i32 {
  %a = rt.arena %ctx, %n growing : memref<?xi8>
  rt.call @use(%a) : memref<?xi8>
  %z = arith.constant 0 : i32
  func.return %z : i32
}
func.func private @use(memref<?xi8>)

// -----

// A failing check leaves its details and returns its number.
// CHECK-LABEL: func.func @checks(
// CHECK-SAME: %ctx: !rt.context, %a: i1, %b: i1, %m: index, %n: index) -> i32 attributes
// CHECK-SAME: {rt.failures = [{kind = "check", subject = "first"}, {kind = "check", subject = "second: expected {0}, got {1}", details = 2 : i64}]} {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %ctx : !rt.context to !llvm.ptr
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %m : index to i64
// CHECK-NEXT: %[[V3:.*]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK-NEXT: %[[V4:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[V0]][6] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V6:.*]] = llvm.getelementptr %[[V0]][7] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: cf.cond_br %a, ^bb1, ^bb3
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: cf.cond_br %b, ^bb2, ^bb4
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %z = arith.constant 0 : i32
// CHECK-NEXT: func.return %z : i32
// CHECK-NEXT: ^bb3:
// CHECK-NEXT: func.return %[[V1]] : i32
// CHECK-NEXT: ^bb4:
// CHECK-NEXT: llvm.store %[[V2]], %[[V5]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V3]], %[[V6]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: func.return %[[V4]] : i32
func.func @checks(%ctx: !rt.context, %a: i1, %b: i1, %m: index, %n: index) -> i32 {
  rt.check %ctx, %a, "first"
  rt.check %ctx, %b, "second: expected {0}, got {1}"(%m, %n)
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// One in an iteration of a loop leaves the number of that as well, the innermost first.
// CHECK-LABEL: func.func @iterations(
// CHECK-SAME: {rt.failures = [{kind = "check", subject = "x", loops = ["inner", "outer"]}]} {
// CHECK-DAG: %[[I:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-DAG: %[[J:.*]] = builtin.unrealized_conversion_cast %j : index to i64
// CHECK-DAG: %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[9]
// CHECK-DAG: %[[SECOND:.*]] = llvm.getelementptr %{{.*}}[10]
// CHECK: llvm.store %[[J]], %[[FIRST]]
// CHECK-NEXT: llvm.store %[[I]], %[[SECOND]]
func.func @iterations(%ctx: !rt.context, %i: index, %j: index, %ok: i1) -> i32 {
  %outer = rt.iteration %ctx, %i "outer"
  %inner = rt.iteration %outer, %j "inner"
  rt.check %inner, %ok, "x"
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// A packed call passes the address and all sizes of every buffer, known ones too.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %ctx: !rt.context, %x: memref<?x4xf32>, %y: memref<3xf32>) -> i32 attributes
// CHECK-SAME: {rt.functions = [{slot = 2 : i64, callee = "env.f", type = (tensor<?x4xf32>) -> tensor<3xf32>}], rt.failures = [{kind = "function", subject = "env.f"}]} {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?x4xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT: %[[V3:.*]] = builtin.unrealized_conversion_cast %y : memref<3xf32> to !llvm.ptr
// CHECK-NEXT: %[[V4:.*]] = llvm.mlir.constant(3) : i64
// CHECK-NEXT: %[[V5:.*]] = llvm.mlir.constant(5) : i64
// CHECK-NEXT: %[[V6:.*]] = llvm.alloca %[[V5]] x i64 {alignment = 8 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V6]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V8:.*]] = llvm.getelementptr %[[V6]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V9:.*]] = llvm.getelementptr %[[V6]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V10:.*]] = llvm.getelementptr %[[V6]][4] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V11:.*]] = builtin.unrealized_conversion_cast %ctx : !rt.context to !llvm.ptr
// CHECK-NEXT: %[[V12:.*]] = llvm.getelementptr %[[V11]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V13:.*]] = llvm.load %[[V12]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V14:.*]] = llvm.getelementptr %[[V13]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V15:.*]] = llvm.load %[[V14]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V16:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT: %[[V17:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT: llvm.store %[[V0]], %[[V6]] {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V7]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V2]], %[[V8]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V3]], %[[V9]] {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V4]], %[[V10]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: %[[V18:.*]] = llvm.call %[[V15]](%[[V6]]) : !llvm.ptr, (!llvm.ptr) -> i32
// CHECK-NEXT: %[[V19:.*]] = llvm.icmp "eq" %[[V18]], %[[V16]] : i32
// CHECK-NEXT: cf.cond_br %[[V19]], ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %z = arith.constant 0 : i32
// CHECK-NEXT: func.return %z : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: func.return %[[V17]] : i32
func.func @packed(%ctx: !rt.context, %x: memref<?x4xf32>, %y: memref<3xf32>) -> i32 {
  rt.call_packed %ctx, 2 "env.f" ins(%x : memref<?x4xf32>) outs(%y : memref<3xf32>)
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// Tiles run one after the other.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %n: index, %x: memref<?xf32>) {
// CHECK-NEXT: %[[V0:.*]] = arith.constant 0 : index
// CHECK-NEXT: cf.br ^bb1(%[[V0]] : index)
// CHECK-NEXT: ^bb1(%[[V1:.*]]: index):
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi slt, %[[V1]], %n : index
// CHECK-NEXT: cf.cond_br %[[V2]], ^bb2, ^bb3
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: func.call @tile(%[[V1]], %x) : (index, memref<?xf32>) -> ()
// CHECK-NEXT: %[[V3:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V4:.*]] = arith.addi %[[V1]], %[[V3]] : index
// CHECK-NEXT: cf.br ^bb1(%[[V4]] : index)
// CHECK-NEXT: ^bb3:
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @tile(
// CHECK-SAME: index, memref<?xf32>) -> ()
func.func @tiles(%n: index, %x: memref<?xf32>) {
  rt.call_tiles %n, @tile(%x) : memref<?xf32>
  func.return
}
func.func private @tile(index, memref<?xf32>)

// -----

// Alternating tiles run backwards after they have run forwards.
// CHECK-LABEL: llvm.mlir.global internal @tile_turn(0 : i64)
// CHECK-LABEL: func.func @alternating_tiles(
// CHECK: %[[TURN:.*]] = llvm.mlir.addressof @tile_turn : !llvm.ptr
// CHECK: %[[NOW:.*]] = llvm.load %[[TURN]] atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK: %[[NEXT:.*]] = llvm.xor %[[NOW]],
// CHECK: llvm.store %[[NEXT]], %[[TURN]] {alignment = 8 : i64}
// CHECK: %[[TURNED:.*]] = llvm.icmp "ne" %[[NOW]],
// CHECK: ^bb1(%[[TILE:.*]]: index):
// CHECK: ^bb2:
// CHECK: %[[STEP:.*]] = arith.addi %[[TILE]],
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %n, %[[STEP]] : index
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %[[TURNED]], %[[LEFT]], %[[TILE]] : index
// CHECK-NEXT: func.call @tile(%[[CHOSEN]], %x)
// CHECK-NEXT: cf.br ^bb1(%[[STEP]] : index)
func.func @alternating_tiles(%n: index, %x: memref<?xf32>) {
  rt.call_tiles %n alternating, @tile(%x) : memref<?xf32>
  func.return
}
func.func private @tile(index, memref<?xf32>)

// -----

// A search comes with the first check that needs it, and serves the others.
// CHECK-LABEL: func.func private @rt_first_outside_i64(
// CHECK-SAME: memref<?xi64>, %low: i64, %span: i64) -> index
// CHECK: %here = vector.load %x[%first] : memref<?xi64>, vector<32xi64>
// CHECK-NEXT: %[[OFFSET:.*]] = arith.subi %here, %lows : vector<32xi64>
// CHECK-NEXT: %[[GOOD:.*]] = arith.cmpi ult, %[[OFFSET]], %spans : vector<32xi64>
// CHECK-NEXT: %[[MASKS:.*]] = arith.extsi %[[GOOD]] : vector<32xi1> to vector<32xi64>
// CHECK-NEXT: vector.reduction <and>, %[[MASKS]] : vector<32xi64> into i64
// CHECK: memref.load %x[%{{.*}}] : memref<?xi64>
// CHECK-LABEL: func.func private @rt_check_index_i64(
// CHECK: func.call @rt_first_outside_i64
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @indices
// CHECK: %[[ROW:.*]] = builtin.unrealized_conversion_cast %{{.*}}, %{{.*}} : !llvm.ptr, i64 to memref<?xi64>
// CHECK: %[[OK:.*]] = func.call @rt_check_index_i64(%[[ROW]], %n, %{{.*}}) : (memref<?xi64>, index, memref<3xi64>) -> i1
// CHECK-NEXT: cf.cond_br %[[OK]], ^{{.*}}, ^{{.*}}
// CHECK: func.call @rt_check_index_i64(
func.func @indices(%ctx: !rt.context, %i: memref<?x2xi64>, %j: memref<?xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<?x2xi64>
  rt.check_index %ctx, %j, %n "j" : memref<?xi64>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// CHECK-LABEL: func.func private @rt_check_place_i64(
// CHECK: %[[LOW:.*]] = arith.constant 0 : index
// CHECK: %[[LAST:.*]] = arith.minsi %extent, %limit : index
// CHECK-LABEL: func.func @places
// CHECK: func.call @rt_check_place_i64(
func.func @places(%ctx: !rt.context, %i: memref<?xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" from_front : memref<?xi64>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// Offsets are searched for one out of range, then for one above the next one.
// CHECK-LABEL: func.func private @rt_check_offsets_i32(
// CHECK: func.call @rt_first_outside_i32(
// CHECK: func.call @rt_first_decrease_i32(
// CHECK-LABEL: func.func @offsets
// CHECK: %[[OK:.*]] = func.call @rt_check_offsets_i32(%{{.*}}, %n, %{{.*}}) : (memref<?xi32>, index, memref<3xi64>) -> i1
// CHECK-NEXT: cf.cond_br %[[OK]], ^{{.*}}, ^{{.*}}
func.func @offsets(%ctx: !rt.context, %i: memref<?xi32>, %n: index) -> i32 {
  rt.check_offsets %ctx, %i, %n "i" : memref<?xi32>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// CHECK-LABEL: func.func private @rt_first_outside_i64(
// CHECK-LABEL: func.func private @rt_first_decrease_i32(
// CHECK: %there = vector.load %x[%ahead] : memref<?xi32>, vector<64xi32>
// CHECK-NEXT: arith.cmpi sge, %there, %here : vector<64xi32>
// CHECK-LABEL: func.func private @rt_check_csr_i32_i64(
// CHECK: func.call @rt_first_decrease_i32
// CHECK: func.call @rt_first_outside_i64
// CHECK-LABEL: func.func @csr
// CHECK: %[[OK:.*]] = func.call @rt_check_csr_i32_i64(
// CHECK-NEXT: cf.cond_br %[[OK]], ^{{.*}}, ^{{.*}}
func.func @csr(%ctx: !rt.context, %p: memref<?xi32>, %i: memref<?xi64>, %n: index) -> i32 {
  rt.check_csr %ctx, %p, %i, %n "graph" : memref<?xi32>, memref<?xi64>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// Other dialects are not touched.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %a: f32) -> f32 {
// CHECK-NEXT: %[[V0:.*]] = arith.addf %a, %a : f32
// CHECK-NEXT: func.return %[[V0]] : f32
func.func @other(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  func.return %0 : f32
}

// -----

func.func @returns_nothing(%ctx: !rt.context, %ok: i1) {
  // expected-error @+1 {{rt.check: function cannot return an error number, expected -> i32, got (!rt.context, i1) -> ()}}
  rt.check %ctx, %ok, "no"
  func.return
}

// -----

func.func @nested(%ctx: !rt.context, %ok: i1) -> i32 {
  scf.if %ok {
    // expected-error @+1 {{rt.check: not at the top of a function, expected func.func, got scf.if}}
    rt.check %ctx, %ok, "no"
  }
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// A clock is read by a function of the program, and a row of a table is two words.
// CHECK: llvm.func @clock_gettime(i32, !llvm.ptr) -> i32
// CHECK: llvm.func internal @rt_clock() -> i64 {
// CHECK: %which = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT: %status = llvm.call @clock_gettime(%which, %now) : (i32, !llvm.ptr) -> i32
// CHECK-NEXT: %seconds = llvm.load %now
// CHECK: %rest = llvm.load
// CHECK-NEXT: %billion = llvm.mlir.constant(1000000000) : i64
// CHECK-NEXT: %whole = llvm.mul %seconds, %billion : i64
// CHECK-NEXT: %nanoseconds = llvm.add %whole, %rest : i64
// CHECK-NEXT: llvm.return %nanoseconds : i64
// CHECK-LABEL: func.func @clocks(
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1) : i64
// CHECK: %[[TIME:.*]] = llvm.getelementptr %[[TABLE:.*]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[COUNT:.*]] = llvm.getelementptr %[[TABLE]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[SINCE:.*]] = llvm.call @rt_clock() : () -> i64
// CHECK-NEXT: %[[THEN:.*]] = llvm.call @rt_clock() : () -> i64
// CHECK-NEXT: %[[PASSED:.*]] = llvm.sub %[[THEN]], %[[SINCE]] : i64
// CHECK-NEXT: %[[OLD:.*]] = llvm.load %[[TIME]]
// CHECK-NEXT: %[[NEW:.*]] = llvm.add %[[OLD]], %[[PASSED]] : i64
// CHECK-NEXT: llvm.store %[[NEW]], %[[TIME]]
// CHECK-NEXT: %[[CALLS:.*]] = llvm.load %[[COUNT]]
// CHECK-NEXT: %[[MORE:.*]] = llvm.add %[[CALLS]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[MORE]], %[[COUNT]]
func.func @clocks(%times: memref<4x2xi64>) {
  %since = rt.clock : i64
  rt.record %since, %times 1 : memref<4x2xi64>
  func.return
}

// -----

// A slice begins where the elements before it end; its own symbolic sizes are those of the buffer.
// CHECK-LABEL: func.func @slice(
// CHECK-SAME: %x: memref<?x?x4xf32>, %i: index
// CHECK-DAG: %[[X:.*]], %{{.*}}, %[[M:.*]] = builtin.unrealized_conversion_cast %x : memref<?x?x4xf32> to !llvm.ptr, i64, i64
// CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4) : i64
// CHECK: llvm.mul
// CHECK: llvm.mul
// CHECK: %[[ROW:.*]] = llvm.getelementptr %[[X]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: builtin.unrealized_conversion_cast %[[ROW]], %[[M]] : !llvm.ptr, i64 to memref<?x4xf32>
func.func @slice(%x: memref<?x?x4xf32>, %i: index) -> memref<?x4xf32> {
  %row = rt.slice %x, %i : memref<?x?x4xf32> to memref<?x4xf32>
  func.return %row : memref<?x4xf32>
}

// -----

// The function of the run time gets the number of the kernel, its arguments and the threads.
// CHECK-LABEL: llvm.func @stepwell_launch(i64, !llvm.ptr, i64)
// CHECK-LABEL: func.func @on_a_device(
// CHECK:       %[[NUMBER:.*]] = llvm.mlir.constant(1) : i64
// CHECK:       llvm.call @stepwell_launch(%[[NUMBER]], %{{.*}}, %{{.*}}) : (i64, !llvm.ptr, i64) -> ()
// CHECK-NEXT:  func.return
func.func private @first(%t: index) attributes {rt.kernel = []} {
  func.return
}
func.func private @second(%t: index, %x: memref<?xf32>) attributes {rt.kernel = [memref<?xf32>]} {
  func.return
}
func.func @on_a_device(%n: index, %x: memref<?xf32>) {
  rt.call_tiles %n device, @second(%x) : memref<?xf32>
  func.return
}

// -----

// A thread of a block runs the tiles of its number and every so manieth after it, and waits.
// CHECK-LABEL: func.func private @block(
// CHECK:       llvm.getelementptr %{{.*}}[%{{.*}}] {rt.parts = 64 : i64}
// CHECK:       %[[FIRST:.*]] = llvm.call @stepwell_thread() : () -> i64
// CHECK-NEXT:  %[[START:.*]] = builtin.unrealized_conversion_cast %[[FIRST]] : i64 to index
// CHECK-NEXT:  %[[STEP:.*]] = llvm.call @stepwell_threads() : () -> i64
// CHECK-NEXT:  %[[BY:.*]] = builtin.unrealized_conversion_cast %[[STEP]] : i64 to index
// CHECK-NEXT:  cf.br ^[[HEAD:.*]](%[[START]] : index)
// CHECK:       func.call @thread(%[[TILE:.*]], %x) : (index, memref<?xf32>) -> ()
// CHECK-NEXT:  %[[NEXT:.*]] = arith.addi %[[TILE]], %[[BY]] : index
// CHECK-NEXT:  cf.br ^[[HEAD]](%[[NEXT]] : index)
// CHECK:       llvm.call @stepwell_barrier() : () -> ()
func.func private @thread(%t: index, %x: memref<?xf32>) {
  func.return
}
func.func private @block(%b: index, %n: index, %x: memref<?xf32>, %y: memref<64x2xf32>)
    -> memref<2xf32> attributes {rt.block = 64 : i64, rt.kernel = [index, memref<?xf32>]} {
  %part = rt.slice %y, %n {rt.parts = 64 : i64} : memref<64x2xf32> to memref<2xf32>
  rt.call_tiles %n device, @thread(%x) : memref<?xf32>
  rt.barrier
  func.return %part : memref<2xf32>
}

// -----

// A shuffle is of words of 4 bytes; without parts of threads, it is a load.
// CHECK-LABEL: func.func @shuffle(
// CHECK:       %[[AT:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] {rt.parts = 32 : i64} : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT:  %[[NEXT:.*]] = llvm.getelementptr %[[AT]][1] : (!llvm.ptr) -> !llvm.ptr, i32
// CHECK-NEXT:  llvm.call @stepwell_shuffle(%[[AT]], %{{.*}}) : (!llvm.ptr, i64) -> i32
// CHECK-NEXT:  llvm.call @stepwell_shuffle(%[[NEXT]], %{{.*}}) : (!llvm.ptr, i64) -> i32
// CHECK:       llvm.bitcast %{{.*}} : i64 to f64
// CHECK:       llvm.load %{{.*}} -> f64
func.func @shuffle(%p: memref<32xf64>, %n: index) -> (f64, f64) {
  %v = rt.shuffle %p, %n {rt.parts = 32 : i64} : memref<32xf64>
  %w = rt.shuffle %p, %n : memref<32xf64>
  func.return %v, %w : f64, f64
}

// -----

// Outside of a block nobody waits.
// CHECK-LABEL: func.func @no_block(
// CHECK-NEXT:  func.return
func.func @no_block() {
  rt.barrier
  func.return
}

// -----

func.func private @no_kernel(%t: index) {
  func.return
}
func.func @on_a_device(%n: index) {
  // expected-error @+1 {{@no_kernel is not for the threads of a device, expected a function with rt.kernel}}
  rt.call_tiles %n device, @no_kernel()
  func.return
}

// -----

// Copies between the host and the device are functions of the run time, with addresses and bytes.
// CHECK-LABEL: func.func @copies
// CHECK: %[[ADDRESS:.*]], %[[ROWS:.*]] = builtin.unrealized_conversion_cast %x : memref<?x4xf32> to !llvm.ptr, i64
// CHECK: %[[COUNT:.*]] = llvm.mul %[[ROWS]], %{{.*}} : i64
// CHECK-NEXT: %[[BYTES:.*]] = llvm.mul %[[COUNT]], %{{.*}} : i64
// CHECK-NEXT: llvm.call @stepwell_to_device(%[[ADDRESS]], %[[BYTES]]) : (!llvm.ptr, i64) -> ()
// CHECK: func.call @k(%x)
// CHECK: llvm.call @stepwell_to_host(%[[ADDRESS]], %{{.*}}) : (!llvm.ptr, i64) -> ()
func.func @copies(%x: memref<?x4xf32>) {
  rt.to_device %x : memref<?x4xf32>
  rt.call @k(%x) device writes 1 : memref<?x4xf32>
  rt.to_host %x : memref<?x4xf32>
  func.return
}
func.func private @k(memref<?x4xf32>)

// -----

// To memory of a block, a thread of a device begins a copy; elsewhere elements are copied.
// CHECK-LABEL: func.func @copies(
// CHECK:       %[[FROM:.*]] = llvm.getelementptr
// CHECK:       %[[TO:.*]] = llvm.getelementptr
// CHECK:       llvm.call @stepwell_copy(%[[TO]], %[[FROM]]) : (!llvm.ptr, !llvm.ptr) -> ()
// CHECK:       llvm.load
// CHECK-NEXT:  llvm.store
// CHECK:       llvm.load
// CHECK-NEXT:  llvm.store
// CHECK-NOT:   llvm.load
func.func @copies(%x: memref<4x8xf64>, %s: memref<8xf64>, %n: index) {
  rt.copy_async %x[%n, %n] to %s[%n] {rt.shared} : memref<4x8xf64> to memref<8xf64>
  rt.copy_async %x[%n, %n] to %s[%n] : memref<4x8xf64> to memref<8xf64>
  func.return
}
