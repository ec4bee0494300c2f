// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// Activations.

// CHECK-LABEL: func.func @silu
func.func @silu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.silu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.silu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @softplus
func.func @softplus(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.softplus %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.softplus %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @log_sigmoid
func.func @log_sigmoid(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.log_sigmoid %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.log_sigmoid %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @mish
func.func @mish(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.mish %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.mish %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @softsign
func.func @softsign(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.softsign %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.softsign %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @elu
func.func @elu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.elu %x alpha = 1.000000e+00 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.elu %x alpha = 1.000000e+00 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @selu
func.func @selu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.selu %x alpha = 1.670000e+00 gamma = 1.050000e+00 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.selu %x alpha = 1.670000e+00 gamma = 1.050000e+00 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @celu
func.func @celu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.celu %x alpha = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.celu %x alpha = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @hard_sigmoid
func.func @hard_sigmoid(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.hard_sigmoid %x alpha = 2.000000e-01 beta = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.hard_sigmoid %x alpha = 2.000000e-01 beta = 5.000000e-01 : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @hard_swish
func.func @hard_swish(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // CHECK: %y = graph.hard_swish %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = graph.hard_swish %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @prelu
func.func @prelu(%x: tensor<?x3xi8>, %slope: tensor<3xi8>) -> tensor<?x3xi8> {
  // CHECK: %y = graph.prelu %x, %slope : (tensor<?x3xi8>, tensor<3xi8>) -> tensor<?x3xi8>
  %y = graph.prelu %x, %slope : (tensor<?x3xi8>, tensor<3xi8>) -> tensor<?x3xi8>
  func.return %y : tensor<?x3xi8>
}
