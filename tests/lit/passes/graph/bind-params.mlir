// RUN: stepwell-opt %s -p 'graph-bind-params{names=w,a}' | filecheck %s

// Constants come first, in the order of the arguments; attributes stay with their arguments.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32> {graph.name = "x", graph.dims = ["n", ""]}, %[[b:[^:]*]]: tensor<4xf32> {graph.name = "b"})
// CHECK-NEXT: %[[w:.*]] = graph.constant dense_resource<w> : tensor<4x8xf32>
// CHECK-NEXT: %[[a:.*]] = graph.constant dense_resource<a> : tensor<4xf32>
// CHECK-NEXT: %[[d:.*]] = graph.dense %[[x]], %[[w]], %[[b]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[d]], %[[a]]
// CHECK-NEXT: func.return %[[y]]
func.func @main(%w: tensor<4x8xf32> {graph.name = "w"}, %x: tensor<?x8xf32> {graph.name = "x", graph.dims = ["n", ""]}, %a: tensor<4xf32> {graph.name = "a"}, %b: tensor<4xf32> {graph.name = "b"}) -> tensor<?x4xf32> {
  %d = graph.dense %x, %w, %b : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %y = graph.add %d, %a : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Arguments of functions that callers do not see stay.
// CHECK-LABEL: func.func private @part
// CHECK-SAME: (%{{[^:]*}}: tensor<4xf32> {graph.name = "w"})
// CHECK-NEXT: graph.relu
func.func private @part(%w: tensor<4xf32> {graph.name = "w"}) -> tensor<4xf32> {
  %y = graph.relu %w : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
