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
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[K]], %{{.*}} : index
// CHECK-NEXT: rt.check %ctx, %[[SAME]], "call: a size that is computed differs from the declared one, expected {1}, got {0}"
// CHECK-NEXT: arith.cmpi ule, %[[K]], %{{.*}} : index
// CHECK-NEXT: rt.check
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

// -----

// Memory for a size without an upper bound is added to the arena once the size is known. The caller
// finds a result of such a size there.
// CHECK-LABEL: func.func @main(%ctx: !rt.context, %x: memref<?xf32>, %result: memref<?xi64>, %sizes: memref<2xi64>) -> i32
// CHECK-SAME: graph.computed = {{\[\[}}"k"{{\]\]}}
// CHECK: %arena = rt.arena %ctx, %[[FIRST:.*]] : memref<?xi8>
// CHECK-NEXT: %[[SCALAR:.*]] = memref.view %arena
// CHECK-NEXT: rt.call @count(%x, %[[SCALAR]])
// CHECK: %[[K:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK-NEXT: %[[FITS:.*]] = arith.cmpi ule, %[[K]], %{{.*}} : index
// CHECK-NEXT: rt.check %ctx, %[[FITS]], "call: a size is out of range, expected 0 to {1}, got {0}"(%[[K]]
// CHECK: rt.check %ctx, %{{.*}}, "call: a size is too large, expected one of a tensor of at most 72057594037927936 bytes, got {0}"(%[[K]])
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK-NEXT: %[[SECOND:.*]] = rt.arena %ctx, %[[END]] : memref<?xi8>
// CHECK-NEXT: %[[Y:.*]] = memref.view %[[SECOND]][%[[FIRST]]][%[[K]]] : memref<?xi8> to memref<?xi64>
// CHECK-NEXT: rt.call @numbers(%[[SCALAR]], %[[Y]])
// CHECK-NEXT: %[[SIZE:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK-NEXT: memref.store %[[SIZE]], %sizes
// CHECK-NEXT: %[[OFFSET:.*]] = arith.index_cast %[[FIRST]] : index to i64
// CHECK-NEXT: memref.store %[[OFFSET]], %sizes
func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<?xi64> {
  %k = graph.call_dps @count(%x) : (tensor<?xf32>) -> tensor<i64>
  %y = graph.call_dps @numbers(%k) dims [["k"]] sizes [#graph.size<"k" in argument 0>] : (tensor<i64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

loop.kernel @count(%x: memref<?xf32>) -> (%k: memref<i64>) {
}

loop.kernel @numbers(%k: memref<i64>) -> (%y: memref<?xi64>) {
}

// -----

// A checked value begins where its operand does: callers find both results at one place.
// CHECK-LABEL: func.func @checked
// CHECK: %[[SECOND:.*]] = rt.arena %ctx, %{{.*}} : memref<?xi8>
// CHECK-NEXT: %[[Y:.*]] = memref.view %[[SECOND]][%[[AT:.*]]][%[[K:.*]]] : memref<?xi8> to memref<?xi64>
// CHECK-NEXT: rt.call @numbers(%k, %[[Y]])
// CHECK-NEXT: rt.check_index %ctx, %[[Y]], %{{.*}} "graph.check_indices" from_front
// CHECK: rt.check %ctx, %{{.*}}, "graph.check: no"
// CHECK-NEXT: arith.index_cast %[[K]] : index to i64
// CHECK-NEXT: memref.store %{{.*}}, %sizes
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_cast %[[AT]] : index to i64
// CHECK-NEXT: memref.store %[[FIRST]], %sizes
// CHECK-NEXT: %[[OTHER:.*]] = arith.index_cast %[[AT]] : index to i64
// CHECK-NEXT: memref.store %[[OTHER]], %sizes
func.func @checked(%k: tensor<i64>, %fits: tensor<i1>) -> (tensor<?xi64>, tensor<?xi64>) {
  %y = graph.call_dps @numbers(%k) dims [["k"]] sizes [#graph.size<"k" in argument 0>] : (tensor<i64>) -> tensor<?xi64>
  %i = graph.check_indices %y below 8 : (tensor<?xi64>) -> tensor<?xi64>
  %z = graph.check %i if %fits "no" () : (tensor<?xi64>, tensor<i1>) -> tensor<?xi64>
  func.return %z, %y : tensor<?xi64>, tensor<?xi64>
}

loop.kernel @numbers(%k: memref<i64>) -> (%y: memref<?xi64>) {
}

// -----

// A checked result fills the beginning of the caller's buffer, which is of the upper bound.
// CHECK-LABEL: func.func @bounded
// CHECK-SAME: %result: memref<2x?xi64>, %sizes: memref<1xi64>
// CHECK: %[[K:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK: %[[Y:.*]] = memref.view %arena[%{{.*}}][%[[K]]] : memref<?xi8> to memref<2x?xi64>
// CHECK-NEXT: rt.call @pairs(%k, %[[Y]])
// CHECK-NEXT: rt.check_index %ctx, %[[Y]]
// CHECK-NEXT: %[[TARGET:.*]] = memref.reinterpret_cast %result to offset: [0], sizes: [2, %[[K]]], strides: [%[[K]], 1]
// CHECK-NEXT: "memref.copy"(%[[Y]], %[[TARGET]])
func.func @bounded(%k: tensor<i64>) -> tensor<2x?xi64> {
  %y = graph.call_dps @pairs(%k) dims [["", "k"]] sizes [#graph.size<"k" in argument 0 at_most "8">] : (tensor<i64>) -> tensor<2x?xi64>
  %i = graph.check_indices %y below 8 : (tensor<2x?xi64>) -> tensor<2x?xi64>
  func.return %i : tensor<2x?xi64>
}

loop.kernel @pairs(%k: memref<i64>) -> (%y: memref<2x?xi64>) {
}

// -----

// In a branch, memory for a size is added behind what is in use around it. What nothing around it
// bounds is kept there, and memory that follows begins behind it.
// CHECK-LABEL: func.func @kept
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = scf.if
// CHECK-NOT: rt.arena
// CHECK: rt.check %ctx, %{{.*}}, "call: a size is too large
// CHECK: %[[OWN:.*]] = rt.arena %ctx, %[[FIRST:.*]] : memref<?xi8>
// CHECK-NEXT: %[[R:.*]] = memref.view %[[OWN]]
// CHECK-NEXT: rt.call @numbers(%k, %[[R]])
// CHECK: %[[LAST:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK-NEXT: %[[MORE:.*]] = rt.arena %ctx, %[[LAST]] : memref<?xi8>
// CHECK-NEXT: %[[COPY:.*]] = memref.view %[[MORE]][%[[FIRST]]]
// CHECK-NEXT: "memref.copy"(%[[R]], %[[COPY]])
// CHECK-NEXT: scf.yield %[[LAST]], %[[FIRST]], %{{.*}} : index, index, index
// CHECK-NEXT: } else {
// CHECK: "memref.copy"(%x, %{{.*}})
// CHECK-NEXT: scf.yield
// CHECK: %[[KEPT:.*]] = rt.arena %ctx, %[[ENDS:.*]] : memref<?xi8>
// CHECK: %[[AFTER:.*]] = rt.arena %ctx, %{{.*}} : memref<?xi8>
// CHECK-NEXT: %[[Y:.*]] = memref.view %[[KEPT]]
// CHECK-NEXT: %[[Z:.*]] = memref.view %[[AFTER]][%[[ENDS]]]
// CHECK-NEXT: rt.call @twice(%[[Y]], %[[Z]])
func.func @kept(%p: tensor<i1>, %k: tensor<i64>, %x: tensor<?xi64> {graph.dims = ["n"]}) -> tensor<?xi64> {
  %y = graph.if %p captures(%k, %x : tensor<i64>, tensor<?xi64>) attributes {sizes = ["s"]} -> (tensor<?xi64>) {
  ^bb0(%a: tensor<i64>, %b: tensor<?xi64>):
    %r = graph.call_dps @numbers(%a) dims [["k"]] sizes [#graph.size<"k" in argument 0>] : (tensor<i64>) -> tensor<?xi64>
    graph.yield %r : tensor<?xi64>
  } else {
  ^bb0(%a: tensor<i64>, %b: tensor<?xi64>):
    graph.yield %b : tensor<?xi64>
  }
  %z = graph.call_dps @twice(%y) dims [["s"]] : (tensor<?xi64>) -> tensor<?xi64>
  func.return %z : tensor<?xi64>
}

loop.kernel @numbers(%k: memref<i64>) -> (%y: memref<?xi64>) {
}

loop.kernel @twice(%k: memref<?xi64>) -> (%y: memref<?xi64>) {
}

// -----

// Iterations begin at the same place, and a larger one may follow.
// CHECK-LABEL: func.func @repeated
// CHECK: rt.arena %ctx, %[[BYTES:.*]] : memref<?xi8>
// CHECK: scf.for
// CHECK: %[[END:.*]] = arith.addi %[[BYTES]], %{{.*}} : index
// CHECK-NEXT: %[[MORE:.*]] = rt.arena %ctx, %[[END]] growing : memref<?xi8>
// CHECK-NEXT: memref.view %[[MORE]][%[[BYTES]]]
func.func @repeated(%x: tensor<i64>) -> tensor<i64> {
  %y = graph.loop count "3" carries(%x : tensor<i64>) -> (tensor<i64>) {
  ^bb0(%i: tensor<i64>, %h: tensor<i64>):
    %r = graph.call_dps @numbers(%h) dims [["k"]] sizes [#graph.size<"k" in argument 0>] : (tensor<i64>) -> tensor<?xi64>
    %s = graph.call_dps @sum(%r) : (tensor<?xi64>) -> tensor<i64>
    graph.yield %s : tensor<i64>
  }
  func.return %y : tensor<i64>
}

loop.kernel @numbers(%k: memref<i64>) -> (%y: memref<?xi64>) {
}

loop.kernel @sum(%k: memref<?xi64>) -> (%y: memref<i64>) {
}
