// RUN: stepwell-opt %s -p graph-simplify | filecheck %s

// The identities are tested one by one with numbers; here is what the IR looks like.
// CHECK-LABEL: func.func @arithmetic
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x4xf32>)
// CHECK-NEXT: %[[c:.*]] = graph.constant dense<2.500000e-01> : tensor<f32>
// CHECK-NEXT: %[[q:.*]] = graph.mul %[[x]], %[[c]]
// CHECK-NEXT: %[[s:.*]] = graph.sigmoid %[[q]]
// CHECK-NEXT: %[[y:.*]] = graph.sub %[[x]], %[[s]]
// CHECK-NEXT: func.return %[[y]]
func.func @arithmetic(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %one = graph.constant dense<1.0> : tensor<f32>
  %four = graph.constant dense<4.0> : tensor<f32>
  %q = graph.div %x, %four : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %n = graph.neg %q : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %e = graph.exp %n : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = graph.add %one, %e : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %d = graph.div %one, %t : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %m = graph.neg %r : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.add %m, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @movement
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>)
// CHECK-NEXT: %[[s:.*]] = graph.slice %[[x]] starts = [0, 1] ends = [9223372036854775807, 5] steps = [1, 1]
// CHECK-NEXT: %[[r:.*]] = graph.reshape %[[s]] shape = [-1, 1, 4]
// CHECK-NEXT: %[[y:.*]] = graph.reshape %[[r]] shape = [1, -1, 4]
// CHECK-NEXT: func.return %[[y]]
func.func @movement(%x: tensor<?x8xf32>) -> tensor<1x?x4xf32> {
  %a = graph.slice %x starts = [0, 1] ends = [9223372036854775807, 2] steps = [1, 1] : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %b = graph.slice %x starts = [0, 2] ends = [9223372036854775807, 5] steps = [1, 1] : (tensor<?x8xf32>) -> tensor<?x3xf32>
  %c = graph.concat %a, %b axis = 1 : (tensor<?x1xf32>, tensor<?x3xf32>) -> tensor<?x4xf32>
  %r = graph.reshape %c shape = [-1, 1, 4] : (tensor<?x4xf32>) -> tensor<?x1x4xf32>
  %y = graph.transpose %r permutation = [1, 0, 2] : (tensor<?x1x4xf32>) -> tensor<1x?x4xf32>
  func.return %y : tensor<1x?x4xf32>
}

// A value with another user is not computed again, and a sum that cancels stays as it is.
// CHECK-LABEL: func.func @stays
// CHECK: graph.mul
// CHECK-NEXT: graph.mul
// CHECK-NEXT: graph.add
// CHECK-NEXT: graph.add
func.func @stays(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = graph.constant dense<3.0> : tensor<f32>
  %b = graph.constant dense<-5.0> : tensor<f32>
  %m = graph.mul %x, %a : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %n = graph.mul %m, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %s = graph.add %x, %a : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %t = graph.add %s, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %m, %n, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
