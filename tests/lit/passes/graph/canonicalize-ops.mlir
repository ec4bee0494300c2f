// RUN: stepwell-opt %s -p graph-canonicalize-ops | filecheck %s

// CHECK-LABEL: func.func @layer
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>, %[[w:[^:]*]]: tensor<4x8xf32>)
// CHECK-DAG: %[[a:.*]] = graph.constant dense<[1.000000e+00, 2.000000e+00
// CHECK-DAG: %[[b:.*]] = graph.constant dense<{{\[\[}}5.000000e+00
// CHECK: %[[r:.*]] = graph.reshape %[[b]] shape = [4]
// CHECK-NEXT: %[[s:.*]] = graph.add %[[r]], %[[a]]
// CHECK-NEXT: %[[d:.*]] = graph.dense %[[x]], %[[w]], %[[s]]
// CHECK-NEXT: %[[y:.*]] = graph.softmax %[[d]] axis = 1
// CHECK-NEXT: func.return %[[y]]
func.func @layer(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %a = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %b = graph.constant dense<[[5.0, 6.0, 7.0, 8.0]]> : tensor<1x4xf32>
  %t = graph.transpose %w permutation = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %m = graph.matmul %x, %t : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %s = graph.add %a, %m : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %u = graph.add %b, %s : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.softmax %u axis = -1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @bounds
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x3x4xi32>)
// CHECK-DAG: %[[c:.*]] = graph.constant dense<-7>
// CHECK-DAG: %[[s:.*]] = graph.add %[[x]], %[[c]]
// CHECK: %[[r:.*]] = graph.relu %[[s]]
// CHECK-NEXT: %[[k:.*]] = graph.clip %[[r]] maximum = 9
// CHECK-NEXT: %[[f:.*]] = graph.reshape %[[k]] shape = [-1, 12]
// CHECK-NEXT: %[[y:.*]] = graph.reduce sum %[[f]] axes = [0, 1]
func.func @bounds(%x: tensor<?x3x4xi32>) -> tensor<i32> {
  %seven = graph.constant dense<7> : tensor<i32>
  %zero = graph.constant dense<0> : tensor<i32>
  %nine = graph.constant dense<9> : tensor<i32>
  %s = graph.sub %x, %seven : (tensor<?x3x4xi32>, tensor<i32>) -> tensor<?x3x4xi32>
  %r = graph.max %zero, %s : (tensor<i32>, tensor<?x3x4xi32>) -> tensor<?x3x4xi32>
  %k = graph.min %nine, %r : (tensor<i32>, tensor<?x3x4xi32>) -> tensor<?x3x4xi32>
  %f = graph.reshape %k shape = [0, -1] : (tensor<?x3x4xi32>) -> tensor<?x12xi32>
  %y = graph.reduce sum %f axes = [-1, 0] keepdims = false : (tensor<?x12xi32>) -> tensor<i32>
  func.return %y : tensor<i32>
}

// The product has another user, so that it would be computed twice.
// CHECK-LABEL: func.func @product_with_two_users_stays
// CHECK-NEXT: %[[d:.*]] = graph.dense
// CHECK-NEXT: %[[s:.*]] = graph.add %[[d]]
// CHECK-NEXT: func.return %[[d]], %[[s]]
func.func @product_with_two_users_stays(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %d = graph.dense %x, %w : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  %s = graph.add %d, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  func.return %d, %s : tensor<2x4xf32>, tensor<2x4xf32>
}

// A constant summand of the channels of a convolution is its bias, one of its columns is not.
// CHECK-LABEL: func.func @filters
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x1x4xf32>, %[[w:[^:]*]]: tensor<2x1x3xf32>)
// CHECK-DAG: %[[b:.*]] = graph.constant dense<{{\[\[}}1.000000e+00]
// CHECK-DAG: %[[c:.*]] = graph.constant dense<[3.000000e+00
// CHECK: %[[v:.*]] = graph.reshape %[[b]] shape = [2]
// CHECK-NEXT: %[[d:.*]] = graph.conv %[[x]], %[[w]], %[[v]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[d]], %[[c]]
// CHECK-NEXT: func.return %[[y]]
func.func @filters(%x: tensor<?x1x4xf32>, %w: tensor<2x1x3xf32>) -> tensor<?x2x2xf32> {
  %b = graph.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %c = graph.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %d = graph.conv %x, %w strides = [1] dilations = [1] groups = 1
      : (tensor<?x1x4xf32>, tensor<2x1x3xf32>) -> tensor<?x2x2xf32>
  %a = graph.add %b, %d : (tensor<2x1xf32>, tensor<?x2x2xf32>) -> tensor<?x2x2xf32>
  %y = graph.add %a, %c : (tensor<?x2x2xf32>, tensor<2xf32>) -> tensor<?x2x2xf32>
  func.return %y : tensor<?x2x2xf32>
}

// The transpose of a product exchanges its operands.
// CHECK-LABEL: func.func @transposed_product
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>, %[[w:[^:]*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[y:.*]] = graph.dense %[[x]], %[[w]]
// CHECK-NEXT: func.return %[[y]]
func.func @transposed_product(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %d = graph.dense %w, %x : (tensor<4x8xf32>, tensor<?x8xf32>) -> tensor<4x?xf32>
  %y = graph.transpose %d permutation = [1, 0] : (tensor<4x?xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Weights that are constants stay the second operand.
// CHECK-LABEL: func.func @transposed_layer
// CHECK: graph.dense
// CHECK-NEXT: graph.transpose
// CHECK-NEXT: func.return
func.func @transposed_layer(%x: tensor<?x2xf32>) -> tensor<2x?xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = graph.dense %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %y = graph.transpose %d permutation = [1, 0] : (tensor<?x2xf32>) -> tensor<2x?xf32>
  func.return %y : tensor<2x?xf32>
}
