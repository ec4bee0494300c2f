// RUN: stepwell-opt %s --check -p "graph-simplify,convert-graph-to-loop,convert-graph-to-rt" 2>&1 >/dev/null | filecheck %s
// RUN: stepwell-opt %s --check --json -p "graph-simplify,convert-graph-to-loop" 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: not stepwell-opt %s --check %s -p graph-cse 2>&1 | filecheck %s --check-prefix NO-ARCHIVE

// CHECK: graph-simplify: same bits
// CHECK-NEXT: convert-graph-to-loop: {{.*}} ulp, {{[0-9]+}} elements, reassociation
// CHECK-NEXT: convert-graph-to-rt: same bits
// JSON: {"report": "change", "stage": null, "pass": "graph-simplify", "ulp": 0.0, "elements": 0, "how": null}
// JSON-NEXT: {"report": "change", "stage": null, "pass": "convert-graph-to-loop", "ulp": {{[0-9.]+}}, "elements": {{[0-9]+}}, "how": "reassociation"}
// NO-ARCHIVE: stepwell-opt: error: --check: cannot read {{.*}}check.mlir as .npz
func.func @main(%x: tensor<40x64xf32>) -> tensor<40x1xf32> {
  %0 = func.call @sum(%x) : (tensor<40x64xf32>) -> tensor<40x1xf32>
  func.return %0 : tensor<40x1xf32>
}
func.func private @sum(%x: tensor<40x64xf32>) -> tensor<40x1xf32> attributes {graph.primitive} {
  %0 = graph.reduce sum %x axes = [1] keepdims = true : (tensor<40x64xf32>) -> tensor<40x1xf32>
  func.return %0 : tensor<40x1xf32>
}
