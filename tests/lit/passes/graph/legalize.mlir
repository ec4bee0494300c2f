// RUN: stepwell-opt %s -p graph-legalize | filecheck %s

// A power of integers is squared as often as its exponent says.
// CHECK-LABEL: func.func @sixth
// CHECK-NEXT: %[[X2:.*]] = graph.mul %x, %x
// CHECK-NEXT: %[[X4:.*]] = graph.mul %[[X2]], %[[X2]]
// CHECK-NEXT: %[[Y:.*]] = graph.mul %[[X2]], %[[X4]]
// CHECK-NEXT: func.return %[[Y]]
func.func @sixth(%x: tensor<4xi64>) -> tensor<4xi64> {
  %n = graph.constant dense<6> : tensor<i64>
  %y = graph.pow %x, %n : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  func.return %y : tensor<4xi64>
}

// What would be less exact, or has no fixed exponent, stays.
// CHECK-LABEL: func.func @others
// CHECK: graph.pow %x, %n
// CHECK: graph.pow %x, %h
// CHECK: graph.pow %x, %z
func.func @others(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n = graph.constant dense<17.0> : tensor<f32>
  %h = graph.constant dense<1.5> : tensor<f32>
  %0 = graph.pow %x, %n : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = graph.pow %x, %h : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = graph.pow %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
