// RUN: stepwell-opt %s -p graph-fold-constant | filecheck %s
// RUN: stepwell-opt %s -p "graph-fold-constant{max-growth=0}" | filecheck %s --check-prefix=STRICT

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[x:.*]]: tensor<?x2xf32>)
// CHECK-NEXT: %[[s:.*]] = graph.constant dense<{{\[\[}}2.000000e+00, 3.000000e+00]]> : tensor<1x2xf32>
// CHECK-NEXT: graph.mul %[[x]], %[[s]]
// CHECK-NEXT: func.return
func.func @chain(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %v = graph.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %r = graph.sqrt %v : (tensor<2xf32>) -> tensor<2xf32>
  %s = graph.reshape %r shape = [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
  %y = graph.mul %x, %s : (tensor<?x2xf32>, tensor<1x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// One value everywhere stays a literal, other results of more than 16 elements are named.
// CHECK-LABEL: func.func @splat_and_named
// CHECK-NEXT: %[[splat:.*]] = graph.constant dense<3.000000e+00> : tensor<32xf32>
// CHECK-NEXT: %[[named:.*]] = graph.constant dense_resource<{{.*}}> : tensor<32xf32>
// CHECK-NEXT: func.return %[[splat]], %[[named]]
func.func @splat_and_named() -> (tensor<32xf32>, tensor<32xf32>) {
  %one = graph.constant dense<1.0> : tensor<32xf32>
  %two = graph.constant dense<2.0> : tensor<32xf32>
  %splat = graph.add %one, %two : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %v = graph.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]> : tensor<16xf32>
  %named = graph.concat %v, %v axis = 0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
  func.return %splat, %named : tensor<32xf32>, tensor<32xf32>
}

// CHECK-LABEL: func.func @growth
// STRICT-LABEL: func.func @growth
// CHECK-NEXT: graph.constant dense<1.000000e+00> : tensor<1xf32>
// CHECK-NEXT: graph.constant dense<1.000000e+00> : tensor<512xf32>
// CHECK-NEXT: graph.broadcast_to {{.*}} -> tensor<100000x100000xf32>
// STRICT-NEXT: graph.constant dense<1.000000e+00> : tensor<1xf32>
// STRICT-NEXT: graph.broadcast_to {{.*}} -> tensor<512xf32>
func.func @growth() -> (tensor<512xf32>, tensor<100000x100000xf32>) {
  %one = graph.constant dense<1.0> : tensor<1xf32>
  %some = graph.broadcast_to %one shape = [512] : (tensor<1xf32>) -> tensor<512xf32>
  %many = graph.broadcast_to %one shape = [100000, 100000] : (tensor<1xf32>) -> tensor<100000x100000xf32>
  func.return %some, %many : tensor<512xf32>, tensor<100000x100000xf32>
}

// CHECK-LABEL: func.func @contractions_stay
// CHECK: graph.matmul
func.func @contractions_stay() -> tensor<2x2xf32> {
  %v = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = graph.matmul %v, %v : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// A weight that the store does not have cannot be evaluated.
// CHECK-LABEL: func.func @unknown_weight_stays
// CHECK-NEXT: graph.constant dense_resource<nowhere>
// CHECK-NEXT: graph.neg
func.func @unknown_weight_stays() -> tensor<2xf32> {
  %v = graph.constant dense_resource<nowhere> : tensor<2xf32>
  %y = graph.neg %v : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
