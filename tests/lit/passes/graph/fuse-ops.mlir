// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s

// A contraction takes its epilogue; constants with one value everywhere come along.
// CHECK-LABEL: func.func @epilogue
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x8xf32>, %[[w:[^:]*]]: tensor<4x8xf32>, %[[b:[^:]*]]: tensor<4xf32>)
// CHECK-NEXT: %[[y:.*]] = func.call @fused_dense_mul_relu(%[[x]], %[[w]], %[[b]])
// CHECK-NEXT: func.return %[[y]]
// CHECK: func.func private @fused_dense_mul_relu({{.*}}) -> tensor<?x4xf32> attributes {graph.primitive}
// CHECK-NEXT: %[[d:.*]] = graph.dense
// CHECK-NEXT: %[[two:.*]] = graph.constant dense<2.000000e+00>
// CHECK-NEXT: %[[s:.*]] = graph.mul %[[d]], %[[two]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[s]]
// CHECK-NEXT: func.return %[[r]]
func.func @epilogue(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %two = graph.constant dense<2.0> : tensor<f32>
  %d = graph.dense %x, %w, %b : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %s = graph.mul %d, %two : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %y = graph.relu %s : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// Both branches of a diamond belong to the epilogue, whose only way out is its end.
// CHECK-LABEL: func.func @diamond
// CHECK-NEXT: func.call @fused_dense_sigmoid_mul
// CHECK-NEXT: func.return
func.func @diamond(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>) -> tensor<3x4xf32> {
  %d = graph.dense %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %s = graph.sigmoid %d : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = graph.mul %d, %s : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

// What leaves a group is its last value: here the product leaves too.
// CHECK-LABEL: func.func @result_with_two_ways_out
// CHECK-NEXT: %[[d:.*]] = func.call @fused_dense(
// CHECK-NEXT: %[[r:.*]] = func.call @fused_relu(%[[d]])
// CHECK-NEXT: func.return %[[d]], %[[r]]
func.func @result_with_two_ways_out(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %d = graph.dense %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %r = graph.relu %d : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %d, %r : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// Two contractions are two kernels; the sum is the epilogue of the first.
// CHECK-LABEL: func.func @two_contractions
// CHECK-NEXT: %[[second:.*]] = func.call @fused_dense(
// CHECK-NEXT: %[[y:.*]] = func.call @fused_dense_add({{.*}}%[[second]])
// CHECK-NEXT: func.return %[[y]]
func.func @two_contractions(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>) -> tensor<3x4xf32> {
  %a = graph.dense %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %b = graph.dense %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %y = graph.add %a, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

// Nothing is computed inside a contraction, which would repeat it for each column.
// CHECK-LABEL: func.func @no_prologue_of_contractions
// CHECK-NEXT: func.call @fused_exp
// CHECK-NEXT: func.call @fused_dense(
// CHECK-NEXT: func.return
func.func @no_prologue_of_contractions(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>) -> tensor<3x4xf32> {
  %e = graph.exp %x : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %y = graph.dense %e, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

// Elementwise and injective operators go where they are used, softmax takes its neighbours.
// CHECK-LABEL: func.func @softmax_with_neighbours
// CHECK-NEXT: func.call @fused_transpose_add_softmax_mul(
// CHECK-NEXT: func.return
func.func @softmax_with_neighbours(%x: tensor<8x3xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
  %t = graph.transpose %x permutation = [1, 0] : (tensor<8x3xf32>) -> tensor<3x8xf32>
  %a = graph.add %t, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %s = graph.softmax %a axis = -1 : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %y = graph.mul %s, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  func.return %y : tensor<3x8xf32>
}

// -----

// A relu after a product is its epilogue, not what softmax starts with.
// CHECK-LABEL: func.func @epilogue_before_prologue
// CHECK-NEXT: func.call @fused_dense_relu(
// CHECK-NEXT: func.call @fused_softmax(
// CHECK-NEXT: func.return
func.func @epilogue_before_prologue(%x: tensor<3x8xf32>, %w: tensor<4x8xf32>) -> tensor<3x4xf32> {
  %d = graph.dense %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  %r = graph.relu %d : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = graph.softmax %r axis = -1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

// An exponential that is broadcast would be computed again for each row; a sum may be.
// CHECK-LABEL: func.func @costly_is_not_repeated
// CHECK-NEXT: %[[e:.*]] = func.call @fused_exp(
// CHECK-NEXT: func.call @fused_add_mul_add({{.*}}%[[e]]{{.*}})
// CHECK-NEXT: func.return
func.func @costly_is_not_repeated(%x: tensor<3x8xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
  %e = graph.exp %b : (tensor<8xf32>) -> tensor<8xf32>
  %s = graph.add %b, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %m = graph.mul %x, %e : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %y = graph.add %m, %s : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  func.return %y : tensor<3x8xf32>
}

// -----

// A vector that a reduction makes may come out as a column.
// CHECK-LABEL: func.func @reduction_as_a_column
// CHECK-NEXT: func.call @fused_reduce_reshape_mul(
// CHECK-NEXT: func.call @fused_reduce(
// CHECK-NEXT: func.call @fused_reshape(
// CHECK-NEXT: func.return
func.func @reduction_as_a_column(%x: tensor<?x6xf32>) -> (tensor<?x1xf32>, tensor<3x2xf32>) {
  %r = graph.reduce sum %x axes = [1] keepdims = false : (tensor<?x6xf32>) -> tensor<?xf32>
  %c = graph.reshape %r shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %m = graph.mul %c, %c : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %s = graph.reduce sum %x axes = [0] keepdims = false : (tensor<?x6xf32>) -> tensor<6xf32>
  %t = graph.reshape %s shape = [3, 2] : (tensor<6xf32>) -> tensor<3x2xf32>
  func.return %m, %t : tensor<?x1xf32>, tensor<3x2xf32>
}

// -----

// Indices are checked before the kernel: they are never computed inside it.
// CHECK-LABEL: func.func @indices_come_from_outside
// CHECK-NEXT: %[[i:.*]] = func.call @fused_add(
// CHECK-NEXT: func.call @fused_neg_gather_relu({{.*}}%[[i]])
// CHECK-NEXT: func.return
func.func @indices_come_from_outside(%x: tensor<9x4xf32>, %i: tensor<5xi64>) -> tensor<5x4xf32> {
  %j = graph.add %i, %i : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  %n = graph.neg %x : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %g = graph.gather %n, %j axis = 0 : (tensor<9x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  %y = graph.relu %g : (tensor<5x4xf32>) -> tensor<5x4xf32>
  func.return %y : tensor<5x4xf32>
}

// -----

// Equal groups are one function; a group that differs in an attribute is another.
// CHECK-LABEL: func.func @equal_groups
// CHECK-NEXT: func.call @fused_leaky_relu(
// CHECK-NEXT: func.call @fused_leaky_relu(
// CHECK-NEXT: func.call @fused_leaky_relu_1(
// CHECK-NEXT: func.return
// CHECK: func.func private @fused_leaky_relu(
// CHECK: alpha = 1.000000e-01
// CHECK: func.func private @fused_leaky_relu_1(
// CHECK: alpha = 2.000000e-01
// CHECK-NOT: func.func
func.func @equal_groups(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %x = graph.leaky_relu %a alpha = 1.0e-01 : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.leaky_relu %b alpha = 1.0e-01 : (tensor<4xf32>) -> tensor<4xf32>
  %z = graph.leaky_relu %b alpha = 2.0e-01 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x, %y, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Arguments, constants and calls stay as they are; what nothing uses goes.
// CHECK-LABEL: func.func @nothing_to_fuse
// CHECK-SAME: (%[[x:[^:]*]]: tensor<2xf32>)
// CHECK-NEXT: %[[c:.*]] = graph.constant
// CHECK-NEXT: %[[p:.*]] = graph.call_packed
// CHECK-NEXT: func.return %[[x]], %[[c]], %[[p]]
// CHECK-NOT: func.func
func.func @nothing_to_fuse(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %c = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %unused = graph.exp %c : (tensor<2xf32>) -> tensor<2xf32>
  %p = graph.call_packed "env.f"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %x, %c, %p : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// What is a kernel already is not fused again.
// CHECK-LABEL: func.func @already_fused
// CHECK-NEXT: func.call @fused_exp(
// CHECK-NEXT: func.call @fused_exp_1(
// CHECK-NEXT: func.return
// CHECK: func.func private @fused_exp(
// CHECK: func.func private @fused_exp_1(
func.func @already_fused(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = func.call @fused_exp(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %y = graph.exp %a : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
func.func private @fused_exp(%x: tensor<2xf32>) -> tensor<2xf32> attributes {graph.primitive} {
  %y = graph.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// Of a product with a sparse matrix, only the rows that are taken are computed.
// CHECK-LABEL: func.func @cut_rows
// CHECK-NEXT: func.call @fused_spmm_slice_relu
// CHECK-NEXT: func.return
func.func @cut_rows(%a: tensor<9x4xf32, #csr>, %x: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %0 = graph.spmm %a, %x : (tensor<9x4xf32, #csr>, tensor<4x3xf32>) -> tensor<9x3xf32>
  %1 = graph.slice %0 starts = [2, 0] ends = [4, 3] steps = [1, 1] : (tensor<9x3xf32>) -> tensor<2x3xf32>
  %2 = graph.relu %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @cut_rows_twice
// CHECK-NEXT: func.call @fused_spmm(
func.func @cut_rows_twice(%a: tensor<8x4xf32, #csr>, %x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = graph.spmm %a, %x : (tensor<8x4xf32, #csr>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %1 = graph.slice %0 starts = [0, 0] ends = [4, 3] steps = [1, 1] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %2 = graph.slice %0 starts = [4, 0] ends = [8, 3] steps = [1, 1] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %3 = graph.add %1, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %3 : tensor<4x3xf32>
}

// -----

// The mean and the variance of a row are computed before the row is gone through.
// CHECK-LABEL: func.func @statistics_of_a_row
// CHECK-NEXT: func.call @fused_reduce_sub_mul_reduce_add_rsqrt_mul(%{{[^,]*}}) :
// CHECK-NEXT: func.return
func.func @statistics_of_a_row(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %c = graph.constant dense<1.0e-05> : tensor<f32>
  %m = graph.reduce mean %x axes = [1] keepdims = true : (tensor<?x6xf32>) -> tensor<?x1xf32>
  %d = graph.sub %x, %m : (tensor<?x6xf32>, tensor<?x1xf32>) -> tensor<?x6xf32>
  %q = graph.mul %d, %d : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %v = graph.reduce mean %q axes = [1] keepdims = true : (tensor<?x6xf32>) -> tensor<?x1xf32>
  %e = graph.add %v, %c : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %i = graph.rsqrt %e : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %y = graph.mul %d, %i : (tensor<?x6xf32>, tensor<?x1xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}

// -----

// Sums of columns are read by all rows, and a maximum that is asked for elsewhere is stored.
// CHECK-LABEL: func.func @statistics_of_others
// CHECK-NEXT: func.call @fused_reduce(
// CHECK-NEXT: func.call @fused_div(
// CHECK-NEXT: func.call @fused_reduce_1(
// CHECK-NEXT: func.call @fused_sub(
// CHECK-NEXT: func.return
func.func @statistics_of_others(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x1xf32>) {
  %s = graph.reduce sum %x axes = [0] keepdims = true : (tensor<4x6xf32>) -> tensor<1x6xf32>
  %a = graph.div %x, %s : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
  %m = graph.reduce max %x axes = [1] keepdims = true : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %b = graph.sub %x, %m : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  func.return %a, %b, %m : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x1xf32>
}

// -----

// A product is not given the loops of a reduction.
// CHECK-LABEL: func.func @statistics_beside_a_product
// CHECK-NEXT: func.call @fused_reduce(
// CHECK-NEXT: func.call @fused_dense_mul(
// CHECK-NEXT: func.return
func.func @statistics_beside_a_product(%x: tensor<4x6xf32>, %w: tensor<5x6xf32>) -> tensor<4x5xf32> {
  %m = graph.reduce max %x axes = [1] keepdims = true : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %d = graph.dense %x, %w : (tensor<4x6xf32>, tensor<5x6xf32>) -> tensor<4x5xf32>
  %y = graph.mul %d, %m : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
  func.return %y : tensor<4x5xf32>
}

// Indices stay arguments, though they are one number: a kernel's are checked before it runs.
// CHECK-LABEL: func.func @one_index
// CHECK: %[[i:.*]] = graph.constant dense<2> : tensor<1xi64>
// CHECK-NEXT: func.call @fused_gather_mul(%{{.*}}, %[[i]])
func.func @one_index(%x: tensor<3x4xf32>) -> tensor<1x4xf32> {
  %i = graph.constant dense<2> : tensor<1xi64>
  %two = graph.constant dense<2.0> : tensor<f32>
  %g = graph.gather %x, %i axis = 0 : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  %y = graph.mul %g, %two : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// -----

// A product with one column reads each element once: what it reads is computed there.
// CHECK-LABEL: func.func @prologue_of_one_column
// CHECK-NEXT: func.call @fused_exp_dense(
// CHECK-NEXT: func.return
func.func @prologue_of_one_column(%x: tensor<?x8xf32>, %w: tensor<1x8xf32>) -> tensor<?x1xf32> {
  %e = graph.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = graph.dense %e, %w : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x1xf32>
  func.return %y : tensor<?x1xf32>
}

// -----

// Reductions along a dimension of one are in the loops of what reads them, and one after the other.
// CHECK-LABEL: func.func @rows_of_one
// CHECK-NEXT: func.call @fused_reduce_sub_abs_reduce_div(
// CHECK-NEXT: func.return
func.func @rows_of_one(%x: tensor<10x1xf32>) -> tensor<10x1xf32> {
  %m = graph.reduce max %x axes = [1] keepdims = true : (tensor<10x1xf32>) -> tensor<10x1xf32>
  %d = graph.sub %x, %m : (tensor<10x1xf32>, tensor<10x1xf32>) -> tensor<10x1xf32>
  %a = graph.abs %d : (tensor<10x1xf32>) -> tensor<10x1xf32>
  %s = graph.reduce sum %a axes = [1] keepdims = true : (tensor<10x1xf32>) -> tensor<10x1xf32>
  %y = graph.div %d, %s : (tensor<10x1xf32>, tensor<10x1xf32>) -> tensor<10x1xf32>
  func.return %y : tensor<10x1xf32>
}

// -----

// What is expensive and read in two loops over a row is kept in a buffer for the row.
// CHECK-LABEL: func.func @row_of_two_loops
// CHECK-NEXT: func.call @fused_exp_abs_reduce_div(
// CHECK-NEXT: func.return
func.func @row_of_two_loops(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = graph.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %a = graph.abs %e : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = graph.reduce sum %a axes = [1] keepdims = true : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %y = graph.div %e, %s : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}

// -----

// A row that is too long for a buffer is kept in that of the result.
// CHECK-LABEL: func.func @long_row_of_two_loops
// CHECK-NEXT: func.call @fused_exp_reduce_div(
// CHECK-NEXT: func.return
func.func @long_row_of_two_loops(%x: tensor<4x9000xf32>) -> tensor<4x9000xf32> {
  %e = graph.exp %x : (tensor<4x9000xf32>) -> tensor<4x9000xf32>
  %s = graph.reduce sum %e axes = [1] keepdims = true : (tensor<4x9000xf32>) -> tensor<4x1xf32>
  %y = graph.div %e, %s : (tensor<4x9000xf32>, tensor<4x1xf32>) -> tensor<4x9000xf32>
  func.return %y : tensor<4x9000xf32>
}

// -----

// Where the result has other rows, it is computed by a kernel of its own.
// CHECK-LABEL: func.func @long_row_of_two_reductions
// CHECK-NEXT: func.call @fused_exp(
// CHECK-NEXT: func.call @fused_reduce_reduce_div(
// CHECK-NEXT: func.return
func.func @long_row_of_two_reductions(%x: tensor<4x9000xf32>) -> tensor<4xf32> {
  %e = graph.exp %x : (tensor<4x9000xf32>) -> tensor<4x9000xf32>
  %m = graph.reduce max %e axes = [1] keepdims = false : (tensor<4x9000xf32>) -> tensor<4xf32>
  %s = graph.reduce sum %e axes = [1] keepdims = false : (tensor<4x9000xf32>) -> tensor<4xf32>
  %y = graph.div %m, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// An operator that writes its result takes in what it reads, and what follows elementwise where it
// writes each element once; a scatter does not.
// CHECK-LABEL: func.func @written
// CHECK-NEXT: func.call @fused_exp_cumulative_neg(
// CHECK-NEXT: func.call @fused_scatter_nd(
// CHECK-NEXT: func.call @fused_relu(
// CHECK-NEXT: func.return
func.func @written(%x: tensor<9x4xf32>, %i: tensor<9xi64>) -> tensor<9x4xf32> {
  %e = graph.exp %x : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %c = graph.cumulative sum %e axis = 0 exclusive = false reverse = false : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %n = graph.neg %c : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %s = graph.scatter_nd add %x, %n at %i : (tensor<9x4xf32>, tensor<9x4xf32>, tensor<9xi64>) -> tensor<9x4xf32>
  %y = graph.relu %s : (tensor<9x4xf32>) -> tensor<9x4xf32>
  func.return %y : tensor<9x4xf32>
}

// -----

// The operators of a region are fused among themselves.
// CHECK-LABEL: func.func @regions
// CHECK: graph.if
// CHECK: %[[y:.*]] = func.call @fused_mul_relu
// CHECK-NEXT: graph.yield %[[y]]
// CHECK: } else {
// CHECK: %[[z:.*]] = func.call @fused_neg
// CHECK-NEXT: graph.yield %[[z]]
func.func @regions(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %s = graph.mul %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = graph.relu %s : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %r : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    %n = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %n : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// A size is read before the kernel that has it runs, so what computes it is another kernel.
// CHECK-LABEL: func.func @size
// CHECK-NEXT: %[[n:.*]] = func.call @fused_relu(%{{.*}}) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT: func.call @fused_arange_neg(%[[n]]) : (tensor<i64>) -> tensor<?xi64>
func.func @size(%x: tensor<i64>) -> tensor<?xi64> {
  %n = graph.relu %x : (tensor<i64>) -> tensor<i64>
  %i = graph.arange %n at_most = 9 : (tensor<i64>) -> tensor<?xi64>
  %y = graph.neg %i : (tensor<?xi64>) -> tensor<?xi64>
  func.return %y : tensor<?xi64>
}

// -----

// What reads a row, or another shape, of a value reads its buffer. A result has a buffer of its own,
// and so have several rows.
// CHECK-LABEL: func.func @views
// CHECK-NEXT: %[[s:.*]] = graph.slice %i starts = [1, 0]
// CHECK-NEXT: %[[v:.*]] = graph.reshape %[[s]] shape = [-1]
// CHECK-NEXT: %[[y:.*]] = func.call @fused_gather(%x, %[[v]])
// CHECK-NEXT: %[[r:.*]] = func.call @fused_slice(%i)
// CHECK-NEXT: %[[z:.*]] = func.call @fused_gather_1(%x, %[[r]])
// CHECK-NEXT: %[[u:.*]] = func.call @fused_reshape(%x)
// CHECK-NEXT: func.return %[[y]], %[[z]], %[[u]]
func.func @views(%x: tensor<9x4xf32>, %i: tensor<3x?xi64>) -> (tensor<?x4xf32>, tensor<2x?x4xf32>, tensor<4x9xf32>) {
  %s = graph.slice %i starts = [1, 0] ends = [2, 9223372036854775807] steps = [1, 1] : (tensor<3x?xi64>) -> tensor<1x?xi64>
  %v = graph.reshape %s shape = [-1] : (tensor<1x?xi64>) -> tensor<?xi64>
  %y = graph.gather %x, %v axis = 0 : (tensor<9x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  %r = graph.slice %i starts = [1, 0] ends = [3, 9223372036854775807] steps = [1, 1] : (tensor<3x?xi64>) -> tensor<2x?xi64>
  %z = graph.gather %x, %r axis = 0 : (tensor<9x4xf32>, tensor<2x?xi64>) -> tensor<2x?x4xf32>
  %u = graph.reshape %x shape = [4, 9] : (tensor<9x4xf32>) -> tensor<4x9xf32>
  func.return %y, %z, %u : tensor<?x4xf32>, tensor<2x?x4xf32>, tensor<4x9xf32>
}
