// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s
// RUN: stepwell-opt %s --split-input-file -p "graph-fuse-ops{max-staged-width=8}" | filecheck %s --check-prefix=NARROW

// Rows of a product of few columns are read again in its kernel, after its epilogue.
// CHECK-LABEL: func.func @softmax_of_dense
// CHECK-NEXT:    graph.constant
// CHECK-NEXT:    func.call @fused_dense_relu_softmax(%x, %w, %b)
// CHECK-NEXT:    func.return
// NARROW-LABEL: func.func @softmax_of_dense
// NARROW-NEXT:   graph.constant
// NARROW-NEXT:   %[[d:.*]] = func.call @fused_dense_relu(%x, %w, %b)
// NARROW-NEXT:   func.call @fused_softmax(%[[d]])
func.func @softmax_of_dense(%x: tensor<?x128xf32>, %b: tensor<10xf32>) -> tensor<?x10xf32> {
  %w = graph.constant dense_resource<w> : tensor<10x128xf32>
  %d = graph.dense %x, %w, %b : (tensor<?x128xf32>, tensor<10x128xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  %r = graph.relu %d : (tensor<?x10xf32>) -> tensor<?x10xf32>
  %y = graph.softmax %r axis = 1 : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}

// -----

// The root of the mean square needs each element of the row, and so does what it divides.
// CHECK-LABEL: func.func @norm_of_product
// CHECK-NEXT:    func.call @fused_matmul_mul_reduce_rsqrt_mul(%x, %w)
// CHECK-NEXT:    func.return
func.func @norm_of_product(%x: tensor<4x?x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x?x16xf32> {
  %d = graph.matmul %x, %w : (tensor<4x?x8xf32>, tensor<8x16xf32>) -> tensor<4x?x16xf32>
  %q = graph.mul %d, %d : (tensor<4x?x16xf32>, tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
  %m = graph.reduce mean %q axes = [2] keepdims = true : (tensor<4x?x16xf32>) -> tensor<4x?x1xf32>
  %r = graph.rsqrt %m : (tensor<4x?x1xf32>) -> tensor<4x?x1xf32>
  %y = graph.mul %d, %r : (tensor<4x?x16xf32>, tensor<4x?x1xf32>) -> tensor<4x?x16xf32>
  func.return %y : tensor<4x?x16xf32>
}

// -----

// Weights that come with the call jump from column to column: there is no register tile of columns.
// CHECK-LABEL: func.func @weights_of_the_call
// CHECK-NEXT:    func.call @fused_dense(
// CHECK-NEXT:    func.call @fused_softmax(
func.func @weights_of_the_call(%x: tensor<?x128xf32>, %w: tensor<10x128xf32>) -> tensor<?x10xf32> {
  %d = graph.dense %x, %w : (tensor<?x128xf32>, tensor<10x128xf32>) -> tensor<?x10xf32>
  %y = graph.softmax %d axis = 1 : (tensor<?x10xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}

// -----

// A column is not a row, a wide row does not stay in the cache beside the weights, and a result
// that is needed elsewhere is stored anyway.
// CHECK-LABEL: func.func @softmax_of_columns
// CHECK-NEXT:    func.call @fused_matmul(
// CHECK-NEXT:    func.call @fused_softmax(
func.func @softmax_of_columns(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>) -> tensor<?x16xf32> {
  %d = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %y = graph.softmax %d axis = 0 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    func.call @fused_matmul_1(
// CHECK-NEXT:    func.call @fused_softmax_1(
func.func @wide(%x: tensor<?x8xf32>, %w: tensor<8x65xf32>) -> tensor<?x65xf32> {
  %d = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x65xf32>) -> tensor<?x65xf32>
  %y = graph.softmax %d axis = 1 : (tensor<?x65xf32>) -> tensor<?x65xf32>
  func.return %y : tensor<?x65xf32>
}

// CHECK-LABEL: func.func @scores_too
// CHECK-NEXT:    func.call @fused_matmul(
// CHECK-NEXT:    func.call @fused_softmax_2(
func.func @scores_too(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %d = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %y = graph.softmax %d axis = 1 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  func.return %d, %y : tensor<?x16xf32>, tensor<?x16xf32>
}
