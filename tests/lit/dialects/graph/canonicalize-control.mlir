// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @known_branch(
// CHECK-NEXT: %y = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y
func.func @known_branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = graph.constant dense<false> : tensor<i1>
  %y = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    graph.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    %y = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %y : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// The type of the result says less than that of the branch: the condition stays.
// CHECK-LABEL: func.func @other_type(
// CHECK: graph.if
func.func @other_type(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<?xf32> {
  %p = graph.constant dense<false> : tensor<i1>
  %z = graph.if %p captures(%x, %y : tensor<4xf32>, tensor<5xf32>) -> (tensor<?xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    graph.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    graph.yield %b : tensor<5xf32>
  }
  func.return %z : tensor<?xf32>
}

// Constants go where they are used; captures that are unused or given twice, and unused results, go.
// CHECK-LABEL: func.func @captures(
// CHECK-NEXT: %[[Y:.*]] = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[K:.*]] = graph.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[S:.*]] = graph.add %[[A]], %[[A]]
// CHECK-NEXT: %[[M:.*]] = graph.mul %[[S]], %[[K]]
// CHECK-NEXT: graph.yield %[[M]]
// CHECK-NEXT: } else {
// CHECK-NEXT: ^bb0(%[[B:.*]]: tensor<4xf32>):
// CHECK-NEXT: graph.yield %[[B]]
// CHECK-NEXT: }
// CHECK-NEXT: func.return %[[Y]]
func.func @captures(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %k = graph.constant dense<2.0> : tensor<f32>
  %u, %y = graph.if %p captures(%x, %k, %p, %x : tensor<4xf32>, tensor<f32>, tensor<i1>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %c: tensor<f32>, %q: tensor<i1>, %b: tensor<4xf32>):
    %s = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %m = graph.mul %s, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    graph.yield %a, %m : tensor<4xf32>, tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %c: tensor<f32>, %q: tensor<i1>, %b: tensor<4xf32>):
    graph.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @counts(
// CHECK-NEXT: graph.loop count "5" carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
// CHECK: graph.loop count "7" carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
// CHECK: func.return %{{.*}}, %x, %x, %{{.*}} :
func.func @counts(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n = graph.constant dense<5> : tensor<i64>
  %less = graph.constant dense<-2> : tensor<i64>
  %no = graph.constant dense<false> : tensor<i1>
  %yes = graph.constant dense<true> : tensor<i1>
  %a = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %y : tensor<4xf32>
  }
  %b = graph.loop times(%less : tensor<i64>) carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %y : tensor<4xf32>
  }
  %c = graph.loop while(%no : tensor<i1>) carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %more = graph.constant dense<true> : tensor<i1>
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %more, %y : tensor<i1>, tensor<4xf32>
  }
  %d = graph.loop count "7" while(%yes : tensor<i1>) carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %more = graph.constant dense<true> : tensor<i1>
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %more, %y : tensor<i1>, tensor<4xf32>
  }
  func.return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A number above the limit is an error of the call; without an iteration, nothing is stacked.
// CHECK-LABEL: func.func @limits(
// CHECK: graph.loop times(%{{.*}} : tensor<i64>) carries(%x : tensor<4xf32>) attributes {limit = 4 : i64} -> (tensor<4xf32>) {
// CHECK: graph.loop count "5" -> (tensor<?xi64>) {
// CHECK: graph.loop count "5" while(%{{.*}} : tensor<i1>) -> (tensor<?xi64>) {
func.func @limits(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<?xi64>, tensor<?xi64>) {
  %n = graph.constant dense<5> : tensor<i64>
  %a = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4xf32>) attributes {limit = 4 : i64} -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %y : tensor<4xf32>
  }
  %b = graph.loop times(%n : tensor<i64>) attributes {limit = 5 : i64} -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>):
    graph.yield %i : tensor<i64>
  }
  %no = graph.constant dense<false> : tensor<i1>
  %c = graph.loop count "5" while(%no : tensor<i1>) -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>):
    %q = graph.constant dense<true> : tensor<i1>
    graph.yield %q, %i : tensor<i1>, tensor<i64>
  }
  func.return %a, %b, %c : tensor<4xf32>, tensor<?xi64>, tensor<?xi64>
}

// CHECK-LABEL: func.func @once_or_not_at_all(
// CHECK-NEXT: graph.loop count "1" while(%p : tensor<i1>) carries(%x : tensor<4xf32>)
func.func @once_or_not_at_all(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.loop count "1" while(%p : tensor<i1>) carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %more = graph.constant dense<true> : tensor<i1>
    %y = graph.neg %h : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %more, %y : tensor<i1>, tensor<4xf32>
  }
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: func.func @once(
// CHECK-NEXT: %[[ZERO:.*]] = graph.constant dense<0> : tensor<i64>
// CHECK-NEXT: %[[ROW:.*]] = graph.reshape %xs shape = [4] : (tensor<1x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = graph.add %x, %[[ROW]]
// CHECK-NEXT: %[[ROWS:.*]] = graph.reshape %[[SUM]] shape = [1, 4] : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: func.return %[[ZERO]], %[[ROWS]]
func.func @once(%x: tensor<4xf32>, %xs: tensor<1x4xf32>, %n: tensor<i64>) -> (tensor<i64>, tensor<1x4xf32>) {
  %k, %l, %ys = graph.loop carries(%n, %x : tensor<i64>, tensor<4xf32>) slices(%xs : tensor<1x4xf32>) -> (tensor<i64>, tensor<4xf32>, tensor<1x4xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<i64>, %h: tensor<4xf32>, %r: tensor<4xf32>):
    %s = graph.add %h, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %i, %s, %s : tensor<i64>, tensor<4xf32>, tensor<4xf32>
  }
  func.return %k, %ys : tensor<i64>, tensor<1x4xf32>
}

// What is not changed is captured; what nothing needs goes.
// CHECK-LABEL: func.func @unchanged(
// CHECK-NEXT: %[[H:.*]] = graph.loop count "3" carries(%x : tensor<4xf32>) captures(%y : tensor<4xf32>) -> (tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[S:.*]] = graph.add %[[A]], %[[B]]
// CHECK-NEXT: graph.yield %[[S]] :
// CHECK-NEXT: }
// CHECK-NEXT: func.return %[[H]], %y
func.func @unchanged(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a, %b, %c, %rows = graph.loop count "3" carries(%x, %y, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>, %u: tensor<4xf32>):
    %s = graph.add %h, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %s, %k, %s, %h : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// A loop of symbolic count may have no iteration.
// CHECK-LABEL: func.func @keep(
// CHECK: graph.loop carries(%x : tensor<4xf32>) slices(%xs : tensor<?x4xf32>) -> (tensor<4xf32>) {
func.func @keep(%x: tensor<4xf32>, %xs: tensor<?x4xf32>) -> tensor<4xf32> {
  %l = graph.loop carries(%x : tensor<4xf32>) slices(%xs : tensor<?x4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %r: tensor<4xf32>):
    %s = graph.add %h, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %s : tensor<4xf32>
  }
  func.return %l : tensor<4xf32>
}
