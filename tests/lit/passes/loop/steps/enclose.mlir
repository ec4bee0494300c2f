// RUN: stepwell-opt %s -p "loop-enclose{loop=all},loop-bind{loops=all}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-enclose{loop=k}" 2>&1 | filecheck %s --check-prefix=NAME

// NAME: loop-enclose: loop "k" of @sum: there is one of this name

// CHECK-LABEL: loop.kernel @sum
// CHECK-SAME: loop.schedule = "enclose(all); bind(all)"
// CHECK-NEXT:  loop.for "all" %all to 1 threads {
// CHECK-NEXT:    %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
// CHECK:         loop.store %s, %y () -> ()() : f32, memref<f32>
// CHECK-NEXT:  }
// CHECK-NEXT: }
loop.kernel @sum(%x: memref<4xf32>) -> (%y: memref<f32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 4 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<4xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> ()() : f32, memref<f32>
}
