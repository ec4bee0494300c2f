// RUN: stepwell-opt %s -p "graph-cse,graph-simplify" --print-ir-before graph-cse 2>&1 >/dev/null | filecheck %s --check-prefix BEFORE
// RUN: stepwell-opt %s -p "graph-cse,graph-simplify" --print-ir-after-all 2>&1 >/dev/null | filecheck %s --check-prefix AFTER
// RUN: stepwell-opt %s -p "graph-cse,graph-simplify" --print-ir-after-change --elide-constants none 2>&1 >/dev/null | filecheck %s --check-prefix CHANGE
// RUN: stepwell-opt %s -p "graph-cse,graph-simplify" --print-ir-diff 2>&1 >/dev/null | filecheck %s --check-prefix DIFF
// RUN: stepwell-opt %s -p "graph-cse,func.func(graph-dce)" --print-ir-after graph-dce --elide-constants 8 --json 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: not stepwell-opt %s -p "graph-cse,convert-graph-to-loop" --print-ir-after-failure 2>&1 >/dev/null | filecheck %s --check-prefix FAILURE
// RUN: not stepwell-opt %s -p graph-cse --print-ir-after graph-ces 2>&1 | filecheck %s --check-prefix UNKNOWN
// RUN: not stepwell-opt %s -p graph-cse --print-ir-diff --elide-constants few 2>&1 | filecheck %s --check-prefix LIMIT

// BEFORE: // -----// IR Dump Before graph-cse (constants elided) //----- //
// BEFORE-NEXT: builtin.module {
// BEFORE-NEXT: func.func @main
// BEFORE-NEXT: graph.constant dense_resource<__elided__> : tensor<17xf32>
// BEFORE-NEXT: graph.constant dense<1.000000e+00> : tensor<32xf32>
// BEFORE-NEXT: graph.constant dense<[{{.*}}]> : tensor<16xf32>
// BEFORE-NOT: IR Dump

// AFTER: // -----// IR Dump After graph-cse
// AFTER: func.func @main
// AFTER: func.func @untouched
// AFTER: // -----// IR Dump After graph-simplify
// AFTER: func.func @main
// AFTER: func.func @untouched

// CHANGE: // -----// IR Dump After graph-cse //----- //
// CHANGE: graph.constant dense<[{{.*}}]> : tensor<17xf32>
// CHANGE: func.func @untouched
// CHANGE-NOT: IR Dump

// DIFF: // -----// IR Diff After graph-cse //----- //
// DIFF-NEXT: --- @main before
// DIFF-NEXT: +++ @main after
// DIFF-NEXT: @@ -{{.*}} +{{.*}} @@
// DIFF: {{^}}   %d = graph.constant
// DIFF-NEXT: {{^}}   %0 = graph.relu %x
// DIFF-NEXT: {{^}}-  %1 = graph.relu %x
// DIFF-NEXT: {{^}}-  %2 = graph.add %0, %1
// DIFF: {{^}}+  %1 = graph.add %0, %0
// DIFF-NOT: untouched
// DIFF-NOT: graph-simplify

// JSON-NOT: "before"
// JSON: {"report": "ir", "when": "after", "stage": null, "pass": "func.func(graph-dce)", "diff": false, "elided": true, "text": "builtin.module {\n

// FAILURE: // -----// IR Dump After failure of convert-graph-to-loop
// FAILURE: func.func @main
// FAILURE: stepwell-opt: error: convert-graph-to-loop: graph.relu: operator outside of a primitive function

// UNKNOWN: stepwell-opt: error: --print-ir-after: unknown pass "graph-ces"; nearest names: graph-dce, graph-cse
// LIMIT: stepwell-opt: error: --elide-constants: wrong limit, expected a number of elements, or none, got few

func.func @main(%x: tensor<32xf32>) -> (tensor<32xf32>, tensor<17xf32>, tensor<16xf32>, tensor<32xf32>) {
  %c = graph.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0]> : tensor<17xf32>
  %s = graph.constant dense<1.0> : tensor<32xf32>
  %d = graph.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]> : tensor<16xf32>
  %0 = graph.relu %x : (tensor<32xf32>) -> tensor<32xf32>
  %1 = graph.relu %x : (tensor<32xf32>) -> tensor<32xf32>
  %2 = graph.add %0, %1 : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  func.return %2, %c, %d, %s : tensor<32xf32>, tensor<17xf32>, tensor<16xf32>, tensor<32xf32>
}
func.func @untouched(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
