// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @transpose_nothing(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @transpose_nothing(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.transpose %x permutation = [0, 1, 2] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @transpose_back(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @transpose_back(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %z = graph.transpose %x permutation = [1, 2, 0] : (tensor<2x?x4xf32>) -> tensor<?x4x2xf32>
  %y = graph.transpose %z permutation = [2, 0, 1] : (tensor<?x4x2xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @transpose_twice(
// CHECK-NEXT: [[Y:%.+]] = graph.transpose %x permutation = [2, 0, 1] : (tensor<2x?x4xf32>) -> tensor<4x2x?xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<4x2x?xf32>
func.func @transpose_twice(%x: tensor<2x?x4xf32>) -> tensor<4x2x?xf32> {
  %z = graph.transpose %x permutation = [1, 2, 0] : (tensor<2x?x4xf32>) -> tensor<?x4x2xf32>
  %y = graph.transpose %z permutation = [1, 2, 0] : (tensor<?x4x2xf32>) -> tensor<4x2x?xf32>
  func.return %y : tensor<4x2x?xf32>
}

// CHECK-LABEL: func.func @keep_transpose(
// CHECK-NEXT: %y = graph.transpose %x permutation = [1, 0, 2] : (tensor<2x?x4xf32>) -> tensor<?x2x4xf32>
// CHECK-NEXT: func.return %y : tensor<?x2x4xf32>
func.func @keep_transpose(%x: tensor<2x?x4xf32>) -> tensor<?x2x4xf32> {
  %y = graph.transpose %x permutation = [1, 0, 2] : (tensor<2x?x4xf32>) -> tensor<?x2x4xf32>
  func.return %y : tensor<?x2x4xf32>
}

// CHECK-LABEL: func.func @reshape_nothing(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @reshape_nothing(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.reshape %x shape = [2, -1, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @keep_reshape_that_checks_a_size(
// CHECK-NEXT: %y = graph.reshape %x shape = [2, 5, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
// CHECK-NEXT: func.return %y : tensor<2x?x4xf32>
func.func @keep_reshape_that_checks_a_size(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.reshape %x shape = [2, 5, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @reshape_twice(
// CHECK-NEXT: [[Y:%.+]] = graph.reshape %x shape = [0, 3, 2] : (tensor<?x6xf32>) -> tensor<?x3x2xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<?x3x2xf32>
func.func @reshape_twice(%x: tensor<?x6xf32>) -> tensor<?x3x2xf32> {
  %z = graph.reshape %x shape = [0, 2, 3] : (tensor<?x6xf32>) -> tensor<?x2x3xf32>
  %y = graph.reshape %z shape = [0, 3, 2] : (tensor<?x2x3xf32>) -> tensor<?x3x2xf32>
  func.return %y : tensor<?x3x2xf32>
}

// CHECK-LABEL: func.func @reshape_of_a_copied_size(
// CHECK-NEXT: [[Y:%.+]] = graph.reshape %x shape = [2, -1, 1] : (tensor<6xf32>) -> tensor<2x3x1xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<2x3x1xf32>
func.func @reshape_of_a_copied_size(%x: tensor<6xf32>) -> tensor<2x3x1xf32> {
  %z = graph.reshape %x shape = [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %y = graph.reshape %z shape = [0, -1, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  func.return %y : tensor<2x3x1xf32>
}

// CHECK-LABEL: func.func @keep_reshape_that_copies_what_was_made(
// CHECK-NEXT: %z = graph.reshape %x shape = [-1, 2] : (tensor<?xf32>) -> tensor<?x2xf32>
// CHECK-NEXT: %y = graph.reshape %z shape = [0, 2, 1] : (tensor<?x2xf32>) -> tensor<?x2x1xf32>
// CHECK-NEXT: func.return %y : tensor<?x2x1xf32>
func.func @keep_reshape_that_copies_what_was_made(%x: tensor<?xf32>) -> tensor<?x2x1xf32> {
  %z = graph.reshape %x shape = [-1, 2] : (tensor<?xf32>) -> tensor<?x2xf32>
  %y = graph.reshape %z shape = [0, 2, 1] : (tensor<?x2xf32>) -> tensor<?x2x1xf32>
  func.return %y : tensor<?x2x1xf32>
}

// CHECK-LABEL: func.func @broadcast_nothing(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @broadcast_nothing(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.broadcast_to %x shape = [2, -1, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @keep_broadcast_that_checks_a_size(
// CHECK-NEXT: %y = graph.broadcast_to %x shape = [2, 3, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
// CHECK-NEXT: func.return %y : tensor<2x?x4xf32>
func.func @keep_broadcast_that_checks_a_size(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.broadcast_to %x shape = [2, 3, 4] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @concat_one(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @concat_one(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.concat %x axis = 1 : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @keep_concat(
// CHECK-NEXT: %y = graph.concat %x, %x axis = 1 : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
// CHECK-NEXT: func.return %y : tensor<2x?x4xf32>
func.func @keep_concat(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.concat %x, %x axis = 1 : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @slice_nothing(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @slice_nothing(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.slice %x starts = [0, 0, 0] ends = [2, 9223372036854775807, 4] steps = [1, 1, 1] : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @keep_slice(
// CHECK-NEXT: %y = graph.slice %x starts = [3] ends = [-1] steps = [-1] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_slice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.slice %x starts = [3] ends = [-1] steps = [-1] : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_nothing(
// CHECK-NEXT: func.return %x : tensor<2x?x4xf32>
func.func @reduce_nothing(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = graph.reduce mean %x axes = [] keepdims = true : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  func.return %y : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @keep_reduce(
// CHECK-NEXT: %y = graph.reduce sum %x axes = [0] keepdims = true : (tensor<4xf32>) -> tensor<1xf32>
// CHECK-NEXT: func.return %y : tensor<1xf32>
func.func @keep_reduce(%x: tensor<4xf32>) -> tensor<1xf32> {
  %y = graph.reduce sum %x axes = [0] keepdims = true : (tensor<4xf32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}

// CHECK-LABEL: func.func @constant_without_use(
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @constant_without_use(%y: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
