// RUN: stepwell-opt %s -p "builtin.module(func.func(canonicalize,graph-dce))" | filecheck %s
// RUN: stepwell-opt %s -p "func.func(graph-dce),graph-fuse-ops,convert-graph-to-loop,loop.kernel(loop-schedule)" | filecheck %s --check-prefix KERNEL
// RUN: not stepwell-opt %s -p "func.func(graph-fuse-ops)" 2>&1 | filecheck %s --check-prefix BESIDE
// RUN: not stepwell-opt %s -p "scf.for(cse)" 2>&1 | filecheck %s --check-prefix ANCHOR

// BESIDE: stepwell-opt: error: func.func(graph-fuse-ops): @twice: the pass puts @fused_add beside it; run graph-fuse-ops on the module
// ANCHOR: stepwell-opt: error: pipeline: passes are nested in scf.for, expected an operation isolated from above, such as func.func

// A private function stays, though nothing in its own module calls it.
// CHECK-LABEL: func.func private @twice
// CHECK-NEXT: graph.add
// CHECK-NEXT: func.return
func.func private @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %unused = graph.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = graph.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: func.call @twice
// CHECK-NEXT: graph.relu
// CHECK-NEXT: func.return
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = func.call @twice(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = graph.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %unused = graph.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
// KERNEL-LABEL: loop.kernel @fused_relu
// KERNEL: loop.load {{.*}} : memref<4x8xf32>, vector<{{[0-9]+}}xf32>
