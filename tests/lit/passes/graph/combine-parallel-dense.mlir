// RUN: stepwell-opt %s -p graph-combine-parallel-dense | filecheck %s

// What follows all products in the same way comes along; the parts are read where they are.
// CHECK-LABEL: func.func @epilogues
// CHECK-SAME: (%[[x:.*]]: tensor<2x9xf32>)
// CHECK-DAG: %[[v:.*]] = graph.constant dense<1.000000e+00> : tensor<1x9xf32>
// CHECK-DAG: %[[w:.*]] = graph.constant dense<2.000000e+00> : tensor<2x9xf32>
// CHECK-DAG: %[[b:.*]] = graph.constant dense<3.000000e+00> : tensor<1xf32>
// CHECK-DAG: %[[c:.*]] = graph.constant dense<4.000000e+00> : tensor<2xf32>
// CHECK: %[[vw:.*]] = graph.concat %[[v]], %[[w]] axis = 0
// CHECK-NEXT: %[[d:.*]] = graph.dense %[[x]], %[[vw]]
// CHECK-NEXT: %[[bc:.*]] = graph.concat %[[b]], %[[c]] axis = 0
// CHECK-NEXT: %[[m:.*]] = graph.mul %[[d]], %[[bc]]
// CHECK-NEXT: %[[r:.*]] = graph.relu %[[m]]
// CHECK-NEXT: %[[s:.*]] = graph.slice %[[r]] starts = [0, 0] ends = [2, 1]
// CHECK-NEXT: %[[t:.*]] = graph.slice %[[r]] starts = [0, 1] ends = [2, 3]
// CHECK-NEXT: %[[y:.*]] = graph.add %[[s]], %[[t]]
// CHECK-NEXT: func.return %[[y]]
func.func @epilogues(%x: tensor<2x9xf32>) -> tensor<2x2xf32> {
  %v = graph.constant dense<1.0> : tensor<1x9xf32>
  %a = graph.dense %x, %v : (tensor<2x9xf32>, tensor<1x9xf32>) -> tensor<2x1xf32>
  %w = graph.constant dense<2.0> : tensor<2x9xf32>
  %b = graph.constant dense<3.0> : tensor<1xf32>
  %c = graph.constant dense<4.0> : tensor<2xf32>
  %d = graph.dense %x, %w : (tensor<2x9xf32>, tensor<2x9xf32>) -> tensor<2x2xf32>
  %e = graph.mul %a, %b : (tensor<2x1xf32>, tensor<1xf32>) -> tensor<2x1xf32>
  %f = graph.mul %d, %c : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %g = graph.relu %e : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %h = graph.relu %f : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = graph.add %g, %h : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// Both results are copies of more elements than are saved.
// CHECK-LABEL: func.func @copies_cost_more
// CHECK: graph.dense
// CHECK: graph.dense
// CHECK-NOT: graph.slice
func.func @copies_cost_more(%x: tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %v = graph.constant dense<1.0> : tensor<4x3xf32>
  %w = graph.constant dense<2.0> : tensor<4x3xf32>
  %a = graph.dense %x, %v : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %b = graph.dense %x, %w : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  func.return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}
