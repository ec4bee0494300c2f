// RUN: stepwell-opt %s --split-input-file -p convert-graph-to-rt | filecheck %s

// Each branch writes the result itself; what it does not compute is copied.
// CHECK-LABEL: func.func @condition(%ctx: !rt.context, %p: memref<i8>, %x: memref<4xf32>, %result: memref<4xf32>) -> i32
// CHECK: %[[BYTE:.*]] = memref.load %p[] : memref<i8>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK-NEXT: %[[HOLDS:.*]] = arith.cmpi ne, %[[BYTE]], %[[ZERO]] : i8
// CHECK-NEXT: scf.if %[[HOLDS]] {
// CHECK-NEXT: rt.call @k(%x, %result)
// CHECK-NEXT: } else {
// CHECK-NEXT: "memref.copy"(%x, %result)
// CHECK-NEXT: }
func.func @condition(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %r = graph.call_dps @k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %r : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    graph.yield %a : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
}

// -----

// Two buffers are exchanged; of a known number of iterations the last one writes the result.
// CHECK-LABEL: func.func @exchanged
// CHECK: %[[SPARE:.*]] = memref.view %arena
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[H:.*]] = %x, %[[A:.*]] = %result, %[[B:.*]] = %[[SPARE]])
// CHECK-NEXT: rt.call @k(%[[H]], %[[A]])
// CHECK-NEXT: scf.yield %[[A]], %[[B]], %[[A]] :
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.constant 0 : i32
func.func @exchanged(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %r = graph.call_dps @k(%h) : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %r : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
}

// -----

// Slices are views; a stacked value is carried on from where it is stacked; weights are outside.
// CHECK-LABEL: func.func @scan
// CHECK: %[[N:.*]] = memref.dim %xs
// CHECK: %[[W:.*]] = rt.constant %ctx, 0 "w" : memref<4xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[H:.*]] = %h)
// CHECK-NEXT: %[[X:.*]] = rt.slice %xs, %[[I]] : memref<?x4xf32> to memref<4xf32>
// CHECK-NEXT: %[[AFTER:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[N]], %[[AFTER]] : index
// CHECK-NEXT: %[[Y:.*]] = rt.slice %result_1, %[[LAST]] : memref<?x4xf32> to memref<4xf32>
// CHECK-NEXT: rt.call @k(%[[H]], %[[X]], %[[W]], %[[Y]])
// CHECK-NEXT: scf.yield %[[Y]] : memref<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: "memref.copy"(%{{.*}}, %result)
func.func @scan(%xs: tensor<?x4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
  %l, %ys = graph.loop carries(%h : tensor<4xf32>) slices(%xs : tensor<?x4xf32>)
      attributes {backward_stacks = array<i64: 0>} -> (tensor<4xf32>, tensor<?x4xf32>) {
  ^bb0(%i: tensor<i64>, %s: tensor<4xf32>, %x: tensor<4xf32>):
    %w = graph.constant dense_resource<w> : tensor<4xf32>
    %n = graph.call_dps @k(%s, %x, %w) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %n, %n : tensor<4xf32>, tensor<4xf32>
  }
  func.return %l, %ys : tensor<4xf32>, tensor<?x4xf32>
}
loop.kernel @k(%s: memref<4xf32>, %x: memref<4xf32>, %w: memref<4xf32>) -> (%y: memref<4xf32>) {
}

// -----

// A value that is carried on unchanged is read in two iterations, so that there are three buffers.
// CHECK-LABEL: func.func @longer
// CHECK: scf.for %{{.*}} iter_args(%[[A:.*]] = %x, %[[B:.*]] = %y, %[[S0:.*]] = %{{.*}}, %[[S1:.*]] = %{{.*}}, %[[S2:.*]] = %{{.*}})
// CHECK-NEXT: rt.call @k(%[[A]], %[[B]], %[[S0]])
// CHECK-NEXT: scf.yield %[[B]], %[[S0]], %[[S1]], %[[S2]], %[[S0]] :
func.func @longer(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %a, %b = graph.loop times(%n : tensor<i64>) carries(%x, %y : tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
    %r = graph.call_dps @k(%h, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %k, %r : tensor<4xf32>, tensor<4xf32>
  }
  func.return %a : tensor<4xf32>
}
loop.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) -> (%z: memref<4xf32>) {
}

// -----

// The condition of the next iteration is read from where the iteration stored it.
// CHECK-LABEL: func.func @conditional
// CHECK: scf.while (%[[I:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[H:.*]] = %x
// CHECK-NEXT: scf.condition(%[[C]])
// CHECK: } do {
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[LIMIT:.*]] : index
// CHECK-NEXT: rt.check %ctx, %[[INSIDE]], "graph.loop: no end after {0} iterations"(%[[LIMIT]])
// CHECK-NEXT: rt.call @next(%{{.*}}, %[[FLAG:.*]], %[[NEXT:.*]]) :
// CHECK-NEXT: %[[BYTE:.*]] = memref.load %[[FLAG]][] : memref<i8>
func.func @conditional(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.loop while(%p : tensor<i1>) carries(%x : tensor<4xf32>) attributes {limit = 7 : i64} -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %c, %r = graph.call_dps @next(%h) : (tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
    graph.yield %c, %r : tensor<i1>, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
loop.kernel @next(%x: memref<4xf32>) -> (%c: memref<i8>, %y: memref<4xf32>) {
}

// -----

// What is stacked until a condition fails is the beginning of a buffer of the upper bound.
// CHECK-LABEL: func.func @stacked
// CHECK-SAME: %result: memref<?x4xf32>, %sizes: memref<1xi64>
// CHECK-SAME: graph.computed = {{\[\[}}"k", "n"{{\]\]}}
// CHECK: %[[LARGE:.*]] = memref.reinterpret_cast %result to offset: [0], sizes: [%[[N:.*]], 4], strides: [4, 1]
// CHECK: %[[END:.*]], %{{.*}}, %{{.*}} = scf.while
// CHECK: %[[ROW:.*]] = rt.slice %[[LARGE]], %{{.*}} : memref<?x4xf32> to memref<4xf32>
// CHECK-NEXT: rt.call @next(%{{.*}}, %{{.*}}, %[[ROW]])
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[END]] : index to i64
// CHECK-NEXT: memref.store %[[SIZE]], %sizes[%{{.*}}] : memref<1xi64>
func.func @stacked(%p: tensor<i1>, %x: tensor<4xf32>, %b: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<?x4xf32> {
  %y, %ys = graph.loop count "n" while(%p : tensor<i1>) carries(%x : tensor<4xf32>) attributes {sizes = ["k"]} -> (tensor<4xf32>, tensor<?x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %c, %r = graph.call_dps @next(%h) : (tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
    graph.yield %c, %r, %r : tensor<i1>, tensor<4xf32>, tensor<4xf32>
  }
  func.return %ys : tensor<?x4xf32>
}
loop.kernel @next(%x: memref<4xf32>) -> (%c: memref<i8>, %y: memref<4xf32>) {
}

// -----

// A number that is computed is compared with the limit in front of the loop.
// CHECK-LABEL: func.func @counted
// CHECK: %[[GIVEN:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK-NEXT: %[[COUNT:.*]] = arith.maxsi %[[GIVEN]], %{{.*}} : index
// CHECK: arith.cmpi sle, %[[COUNT]], %[[LIMIT:.*]] : index
// CHECK-NEXT: rt.check %ctx, %{{.*}}, "graph.loop: no end after {0} iterations"(%[[LIMIT]])
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
func.func @counted(%n: tensor<i64>) -> tensor<?xi64> {
  %ys = graph.loop times(%n : tensor<i64>) attributes {limit = 7 : i64} -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>):
    graph.yield %i : tensor<i64>
  }
  func.return %ys : tensor<?xi64>
}

// -----

// What changes its size is written to the beginnings of buffers of the upper bound.
// CHECK-LABEL: func.func @growing
// CHECK: %[[SPARE:.*]] = memref.view %arena[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xf32>
// CHECK: %[[START:.*]] = "memref.cast"(%x) : (memref<4xf32>) -> memref<?xf32>
// CHECK-NEXT: %[[LAST:.*]], %[[SIZE:.*]], %{{.*}}, %{{.*}} = scf.for %{{.*}} iter_args(%[[H:.*]] = %[[START]], %[[S:.*]] = %{{.*}}, %[[A:.*]] = %[[SPARE]], %[[B:.*]] = %{{.*}})
// CHECK-NEXT: %[[INNER:.*]] = rt.iteration %ctx, %{{.*}} "graph.loop"
// CHECK-NEXT: %[[MORE:.*]] = arith.addi %[[S]], %{{.*}} : index
// CHECK-NEXT: %[[NEXT:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[MORE]]], strides: [1]
// CHECK-NEXT: rt.call @append(%[[H]], %[[NEXT]])
// CHECK-NEXT: arith.cmpi sle, %[[MORE]], %[[BOUND:.*]] : index
// CHECK-NEXT: rt.check %[[INNER]], %{{.*}}, "call: a size is out of range, expected 0 to {1}, got {0}"(%[[MORE]], %[[BOUND]])
// CHECK-NEXT: scf.yield %[[NEXT]], %[[MORE]], %[[B]], %[[A]] :
// CHECK: %[[RESULT:.*]] = memref.reinterpret_cast %result to offset: [0], sizes: [%[[SIZE]]], strides: [1]
// CHECK-NEXT: "memref.copy"(%[[LAST]], %[[RESULT]])
func.func @growing(%x: tensor<4xf32>) -> tensor<?xf32> {
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) attributes {bounds = [["7"]], sizes = ["a", "b"]} -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>):
    %r = graph.call_dps @append(%h) dims [["a+1"]] : (tensor<?xf32>) -> tensor<?xf32>
    graph.yield %r : tensor<?xf32>
  }
  func.return %y : tensor<?xf32>
}
loop.kernel @append(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
}

// -----

// A branch writes to the beginning of the result, or copies what it does not compute to it. Which
// size that has is known afterwards.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: %[[SIZE:.*]] = scf.if %{{.*}} -> (index) {
// CHECK: %[[LONGER:.*]] = memref.reinterpret_cast %result
// CHECK-NEXT: rt.call @k(%x, %[[LONGER]])
// CHECK: scf.yield %[[N]] : index
// CHECK-NEXT: } else {
// CHECK: %[[SHORT:.*]] = memref.reinterpret_cast %result
// CHECK: "memref.copy"(%{{.*}}, %[[SHORT]])
// CHECK: scf.yield %{{.*}} : index
// CHECK-NEXT: }
// CHECK: %[[STORED:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK: memref.store %[[STORED]], %sizes
func.func @sizes(%p: tensor<i1>, %x: tensor<?xf32> {graph.dims = ["n"]}, %y: tensor<3xf32>) -> tensor<?xf32> {
  %z = graph.if %p captures(%x, %y : tensor<?xf32>, tensor<3xf32>) attributes {sizes = ["size.0"]} -> (tensor<?xf32>) {
  ^bb0(%a: tensor<?xf32>, %b: tensor<3xf32>):
    %r = graph.call_dps @k(%a) dims [["n"]] : (tensor<?xf32>) -> tensor<?xf32>
    graph.yield %r : tensor<?xf32>
  } else {
  ^bb0(%a: tensor<?xf32>, %b: tensor<3xf32>):
    graph.yield %b : tensor<3xf32>
  }
  func.return %z : tensor<?xf32>
}
loop.kernel @k(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
}

// -----

// A size of a branch that does not run may be negative: memory for it is 0 bytes then, and the
// branch checks it before there is a buffer of that size.
// CHECK-LABEL: func.func @negative(
// CHECK: %[[BYTES:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK: %[[SIZE:.*]] = arith.maxsi %[[BYTES]], %{{.*}} : index
// CHECK-NEXT: arith.addi %[[SIZE]], %{{.*}} : index
// CHECK-NOT: memref.view
// CHECK: scf.if
// CHECK: rt.check %ctx, %{{.*}}, "graph.call_dps: the size n-2 is negative, expected 0 or more, got {0}"
// CHECK-NEXT: memref.view
// CHECK-NEXT: rt.call @cut
func.func @negative(%p: tensor<i1>, %x: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<f32> {
  %y = graph.if %p captures(%x : tensor<?xf32>) -> (tensor<f32>) {
  ^bb0(%a: tensor<?xf32>):
    %r = graph.call_dps @cut(%a) dims [["n-2"]] : (tensor<?xf32>) -> tensor<?xf32>
    %s = graph.call_dps @sum(%r) : (tensor<?xf32>) -> tensor<f32>
    graph.yield %s : tensor<f32>
  } else {
  ^bb0(%a: tensor<?xf32>):
    %s = graph.call_dps @sum(%a) : (tensor<?xf32>) -> tensor<f32>
    graph.yield %s : tensor<f32>
  }
  func.return %y : tensor<f32>
}
loop.kernel @cut(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
}
loop.kernel @sum(%x: memref<?xf32>) -> (%y: memref<f32>) {
}
