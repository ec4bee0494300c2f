// RUN: stepwell-opt %s -p graph-batch-slices | filecheck %s

// Slices of one row become a matrix; the order of the slices stays.
// CHECK-LABEL: func.func @rows(
// CHECK-NEXT: %[[MATRIX:.*]] = graph.reshape %xs shape = [-1, 4] : (tensor<?x1x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %[[ONES:.*]] = graph.constant dense<1.000000e+00> : tensor<3xf32>
// CHECK-NEXT: %[[PRODUCT:.*]] = graph.dense %[[MATRIX]], %w, %[[ONES]] : (tensor<?x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<?x3xf32>
// CHECK-NEXT: %[[ROWS:.*]] = graph.reshape %[[PRODUCT]] shape = [-1, 1, 3] : (tensor<?x3xf32>) -> tensor<?x1x3xf32>
// CHECK-NEXT: graph.loop carries(%h : tensor<1x3xf32>) slices(%xs, %[[ROWS]] : tensor<?x1x4xf32>, tensor<?x1x3xf32>) captures(%w : tensor<3x4xf32>) attributes {backward_slices = array<i64: 0, 1>} -> (tensor<1x3xf32>) {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[S:.*]]: tensor<1x3xf32>, %{{.*}}: tensor<1x4xf32>, %[[P:.*]]: tensor<1x3xf32>, %{{.*}}: tensor<3x4xf32>):
// CHECK-NEXT: graph.constant
// CHECK-NEXT: graph.add %[[S]], %[[P]]
func.func @rows(%xs: tensor<?x1x4xf32>, %h: tensor<1x3xf32>, %w: tensor<3x4xf32>) -> tensor<1x3xf32> {
  %y = graph.loop carries(%h : tensor<1x3xf32>) slices(%xs : tensor<?x1x4xf32>) captures(%w : tensor<3x4xf32>)
      attributes {backward_slices = array<i64: 0>} -> (tensor<1x3xf32>) {
  ^bb0(%i: tensor<i64>, %s: tensor<1x3xf32>, %x: tensor<1x4xf32>, %v: tensor<3x4xf32>):
    %b = graph.constant dense<1.0> : tensor<3xf32>
    %p = graph.dense %x, %v, %b : (tensor<1x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<1x3xf32>
    %t = graph.add %s, %p : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    graph.yield %t : tensor<1x3xf32>
  }
  func.return %y : tensor<1x3xf32>
}

// CHECK-LABEL: func.func @several_rows(
// CHECK-NEXT: graph.matmul %xs, %w : (tensor<9x2x4xf32>, tensor<4x3xf32>) -> tensor<9x2x3xf32>
// CHECK-NEXT: graph.loop
func.func @several_rows(%xs: tensor<9x2x4xf32>, %w: tensor<4x3xf32>) -> tensor<9x2x3xf32> {
  %y = graph.loop slices(%xs : tensor<9x2x4xf32>) captures(%w : tensor<4x3xf32>) -> (tensor<9x2x3xf32>) {
  ^bb0(%i: tensor<i64>, %x: tensor<2x4xf32>, %v: tensor<4x3xf32>):
    %p = graph.matmul %x, %v : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    graph.yield %p : tensor<2x3xf32>
  }
  func.return %y : tensor<9x2x3xf32>
}

// Weights that no cache keeps; but rows of few products are moved more often than these are read.
// CHECK-LABEL: func.func @large(
// CHECK-NEXT: graph.matmul %xs, %w : (tensor<9x99x65536xf32>, tensor<65536x999xf32>) -> tensor<9x99x999xf32>
// CHECK-NEXT: graph.loop
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.matmul %{{.*}}, %{{.*}} : (tensor<99x64xf32>, tensor<64x999999xf32>) -> tensor<99x999999xf32>
func.func @large(%xs: tensor<9x99x65536xf32>, %us: tensor<9x99x64xf32>, %w: tensor<65536x999xf32>, %v: tensor<64x999999xf32>)
    -> (tensor<9x99x999xf32>, tensor<9x99x999999xf32>) {
  %y, %z = graph.loop slices(%xs, %us : tensor<9x99x65536xf32>, tensor<9x99x64xf32>)
      captures(%w, %v : tensor<65536x999xf32>, tensor<64x999999xf32>)
      -> (tensor<9x99x999xf32>, tensor<9x99x999999xf32>) {
  ^bb0(%i: tensor<i64>, %x: tensor<99x65536xf32>, %u: tensor<99x64xf32>, %a: tensor<65536x999xf32>, %b: tensor<64x999999xf32>):
    %p = graph.matmul %x, %a : (tensor<99x65536xf32>, tensor<65536x999xf32>) -> tensor<99x999xf32>
    %q = graph.matmul %u, %b : (tensor<99x64xf32>, tensor<64x999999xf32>) -> tensor<99x999999xf32>
    graph.yield %p, %q : tensor<99x999xf32>, tensor<99x999999xf32>
  }
  func.return %y, %z : tensor<9x99x999xf32>, tensor<9x99x999999xf32>
}

// Many rows, an unknown number of them, batches of weights, two slices, a state, an early end.
// CHECK-LABEL: func.func @keep(
// CHECK-NOT: graph.matmul
// CHECK: graph.loop
// CHECK: graph.matmul
// CHECK: graph.matmul
// CHECK: graph.matmul
// CHECK: graph.matmul
// CHECK: graph.matmul
// CHECK: graph.yield
// CHECK-NEXT: }
// CHECK-NEXT: graph.loop
func.func @keep(%xs: tensor<9x9x4xf32>, %us: tensor<9x?x4xf32>, %s: tensor<9x1x4xf32>, %ws: tensor<9x4x4xf32>,
                %h: tensor<1x4xf32>, %w: tensor<4x4xf32>, %b: tensor<2x4x4xf32>, %p: tensor<i1>) {
  %y, %0, %1, %2, %3 = graph.loop carries(%h : tensor<1x4xf32>)
      slices(%xs, %us, %s, %ws : tensor<9x9x4xf32>, tensor<9x?x4xf32>, tensor<9x1x4xf32>, tensor<9x4x4xf32>)
      captures(%w, %b : tensor<4x4xf32>, tensor<2x4x4xf32>)
      -> (tensor<1x4xf32>, tensor<9x9x4xf32>, tensor<9x?x4xf32>, tensor<9x2x1x4xf32>, tensor<9x1x4xf32>) {
  ^bb0(%i: tensor<i64>, %k: tensor<1x4xf32>, %x: tensor<9x4xf32>, %u: tensor<?x4xf32>, %r: tensor<1x4xf32>,
       %a: tensor<4x4xf32>, %v: tensor<4x4xf32>, %c: tensor<2x4x4xf32>):
    %4 = graph.matmul %k, %v : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %5 = graph.matmul %x, %v : (tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<9x4xf32>
    %6 = graph.matmul %u, %v : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
    %7 = graph.matmul %r, %c : (tensor<1x4xf32>, tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
    %8 = graph.matmul %r, %a : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    graph.yield %4, %5, %6, %7, %8 : tensor<1x4xf32>, tensor<9x4xf32>, tensor<?x4xf32>, tensor<2x1x4xf32>, tensor<1x4xf32>
  }
  %z = graph.loop while(%p : tensor<i1>) slices(%s : tensor<9x1x4xf32>) captures(%w, %p : tensor<4x4xf32>, tensor<i1>) -> (tensor<?x1x4xf32>) {
  ^bb0(%i: tensor<i64>, %x: tensor<1x4xf32>, %v: tensor<4x4xf32>, %q: tensor<i1>):
    %m = graph.matmul %x, %v : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    graph.yield %q, %m : tensor<i1>, tensor<1x4xf32>
  }
  func.return
}
