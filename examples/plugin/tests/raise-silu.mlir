// RUN: stepwell-opt %s -p swish-raise-silu,dce | filecheck %s

// CHECK-LABEL: func.func @gated
// CHECK-NEXT:    %[[Y:.*]] = swish.silu %x
// CHECK-NEXT:    func.return %[[Y]]
func.func @gated(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = graph.sigmoid %x : (tensor<5xf32>) -> tensor<5xf32>
  %1 = graph.mul %x, %0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}

// CHECK-LABEL: func.func @another_gate
// CHECK-NOT:     swish.silu
func.func @another_gate(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %0 = graph.sigmoid %x : (tensor<5xf32>) -> tensor<5xf32>
  %1 = graph.mul %y, %0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
