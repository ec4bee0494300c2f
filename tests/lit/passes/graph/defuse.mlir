// RUN: stepwell-opt %s -p graph-defuse | filecheck %s

// Calls of a shared function become operators of their own; their literals are one.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x4xf32>, %[[y:[^:]*]]: tensor<?x4xf32>)
// CHECK-NEXT: %[[two:.*]] = graph.constant dense<2.000000e+00>
// CHECK-NEXT: %[[a:.*]] = graph.mul %[[x]], %[[two]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[a]]
// CHECK-NEXT: %[[b:.*]] = graph.mul %[[y]], %[[two]]
// CHECK-NEXT: %[[s:.*]] = graph.relu %[[b]]
// CHECK-NEXT: func.return %[[r]], %[[s]]
func.func @shared(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %b = func.call @fused_mul_relu(%y) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %a = func.call @fused_mul_relu(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %a, %b : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-NOT: @fused_mul_relu
func.func private @fused_mul_relu(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {graph.primitive} {
  %two = graph.constant dense<2.0> : tensor<f32>
  %m = graph.mul %x, %two : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %r = graph.relu %m : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %r : tensor<?x4xf32>
}

// What is no primitive stays a function, and calls stay in their order.
// CHECK-LABEL: func.func @calls_stay
// CHECK-NEXT: func.call @other
// CHECK-NEXT: graph.call_packed "first"
// CHECK-NEXT: graph.call_packed "second"
func.func @calls_stay(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.call_packed "first"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = graph.call_packed "second"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %d = graph.sub %c, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// CHECK-LABEL: func.func private @other
// CHECK-NEXT: graph.relu
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
