// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p "convert-rt-to-llvm{threads=2}" | filecheck %s

// The arguments go into an array of words on the stack, from which a function takes them again.
// CHECK-LABEL: func.func private @tile_entry(
// CHECK-SAME: %[[V0:.*]]: !llvm.ptr, %[[V1:.*]]: i64) {
// CHECK-NEXT: %[[V2:.*]] = llvm.load %[[V0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V3:.*]] = llvm.getelementptr %[[V0]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V4:.*]] = llvm.load %[[V3]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[V0]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V6:.*]] = llvm.load %[[V5]] {alignment = 8 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V0]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V8:.*]] = llvm.load %[[V7]] {alignment = 8 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT: %[[V9:.*]] = llvm.getelementptr %[[V0]][7] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V10:.*]] = llvm.load %[[V9]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[V11:.*]] = builtin.unrealized_conversion_cast %[[V1]] : i64 to index
// CHECK-NEXT: %[[V12:.*]] = builtin.unrealized_conversion_cast %[[V2]], %[[V4]] : !llvm.ptr, i64 to memref<?xf32>
// CHECK-NEXT: %[[V13:.*]] = builtin.unrealized_conversion_cast %[[V10]] : !llvm.ptr to memref<4xf32>
// CHECK-NEXT: func.call @tile(%[[V11]], %[[V12]], %[[V6]], %[[V8]], %[[V13]]) : (index, memref<?xf32>, f32, vector<8xf32>, memref<4xf32>) -> ()
// CHECK-NEXT: func.return
// CHECK-LABEL: llvm.func @stepwell_parallel_tiles(
// CHECK-SAME: !llvm.ptr, !llvm.ptr, i64, i64, i64)
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %n: index, %x: memref<?xf32>, %f: f32, %v: vector<8xf32>, %y: memref<4xf32>) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %y : memref<4xf32> to !llvm.ptr
// CHECK-NEXT: %[[V12:.*]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.constant(8) : i64
// CHECK-NEXT: %[[V4:.*]] = llvm.alloca %[[V3]] x i64 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[V4]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V6:.*]] = llvm.getelementptr %[[V4]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V7:.*]] = llvm.getelementptr %[[V4]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V8:.*]] = llvm.getelementptr %[[V4]][7] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT: %[[V9:.*]] = llvm.mlir.addressof @tile_entry : !llvm.ptr
// CHECK-NEXT: %[[V10:.*]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK-NEXT: %[[V11:.*]] = llvm.mlir.constant(2) : i64
// CHECK-NEXT: llvm.store %[[V0]], %[[V4]] {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V5]] {alignment = 8 : i64} : i64, !llvm.ptr
// CHECK-NEXT: llvm.store %f, %[[V6]] {alignment = 8 : i64} : f32, !llvm.ptr
// CHECK-NEXT: llvm.store %v, %[[V7]] {alignment = 8 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT: llvm.store %[[V2]], %[[V8]] {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
// CHECK-NEXT: llvm.call @stepwell_parallel_tiles(%[[V9]], %[[V4]], %[[V10]], %[[V11]], %[[V12]]) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> ()
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @tile(
// CHECK-SAME: index, memref<?xf32>, f32, vector<8xf32>, memref<4xf32>) -> ()
func.func @tiles(%n: index, %x: memref<?xf32>, %f: f32, %v: vector<8xf32>, %y: memref<4xf32>) {
  rt.call_tiles %n, @tile(%x, %f, %v, %y) : memref<?xf32>, f32, vector<8xf32>, memref<4xf32>
  func.return
}
func.func private @tile(index, memref<?xf32>, f32, vector<8xf32>, memref<4xf32>)

// -----

// Each thread has tiles of its own, which it runs forwards (1) or backwards (2).
// CHECK-LABEL: llvm.mlir.global internal @part_turn(0 : i64)
// CHECK-LABEL: func.func @alternating_tiles(
// CHECK: %[[NOW:.*]] = llvm.load %{{.*}} atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK: %[[ORDER:.*]] = llvm.add %[[NOW]], %{{.*}} : i64
// CHECK: llvm.call @stepwell_parallel_tiles(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ORDER]])
func.func @alternating_tiles(%n: index, %x: memref<?xf32>) {
  rt.call_tiles %n alternating, @part(%x) : memref<?xf32>
  func.return
}
func.func private @part(index, memref<?xf32>)

// -----

// Without tiles no function of the run time is needed.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %n: index) -> index {
// CHECK-NEXT: func.return %n : index
func.func @other(%n: index) -> index {
  func.return %n : index
}

// -----

// A long array is searched in tiles, each of which stores the first wrong place of its part; the
// least of them counts. A short one is searched as a whole.
// CHECK-LABEL: func.func private @rt_first_outside_i64_in(
// CHECK-SAME: %x: memref<?xi64>, %begin: index, %count: index, %low: i64, %span: i64) -> index
// CHECK: vector.load %x[%first] : memref<?xi64>, vector<32xi64>
// CHECK-LABEL: func.func private @rt_first_outside_i64_part(
// CHECK: %[[PLACE:.*]] = func.call @rt_first_outside_i64_in(%x, %begin, %end, %low, %span)
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpi eq, %[[PLACE]], %end : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.select %[[NONE]], %all, %[[PLACE]] : index
// CHECK-NEXT: memref.store %[[FIRST]], %found[%part] : memref<64xindex>
// CHECK-LABEL: func.func private @rt_first_outside_i64(
// CHECK: cf.cond_br %is_small, ^[[WHOLE:.*]], ^[[DIVIDED:.*]]
// CHECK: ^[[WHOLE]]:
// CHECK-NEXT: func.call @rt_first_outside_i64_in(%x, %zero, %count, %low, %span)
// CHECK: ^[[DIVIDED]]:
// CHECK: llvm.call @stepwell_parallel_tiles(
// CHECK: arith.minsi %first, %place : index
// CHECK-LABEL: func.func private @rt_first_outside_i64_part_entry(
// CHECK: func.call @rt_first_outside_i64_part(
// CHECK-LABEL: func.func private @rt_check_index_i64(
// CHECK: func.call @rt_first_outside_i64(
// CHECK-LABEL: func.func @indices
// CHECK: func.call @rt_check_index_i64(
func.func @indices(%ctx: !rt.context, %i: memref<?xi64>, %n: index) -> i32 {
  rt.check_index %ctx, %i, %n "i" : memref<?xi64>
  %z = arith.constant 0 : i32
  func.return %z : i32
}

// -----

// Each part of row pointers is compared with the next element as well, which another part may have.
// CHECK-LABEL: func.func private @rt_first_outside_i32(
// CHECK: llvm.call @stepwell_parallel_tiles(
// CHECK-LABEL: func.func private @rt_first_decrease_i32_part(
// CHECK: func.call @rt_first_decrease_i32_in(%x, %begin, %end) : (memref<?xi32>, index, index) -> index
// CHECK-LABEL: func.func private @rt_first_decrease_i32(
// CHECK: %[[COUNT:.*]] = arith.subi %size, %one : index
// CHECK: llvm.call @stepwell_parallel_tiles(
// CHECK-LABEL: func.func private @rt_check_offsets_i32(
// CHECK: func.call @rt_first_outside_i32(
// CHECK: func.call @rt_first_decrease_i32(
// CHECK-LABEL: func.func private @rt_check_csr_i32_i32(
// CHECK: func.call @rt_first_decrease_i32(
// CHECK: func.call @rt_first_outside_i32(
func.func @rows(%ctx: !rt.context, %p: memref<?xi32>, %i: memref<?xi32>, %n: index) -> i32 {
  rt.check_offsets %ctx, %p, %n "p" : memref<?xi32>
  rt.check_csr %ctx, %p, %i, %n "graph" : memref<?xi32>, memref<?xi32>
  %z = arith.constant 0 : i32
  func.return %z : i32
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
