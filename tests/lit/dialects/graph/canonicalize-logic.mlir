// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @greater(
// CHECK-NEXT: [[Y:%.+]] = graph.less %b, %a : (tensor<3xf32>, tensor<4x3xf32>) -> tensor<4x3xi1>
// CHECK-NEXT: func.return [[Y]] : tensor<4x3xi1>
func.func @greater(%a: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xi1> {
  %y = graph.greater %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
  func.return %y : tensor<4x3xi1>
}

// CHECK-LABEL: func.func @greater_equal(
// CHECK-NEXT: [[Y:%.+]] = graph.less_equal %b, %a : (tensor<3xf32>, tensor<4x3xf32>) -> tensor<4x3xi1>
// CHECK-NEXT: func.return [[Y]] : tensor<4x3xi1>
func.func @greater_equal(%a: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xi1> {
  %y = graph.greater_equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
  func.return %y : tensor<4x3xi1>
}

// A number that is not less may be NaN.
// CHECK-LABEL: func.func @keep_not_less(
// CHECK-NEXT: %l = graph.less %a, %b
// CHECK-NEXT: %y = graph.logical_not %l
// CHECK-NEXT: func.return %y : tensor<3xi1>
func.func @keep_not_less(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xi1> {
  %l = graph.less %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %y = graph.logical_not %l : (tensor<3xi1>) -> tensor<3xi1>
  func.return %y : tensor<3xi1>
}

// CHECK-LABEL: func.func @not_twice(
// CHECK-NEXT: func.return %x : tensor<?xi1>
func.func @not_twice(%x: tensor<?xi1>) -> tensor<?xi1> {
  %n = graph.logical_not %x : (tensor<?xi1>) -> tensor<?xi1>
  %y = graph.logical_not %n : (tensor<?xi1>) -> tensor<?xi1>
  func.return %y : tensor<?xi1>
}

// CHECK-LABEL: func.func @abs_of_negative(
// CHECK-NEXT: [[Y:%.+]] = graph.abs %x : (tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<?xf32>
func.func @abs_of_negative(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = graph.neg %x : (tensor<?xf32>) -> tensor<?xf32>
  %y = graph.abs %n : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @abs_twice(
// CHECK-NEXT: %a = graph.abs %x : (tensor<?xi8>) -> tensor<?xi8>
// CHECK-NEXT: func.return %a : tensor<?xi8>
func.func @abs_twice(%x: tensor<?xi8>) -> tensor<?xi8> {
  %a = graph.abs %x : (tensor<?xi8>) -> tensor<?xi8>
  %y = graph.abs %a : (tensor<?xi8>) -> tensor<?xi8>
  func.return %y : tensor<?xi8>
}

// CHECK-LABEL: func.func @where_same(
// CHECK-NEXT: func.return %x : tensor<4x3xf32>
func.func @where_same(%c: tensor<4x1xi1>, %x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %y = graph.where %c, %x, %x : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @where_true(
// CHECK-NEXT: func.return %a : tensor<4x3xf32>
func.func @where_true(%a: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %c = graph.constant dense<true> : tensor<i1>
  %y = graph.where %c, %a, %b : (tensor<i1>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @keep_where_that_broadcasts(
// CHECK: %y = graph.where %c, %a, %b
// CHECK-NEXT: func.return %y : tensor<4x3xf32>
func.func @keep_where_that_broadcasts(%a: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %c = graph.constant dense<false> : tensor<i1>
  %y = graph.where %c, %a, %b : (tensor<i1>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @keep_where_that_checks_sizes(
// CHECK-NEXT: %y = graph.where %c, %x, %x
// CHECK-NEXT: func.return %y : tensor<?xf32>
func.func @keep_where_that_checks_sizes(%c: tensor<?xi1>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %y = graph.where %c, %x, %x : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @keep_what_is_not_chosen_of_another_size(
// CHECK: %y = graph.where %c, %a, %b
// CHECK-NEXT: func.return %y : tensor<2xf32>
func.func @keep_what_is_not_chosen_of_another_size(%b: tensor<?xf32>) -> tensor<2xf32> {
  %c = graph.constant dense<true> : tensor<i1>
  %a = graph.constant dense<3.0> : tensor<2xf32>
  %y = graph.where %c, %a, %b : (tensor<i1>, tensor<2xf32>, tensor<?xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @where_true_of_a_symbolic_size(
// CHECK-NEXT: func.return %a : tensor<?x3xf32>
func.func @where_true_of_a_symbolic_size(%a: tensor<?x3xf32>, %b: tensor<1x3xf32>) -> tensor<?x3xf32> {
  %c = graph.constant dense<true> : tensor<i1>
  %y = graph.where %c, %a, %b : (tensor<i1>, tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}
