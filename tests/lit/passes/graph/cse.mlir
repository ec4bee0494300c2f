// RUN: stepwell-opt %s -p graph-cse | filecheck %s

// CHECK-LABEL: func.func @same_operands_in_another_order
// CHECK-SAME: (%[[x:[^:]*]]: tensor<4xf32>, %[[y:[^:]*]]: tensor<4xf32>)
// CHECK-NEXT: %[[a:.*]] = graph.add %[[x]], %[[y]]
// CHECK-NEXT: %[[m:.*]] = graph.max %[[a]], %[[y]]
// CHECK-NEXT: graph.mul %[[m]], %[[m]]
// CHECK-NEXT: func.return
func.func @same_operands_in_another_order(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = graph.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = graph.max %a, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = graph.max %y, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = graph.mul %c, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// CHECK-LABEL: func.func @order_that_matters
// CHECK-NEXT: graph.sub
// CHECK-NEXT: graph.sub
// CHECK-NEXT: graph.less
// CHECK-NEXT: graph.less
// CHECK-NEXT: func.return
func.func @order_that_matters(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>) {
  %a = graph.sub %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = graph.sub %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = graph.less %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %d = graph.less %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>
}

// A commutative operation without an equal keeps its operands where they are.
// CHECK-LABEL: func.func @attributes_and_types_that_differ
// CHECK-SAME: (%[[x:[^:]*]]: tensor<?x4xf32>, %[[y:[^:]*]]: tensor<?x4xf32>)
// CHECK-NEXT: graph.softmax %[[x]] axis = 0
// CHECK-NEXT: graph.softmax %[[x]] axis = 1
// CHECK-NEXT: graph.add %[[y]], %[[x]]
// CHECK-NEXT: graph.add %[[x]], %[[y]] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: func.return
func.func @attributes_and_types_that_differ(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<3x4xf32>) {
  %a = graph.softmax %x axis = 0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = graph.softmax %x axis = 1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = graph.add %y, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %d = graph.add %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<3x4xf32>
  func.return %a, %b, %c, %d : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<3x4xf32>
}

// A registered function may be random or keep a state.
// CHECK-LABEL: func.func @calls_of_registered_functions_stay
// CHECK-NEXT: graph.call_packed "env.noise"
// CHECK-NEXT: graph.call_packed "env.noise"
// CHECK-NEXT: func.return
func.func @calls_of_registered_functions_stay(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = graph.call_packed "env.noise"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.call_packed "env.noise"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @regions
// CHECK: %[[a:.*]] = scf.if
// CHECK: graph.exp
// CHECK: %[[c:.*]] = scf.if
// CHECK: graph.neg
// CHECK: func.return %[[a]], %[[a]], %[[c]]
func.func @regions(%p: i1, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = scf.if %p -> (tensor<4xf32>) {
    %e = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %b = scf.if %p -> (tensor<4xf32>) {
    %f = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %f : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %c = scf.if %p -> (tensor<4xf32>) {
    %g = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %g : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
