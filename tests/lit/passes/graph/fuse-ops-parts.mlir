// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s
// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops,convert-graph-to-loop | filecheck %s --check-prefix=NEST

// Parts of a product that have no column in common are computed where they are needed together.
// CHECK-LABEL: func.func @gated
// CHECK-NEXT: %[[y:.*]] = func.call @fused_matmul_slice_slice_sigmoid_mul(
// CHECK-NEXT: func.return %[[y]]
func.func @gated(%x: tensor<?x8xf32>, %w: tensor<8x10xf32>) -> tensor<?x5xf32> {
  %p = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x10xf32>) -> tensor<?x10xf32>
  %a = graph.slice %p starts = [0, 0] ends = [9223372036854775807, 5] steps = [1, 1] : (tensor<?x10xf32>) -> tensor<?x5xf32>
  %b = graph.slice %p starts = [0, 5] ends = [9223372036854775807, 10] steps = [1, 1] : (tensor<?x10xf32>) -> tensor<?x5xf32>
  %s = graph.sigmoid %b : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %y = graph.mul %a, %s : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  func.return %y : tensor<?x5xf32>
}

// -----

// Parts with a column in common would compute it twice.
// CHECK-LABEL: func.func @overlapping
// CHECK-NEXT: %[[p:.*]] = func.call @fused_matmul(
// CHECK-NEXT: func.call @fused_slice_slice_mul(%[[p]])
func.func @overlapping(%x: tensor<3x8xf32>, %w: tensor<8x9xf32>) -> tensor<3x5xf32> {
  %p = graph.matmul %x, %w : (tensor<3x8xf32>, tensor<8x9xf32>) -> tensor<3x9xf32>
  %a = graph.slice %p starts = [0, 0] ends = [3, 5] steps = [1, 1] : (tensor<3x9xf32>) -> tensor<3x5xf32>
  %b = graph.slice %p starts = [0, 4] ends = [3, 9] steps = [1, 1] : (tensor<3x9xf32>) -> tensor<3x5xf32>
  %y = graph.mul %a, %b : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// -----

// Every other column is no part, nor are columns in another place than those of the result.
// CHECK-LABEL: func.func @strided
// CHECK-NEXT: %[[p:.*]] = func.call @fused_matmul(
// CHECK-NEXT: func.call @fused_slice_slice_mul(%[[p]])
func.func @strided(%x: tensor<3x8xf32>, %w: tensor<8x10xf32>) -> tensor<3x5xf32> {
  %p = graph.matmul %x, %w : (tensor<3x8xf32>, tensor<8x10xf32>) -> tensor<3x10xf32>
  %a = graph.slice %p starts = [0, 0] ends = [3, 10] steps = [1, 2] : (tensor<3x10xf32>) -> tensor<3x5xf32>
  %b = graph.slice %p starts = [0, 1] ends = [3, 10] steps = [1, 2] : (tensor<3x10xf32>) -> tensor<3x5xf32>
  %y = graph.mul %a, %b : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// -----

// CHECK-LABEL: func.func @transposed
// CHECK-NEXT: %[[p:.*]] = func.call @fused_matmul(
// CHECK-NEXT: func.call @fused_slice_slice_transpose_mul(%[[p]])
func.func @transposed(%x: tensor<5x8xf32>, %w: tensor<8x10xf32>) -> tensor<5x5xf32> {
  %p = graph.matmul %x, %w : (tensor<5x8xf32>, tensor<8x10xf32>) -> tensor<5x10xf32>
  %a = graph.slice %p starts = [0, 0] ends = [5, 5] steps = [1, 1] : (tensor<5x10xf32>) -> tensor<5x5xf32>
  %b = graph.slice %p starts = [0, 5] ends = [5, 10] steps = [1, 1] : (tensor<5x10xf32>) -> tensor<5x5xf32>
  %t = graph.transpose %b permutation = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %y = graph.mul %a, %t : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  func.return %y : tensor<5x5xf32>
}

// -----

// Five sums at once would leave too few registers for each.
// CHECK-LABEL: func.func @five
// CHECK-NEXT: func.call @fused_matmul(
// CHECK-NEXT: func.call @fused_slice_slice_mul_slice_mul_slice_mul_slice_and_1_more(
func.func @five(%x: tensor<3x8xf32>, %w: tensor<8x20xf32>) -> tensor<3x4xf32> {
  %p = graph.matmul %x, %w : (tensor<3x8xf32>, tensor<8x20xf32>) -> tensor<3x20xf32>
  %a = graph.slice %p starts = [0, 0] ends = [3, 4] steps = [1, 1] : (tensor<3x20xf32>) -> tensor<3x4xf32>
  %b = graph.slice %p starts = [0, 4] ends = [3, 8] steps = [1, 1] : (tensor<3x20xf32>) -> tensor<3x4xf32>
  %ab = graph.mul %a, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %c = graph.slice %p starts = [0, 8] ends = [3, 12] steps = [1, 1] : (tensor<3x20xf32>) -> tensor<3x4xf32>
  %abc = graph.mul %ab, %c : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %d = graph.slice %p starts = [0, 12] ends = [3, 16] steps = [1, 1] : (tensor<3x20xf32>) -> tensor<3x4xf32>
  %abcd = graph.mul %abc, %d : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = graph.slice %p starts = [0, 16] ends = [3, 20] steps = [1, 1] : (tensor<3x20xf32>) -> tensor<3x4xf32>
  %y = graph.mul %abcd, %e : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

// What is stored is read at its own index while it is in registers.
// CHECK-LABEL: func.func @stored
// CHECK-NEXT: %[[a:.*]], %[[b:.*]] = func.call @fused_exp_tanh(
// CHECK-NEXT: func.return %[[a]], %[[b]]
func.func @stored(%x: tensor<3x?xf32>) -> (tensor<3x?xf32>, tensor<3x?xf32>) {
  %c = graph.exp %x : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %h = graph.tanh %c : (tensor<3x?xf32>) -> tensor<3x?xf32>
  func.return %c, %h : tensor<3x?xf32>, tensor<3x?xf32>
}

// -----

// Nobody needs the value that the two results are made of.
// NEST-LABEL: loop.kernel @fused_exp_tanh_sigmoid
// NEST-NEXT: arith.constant
// NEST-NEXT: loop.for "i" %i to 1 {
// NEST-NEXT:   loop.for "j" %j to 7 {
// NEST-NEXT:     loop.load
// NEST-NEXT:     %[[c:.*]] = math.exp
// NEST-NEXT:     %[[h:.*]] = math.tanh %[[c]]
// NEST-NEXT:     loop.store %[[h]], %y0
// NEST-NEXT:     arith.negf %[[c]]
// CHECK-LABEL: func.func @of_one_value
// CHECK-NEXT: %[[a:.*]], %[[b:.*]] = func.call @fused_exp_tanh_sigmoid(
// CHECK-NEXT: func.return %[[a]], %[[b]]
func.func @of_one_value(%x: tensor<1x7xf32>) -> (tensor<1x7xf32>, tensor<1x7xf32>) {
  %c = graph.exp %x : (tensor<1x7xf32>) -> tensor<1x7xf32>
  %h = graph.tanh %c : (tensor<1x7xf32>) -> tensor<1x7xf32>
  %g = graph.sigmoid %c : (tensor<1x7xf32>) -> tensor<1x7xf32>
  func.return %h, %g : tensor<1x7xf32>, tensor<1x7xf32>
}

// -----

// Another element is needed than the one that is stored.
// CHECK-LABEL: func.func @stored_elsewhere
// CHECK-NEXT: %[[c:.*]] = func.call @fused_exp(
// CHECK-NEXT: %[[h:.*]] = func.call @fused_transpose_tanh(%[[c]])
func.func @stored_elsewhere(%x: tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<7x3xf32>) {
  %c = graph.exp %x : (tensor<3x7xf32>) -> tensor<3x7xf32>
  %t = graph.transpose %c permutation = [1, 0] : (tensor<3x7xf32>) -> tensor<7x3xf32>
  %h = graph.tanh %t : (tensor<7x3xf32>) -> tensor<7x3xf32>
  func.return %c, %h : tensor<3x7xf32>, tensor<7x3xf32>
}

// -----

// A path from one to the other leads through a product: one kernel would need its own result.
// CHECK-LABEL: func.func @around
// CHECK-NEXT: %[[c:.*]] = func.call @fused_exp(
// CHECK-NEXT: func.call @fused_matmul_add(%[[c]]
func.func @around(%x: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %c = graph.exp %x : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %p = graph.matmul %c, %w : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %h = graph.add %p, %c : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %c, %h : tensor<3x3xf32>, tensor<3x3xf32>
}
