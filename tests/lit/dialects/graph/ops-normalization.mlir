// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Normalisations by statistics of what is normalised.

// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<?x64xf32>, %s: tensor<64xf32>, %b: tensor<1xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %y0 = graph.layer_norm %x scale %s : tensor<64xf32> bias %b : tensor<1xf32> axis = -1 epsilon = 1.000000e-05 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %y0 = graph.layer_norm %x scale %s : tensor<64xf32> bias %b : tensor<1xf32> axis = -1 epsilon = 1.000000e-05 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK-NEXT: %y1 = graph.layer_norm %x bias %s : tensor<64xf32> axis = 0 epsilon = 0.000000e+00 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %y1 = graph.layer_norm %x bias %s : tensor<64xf32> axis = 0 epsilon = 0.000000e+00 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK-NEXT: %y2 = graph.layer_norm %x axis = 1 epsilon = 1.000000e-05 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %y2 = graph.layer_norm %x axis = 1 epsilon = 1.000000e-05 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  func.return %y0 : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @instance_norm
func.func @instance_norm(%x: tensor<?x6x4x?xf32>, %s: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<?x6x4x?xf32> {
  // CHECK-NEXT: %y0 = graph.instance_norm %x scale %s : tensor<6xf32> bias %b : tensor<6xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  %y0 = graph.instance_norm %x scale %s : tensor<6xf32> bias %b : tensor<6xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  // CHECK-NEXT: %y1 = graph.instance_norm %x axis = -1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  %y1 = graph.instance_norm %x axis = -1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  func.return %y0 : tensor<?x6x4x?xf32>
}

// CHECK-LABEL: func.func @group_norm
func.func @group_norm(%x: tensor<?x6x4x?xf32>, %s: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<?x6x4x?xf32> {
  // CHECK-NEXT: %y0 = graph.group_norm %x scale %s : tensor<6xf32> bias %b : tensor<6xf32> groups = 2 axis = 1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  %y0 = graph.group_norm %x scale %s : tensor<6xf32> bias %b : tensor<6xf32> groups = 2 axis = 1 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  // CHECK-NEXT: %y1 = graph.group_norm %x groups = 4 axis = -2 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  %y1 = graph.group_norm %x groups = 4 axis = -2 epsilon = 1.000000e-05 : (tensor<?x6x4x?xf32>) -> tensor<?x6x4x?xf32>
  func.return %y0 : tensor<?x6x4x?xf32>
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<?x64xf16>, %s: tensor<64xf16>) -> tensor<?x64xf16> {
  // CHECK-NEXT: %y0 = graph.rms_norm %x scale %s : tensor<64xf16> axis = -1 epsilon = 1.000000e-05 : (tensor<?x64xf16>) -> tensor<?x64xf16>
  %y0 = graph.rms_norm %x scale %s : tensor<64xf16> axis = -1 epsilon = 1.000000e-05 : (tensor<?x64xf16>) -> tensor<?x64xf16>
  // CHECK-NEXT: %y1 = graph.rms_norm %x axis = 0 epsilon = 1.000000e-05 : (tensor<?x64xf16>) -> tensor<?x64xf16>
  %y1 = graph.rms_norm %x axis = 0 epsilon = 1.000000e-05 : (tensor<?x64xf16>) -> tensor<?x64xf16>
  func.return %y0 : tensor<?x64xf16>
}

// CHECK-LABEL: func.func @l2_normalize
func.func @l2_normalize(%x: tensor<?x4x3xf64>) -> tensor<?x4x3xf64> {
  // CHECK-NEXT: %y0 = graph.l2_normalize %x axes = [0, -1] epsilon = 1.000000e-12 : (tensor<?x4x3xf64>) -> tensor<?x4x3xf64>
  %y0 = graph.l2_normalize %x axes = [0, -1] epsilon = 1.000000e-12 : (tensor<?x4x3xf64>) -> tensor<?x4x3xf64>
  func.return %y0 : tensor<?x4x3xf64>
}

// CHECK-LABEL: func.func @batch_norm_training
func.func @batch_norm_training(%x: tensor<?x3x8xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: %y, %mean, %variance = graph.batch_norm_training %x scale %s : tensor<3xf32> bias %b : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<?x3x8xf32>) -> (tensor<?x3x8xf32>, tensor<3xf32>, tensor<3xf32>)
  %y, %mean, %variance = graph.batch_norm_training %x scale %s : tensor<3xf32> bias %b : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<?x3x8xf32>) -> (tensor<?x3x8xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %variance : tensor<3xf32>
}

// CHECK-LABEL: func.func @batch_norm_without_scale_and_bias
func.func @batch_norm_without_scale_and_bias(%x: tensor<2x3xf32>, %m: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %y = graph.batch_norm %x mean %m : tensor<3xf32> variance %m : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = graph.batch_norm %x mean %m : tensor<3xf32> variance %m : tensor<3xf32> axis = 1 epsilon = 1.000000e-05 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
