// RUN: stepwell-opt %s -p graph-simplify-inference | filecheck %s

// CHECK-LABEL: func.func @dropout_is_the_identity
// CHECK-SAME: (%[[x:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: func.return %[[x]] : tensor<?x8xf32>
func.func @dropout_is_the_identity(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = graph.dropout %x ratio = 5.0e-01 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @batch_norm_is_scale_and_shift
// CHECK-SAME: (%[[x:[^:]*]]: tensor<2x3x4xf32>, %[[scale:[^:]*]]: tensor<3xf32>, %[[bias:[^:]*]]: tensor<3xf32>, %[[mean:[^:]*]]: tensor<3xf32>, %[[variance:[^:]*]]: tensor<3xf32>)
// CHECK-NEXT: %[[epsilon:.*]] = graph.constant dense<1.000000e-05> : tensor<f32>
// CHECK-NEXT: %[[sum:.*]] = graph.add %[[variance]], %[[epsilon]]
// CHECK-NEXT: %[[rsqrt:.*]] = graph.rsqrt %[[sum]]
// CHECK-NEXT: %[[k:.*]] = graph.mul %[[scale]], %[[rsqrt]]
// CHECK-NEXT: %[[centre:.*]] = graph.mul %[[mean]], %[[k]]
// CHECK-NEXT: %[[shift:.*]] = graph.sub %[[bias]], %[[centre]]
// CHECK-NEXT: %[[ks:.*]] = graph.reshape %[[k]] shape = [-1, 1]
// CHECK-NEXT: %[[shifts:.*]] = graph.reshape %[[shift]] shape = [-1, 1]
// CHECK-NEXT: %[[scaled:.*]] = graph.mul %[[x]], %[[ks]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[scaled]], %[[shifts]] : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %[[y]]
func.func @batch_norm_is_scale_and_shift(%x: tensor<2x3x4xf32>, %scale: tensor<3xf32>, %bias: tensor<3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %y = graph.batch_norm %x, %scale, %bias, %mean, %variance epsilon = 1.0e-05 axis = 1 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  func.return %y : tensor<2x3x4xf32>
}

// In f16 the factors would be rounded.
// CHECK-LABEL: func.func @batch_norm_in_f16_stays
// CHECK-NEXT: graph.batch_norm
func.func @batch_norm_in_f16_stays(%x: tensor<2x3xf16>, %p: tensor<3xf16>) -> tensor<2x3xf16> {
  %y = graph.batch_norm %x, %p, %p, %p, %p epsilon = 1.0e-05 axis = 1 : (tensor<2x3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) -> tensor<2x3xf16>
  func.return %y : tensor<2x3xf16>
}

// A value whose type says more or less cannot take the place of the result.
// CHECK-LABEL: func.func @dropout_between_types_stays
// CHECK-NEXT: graph.dropout
func.func @dropout_between_types_stays(%x: tensor<4x8xf32>) -> tensor<?x8xf32> {
  %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}
