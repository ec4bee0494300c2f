// RUN: stepwell-opt %s -p graph-cancel-transposes | filecheck %s

// A bias, an activation and padding with channels last are computed with channels first.
// CHECK-LABEL: func.func @channels_last
// CHECK-SAME: (%[[x:.*]]: tensor<?x3x5xf32>, %[[b:.*]]: tensor<3xf32>)
// CHECK: %[[r:.*]] = graph.reshape %[[b]] shape = [1, 1, 3]
// CHECK-NEXT: %[[t:.*]] = graph.transpose %[[r]] permutation = [0, 2, 1]
// CHECK-SAME: -> tensor<1x3x1xf32>
// CHECK-NEXT: %[[a:.*]] = graph.add %[[x]], %[[t]]
// CHECK-NEXT: %[[e:.*]] = graph.relu %[[a]]
// CHECK-NEXT: %[[p:.*]] = graph.pad constant %[[e]] low = [0, 0, 1] high = [0, 0, 2]
// CHECK-NEXT: func.return %[[p]]
func.func @channels_last(%x: tensor<?x3x5xf32>, %b: tensor<3xf32>) -> tensor<?x3x8xf32> {
  %t = graph.transpose %x permutation = [0, 2, 1] : (tensor<?x3x5xf32>) -> tensor<?x5x3xf32>
  %a = graph.add %t, %b : (tensor<?x5x3xf32>, tensor<3xf32>) -> tensor<?x5x3xf32>
  %e = graph.relu %a : (tensor<?x5x3xf32>) -> tensor<?x5x3xf32>
  %p = graph.pad constant %e low = [0, 1, 0] high = [0, 2, 0] value = 0.0 : f64 : (tensor<?x5x3xf32>) -> tensor<?x8x3xf32>
  %y = graph.transpose %p permutation = [0, 2, 1] : (tensor<?x8x3xf32>) -> tensor<?x3x8xf32>
  func.return %y : tensor<?x3x8xf32>
}

// Reductions, slices, concatenations and softmax follow their axes; without dimensions kept, a mean
// over the positions has the channels in their order.
// CHECK-LABEL: func.func @axes
// CHECK-SAME: (%[[x:.*]]: tensor<2x3x4x5xf32>)
// CHECK-NEXT: %[[s:.*]] = graph.slice %[[x]] starts = [0, 0, 1, 2] ends = [2, 3, 4, 5] steps = [1, 1, 1, 2]
// CHECK-NEXT: %[[c:.*]] = graph.concat %[[s]], %[[s]] axis = 1
// CHECK-NEXT: %[[m:.*]] = graph.softmax %[[c]] axis = 1
// CHECK-NEXT: %[[k:.*]] = graph.reduce max %[[m]] axes = [2, 3] keepdims = true
// CHECK-NEXT: %[[d:.*]] = graph.sub %[[m]], %[[k]]
// CHECK-NEXT: %[[y:.*]] = graph.reduce mean %[[d]] axes = [2, 3] keepdims = false
// CHECK-NEXT: func.return %[[y]]
func.func @axes(%x: tensor<2x3x4x5xf32>) -> tensor<2x6xf32> {
  %t = graph.transpose %x permutation = [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  %s = graph.slice %t starts = [0, 1, 2, 0] ends = [2, 4, 5, 3] steps = [1, 1, 2, 1] : (tensor<2x4x5x3xf32>) -> tensor<2x3x2x3xf32>
  %c = graph.concat %s, %s axis = 3 : (tensor<2x3x2x3xf32>, tensor<2x3x2x3xf32>) -> tensor<2x3x2x6xf32>
  %m = graph.softmax %c axis = 3 : (tensor<2x3x2x6xf32>) -> tensor<2x3x2x6xf32>
  %k = graph.reduce max %m axes = [1, 2] keepdims = true : (tensor<2x3x2x6xf32>) -> tensor<2x1x1x6xf32>
  %d = graph.sub %m, %k : (tensor<2x3x2x6xf32>, tensor<2x1x1x6xf32>) -> tensor<2x3x2x6xf32>
  %y = graph.reduce mean %d axes = [1, 2] keepdims = false : (tensor<2x3x2x6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// One transpose is made for what is also used as it was: two are saved.
// CHECK-LABEL: func.func @another_use
// CHECK-SAME: (%[[x:.*]]: tensor<2x3x5xf32>, %[[z:.*]]: tensor<2x3x5xf32>)
// CHECK-NEXT: %[[a:.*]] = graph.add %[[x]], %[[z]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[a]]
// CHECK-NEXT: %[[b:.*]] = graph.transpose %[[r]] permutation = [0, 2, 1]
// CHECK-NEXT: func.return %[[b]], %[[r]]
func.func @another_use(%x: tensor<2x3x5xf32>, %z: tensor<2x3x5xf32>) -> (tensor<2x5x3xf32>, tensor<2x3x5xf32>) {
  %t = graph.transpose %x permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %u = graph.transpose %z permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %a = graph.add %t, %u : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %r = graph.relu %a : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = graph.transpose %r permutation = [0, 2, 1] : (tensor<2x5x3xf32>) -> tensor<2x3x5xf32>
  func.return %r, %y : tensor<2x5x3xf32>, tensor<2x3x5xf32>
}

// A transpose that would only move to another place stays.
// CHECK-LABEL: func.func @one
// CHECK: %[[t:.*]] = graph.transpose
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[t]]
// CHECK-NEXT: func.return %[[r]]
func.func @one(%x: tensor<2x3x5xf32>) -> tensor<2x5x3xf32> {
  %t = graph.transpose %x permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %r = graph.relu %t : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  func.return %r : tensor<2x5x3xf32>
}

// The mean over the first dimension would have its own in another order.
// CHECK-LABEL: func.func @other_order
// CHECK: %[[t:.*]] = graph.transpose
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[t]]
// CHECK-NEXT: %[[y:.*]] = graph.reduce mean %[[r]] axes = [0] keepdims = false
func.func @other_order(%x: tensor<2x3x5xf32>) -> tensor<5x3xf32> {
  %t = graph.transpose %x permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %r = graph.relu %t : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = graph.reduce mean %r axes = [0] keepdims = false : (tensor<2x5x3xf32>) -> tensor<5x3xf32>
  func.return %y : tensor<5x3xf32>
}
