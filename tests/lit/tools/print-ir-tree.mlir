// RUN: rm -rf %t %t.parts
// RUN: stepwell-opt %s -p "graph-cse,func.func(graph-dce)" --print-ir-tree-dir %t/new/tree | filecheck %s --check-prefix OUTPUT
// RUN: ls %t/new/tree | filecheck %s --check-prefix NAMES
// RUN: cat %t/new/tree/000_input.mlir | filecheck %s --check-prefix INPUT
// RUN: cat %t/new/tree/001_graph-cse.mlir | filecheck %s --check-prefix MERGED
// RUN: not stepwell-opt %s -p "graph-cse,convert-graph-to-loop" --split-input-file --print-ir-tree-dir %t.parts 2>&1 | filecheck %s --check-prefix REFUSED
// RUN: ls %t.parts/0 | filecheck %s --check-prefix FAILED
// RUN: not stepwell-opt %s --print-ir-tree-dir %s 2>&1 | filecheck %s --check-prefix NO-FOLDER

// NAMES: 000_input.mlir
// NAMES-NEXT: 001_graph-cse.mlir
// NAMES-NEXT: 002_func.func-graph-dce.mlir
// REFUSED: stepwell-opt: error: convert-graph-to-loop: graph.relu: operator outside of a primitive function
// FAILED: 001_graph-cse.mlir
// FAILED-NEXT: 002_convert-graph-to-loop.failed.mlir
// NO-FOLDER: stepwell-opt: error: IR tree: cannot write {{.*}}print-ir-tree.mlir: File exists

// OUTPUT: graph.relu
// INPUT-LABEL: func.func @main
// INPUT: graph.relu
// INPUT-NEXT: graph.relu
// MERGED-LABEL: func.func @main
// MERGED: graph.relu
// MERGED-NEXT: graph.add
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
