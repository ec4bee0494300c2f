// RUN: stepwell-opt %s -p "graph-alter-op-layout{target=x86-64-v3}" | filecheck %s
// RUN: stepwell-opt %s -p "graph-alter-op-layout{target=x86-64-v4}" | filecheck %s --check-prefix=MASKS

// What is between two convolutions stays in blocks: one layout at the beginning, one at the end.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[x:.*]]: tensor<?x32x16xf32>)
// CHECK: %[[r:.*]] = graph.reshape %[[x]] shape = [-1, 2, 16, 16]
// CHECK-NEXT: %[[t:.*]] = graph.transpose %[[r]] permutation = [0, 1, 3, 2]
// CHECK-NEXT: %[[c:.*]] = graph.blocked_conv %[[t]], %{{.*}} strides = [1] dilations = [1] block = 16
// CHECK-SAME: -> tensor<?x2x14x16xf32>
// CHECK-NEXT: %[[s:.*]] = graph.reshape %{{.*}} shape = [2, 16, 1]
// CHECK-NEXT: %[[u:.*]] = graph.transpose %[[s]] permutation = [0, 2, 1]
// CHECK-NEXT: %[[a:.*]] = graph.add %[[c]], %[[u]]
// CHECK-SAME: (tensor<?x2x14x16xf32>, tensor<2x1x16xf32>)
// CHECK-NEXT: %[[e:.*]] = graph.relu %[[a]]
// CHECK-NEXT: %[[p:.*]] = graph.pad constant %[[e]] low = [0, 0, 1, 0] high = [0, 0, 1, 0]
// CHECK-NEXT: %[[m:.*]] = graph.pool max %[[p]] window = [2, 1] strides = [2, 1] dilations = [1, 1]
// CHECK-NEXT: %[[d:.*]] = graph.blocked_conv %[[m]]
// CHECK-SAME: -> tensor<?x2x6x16xf32>
// CHECK-NEXT: %[[v:.*]] = graph.transpose %[[d]] permutation = [0, 1, 3, 2]
// CHECK-NEXT: %[[y:.*]] = graph.reshape %[[v]] shape = [-1, 32, 6]
// CHECK-NEXT: func.return %[[y]]
func.func @chain(%x: tensor<?x32x16xf32>) -> tensor<?x32x6xf32> {
  %w = graph.constant dense<0.5> : tensor<32x32x3xf32>
  %b = graph.constant dense<0.5> : tensor<32x1xf32>
  %c = graph.conv %x, %w strides = [1] dilations = [1] groups = 1 : (tensor<?x32x16xf32>, tensor<32x32x3xf32>) -> tensor<?x32x14xf32>
  %a = graph.add %c, %b : (tensor<?x32x14xf32>, tensor<32x1xf32>) -> tensor<?x32x14xf32>
  %r = graph.relu %a : (tensor<?x32x14xf32>) -> tensor<?x32x14xf32>
  %p = graph.pad constant %r low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<?x32x14xf32>) -> tensor<?x32x16xf32>
  %m = graph.pool max %p window = [2] strides = [2] dilations = [1] : (tensor<?x32x16xf32>) -> tensor<?x32x8xf32>
  %y = graph.conv %m, %w strides = [1] dilations = [1] groups = 1 : (tensor<?x32x8xf32>, tensor<32x32x3xf32>) -> tensor<?x32x6xf32>
  func.return %y : tensor<?x32x6xf32>
}

// A larger image has the same blocks: places are chosen in front of them.
// CHECK-LABEL: func.func @gather
// CHECK: %[[c:.*]] = graph.blocked_conv
// CHECK-SAME: -> tensor<1x2x14x16xf32>
// CHECK-NEXT: %[[g:.*]] = graph.gather %[[c]], %{{.*}} axis = 2 : (tensor<1x2x14x16xf32>, tensor<5xi64>) -> tensor<1x2x5x16xf32>
// CHECK-NEXT: graph.blocked_conv %[[g]]
func.func @gather(%x: tensor<1x32x16xf32>) -> tensor<1x32x3xf32> {
  %w = graph.constant dense<0.5> : tensor<32x32x3xf32>
  %i = graph.constant dense<[0, 0, 1, 1, -1]> : tensor<5xi64>
  %c = graph.conv %x, %w strides = [1] dilations = [1] groups = 1 : (tensor<1x32x16xf32>, tensor<32x32x3xf32>) -> tensor<1x32x14xf32>
  %g = graph.gather %c, %i axis = 2 : (tensor<1x32x14xf32>, tensor<5xi64>) -> tensor<1x32x5xf32>
  %y = graph.conv %g, %w strides = [1] dilations = [1] groups = 1 : (tensor<1x32x5xf32>, tensor<32x32x3xf32>) -> tensor<1x32x3xf32>
  func.return %y : tensor<1x32x3xf32>
}

// A reshape copies symbolic sizes to their own places, so channels are divided behind them.
// CHECK-LABEL: func.func @symbolic_sizes
// CHECK-SAME: (%[[x:.*]]: tensor<?x32x?x?xf32>)
// CHECK: %[[l:.*]] = graph.transpose %[[x]] permutation = [0, 2, 3, 1]
// CHECK-NEXT: %[[r:.*]] = graph.reshape %[[l]] shape = [0, 0, 0, 2, 16]
// CHECK-NEXT: %[[b:.*]] = graph.transpose %[[r]] permutation = [0, 3, 1, 2, 4]
// CHECK-NEXT: %[[c:.*]] = graph.blocked_conv %[[b]], %{{.*}} strides = [2, 2] dilations = [1, 1] block = 16
// CHECK-SAME: -> tensor<?x4x?x?x16xf32>
// CHECK-NEXT: %[[o:.*]] = graph.transpose %[[c]] permutation = [0, 2, 3, 1, 4]
// CHECK-NEXT: %[[s:.*]] = graph.reshape %[[o]] shape = [0, 0, 0, 64]
// CHECK-NEXT: %[[y:.*]] = graph.transpose %[[s]] permutation = [0, 3, 1, 2]
// CHECK-NEXT: func.return %[[y]]
func.func @symbolic_sizes(%x: tensor<?x32x?x?xf32>) -> tensor<?x64x?x?xf32> {
  %w = graph.constant dense<0.5> : tensor<64x32x3x3xf32>
  %y = graph.conv %x, %w strides = [2, 2] dilations = [1, 1] groups = 1 : (tensor<?x32x?x?xf32>, tensor<64x32x3x3xf32>) -> tensor<?x64x?x?xf32>
  func.return %y : tensor<?x64x?x?xf32>
}

// Blocks are parts of the groups: 48 channels in blocks of 24, not of 16.
// CHECK-LABEL: func.func @groups
// CHECK: graph.blocked_conv %{{.*}}, %{{.*}} strides = [1] dilations = [1] block = 24 : (tensor<1x2x64x16xf32>, tensor<48x32x3xf32>) -> tensor<1x2x62x24xf32>
// CHECK: graph.blocked_conv %{{.*}}, %{{.*}} strides = [1] dilations = [1] block = 16 : (tensor<1x2x62x24xf32>, tensor<32x24x3xf32>) -> tensor<1x2x60x16xf32>
func.func @groups(%x: tensor<1x32x64xf32>) -> tensor<1x32x60xf32> {
  %v = graph.constant dense<0.5> : tensor<48x32x3xf32>
  %w = graph.constant dense<0.5> : tensor<32x24x3xf32>
  %c = graph.conv %x, %v strides = [1] dilations = [1] groups = 1 : (tensor<1x32x64xf32>, tensor<48x32x3xf32>) -> tensor<1x48x62xf32>
  %y = graph.conv %c, %w strides = [1] dilations = [1] groups = 2 : (tensor<1x48x62xf32>, tensor<32x24x3xf32>) -> tensor<1x32x60xf32>
  func.return %y : tensor<1x32x60xf32>
}

// Groups that fill no vectors, such as those of one channel, stay.
// CHECK-LABEL: func.func @small_groups
// CHECK-NOT: graph.blocked_conv
func.func @small_groups(%x: tensor<1x32x64xf32>) -> tensor<1x32x62xf32> {
  %w = graph.constant dense<0.5> : tensor<32x4x3xf32>
  %y = graph.conv %x, %w strides = [1] dilations = [1] groups = 8 : (tensor<1x32x64xf32>, tensor<32x4x3xf32>) -> tensor<1x32x62xf32>
  func.return %y : tensor<1x32x62xf32>
}

// Groups of 12 channels fill a vector of 8 and half of one, or a vector of 16 with a mask. Groups of 6
// fill none: without masks they would be vectors of 4 and 2.
// CHECK-LABEL: func.func @part_of_a_vector
// CHECK:         graph.conv {{.*}} groups = 4
// MASKS-LABEL: func.func @part_of_a_vector
// MASKS:         graph.conv {{.*}} groups = 4
// CHECK-LABEL: func.func @three_quarters
// CHECK:         graph.blocked_conv {{.*}} block = 12
// MASKS-LABEL: func.func @three_quarters
// MASKS:         graph.blocked_conv {{.*}} block = 12
func.func @part_of_a_vector(%x: tensor<1x24x64xf32>) -> tensor<1x24x31xf32> {
  %w = graph.constant dense<0.5> : tensor<24x6x3xf32>
  %y = graph.conv %x, %w strides = [2] dilations = [1] groups = 4 : (tensor<1x24x64xf32>, tensor<24x6x3xf32>) -> tensor<1x24x31xf32>
  func.return %y : tensor<1x24x31xf32>
}
func.func @three_quarters(%x: tensor<1x48x64xf32>) -> tensor<1x48x31xf32> {
  %w = graph.constant dense<0.5> : tensor<48x12x3xf32>
  %y = graph.conv %x, %w strides = [2] dilations = [1] groups = 4 : (tensor<1x48x64xf32>, tensor<48x12x3xf32>) -> tensor<1x48x31xf32>
  func.return %y : tensor<1x48x31xf32>
}

// The sum over all places gives channels in their order: no transpose comes after it.
// CHECK-LABEL: func.func @head
// CHECK: %[[c:.*]] = graph.blocked_conv
// CHECK-NEXT: %[[s:.*]] = graph.reduce mean %[[c]] axes = [2] keepdims = false
// CHECK-SAME: -> tensor<1x2x16xf32>
// CHECK-NEXT: %[[y:.*]] = graph.reshape %[[s]] shape = [1, 32]
// CHECK-NEXT: func.return %[[y]]
func.func @head(%x: tensor<1x32x64xf32>) -> tensor<1x32xf32> {
  %w = graph.constant dense<0.5> : tensor<32x32x3xf32>
  %c = graph.conv %x, %w strides = [2] dilations = [1] groups = 1 : (tensor<1x32x64xf32>, tensor<32x32x3xf32>) -> tensor<1x32x31xf32>
  %y = graph.reduce mean %c axes = [2] keepdims = false : (tensor<1x32x31xf32>) -> tensor<1x32xf32>
  func.return %y : tensor<1x32xf32>
}

// What convolves each channel by itself works on the blocks of the convolutions around it.
// CHECK-LABEL: func.func @depthwise
// CHECK: %[[c:.*]] = graph.blocked_conv
// CHECK-NEXT: %[[p:.*]] = graph.pad constant %[[c]] low = [0, 0, 1, 0] high = [0, 0, 1, 0]
// CHECK-NEXT: %[[d:.*]] = graph.blocked_conv %[[p]], %{{.*}} strides = [2] dilations = [1] block = 16
// CHECK-SAME: (tensor<1x3x66x16xf32>, tensor<48x1x3xf32>) -> tensor<1x3x32x16xf32>
// CHECK-NEXT: graph.blocked_conv %[[d]]
func.func @depthwise(%x: tensor<1x16x64xf32>) -> tensor<1x16x32xf32> {
  %w = graph.constant dense<0.5> : tensor<48x16x1xf32>
  %k = graph.constant dense<0.5> : tensor<48x1x3xf32>
  %v = graph.constant dense<0.5> : tensor<16x48x1xf32>
  %c = graph.conv %x, %w strides = [1] dilations = [1] groups = 1 : (tensor<1x16x64xf32>, tensor<48x16x1xf32>) -> tensor<1x48x64xf32>
  %p = graph.pad constant %c low = [0, 0, 1] high = [0, 0, 1] value = 0.0 : f64 : (tensor<1x48x64xf32>) -> tensor<1x48x66xf32>
  %d = graph.conv %p, %k strides = [2] dilations = [1] groups = 48 : (tensor<1x48x66xf32>, tensor<48x1x3xf32>) -> tensor<1x48x32xf32>
  %y = graph.conv %d, %v strides = [1] dilations = [1] groups = 1 : (tensor<1x48x32xf32>, tensor<16x48x1xf32>) -> tensor<1x16x32xf32>
  func.return %y : tensor<1x16x32xf32>
}

// A product of single places with few channels gains less than two layouts cost.
// CHECK-LABEL: func.func @too_little
// CHECK: graph.conv
// CHECK-NOT: graph.transpose
func.func @too_little(%x: tensor<1x8x64xf32>) -> tensor<1x8x64xf32> {
  %w = graph.constant dense<0.5> : tensor<8x8x1xf32>
  %y = graph.conv %x, %w strides = [1] dilations = [1] groups = 1 : (tensor<1x8x64xf32>, tensor<8x8x1xf32>) -> tensor<1x8x64xf32>
  func.return %y : tensor<1x8x64xf32>
}

// Computed weights of many rows are laid out once, those of few are read as they are.
// CHECK-LABEL: func.func @computed_weights
// CHECK-SAME: (%[[x:.*]]: tensor<64x8xf32>, %[[z:.*]]: tensor<2x8xf32>, %[[w:.*]]: tensor<4x8xf32>)
// CHECK: %[[t:.*]] = graph.transpose %[[w]] permutation = [1, 0]
// CHECK-NEXT: %[[y:.*]] = graph.matmul %[[x]], %[[t]]
// CHECK-NEXT: %[[v:.*]] = graph.dense %[[z]], %[[w]]
// CHECK-NEXT: func.return %[[y]], %[[v]]
func.func @computed_weights(%x: tensor<64x8xf32>, %z: tensor<2x8xf32>, %w: tensor<4x8xf32>) -> (tensor<64x4xf32>, tensor<2x4xf32>) {
  %y = graph.dense %x, %w : (tensor<64x8xf32>, tensor<4x8xf32>) -> tensor<64x4xf32>
  %v = graph.dense %z, %w : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  func.return %y, %v : tensor<64x4xf32>, tensor<2x4xf32>
}
