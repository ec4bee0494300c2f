// RUN: stepwell-opt %s --split-input-file -p convert-graph-to-rt | filecheck %s

// A call gets buffers for the upper bound; the size is read and checked after it, and what follows
// gets the beginnings of these buffers. The caller reads the sizes of results in a last buffer.
// CHECK-LABEL: func.func @main(%ctx: !rt.context, %x: memref<?xf32>, %result: memref<?x2xf32>, %sizes: memref<1xi64>) -> i32
// CHECK-SAME: graph.computed = {{\[\[}}"k", "n"{{\]\]}}
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: %arena = rt.arena
// CHECK: %[[COUNT:.*]] = memref.view %arena[%{{.*}}][] : memref<?xi8> to memref<i64>
// CHECK: %[[LARGE:.*]] = memref.view %arena[%[[AT:.*]]][%[[N]]] : memref<?xi8> to memref<?xi64>
// CHECK-NEXT: rt.call @nonzero(%x, %[[LARGE]], %[[COUNT]])
// CHECK-NEXT: %[[LOADED:.*]] = memref.load %[[COUNT]][] : memref<i64>
// CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[LOADED]] : i64 to index
// CHECK-NEXT: %[[FITS:.*]] = arith.cmpi ule, %[[K]], %[[N]] : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]], "call: a size is out of range, expected 0 to {1}, got {0}"(%[[K]], %[[N]])
// CHECK-NEXT: %[[EXACT:.*]] = memref.view %arena[%[[AT]]][%[[K]]] : memref<?xi8> to memref<?xi64>
// CHECK-NEXT: %[[Y:.*]] = memref.reinterpret_cast %result to offset: [0], sizes: [%[[K]], 2], strides: [2, 1] : memref<?x2xf32> to memref<?x2xf32>
// CHECK-NEXT: rt.call @pairs(%[[EXACT]], %[[Y]])
// CHECK-NEXT: %[[SIZE:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK-NEXT: memref.store %[[SIZE]], %sizes[%{{.*}}] : memref<1xi64>
func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<?x2xf32> {
  %i, %n = graph.call_dps @nonzero(%x) dims [["k"], []] sizes [#graph.size<"k" in result 1 at_most "n">] : (tensor<?xf32>) -> (tensor<?xi64>, tensor<i64>)
  %y = graph.call_dps @pairs(%i) dims [["k", ""]] : (tensor<?xi64>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

loop.kernel @nonzero(%x: memref<?xf32>) -> (%i: memref<?xi64>, %n: memref<i64>) {
}

loop.kernel @pairs(%i: memref<?xi64>) -> (%y: memref<?x2xf32>) {
}

// -----

// A size that an argument holds is read before the call. Sizes that must agree are compared once
// both are known; a result that is returned twice is copied.
// CHECK-LABEL: func.func @both
// CHECK-SAME: %k: memref<i64>, %x: memref<3xf32>, %[[FIRST:.*]]: memref<?xf32>, %[[SECOND:.*]]: memref<?xf32>, %sizes: memref<1xi64>
// CHECK-NOT: graph.equal
// CHECK: %[[LOADED:.*]] = memref.load %k[] : memref<i64>
// CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[LOADED]] : i64 to index
// CHECK-NEXT: arith.cmpi ule, %[[K]], %{{.*}} : index
// CHECK-NEXT: rt.check
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %{{.*}}, %[[K]] : index
// CHECK-NEXT: rt.check %ctx, %[[SAME]], "call: sizes k and 3 must agree, expected {1}, got {0}"
// CHECK-NEXT: %[[Y:.*]] = memref.reinterpret_cast %[[FIRST]] to offset: [0], sizes: [%[[K]]], strides: [1] : memref<?xf32> to memref<?xf32>
// CHECK-NEXT: rt.call @some(%x, %k, %[[Y]])
// CHECK-NEXT: %[[Z:.*]] = memref.reinterpret_cast %[[SECOND]] to offset: [0], sizes: [%[[K]]], strides: [1] : memref<?xf32> to memref<?xf32>
// CHECK-NEXT: "memref.copy"(%[[Y]], %[[Z]])
func.func @both(%k: tensor<i64>, %x: tensor<3xf32>) -> (tensor<?xf32>, tensor<?xf32>) attributes {graph.equal = [["k", "3"]]} {
  %y = graph.call_dps @some(%x, %k) dims [["k"]] sizes [#graph.size<"k" in argument 1 at_most "8">] : (tensor<3xf32>, tensor<i64>) -> tensor<?xf32>
  func.return %y, %y : tensor<?xf32>, tensor<?xf32>
}

loop.kernel @some(%x: memref<3xf32>, %k: memref<i64>) -> (%y: memref<?xf32>) {
}
