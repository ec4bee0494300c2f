// RUN: stepwell-opt %s -p graph-fold-scale-axis | filecheck %s

// Forward, through a shift and a relu: (x * s + t) = (x + t / s) * s.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[x:.*]]: tensor<?x2xf32>)
// CHECK-DAG: %[[w:.*]] = graph.constant dense<{{\[\[}}1.000000e+00
// CHECK-DAG: %[[s:.*]] = graph.constant dense<[2.000000e+00
// CHECK-DAG: %[[t:.*]] = graph.constant dense<[4.000000e+00
// CHECK: %[[u:.*]] = graph.div %[[t]], %[[s]]
// CHECK-NEXT: %[[b:.*]] = graph.add %[[x]], %[[u]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[b]]
// CHECK-NEXT: %[[v:.*]] = graph.mul %[[w]], %[[s]]
// CHECK-NEXT: %[[y:.*]] = graph.dense %[[r]], %[[v]]
// CHECK-NEXT: func.return %[[y]]
func.func @forward(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %t = graph.constant dense<[4.0, 5.0]> : tensor<2xf32>
  %m = graph.mul %x, %s : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %a = graph.add %m, %t : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %r = graph.relu %a : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.dense %r, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// A negative factor does not pass a relu.
// CHECK-LABEL: func.func @negative_stays
// CHECK: graph.dense
// CHECK-NEXT: graph.relu
// CHECK-NEXT: graph.mul
// CHECK-NEXT: func.return
func.func @negative_stays(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[2.0, -3.0]> : tensor<2xf32>
  %d = graph.dense %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %r = graph.relu %d : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = graph.mul %r, %s : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// The product is used as it is, too.
// CHECK-LABEL: func.func @other_user_stays
// CHECK: %[[d:.*]] = graph.dense
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[d]]
// CHECK-NEXT: func.return %[[d]], %[[y]]
func.func @other_user_stays(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %d = graph.dense %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %y = graph.mul %d, %s : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  func.return %d, %y : tensor<?x2xf32>, tensor<?x2xf32>
}

// Channels of a convolution: behind it the scale goes into the filters and the bias, through
// the relu since it is positive.
// CHECK-LABEL: func.func @filters
// CHECK-SAME: (%[[x:.*]]: tensor<?x1x4x4xf32>)
// CHECK-DAG: %[[w:.*]] = graph.constant dense<1.000000e+00> : tensor<2x1x3x3xf32>
// CHECK-DAG: %[[b:.*]] = graph.constant dense<[5.000000e+00, 6.000000e+00]>
// CHECK-DAG: %[[s:.*]] = graph.constant dense<{{\[\[\[}}2.000000e+00
// CHECK: %[[f:.*]] = graph.reshape %[[s]] shape = [2, 1, 1, 1]
// CHECK-NEXT: %[[v:.*]] = graph.mul %[[w]], %[[f]]
// CHECK-NEXT: %[[g:.*]] = graph.reshape %[[s]] shape = [2]
// CHECK-NEXT: %[[c:.*]] = graph.mul %[[b]], %[[g]]
// CHECK-NEXT: %[[d:.*]] = graph.conv %[[x]], %[[v]], %[[c]]
// CHECK-NEXT: %[[y:.*]] = graph.relu %[[d]]
// CHECK-NEXT: func.return %[[y]]
func.func @filters(%x: tensor<?x1x4x4xf32>) -> tensor<?x2x2x2xf32> {
  %w = graph.constant dense<1.0> : tensor<2x1x3x3xf32>
  %b = graph.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %s = graph.constant dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %d = graph.conv %x, %w, %b strides = [1, 1] dilations = [1, 1] groups = 1
      : (tensor<?x1x4x4xf32>, tensor<2x1x3x3xf32>, tensor<2xf32>) -> tensor<?x2x2x2xf32>
  %r = graph.relu %d : (tensor<?x2x2x2xf32>) -> tensor<?x2x2x2xf32>
  %y = graph.mul %r, %s : (tensor<?x2x2x2xf32>, tensor<2x1x1xf32>) -> tensor<?x2x2x2xf32>
  func.return %y : tensor<?x2x2x2xf32>
}

// In front of it a border of zeros lets the scale pass; each group sees its own factors.
// CHECK-LABEL: func.func @channels
// CHECK-SAME: (%[[x:.*]]: tensor<1x4x4xf32>)
// CHECK-DAG: %[[w:.*]] = graph.constant dense<1.000000e+00> : tensor<2x2x3xf32>
// CHECK-DAG: %[[s:.*]] = graph.constant dense<{{\[\[}}1.000000e+00
// CHECK: %[[p:.*]] = graph.pad constant %[[x]] low = [0, 0, 1]
// CHECK-NEXT: %[[f:.*]] = graph.reshape %[[s]] shape = [2, 1, 2]
// CHECK-NEXT: %[[g:.*]] = graph.broadcast_to %[[f]] shape = [2, 1, 2]
// CHECK-NEXT: %[[h:.*]] = graph.reshape %[[g]] shape = [2, 2, 1]
// CHECK-NEXT: %[[v:.*]] = graph.mul %[[w]], %[[h]]
// CHECK-NEXT: %[[y:.*]] = graph.conv %[[p]], %[[v]]
// CHECK-NEXT: func.return %[[y]]
func.func @channels(%x: tensor<1x4x4xf32>) -> tensor<1x2x4xf32> {
  %w = graph.constant dense<1.0> : tensor<2x2x3xf32>
  %s = graph.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %m = graph.mul %x, %s : (tensor<1x4x4xf32>, tensor<4x1xf32>) -> tensor<1x4x4xf32>
  %p = graph.pad constant %m low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64
      : (tensor<1x4x4xf32>) -> tensor<1x4x6xf32>
  %y = graph.conv %p, %w strides = [1] dilations = [1] groups = 2
      : (tensor<1x4x6xf32>, tensor<2x2x3xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// A border of ones would have to be scaled back.
// CHECK-LABEL: func.func @border_stays
// CHECK: graph.mul
// CHECK-NEXT: graph.pad
// CHECK-NEXT: graph.conv
// CHECK-NEXT: func.return
func.func @border_stays(%x: tensor<1x4x4xf32>) -> tensor<1x2x4xf32> {
  %w = graph.constant dense<1.0> : tensor<2x4x3xf32>
  %s = graph.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %m = graph.mul %x, %s : (tensor<1x4x4xf32>, tensor<4x1xf32>) -> tensor<1x4x4xf32>
  %p = graph.pad constant %m low = [0, 0, 1] high = [0, 0, 1] value = 1.0 : f64
      : (tensor<1x4x4xf32>) -> tensor<1x4x6xf32>
  %y = graph.conv %p, %w strides = [1] dilations = [1] groups = 1
      : (tensor<1x4x6xf32>, tensor<2x4x3xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// A factor of each row of an argument is one of the result.
// CHECK-LABEL: func.func @scaled_rows
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>, %[[n:[^:]*]]: tensor<?x1xf32>, %[[w:[^:]*]]: tensor<4x8xf32>, %[[b:[^:]*]]: tensor<4xf32>)
// CHECK-NEXT: %[[d:.*]] = graph.dense %[[x]], %[[w]]
// CHECK-NEXT: %[[s:.*]] = graph.mul %[[d]], %[[n]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[s]], %[[b]]
// CHECK-NEXT: func.return %[[y]]
func.func @scaled_rows(%x: tensor<?x8xf32>, %n: tensor<?x1xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %s = graph.mul %n, %x : (tensor<?x1xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %s, %w, %b : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
