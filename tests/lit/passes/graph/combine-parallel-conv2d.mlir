// RUN: stepwell-opt %s -p "graph-combine-parallel-conv2d{target=x86-64-v4}" | filecheck %s

// What follows all convolutions in the same way comes along; the parts are read where they are.
// CHECK-LABEL: func.func @epilogues
// CHECK-SAME: (%[[x:.*]]: tensor<2x9x4xf32>)
// CHECK-DAG: %[[v:.*]] = graph.constant dense<1.000000e+00> : tensor<1x9x1xf32>
// CHECK-DAG: %[[w:.*]] = graph.constant dense<2.000000e+00> : tensor<2x9x1xf32>
// CHECK-DAG: %[[b:.*]] = graph.constant dense<3.000000e+00> : tensor<1x1xf32>
// CHECK-DAG: %[[c:.*]] = graph.constant dense<4.000000e+00> : tensor<2x1xf32>
// CHECK: %[[vw:.*]] = graph.concat %[[v]], %[[w]] axis = 0
// CHECK-NEXT: %[[d:.*]] = graph.conv %[[x]], %[[vw]] strides = [1]
// CHECK-NEXT: %[[bc:.*]] = graph.concat %[[b]], %[[c]] axis = 0
// CHECK-NEXT: %[[a:.*]] = graph.add %[[d]], %[[bc]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[a]]
// CHECK-NEXT: %[[s:.*]] = graph.slice %[[r]] starts = [0, 0, 0] ends = [2, 1, 4]
// CHECK-NEXT: %[[t:.*]] = graph.slice %[[r]] starts = [0, 1, 0] ends = [2, 3, 4]
// CHECK-NEXT: %[[y:.*]] = graph.mul %[[s]], %[[t]]
// CHECK-NEXT: func.return %[[y]]
func.func @epilogues(%x: tensor<2x9x4xf32>) -> tensor<2x2x4xf32> {
  %v = graph.constant dense<1.0> : tensor<1x9x1xf32>
  %a = graph.conv %x, %v strides = [1] dilations = [1] groups = 1
      : (tensor<2x9x4xf32>, tensor<1x9x1xf32>) -> tensor<2x1x4xf32>
  %w = graph.constant dense<2.0> : tensor<2x9x1xf32>
  %b = graph.constant dense<3.0> : tensor<1x1xf32>
  %c = graph.constant dense<4.0> : tensor<2x1xf32>
  %d = graph.conv %x, %w strides = [1] dilations = [1] groups = 1
      : (tensor<2x9x4xf32>, tensor<2x9x1xf32>) -> tensor<2x2x4xf32>
  %e = graph.add %a, %b : (tensor<2x1x4xf32>, tensor<1x1xf32>) -> tensor<2x1x4xf32>
  %f = graph.add %d, %c : (tensor<2x2x4xf32>, tensor<2x1xf32>) -> tensor<2x2x4xf32>
  %g = graph.relu %e : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %h = graph.relu %f : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %y = graph.mul %g, %h : (tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  func.return %y : tensor<2x2x4xf32>
}

// Another stride is another convolution.
// CHECK-LABEL: func.func @strides_differ
// CHECK: graph.conv
// CHECK: graph.conv
// CHECK-NOT: graph.slice
func.func @strides_differ(%x: tensor<2x9x2xf32>) -> tensor<2x1x1xf32> {
  %v = graph.constant dense<1.0> : tensor<1x9x1xf32>
  %w = graph.constant dense<2.0> : tensor<1x9x1xf32>
  %a = graph.conv %x, %v strides = [2] dilations = [1] groups = 1
      : (tensor<2x9x2xf32>, tensor<1x9x1xf32>) -> tensor<2x1x1xf32>
  %b = graph.conv %x, %w strides = [3] dilations = [1] groups = 1
      : (tensor<2x9x2xf32>, tensor<1x9x1xf32>) -> tensor<2x1x1xf32>
  %y = graph.mul %a, %b : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  func.return %y : tensor<2x1x1xf32>
}

// Both results are copies of more elements than are saved.
// CHECK-LABEL: func.func @copies_cost_more
// CHECK: graph.conv
// CHECK: graph.conv
// CHECK-NOT: graph.slice
func.func @copies_cost_more(%x: tensor<2x3x2xf32>) -> (tensor<2x4x2xf32>, tensor<2x4x2xf32>) {
  %v = graph.constant dense<1.0> : tensor<4x3x1xf32>
  %w = graph.constant dense<2.0> : tensor<4x3x1xf32>
  %a = graph.conv %x, %v strides = [1] dilations = [1] groups = 1
      : (tensor<2x3x2xf32>, tensor<4x3x1xf32>) -> tensor<2x4x2xf32>
  %b = graph.conv %x, %w strides = [1] dilations = [1] groups = 1
      : (tensor<2x3x2xf32>, tensor<4x3x1xf32>) -> tensor<2x4x2xf32>
  func.return %a, %b : tensor<2x4x2xf32>, tensor<2x4x2xf32>
}

// Blocks of 32 channels in each of them, and in all: the slices are whole blocks.
// CHECK-LABEL: func.func @same_blocks
// CHECK: graph.conv
// CHECK-SAME: -> tensor<1x96x28x28xf32>
// CHECK-NOT: graph.conv
// CHECK: graph.slice %{{.*}} starts = [0, 0, 0, 0] ends = [1, 64, 28, 28]
// CHECK: graph.slice %{{.*}} starts = [0, 64, 0, 0] ends = [1, 96, 28, 28]
func.func @same_blocks(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x28x28xf32> {
  %u = graph.constant dense<1.0> : tensor<64x64x1x1xf32>
  %v = graph.constant dense<2.0> : tensor<32x64x1x1xf32>
  %w = graph.constant dense<3.0> : tensor<64x32x1x1xf32>
  %a = graph.conv %x, %u strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x28x28xf32>
  %b = graph.conv %x, %v strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<32x64x1x1xf32>) -> tensor<1x32x28x28xf32>
  %r = graph.relu %b : (tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  %c = graph.conv %r, %w strides = [1, 1] dilations = [1, 1] groups = 1
      : (tensor<1x32x28x28xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x28x28xf32>
  %y = graph.add %a, %c : (tensor<1x64x28x28xf32>, tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}

// Blocks of 30 and 20 channels, but of 16 in both together: slices would have other layouts.
// CHECK-LABEL: func.func @other_blocks
// CHECK: graph.conv
// CHECK: graph.conv
// CHECK: graph.conv
// CHECK-NOT: graph.slice
func.func @other_blocks(%x: tensor<1x64x56x56xf32>) -> tensor<1x60x28x28xf32> {
  %u = graph.constant dense<1.0> : tensor<60x64x1x1xf32>
  %v = graph.constant dense<2.0> : tensor<20x64x1x1xf32>
  %w = graph.constant dense<3.0> : tensor<60x20x1x1xf32>
  %a = graph.conv %x, %u strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<60x64x1x1xf32>) -> tensor<1x60x28x28xf32>
  %b = graph.conv %x, %v strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<20x64x1x1xf32>) -> tensor<1x20x28x28xf32>
  %r = graph.relu %b : (tensor<1x20x28x28xf32>) -> tensor<1x20x28x28xf32>
  %c = graph.conv %r, %w strides = [1, 1] dilations = [1, 1] groups = 1
      : (tensor<1x20x28x28xf32>, tensor<60x20x1x1xf32>) -> tensor<1x60x28x28xf32>
  %y = graph.add %a, %c : (tensor<1x60x28x28xf32>, tensor<1x60x28x28xf32>) -> tensor<1x60x28x28xf32>
  func.return %y : tensor<1x60x28x28xf32>
}

// Blocks do not matter where nothing but a concatenation reads the parts.
// CHECK-LABEL: func.func @side_by_side
// CHECK: graph.conv
// CHECK-SAME: -> tensor<1x80x28x28xf32>
// CHECK-NOT: graph.conv
func.func @side_by_side(%x: tensor<1x64x56x56xf32>) -> tensor<1x80x28x28xf32> {
  %u = graph.constant dense<1.0> : tensor<60x64x1x1xf32>
  %v = graph.constant dense<2.0> : tensor<20x64x1x1xf32>
  %a = graph.conv %x, %u strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<60x64x1x1xf32>) -> tensor<1x60x28x28xf32>
  %b = graph.conv %x, %v strides = [2, 2] dilations = [1, 1] groups = 1
      : (tensor<1x64x56x56xf32>, tensor<20x64x1x1xf32>) -> tensor<1x20x28x28xf32>
  %y = graph.concat %a, %b axis = 1 : (tensor<1x60x28x28xf32>, tensor<1x20x28x28xf32>) -> tensor<1x80x28x28xf32>
  func.return %y : tensor<1x80x28x28xf32>
}
