// RUN: stepwell-opt %s -p "graph-winograd-conv2d" | filecheck %s
// RUN: stepwell-opt %s -p "graph-winograd-conv2d{largest=2}" | filecheck %s --check-prefix=SMALL

// Larger tiles need fewer multiplications; the bias stays.
// CHECK-LABEL: func.func @tiles
// CHECK: %[[u:.*]] = graph.winograd_filter %{{.*}} tile = 4 : (tensor<32x16x3x3xf32>) -> tensor<36x16x32xf32>
// CHECK-NEXT: graph.winograd_conv %{{.*}}, %[[u]], %{{.*}} tile = 4 block = 32
// SMALL-LABEL: func.func @tiles
// SMALL: graph.winograd_conv %{{.*}}, %{{.*}}, %{{.*}} tile = 2 block = 32
func.func @tiles(%x: tensor<?x1x30x30x16xf32>) -> tensor<?x1x28x28x32xf32> {
  %w = graph.constant dense<0.5> : tensor<32x16x3x3xf32>
  %b = graph.constant dense<0.5> : tensor<32xf32>
  %y = graph.blocked_conv %x, %w, %b strides = [1, 1] dilations = [1, 1] block = 32 : (tensor<?x1x30x30x16xf32>, tensor<32x16x3x3xf32>, tensor<32xf32>) -> tensor<?x1x28x28x32xf32>
  func.return %y : tensor<?x1x28x28x32xf32>
}

// Windows of 5 x 5 have tiles of 2 x 2.
// CHECK-LABEL: func.func @larger_window
// CHECK: graph.winograd_conv %{{.*}}, %{{.*}} tile = 2 block = 16
func.func @larger_window(%x: tensor<1x1x20x20x16xf32>) -> tensor<1x1x16x16x16xf32> {
  %w = graph.constant dense<0.5> : tensor<16x16x5x5xf32>
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 16 : (tensor<1x1x20x20x16xf32>, tensor<16x16x5x5xf32>) -> tensor<1x1x16x16x16xf32>
  func.return %y : tensor<1x1x16x16x16xf32>
}

// Transformed filters are read from memory for few places.
// CHECK-LABEL: func.func @few_places
// CHECK: graph.blocked_conv
func.func @few_places(%x: tensor<1x8x5x5x16xf32>) -> tensor<1x8x3x3x16xf32> {
  %w = graph.constant dense<0.5> : tensor<128x128x3x3xf32>
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 16 : (tensor<1x8x5x5x16xf32>, tensor<128x128x3x3xf32>) -> tensor<1x8x3x3x16xf32>
  func.return %y : tensor<1x8x3x3x16xf32>
}

// A comparison shows how a sum is rounded.
// CHECK-LABEL: func.func @shown
// CHECK: graph.blocked_conv
func.func @shown(%x: tensor<1x1x30x30x16xf32>) -> tensor<1x1x28x28x16xi1> {
  %w = graph.constant dense<0.5> : tensor<16x16x3x3xf32>
  %z = graph.constant dense<1.0> : tensor<f32>
  %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 16 : (tensor<1x1x30x30x16xf32>, tensor<16x16x3x3xf32>) -> tensor<1x1x28x28x16xf32>
  %c = graph.less %y, %z : (tensor<1x1x28x28x16xf32>, tensor<f32>) -> tensor<1x1x28x28x16xi1>
  func.return %c : tensor<1x1x28x28x16xi1>
}
