// RUN: stepwell-opt %s --split-input-file -p graph-fuse-ops | filecheck %s

// Each result of an operator that writes them takes in what follows elementwise, also where others
// read one before the next one is followed.
// CHECK-LABEL: func.func @separate
// CHECK-NEXT: %[[v:.*]], %[[p:.*]] = func.call @fused_sort_exp_neg_add(
// CHECK-NEXT: %[[t:.*]] = func.call @fused_transpose(%[[v]])
// CHECK-NEXT: func.return %[[t]], %[[p]]
func.func @separate(%x: tensor<9x4xf32>) -> (tensor<4x9xf32>, tensor<9x4xi64>) {
  %y, %i = graph.sort %x axis = 0 descending = false : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  %v = graph.exp %y : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %t = graph.transpose %v permutation = [1, 0] : (tensor<9x4xf32>) -> tensor<4x9xf32>
  %n = graph.neg %i : (tensor<9x4xi64>) -> tensor<9x4xi64>
  %p = graph.add %n, %i : (tensor<9x4xi64>, tensor<9x4xi64>) -> tensor<9x4xi64>
  func.return %t, %p : tensor<4x9xf32>, tensor<9x4xi64>
}

// -----

// A result that is followed by nothing leaves as it is.
// CHECK-LABEL: func.func @one
// CHECK-NEXT: %[[i:.*]], %[[v:.*]] = func.call @fused_sort_exp(
// CHECK-NEXT: func.return %[[v]], %[[i]]
func.func @one(%x: tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>) {
  %y, %i = graph.sort %x axis = 0 descending = false : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  %v = graph.exp %y : (tensor<9x4xf32>) -> tensor<9x4xf32>
  func.return %v, %i : tensor<9x4xf32>, tensor<9x4xi64>
}

// -----

// What also needs another result by way of another kernel does not.
// CHECK-LABEL: func.func @both
// CHECK-NEXT: %[[v:.*]], %[[f:.*]] = func.call @fused_sort_exp_cast(
// CHECK-NEXT: %[[r:.*]] = func.call @fused_reduce(%[[v]])
// CHECK-NEXT: func.call @fused_add(%[[f]], %[[r]])
// CHECK-NEXT: func.return
func.func @both(%x: tensor<9x4xf32>) -> tensor<9x4xf32> {
  %y, %i = graph.sort %x axis = 0 descending = false : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  %v = graph.exp %y : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %r = graph.reduce sum %v axes = [0] keepdims = true : (tensor<9x4xf32>) -> tensor<1x4xf32>
  %f = graph.cast %i : (tensor<9x4xi64>) -> tensor<9x4xf32>
  %z = graph.add %f, %r : (tensor<9x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  func.return %z : tensor<9x4xf32>
}

// A result that nobody uses is not computed.
// CHECK-LABEL: func.func @without_order
// CHECK: call @fused_sort_edges{{.*}} -> (tensor<5xi32>, tensor<7xi32>)
// CHECK: func.func private @fused_sort_edges
// CHECK: func.return %{{[^,]*}}, %{{[^,]*}} : tensor<5xi32>, tensor<7xi32>
func.func @without_order(%r: tensor<7xi64>, %c: tensor<7xi64>, %x: tensor<4xf32>) -> (tensor<5xi32>, tensor<7xi32>) {
  %p, %j, %o = graph.sort_edges %r, %c of %x, %x : (tensor<7xi64>, tensor<7xi64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5xi32>, tensor<7xi32>, tensor<7xi32>)
  func.return %p, %j : tensor<5xi32>, tensor<7xi32>
}
