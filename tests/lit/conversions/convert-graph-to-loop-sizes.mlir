// RUN: stepwell-opt %s --split-input-file -p convert-graph-to-loop | filecheck %s

// A kernel writes how long its results are beside them; its call says which result holds that.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}}, %{{.*}} = graph.call_dps @nonzero(%x) dims {{\[\[}}"size.0"], []] sizes [#graph.size<"size.0" in result 1 at_most "4*n">]
// CHECK-NEXT: graph.call_dps @rows(%w, %{{.*}}) dims {{\[\[}}"size.0", ""{{\]\]}} :
func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]}, %w: tensor<9x2xf32>) -> tensor<?x2xf32> {
  %i, %n = func.call @nonzero(%x) : (tensor<?xf32>) -> (tensor<?xi64>, tensor<i64>)
  %y = func.call @rows(%w, %i) : (tensor<9x2xf32>, tensor<?xi64>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: loop.kernel @nonzero(%x: memref<?xf32>) -> (%y0: memref<?xi64>, %y1: memref<i64>)
// CHECK: %[[N:.*]] = loop.for "k" %k to 4 serial carry(%[[A:.*]] = %{{.*}} : i64) {
// CHECK: %[[M:.*]] = loop.for "k1" %k1 to %{{.*}} serial carry(%[[B:.*]] = %[[A]] : i64) {
// CHECK: %[[AT:.*]] = arith.index_cast %[[B]] : i64 to index
// CHECK: loop.store %{{.*}}, %y0 (d0) -> (d0)(%[[AT]]) : i64, memref<?xi64>
// CHECK: arith.select %{{.*}}, %[[B]], %{{.*}} : i64
// CHECK: loop.store %[[N]], %y1 () -> ()() : i64, memref<i64>
func.func private @nonzero(%x: tensor<?xf32>) -> (tensor<?xi64>, tensor<i64>) attributes {graph.primitive} {
  %c = graph.constant dense<1.0> : tensor<4x1xf32>
  %z = graph.mul %c, %x : (tensor<4x1xf32>, tensor<?xf32>) -> tensor<4x?xf32>
  %i, %j, %n = graph.nonzero %z : (tensor<4x?xf32>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>)
  func.return %j, %n : tensor<?xi64>, tensor<i64>
}

func.func private @rows(%w: tensor<9x2xf32>, %i: tensor<?xi64>) -> tensor<?x2xf32> attributes {graph.primitive} {
  %y = graph.gather %w, %i axis = 0 : (tensor<9x2xf32>, tensor<?xi64>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// -----

// A size that an argument holds is that of a result, or loaded where no result has it.
// CHECK-LABEL: func.func @held
// CHECK-NEXT: graph.call_dps @numbers(%n) dims {{\[\[}}"size.0"{{\]\]}} sizes [#graph.size<"size.0" in argument 0 at_most "9">]
// CHECK-NEXT: graph.call_dps @total(%n) :
func.func @held(%n: tensor<i64>) -> (tensor<?xi64>, tensor<i64>) {
  %y = func.call @numbers(%n) : (tensor<i64>) -> tensor<?xi64>
  %s = func.call @total(%n) : (tensor<i64>) -> tensor<i64>
  func.return %y, %s : tensor<?xi64>, tensor<i64>
}

// CHECK-LABEL: loop.kernel @numbers
// CHECK: %[[N:.*]] = memref.dim %y, %{{.*}} : memref<?xi64>
// CHECK-NEXT: loop.for "i" %i to %[[N]] {
func.func private @numbers(%n: tensor<i64>) -> tensor<?xi64> attributes {graph.primitive} {
  %y = graph.arange %n at_most = 9 : (tensor<i64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

// CHECK-LABEL: loop.kernel @total
// CHECK: %[[LOADED:.*]] = loop.load %n () -> ()() : memref<i64>, i64
// CHECK-NEXT: %[[N:.*]] = arith.index_cast %[[LOADED]] : i64 to index
// CHECK: loop.for "k" %k to %[[N]] reduction
func.func private @total(%n: tensor<i64>) -> tensor<i64> attributes {graph.primitive} {
  %y = graph.arange %n at_most = 9 : (tensor<i64>) -> tensor<?xi64>
  %s = graph.reduce sum %y axes = [0] keepdims = false : (tensor<?xi64>) -> tensor<i64>
  func.return %s : tensor<i64>
}

// -----

// A loop names the size that it computes, which calls behind it state.
// CHECK-LABEL: func.func @looped
// CHECK-NEXT: %[[ROWS:.*]] = graph.loop count "7" while(%p : tensor<i1>) captures(%p : tensor<i1>) attributes {sizes = ["size.0"]} -> (tensor<?xi64>) {
// CHECK: graph.call_dps @negated(%[[ROWS]]) dims {{\[\[}}"size.0"{{\]\]}} : (tensor<?xi64>) -> tensor<?xi64>
func.func @looped(%p: tensor<i1>) -> tensor<?xi64> {
  %s = graph.loop count "7" while(%p : tensor<i1>) captures(%p : tensor<i1>) -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>, %q: tensor<i1>):
    graph.yield %q, %i : tensor<i1>, tensor<i64>
  }
  %y = func.call @negated(%s) : (tensor<?xi64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}
func.func private @negated(%x: tensor<?xi64>) -> tensor<?xi64> attributes {graph.primitive} {
  %y = graph.neg %x : (tensor<?xi64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}
