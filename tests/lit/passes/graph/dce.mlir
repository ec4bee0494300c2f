// RUN: stepwell-opt %s -p graph-dce | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[x:[^:]*]]: tensor<4xf32>)
// CHECK-NEXT: graph.call_packed "env.log"(%[[x]])
// CHECK-NEXT: %[[y:.*]] = func.call @used(%[[x]])
// CHECK-NEXT: func.return %[[y]]
// CHECK-NOT: func.func private @unused
// CHECK: func.func private @used(
// CHECK: func.func private @used_by_used(
// CHECK-NOT: func.func private @dead
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @unused(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = graph.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  %log = graph.call_packed "env.log"(%x) : (tensor<4xf32>) -> tensor<1xf32>
  %y = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @used_by_used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @used_by_used(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Two that call each other, and one that nobody calls.
func.func private @dead_a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @dead_b(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @dead_b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @dead_a(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// A call of a function that is no primitive may have effects.
// CHECK-LABEL: func.func @unknown_effects
// CHECK-NEXT: func.call @used_by_used
// CHECK-NEXT: func.return
func.func @unknown_effects(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @used_by_used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x : tensor<4xf32>
}
