// RUN: stepwell-opt %s -p "graph-cse,graph-simplify,graph-dce,graph-fuse-ops" --statistics 2>&1 >/dev/null | filecheck %s
// RUN: stepwell-opt %s -p graph-simplify --statistics --json 2>&1 >/dev/null | filecheck %s --check-prefix JSON

// CHECK: statistics
// CHECK-NEXT: graph-cse
// CHECK-NEXT: 1 operations erased
// CHECK-NEXT: 1 decisions: passed
// CHECK: graph-simplify
// CHECK: 2 action ReluOfNonnegative
// CHECK-NOT: graph-dce
// CHECK: graph-fuse-ops
// CHECK-NEXT: {{[0-9]+}} operations created
// CHECK: 2 operators fused with others
// CHECK-NEXT: 1 action outline

// JSON: {"report": "statistics", "passes": [{"stage": null, "pass": "graph-simplify", "counters": {"operations
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = graph.relu %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = graph.relu %3 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
