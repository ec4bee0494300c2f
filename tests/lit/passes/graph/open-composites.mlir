// RUN: stepwell-opt %s -p graph-open-composites | filecheck %s

// CHECK-LABEL: func.func @dropout_is_the_identity
// CHECK-SAME: (%[[x:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: func.return %[[x]] : tensor<?x8xf32>
func.func @dropout_is_the_identity(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = graph.dropout %x ratio = 5.0e-01 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @dropout_of_16_bits
// CHECK: func.return %x : tensor<8xf16>
func.func @dropout_of_16_bits(%x: tensor<8xf16>) -> tensor<8xf16> {
  %y = graph.dropout %x ratio = 5.0e-01 : (tensor<8xf16>) -> tensor<8xf16>
  func.return %y : tensor<8xf16>
}

// CHECK-LABEL: func.func @composite_is_its_body
// CHECK-SAME: (%[[x:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: %[[gate:.*]] = graph.sigmoid %[[x]]
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[x]], %[[gate]]
// CHECK-NEXT: func.return %[[y]] : tensor<?x8xf32>
func.func @composite_is_its_body(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = graph.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// 16 bits are computed in f32, and rounded once.
// CHECK-LABEL: func.func @composite_in_bf16
// CHECK-SAME: (%[[x:.*]]: tensor<8xbf16>)
// CHECK-NEXT: %[[wide:.*]] = graph.cast %[[x]] : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK-NEXT: %[[size:.*]] = graph.abs %[[wide]]
// CHECK-NEXT: %[[one:.*]] = graph.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[sum:.*]] = graph.add %[[size]], %[[one]]
// CHECK-NEXT: %[[quotient:.*]] = graph.div %[[wide]], %[[sum]]
// CHECK-NEXT: %[[y:.*]] = graph.cast %[[quotient]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT: func.return %[[y]] : tensor<8xbf16>
func.func @composite_in_bf16(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = graph.softsign %x : (tensor<8xbf16>) -> tensor<8xbf16>
  func.return %y : tensor<8xbf16>
}

// Rules match these.
// CHECK-LABEL: func.func @some_composites_stay
// CHECK: graph.gelu
// CHECK: graph.leaky_relu
// CHECK: graph.clip
func.func @some_composites_stay(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = graph.gelu %x approximate = none : (tensor<8xf32>) -> tensor<8xf32>
  %1 = graph.leaky_relu %0 alpha = 0.1 : (tensor<8xf32>) -> tensor<8xf32>
  %y = graph.clip %1 maximum = 6.0 : f64 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
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
// CHECK-NEXT: %[[scaled:.*]] = graph.mul %[[x]], %[[ks]]
// CHECK-NEXT: %[[shifts:.*]] = graph.reshape %[[shift]] shape = [-1, 1]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[scaled]], %[[shifts]] : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %[[y]]
func.func @batch_norm_is_scale_and_shift(%x: tensor<2x3x4xf32>, %scale: tensor<3xf32>, %bias: tensor<3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %y = graph.batch_norm %x scale %scale : tensor<3xf32> bias %bias : tensor<3xf32> mean %mean : tensor<3xf32> variance %variance : tensor<3xf32> axis = 1 epsilon = 1.0e-05 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @batch_norm_in_f16
// CHECK-SAME: (%[[x:[^:]*]]: tensor<2x3xf16>
// CHECK-NEXT: %[[wide:.*]] = graph.cast %[[x]] : (tensor<2x3xf16>) -> tensor<2x3xf32>
// CHECK: %[[k:.*]] = graph.reshape %{{.*}} shape = [-1] : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: graph.mul %[[wide]], %[[k]]
// CHECK: %[[y:.*]] = graph.cast %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK-NEXT: func.return %[[y]]
func.func @batch_norm_in_f16(%x: tensor<2x3xf16>, %p: tensor<3xf16>) -> tensor<2x3xf16> {
  %y = graph.batch_norm %x scale %p : tensor<3xf16> bias %p : tensor<3xf16> mean %p : tensor<3xf16> variance %p : tensor<3xf16> axis = 1 epsilon = 1.0e-05 : (tensor<2x3xf16>) -> tensor<2x3xf16>
  func.return %y : tensor<2x3xf16>
}

// A value whose type says more or less cannot take the place of the result.
// CHECK-LABEL: func.func @dropout_between_types_stays
// CHECK-NEXT: graph.dropout
func.func @dropout_between_types_stays(%x: tensor<4x8xf32>) -> tensor<?x8xf32> {
  %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @batch_norm_without_scale_and_bias
// CHECK-SAME: (%[[x:[^:]*]]: tensor<2x3xf32>, %[[mean:[^:]*]]: tensor<3xf32>, %[[variance:[^:]*]]: tensor<3xf32>)
// CHECK: %[[k:.*]] = graph.rsqrt
// CHECK-NEXT: %[[centre:.*]] = graph.mul %[[mean]], %[[k]]
// CHECK-NEXT: %[[shift:.*]] = graph.neg %[[centre]]
// CHECK: graph.mul %[[x]]
// CHECK-NOT: batch_norm
func.func @batch_norm_without_scale_and_bias(%x: tensor<2x3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<2x3xf32> {
  %y = graph.batch_norm %x mean %mean : tensor<3xf32> variance %variance : tensor<3xf32> axis = -1 epsilon = 1.0e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>, %[[scale:[^:]*]]: tensor<8xf32>, %[[bias:[^:]*]]: tensor<8xf32>)
// CHECK-NEXT: %[[mean:.*]] = graph.reduce mean %[[x]] axes = [1] keepdims = true
// CHECK-NEXT: %[[d:.*]] = graph.sub %[[x]], %[[mean]]
// CHECK-NEXT: %[[correction:.*]] = graph.reduce mean %[[d]] axes = [1] keepdims = true
// CHECK-NEXT: %[[square:.*]] = graph.mul %[[d]], %[[d]]
// CHECK-NEXT: %[[squares:.*]] = graph.reduce mean %[[square]] axes = [1] keepdims = true
// CHECK-NEXT: %[[excess:.*]] = graph.mul %[[correction]], %[[correction]]
// CHECK-NEXT: %[[difference:.*]] = graph.sub %[[squares]], %[[excess]]
// CHECK-NEXT: %[[zero:.*]] = graph.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[variance:.*]] = graph.max %[[difference]], %[[zero]]
// CHECK-NEXT: %[[distance:.*]] = graph.sub %[[d]], %[[correction]]
// CHECK-NEXT: %[[epsilon:.*]] = graph.constant dense<1.000000e-05> : tensor<f32>
// CHECK-NEXT: %[[sum:.*]] = graph.add %[[variance]], %[[epsilon]]
// CHECK-NEXT: %[[inverse:.*]] = graph.rsqrt %[[sum]]
// CHECK-NEXT: %[[z:.*]] = graph.mul %[[distance]], %[[inverse]]
// CHECK-NEXT: %[[scaled:.*]] = graph.mul %[[z]], %[[scale]]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[scaled]], %[[bias]]
// CHECK-NEXT: func.return %[[y]]
func.func @layer_norm(%x: tensor<?x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<?x8xf32> {
  %y = graph.layer_norm %x scale %scale : tensor<8xf32> bias %bias : tensor<8xf32> axis = -1 epsilon = 1.0e-05 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @layer_norm_of_halves_is_computed_in_f32
// CHECK-NEXT: graph.cast %{{.*}} : (tensor<4x8xf16>) -> tensor<4x8xf32>
// CHECK: %[[y:.*]] = graph.cast %{{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK-NEXT: func.return %[[y]]
func.func @layer_norm_of_halves_is_computed_in_f32(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %y = graph.layer_norm %x axis = -1 epsilon = 1.0e-05 : (tensor<4x8xf16>) -> tensor<4x8xf16>
  func.return %y : tensor<4x8xf16>
}

// CHECK-LABEL: func.func @instance_norm
// CHECK-NEXT: graph.reduce mean %{{.*}} axes = [2, 3] keepdims = true
// CHECK: %[[scale:.*]] = graph.reshape %{{.*}} shape = [-1, 1, 1]
// CHECK-NEXT: graph.mul %{{.*}}, %[[scale]]
// CHECK-NEXT: func.return
func.func @instance_norm(%x: tensor<?x3x4x5xf32>, %scale: tensor<3xf32>) -> tensor<?x3x4x5xf32> {
  %y = graph.instance_norm %x scale %scale : tensor<3xf32> axis = 1 epsilon = 1.0e-05 : (tensor<?x3x4x5xf32>) -> tensor<?x3x4x5xf32>
  func.return %y : tensor<?x3x4x5xf32>
}

// CHECK-LABEL: func.func @group_norm
// CHECK-NEXT: graph.reshape %{{.*}} shape = [0, 2, 3, -1] : (tensor<?x6x?xf32>) -> tensor<?x2x3x?xf32>
// CHECK-NEXT: graph.reduce mean %{{.*}} axes = [2, 3] keepdims = true
// CHECK: %[[bias:.*]] = graph.reshape %{{.*}} shape = [2, 3, 1]
// CHECK-NEXT: %[[y:.*]] = graph.add %{{.*}}, %[[bias]]
// CHECK-NEXT: graph.reshape %[[y]] shape = [0, 6, -1] : (tensor<?x2x3x?xf32>) -> tensor<?x6x?xf32>
// CHECK-NEXT: func.return
func.func @group_norm(%x: tensor<?x6x?xf32>, %bias: tensor<6xf32>) -> tensor<?x6x?xf32> {
  %y = graph.group_norm %x bias %bias : tensor<6xf32> groups = 2 axis = 1 epsilon = 1.0e-05 : (tensor<?x6x?xf32>) -> tensor<?x6x?xf32>
  func.return %y : tensor<?x6x?xf32>
}

// No reshape says which of two sizes is which: the means of groups are those of their channels.
// CHECK-LABEL: func.func @group_norm_with_two_symbolic_sizes
// CHECK-SAME: (%[[x:.*]]: tensor<2x6x?x?xf32>)
// CHECK-NEXT: %[[means:.*]] = graph.reduce mean %[[x]] axes = [2, 3] keepdims = true
// CHECK-NEXT: %[[apart:.*]] = graph.reshape %[[means]] shape = [0, 2, 3, 1, 1]
// CHECK-NEXT: %[[groups:.*]] = graph.reduce mean %[[apart]] axes = [2] keepdims = true
// CHECK-NEXT: %[[spread:.*]] = graph.broadcast_to %[[groups]] shape = [-1, -1, 3, -1, -1]
// CHECK-NEXT: %[[mean:.*]] = graph.reshape %[[spread]] shape = [0, 6, 1, 1]
// CHECK-NEXT: graph.sub %[[x]], %[[mean]]
// CHECK-NOT: group_norm
func.func @group_norm_with_two_symbolic_sizes(%x: tensor<2x6x?x?xf32>) -> tensor<2x6x?x?xf32> {
  %y = graph.group_norm %x groups = 2 axis = 1 epsilon = 1.0e-05 : (tensor<2x6x?x?xf32>) -> tensor<2x6x?x?xf32>
  func.return %y : tensor<2x6x?x?xf32>
}

// CHECK-LABEL: func.func @group_norm_without_channels
// CHECK-SAME: (%[[x:.*]]: tensor<2x0x3xf32>)
// CHECK-NEXT: func.return %[[x]]
func.func @group_norm_without_channels(%x: tensor<2x0x3xf32>) -> tensor<2x0x3xf32> {
  %y = graph.group_norm %x groups = 2 axis = 1 epsilon = 1.0e-05 : (tensor<2x0x3xf32>) -> tensor<2x0x3xf32>
  func.return %y : tensor<2x0x3xf32>
}

// CHECK-LABEL: func.func @rms_norm
// CHECK-SAME: (%[[x:[^:]*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[square:.*]] = graph.mul %[[x]], %[[x]]
// CHECK-NEXT: graph.reduce mean %[[square]] axes = [1] keepdims = true
// CHECK: %[[inverse:.*]] = graph.rsqrt
// CHECK-NEXT: graph.mul %[[x]], %[[inverse]]
// CHECK-NEXT: graph.mul
// CHECK-NEXT: func.return
func.func @rms_norm(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = graph.rms_norm %x scale %scale : tensor<8xf32> axis = -1 epsilon = 1.0e-05 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @l2_normalize
// CHECK-SAME: (%[[x:[^:]*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[square:.*]] = graph.mul %[[x]], %[[x]]
// CHECK-NEXT: %[[total:.*]] = graph.reduce sum %[[square]] axes = [1] keepdims = true
// CHECK-NEXT: %[[epsilon:.*]] = graph.constant
// CHECK-NEXT: %[[bounded:.*]] = graph.max %[[total]], %[[epsilon]]
// CHECK-NEXT: %[[inverse:.*]] = graph.rsqrt %[[bounded]]
// CHECK-NEXT: graph.mul %[[x]], %[[inverse]]
// CHECK-NEXT: func.return
func.func @l2_normalize(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = graph.l2_normalize %x axes = [-1] epsilon = 1.0e-12 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @batch_norm_training_without_statistics
// CHECK-NEXT: graph.reduce mean %{{.*}} axes = [0, 2] keepdims = true
// CHECK-NOT: batch_norm
// CHECK: func.return
func.func @batch_norm_training_without_statistics(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %y, %mean, %variance = graph.batch_norm_training %x axis = 1 epsilon = 1.0e-05 : (tensor<?x3x4xf32>) -> (tensor<?x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %y : tensor<?x3x4xf32>
}

// CHECK-LABEL: func.func @batch_norm_training_whose_statistics_are_used
// CHECK: %[[squares:.*]] = graph.max
// CHECK: %[[variance:.*]] = graph.reshape %[[squares]] shape = [-1]
// CHECK-NEXT: func.return %{{.*}}, %[[variance]]
func.func @batch_norm_training_whose_statistics_are_used(%x: tensor<?x3x4xf32>) -> (tensor<?x3x4xf32>, tensor<3xf32>) {
  %y, %mean, %variance = graph.batch_norm_training %x axis = 1 epsilon = 1.0e-05 : (tensor<?x3x4xf32>) -> (tensor<?x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %y, %variance : tensor<?x3x4xf32>, tensor<3xf32>
}
