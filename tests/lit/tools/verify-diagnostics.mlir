// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p "graph-cse,convert-graph-to-loop" --remarks | filecheck %s
// RUN: not stepwell-opt %s --split-input-file --verify-diagnostics -p "graph-cse" 2>&1 >/dev/null | filecheck %s --check-prefix OTHER

// Without remarks, and without the pass that fails, what is expected of them is missing.
// OTHER: {{.*}}verify-diagnostics.mlir:{{[0-9]+}}: error: expected remark "compute graph.neg once" of line {{[0-9]+}} was not produced
// OTHER-NEXT: {{.*}}verify-diagnostics.mlir:{{[0-9]+}}: error: expected error "graph.neg: operator outside" of line {{[0-9]+}} was not produced
// OTHER-NEXT: stepwell-opt: error: --verify-diagnostics: 2 diagnostics are not as expected

// What is as expected is printed; nothing is for a part with an error.
// CHECK: func.func @identity
// CHECK-NOT: func.func
func.func @identity(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

func.func @verifier() -> i32 {
  // expected-error @+1 {{expected [i32], got []}}
  func.return
}
func.func @another() -> i32 {
  func.return
  // expected-error@above {{expected [i32]}}
}

// -----

// expected-error @+1 {{Expected argument or type}}
func.func @parser( {

// -----

func.func @attribute(%x: tensor<2xi32>) -> tensor<2xi32> {
  // expected-error-re @+1 {{expected a dense tensor of {{.*}}, got tensor<{{[0-9]}}xi32>}}
  %0 = graph.sqrt %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}

// -----

func.func @pass(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{compute graph.neg once}} expected-error @below {{graph.neg: operator outside}}
  %0 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = graph.relu %2 : (tensor<4xf32>) -> tensor<4xf32> loc("act")
  func.return %3 : tensor<4xf32>
}
