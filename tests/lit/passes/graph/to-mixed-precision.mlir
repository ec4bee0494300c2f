// RUN: stepwell-opt %s -p "graph-to-mixed-precision{type=f16}" | filecheck %s
// RUN: stepwell-opt %s -p "graph-to-mixed-precision{type=bf16 always=exp never=dense,relu}" | filecheck %s --check-prefix LISTS

// Products and what follows them in f16; the softmax reads f32 again, and so does the caller.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME:    %x: tensor<?x8xf32>) -> tensor<?x4xf32>
// CHECK-DAG:     [[X:%.*]] = graph.cast %x : (tensor<?x8xf32>) -> tensor<?x8xf16>
// CHECK-DAG:     [[W:%.*]] = graph.cast %w : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK:         [[D:%.*]] = graph.dense [[X]], [[W]] : {{.*}} -> tensor<?x4xf16>
// CHECK-NEXT:    [[R:%.*]] = graph.relu [[D]] : (tensor<?x4xf16>) -> tensor<?x4xf16>
// CHECK-NEXT:    [[F:%.*]] = graph.cast [[R]] : (tensor<?x4xf16>) -> tensor<?x4xf32>
// CHECK-NEXT:    graph.softmax [[F]] axis = 1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
// LISTS-LABEL: func.func @layer(
// LISTS-NOT:     bf16
func.func @layer(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %w = graph.constant dense<0.5> : tensor<4x8xf32>
  %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %r = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = graph.softmax %r axis = 1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// An operator follows only where all of its operands are narrow or constants; a value is cast once.
// LISTS-LABEL: func.func @follow(
// CHECK-LABEL: func.func @follow(
// CHECK:         [[A:%.*]] = graph.matmul {{.*}} -> tensor<4x4xf16>
// CHECK-NEXT:    [[AF:%.*]] = graph.cast [[A]]
// CHECK-NEXT:    graph.add [[AF]], %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:         graph.transpose [[A]] permutation = [1, 0] : (tensor<4x4xf16>) -> tensor<4x4xf16>
// CHECK-NOT:     graph.cast [[A]]
func.func @follow(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = graph.add %a, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = graph.transpose %a permutation = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %s, %t : tensor<4x4xf32>, tensor<4x4xf32>
}

// Weights beyond 65504 have no f16.
// CHECK-LABEL: func.func @large(
// CHECK-NOT:     f16
// CHECK:         func.return
func.func @large(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = graph.constant dense<1.0e+05> : tensor<2x2xf32>
  %y = graph.dense %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// Doubles and exponentials stay as they are, unless a list says something else.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     f16
// CHECK:         func.return
// LISTS-LABEL: func.func @others(
// LISTS:         graph.exp {{.*}} -> tensor<2x2xbf16>
func.func @others(%x: tensor<2x2xf64>, %z: tensor<2x2xf32>) -> (tensor<2x2xf64>, tensor<2x2xf32>) {
  %y = graph.matmul %x, %x : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %e = graph.exp %z : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y, %e : tensor<2x2xf64>, tensor<2x2xf32>
}
