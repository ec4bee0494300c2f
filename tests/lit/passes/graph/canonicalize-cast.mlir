// RUN: stepwell-opt %s -p graph-canonicalize-cast | filecheck %s

// The product and the result share a cast: neither can take it into its kernel.
// CHECK-LABEL: func.func @some_take_it
// CHECK-SAME: (%[[x:[^:]*]]: tensor<4x4xf16>)
// CHECK-NEXT: %[[w:.*]] = graph.cast %[[x]] : (tensor<4x4xf16>) -> tensor<4x4xf32>
// CHECK-NEXT: %[[v:.*]] = graph.cast %[[x]]
// CHECK-NEXT: %[[a:.*]] = graph.exp %[[v]]
// CHECK-NEXT: %[[b:.*]] = graph.matmul %[[w]], %[[w]]
// CHECK-NEXT: %[[u:.*]] = graph.cast %[[x]]
// CHECK-NEXT: %[[c:.*]] = graph.mul %[[u]], %[[u]]
// CHECK-NEXT: func.return %[[a]], %[[b]], %[[c]], %[[w]]
func.func @some_take_it(%x: tensor<4x4xf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = graph.cast %x : (tensor<4x4xf16>) -> tensor<4x4xf32>
  %a = graph.exp %w : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = graph.matmul %w, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = graph.mul %w, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %a, %b, %c, %w : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @narrowing_stays
// CHECK-NEXT: graph.cast
// CHECK-NEXT: graph.exp
// CHECK-NEXT: graph.tanh
func.func @narrowing_stays(%x: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf16>) {
  %w = graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %a = graph.exp %w : (tensor<4xf16>) -> tensor<4xf16>
  %b = graph.tanh %w : (tensor<4xf16>) -> tensor<4xf16>
  func.return %a, %b : tensor<4xf16>, tensor<4xf16>
}

// CHECK-LABEL: func.func @one_user_stays
// CHECK-NEXT: graph.cast
// CHECK-NEXT: graph.add
func.func @one_user_stays(%x: tensor<4xi8>) -> tensor<4xi32> {
  %w = graph.cast %x : (tensor<4xi8>) -> tensor<4xi32>
  %a = graph.add %w, %w : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return %a : tensor<4xi32>
}
