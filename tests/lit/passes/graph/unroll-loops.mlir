// RUN: stepwell-opt %s -p graph-unroll-loops | filecheck %s
// RUN: stepwell-opt %s -p "graph-unroll-loops{max-ops=7}" | filecheck %s --check-prefix=LESS

// An inner loop first; the number of the iteration is known, values are exchanged.
// CHECK-LABEL: func.func @nested(
// LESS-LABEL: func.func @nested(
// CHECK-NEXT: graph.constant dense<0> : tensor<i64>
// CHECK-NEXT: %[[ZERO:.*]] = graph.constant dense<0> : tensor<i64>
// CHECK-NEXT: %[[F:.*]] = graph.cast %[[ZERO]]
// CHECK-NEXT: %[[A:.*]] = graph.add %x, %[[F]]
// CHECK-NEXT: %[[ONE:.*]] = graph.constant dense<1> : tensor<i64>
// CHECK-NEXT: %[[G:.*]] = graph.cast %[[ONE]]
// CHECK-NEXT: %[[B:.*]] = graph.add %w, %[[G]]
// CHECK-NEXT: graph.constant dense<1> : tensor<i64>
// CHECK: graph.add %[[A]],
// CHECK: %[[D:.*]] = graph.add %[[B]],
// CHECK-NEXT: func.return %[[D]]
// LESS: graph.loop count "2"
// LESS-NOT: graph.loop
func.func @nested(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %y, %z = graph.loop count "2" carries(%x, %w : tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
    %a, %b = graph.loop count "2" carries(%h, %k : tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%j: tensor<i64>, %l: tensor<4xf32>, %m: tensor<4xf32>):
      %f = graph.cast %j : (tensor<i64>) -> tensor<f32>
      %s = graph.add %l, %f : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      graph.yield %m, %s : tensor<4xf32>, tensor<4xf32>
    }
    graph.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  func.return %z : tensor<4xf32>
}

// A product is a kernel of its own; a run-time number, a condition, slices and long loops stay.
// LESS-LABEL: func.func @keep(
// CHECK-LABEL: func.func @keep(
// CHECK-COUNT-5: graph.loop
func.func @keep(%x: tensor<4x4xf32>, %n: tensor<i64>, %p: tensor<i1>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>) {
  %a = graph.loop count "2" carries(%x : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4x4xf32>):
    %s = graph.matmul %h, %h : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %s : tensor<4x4xf32>
  }
  %b = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4x4xf32>):
    %s = graph.neg %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %s : tensor<4x4xf32>
  }
  %c = graph.loop count "2" while(%p : tensor<i1>) carries(%x : tensor<4x4xf32>) captures(%p : tensor<i1>) -> (tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4x4xf32>, %q: tensor<i1>):
    %s = graph.neg %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %q, %s : tensor<i1>, tensor<4x4xf32>
  }
  %0 = graph.constant dense<0.0> : tensor<4xf32>
  %d = graph.loop carries(%0 : tensor<4xf32>) slices(%x : tensor<4x4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %r: tensor<4xf32>):
    %s = graph.add %h, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %s : tensor<4xf32>
  }
  %e = graph.loop count "33" carries(%x : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4x4xf32>):
    %s = graph.neg %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %s : tensor<4x4xf32>
  }
  func.return %a, %b, %c, %d, %e : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>
}
