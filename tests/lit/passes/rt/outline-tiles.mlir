// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p rt-outline-tiles | filecheck %s

// What is captured becomes an argument; that two arguments do not overlap holds in a tile too.
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %x: memref<?xf32> {llvm.noalias}, %y: memref<?xf32> {llvm.noalias}, %n: index) {
// CHECK-NEXT: rt.call_tiles %n, @kernel_tiles0(%y, %n, %x) : memref<?xf32>, index, memref<?xf32>
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @kernel_tiles0(
// CHECK-SAME: %t: index, %b: memref<?xf32> {llvm.noalias}, %m: index, %a: memref<?xf32> {llvm.noalias}) {
// CHECK-NEXT: %v = memref.load %a[%t] : memref<?xf32>
// CHECK-NEXT: memref.store %v, %b[%t] : memref<?xf32>
// CHECK-NEXT: func.return
func.func @kernel(%x: memref<?xf32> {llvm.noalias}, %y: memref<?xf32> {llvm.noalias}, %n: index) {
  rt.parallel_tiles %n captures(%y, %n, %x : memref<?xf32>, index, memref<?xf32>) {
  ^bb0(%t: index, %b: memref<?xf32>, %m: index, %a: memref<?xf32>):
    %v = memref.load %a[%t] : memref<?xf32>
    memref.store %v, %b[%t] : memref<?xf32>
    rt.yield
  }
  func.return
}

// -----

// Each region has a function of its own, also one in another.
// CHECK-LABEL: func.func @two(
// CHECK-SAME: %n: index) {
// CHECK-NEXT: rt.call_tiles %n, @two_tiles0(%n) : index
// CHECK-NEXT: rt.call_tiles %n alternating, @two_tiles2()
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @two_tiles2(
// CHECK-SAME: %t: index) {
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @two_tiles0(
// CHECK-SAME: %t: index, %m: index) {
// CHECK-NEXT: rt.call_tiles %m, @two_tiles0_tiles0()
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @two_tiles0_tiles0(
// CHECK-SAME: %u: index) {
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @two_tiles1(
// CHECK-SAME: index) -> ()
func.func @two(%n: index) {
  rt.parallel_tiles %n captures(%n : index) {
  ^bb0(%t: index, %m: index):
    rt.parallel_tiles %m {
    ^bb1(%u: index):
      rt.yield
    }
    rt.yield
  }
  rt.parallel_tiles %n alternating {
  ^bb2(%t: index):
    rt.yield
  }
  func.return
}
func.func private @two_tiles1(index)

// -----

// Without a region nothing changes.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %n: index) -> index {
// CHECK-NEXT: func.return %n : index
func.func @other(%n: index) -> index {
  func.return %n : index
}

// -----

// A function of a thread keeps the types of its arguments, which whoever launches it needs.
// CHECK-LABEL: func.func @on_a_device(
// CHECK-SAME: %y: memref<?x4xf32>, %n: index) {
// CHECK-NEXT: rt.call_tiles %n device, @on_a_device_thread0(%y) : memref<?x4xf32>
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func private @on_a_device_thread0(
// CHECK-SAME: %t: index, %z: memref<?x4xf32>) attributes {rt.kernel = [memref<?x4xf32>]} {
// CHECK-NEXT: func.return
func.func @on_a_device(%y: memref<?x4xf32>, %n: index) {
  rt.parallel_tiles %n device captures(%y : memref<?x4xf32>) {
  ^bb0(%t: index, %z: memref<?x4xf32>):
    rt.yield
  }
  func.return
}

// -----

// A block is launched, and calls the functions of its threads.
// CHECK-LABEL: func.func @in_blocks(
// CHECK-NEXT: rt.call_tiles %n device block 64, @in_blocks_block0(%n) : index
// CHECK-LABEL: func.func private @in_blocks_block0(
// CHECK-SAME: %b: index, %m: index) attributes {rt.block = 64 : i64, rt.kernel = [index]} {
// CHECK-NEXT: rt.call_tiles %m device, @in_blocks_block0_thread0(%b) : index
// CHECK-LABEL: func.func private @in_blocks_block0_thread0(
// CHECK-SAME: %t: index, %c: index) {
func.func @in_blocks(%n: index) {
  rt.parallel_tiles %n device block 64 captures(%n : index) {
  ^bb0(%b: index, %m: index):
    rt.parallel_tiles %m device captures(%b : index) {
    ^bb1(%t: index, %c: index):
      rt.yield
    }
    rt.yield
  }
  func.return
}
