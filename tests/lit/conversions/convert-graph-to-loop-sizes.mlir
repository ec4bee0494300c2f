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
