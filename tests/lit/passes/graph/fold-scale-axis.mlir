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
