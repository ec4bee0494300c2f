// RUN: stepwell-opt %s -p "graph-cse,graph-fuse-ops" --remarks 2>&1 >/dev/null | filecheck %s
// RUN: stepwell-opt %s -p "graph-cse,graph-fuse-ops{max-ops=1}" --remarks=missed,analysis 2>&1 >/dev/null | filecheck %s --check-prefix MISSED
// RUN: stepwell-opt %s -p "graph-cse,graph-fuse-ops" --remarks-filter "^(act|graph-dce)$" --json 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: not stepwell-opt %s --remarks=done 2>&1 | filecheck %s --check-prefix KIND
// RUN: not stepwell-opt %s --remarks-filter "(" 2>&1 | filecheck %s --check-prefix FILTER

// MISSED-NOT: (passed)
// MISSED: {{.*}}remarks.mlir:18:3: remark (missed): graph-fuse-ops: @fused_neg: one kernel for graph.neg, because a kernel may have at most 1 operator
// MISSED-NOT: (passed)
// KIND: stepwell-opt: error: --remarks: unknown kind of remarks, expected passed, missed, analysis, got done
// FILTER: stepwell-opt: error: --remarks-filter: '(' is not a regular expression: missing ), unterminated subpattern at position 0
// JSON-NOT: graph-cse
// JSON: {"report": "remark", "stage": null, "pass": "graph-fuse-ops", "kind": "passed", "subject": "@fused_neg_add_relu", "nodes": ["{{.*}}remarks.mlir:18", "{{.*}}remarks.mlir:19", "sum", "act"], "places": ["{{.*}}remarks.mlir:18:3", "{{.*}}remarks.mlir:19:3", "{{.*}}remarks.mlir:20:3", "{{.*}}remarks.mlir:21:3"], "what": "one kernel for graph.neg, graph.add, graph.relu",

// CHECK: {{.*}}remarks.mlir:18:3: remark (passed): graph-cse: nodes "{{.*}}remarks.mlir:18", "{{.*}}remarks.mlir:19": compute graph.neg once, because
// CHECK-NEXT: {{.*}}remarks.mlir:18:3: remark (passed): graph-fuse-ops: @fused_neg_add_relu: one kernel for graph.neg, graph.add, graph.relu, because {{.*}} [12 FLOP]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
  %3 = graph.relu %2 : (tensor<4xf32>) -> tensor<4xf32> loc("act")
  func.return %3 : tensor<4xf32>
}
