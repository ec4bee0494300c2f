// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @check_indices
func.func @check_indices(%i: tensor<2x?xi64>, %x: tensor<4x?xf32>) -> (tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>) {
  // CHECK: %a = graph.check_indices %i of %x axis = -1 : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  %a = graph.check_indices %i of %x axis = -1 : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  // CHECK: %b = graph.check_indices %i of %x axis = 0 "edges" : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  %b = graph.check_indices %i of %x axis = 0 "edges" : (tensor<2x?xi64>, tensor<4x?xf32>) -> tensor<2x?xi64>
  // CHECK: %c = graph.check_indices %i below 0 "edges" : (tensor<2x?xi64>) -> tensor<2x?xi64>
  %c = graph.check_indices %i below 0 "edges" : (tensor<2x?xi64>) -> tensor<2x?xi64>
  // CHECK: %d = graph.check_indices %i below 34 : (tensor<2x?xi64>) -> tensor<2x?xi64>
  %d = graph.check_indices %i below 34 : (tensor<2x?xi64>) -> tensor<2x?xi64>
  func.return %a, %b, %c, %d : tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>, tensor<2x?xi64>
}

// CHECK-LABEL: func.func @check
func.func @check(%x: tensor<?xf32>, %ok: tensor<i1>, %n: tensor<i64>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %a = graph.check %x if %ok "wrong"() : (tensor<?xf32>, tensor<i1>) -> tensor<?xf32>
  %a = graph.check %x if %ok "wrong"() : (tensor<?xf32>, tensor<i1>) -> tensor<?xf32>
  // CHECK: %b = graph.check %x if %ok "got {0} and {1}"(%n, %n) : (tensor<?xf32>, tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<?xf32>
  %b = graph.check %x if %ok "got {0} and {1}"(%n, %n) : (tensor<?xf32>, tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<?xf32>
  func.return %a, %b : tensor<?xf32>, tensor<?xf32>
}
