// RUN: stepwell-opt %s -p graph-hoist-invariant | filecheck %s

// A chain leaves both loops; constants come along.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %[[TWO:.*]] = graph.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[M:.*]] = graph.mul %w, %[[TWO]]
// CHECK-NEXT: %[[E:.*]] = graph.exp %[[M]]
// CHECK-NEXT: graph.loop count "3" carries(%x : tensor<?xf32>) captures(%w, %[[M]], %[[E]] :
// CHECK: graph.loop count "n"
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: graph.constant
// CHECK-NEXT: graph.mul
// CHECK-NEXT: graph.yield
func.func @chain(%x: tensor<?xf32> {graph.dims = ["n"]}, %w: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<?xf32> {
  %y = graph.loop count "3" carries(%x : tensor<?xf32>) captures(%w : tensor<?xf32>) -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>, %v: tensor<?xf32>):
    %z = graph.loop count "n" carries(%h : tensor<?xf32>) captures(%v : tensor<?xf32>) -> (tensor<?xf32>) {
    ^bb0(%j: tensor<i64>, %k: tensor<?xf32>, %u: tensor<?xf32>):
      %two = graph.constant dense<2.0> : tensor<f32>
      %m = graph.mul %u, %two : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
      %e = graph.exp %m : (tensor<?xf32>) -> tensor<?xf32>
      %s = graph.mul %k, %e : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      graph.yield %s : tensor<?xf32>
    }
    graph.yield %z : tensor<?xf32>
  }
  func.return %y : tensor<?xf32>
}

// A broadcast would have to be read from memory; a gather may fail; a call may do anything.
// CHECK-LABEL: func.func @stay(
// CHECK-NEXT: graph.loop
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: graph.broadcast_to
// CHECK-NEXT: graph.gather
// CHECK-NEXT: graph.call_packed
func.func @stay(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %i: tensor<4xi64>) -> tensor<4x8xf32> {
  %y = graph.loop count "3" carries(%x : tensor<4x8xf32>) captures(%w, %i : tensor<8xf32>, tensor<4xi64>) -> (tensor<4x8xf32>) {
  ^bb0(%n: tensor<i64>, %h: tensor<4x8xf32>, %v: tensor<8xf32>, %j: tensor<4xi64>):
    %b = graph.broadcast_to %v shape = [4, 8] : (tensor<8xf32>) -> tensor<4x8xf32>
    %g = graph.gather %v, %j axis = 0 : (tensor<8xf32>, tensor<4xi64>) -> tensor<4xf32>
    %c = graph.call_packed "env.any"(%v) : (tensor<8xf32>) -> tensor<8xf32>
    %s = graph.add %h, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = graph.add %s, %c : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    graph.yield %t : tensor<4x8xf32>
  }
  func.return %y : tensor<4x8xf32>
}
