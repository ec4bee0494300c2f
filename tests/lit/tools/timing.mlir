// RUN: stepwell-opt %s -p "graph-cse,graph-dce" --timing 2>&1 >/dev/null | filecheck %s
// RUN: stepwell-opt %s -p "graph-cse,graph-dce" --timing --json 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: not stepwell-opt %s -p "graph-cse,convert-graph-to-loop,graph-dce" --time-passes 2>&1 >/dev/null | filecheck %s --check-prefix FAILURE

// CHECK: execution time: {{[0-9.]+}} s
// CHECK-NEXT: time share operations
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % parse
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % verify
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % 6 -> 5 passes
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % 6 -> 5 graph-cse
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % 5 -> 5 graph-dce
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % print
// CHECK-NEXT: {{[0-9.]+}} s {{[0-9.]+}} % rest

// JSON: {"report": "timing", "seconds": {{[0-9.e-]+}}, "rows": [{"stage": null, "phase": "parse", "seconds": {{[0-9.e-]+}}, "share": {{[0-9.e-]+}}},
// JSON-SAME: {"stage": null, "pass": "graph-cse", "seconds": {{[0-9.e-]+}}, "share": {{[0-9.e-]+}}, "operations": {"before": 6, "after": 5}}

// FAILURE: graph-cse
// FAILURE-NEXT: convert-graph-to-loop
// FAILURE-NEXT: rest
// FAILURE-NEXT: stepwell-opt: error: convert-graph-to-loop
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
