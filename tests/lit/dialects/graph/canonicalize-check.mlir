// RUN: stepwell-opt %s --split-input-file -p canonicalize,dce | filecheck %s

// A size that is known takes no value.
// CHECK-LABEL: func.func @static
// CHECK: %{{.*}} = graph.check_indices %i below 4 "edges" : (tensor<2x?xi64>) -> tensor<2x?xi64>
func.func @static(%i: tensor<2x?xi64>, %x: tensor<?x4xf32>) -> tensor<2x?xi64> {
  %a = graph.check_indices %i of %x axis = -1 "edges" : (tensor<2x?xi64>, tensor<?x4xf32>) -> tensor<2x?xi64>
  func.return %a : tensor<2x?xi64>
}

// -----

// CHECK-LABEL: func.func @symbolic
// CHECK: graph.check_indices %i of %x axis = 0 : (tensor<3xi64>, tensor<?x4xf32>) -> tensor<3xi64>
func.func @symbolic(%i: tensor<3xi64>, %x: tensor<?x4xf32>) -> tensor<3xi64> {
  %a = graph.check_indices %i of %x axis = 0 : (tensor<3xi64>, tensor<?x4xf32>) -> tensor<3xi64>
  func.return %a : tensor<3xi64>
}
