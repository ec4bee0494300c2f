// RUN: stepwell-opt %s | stepwell-opt | filecheck %s
// RUN: stepwell-opt %s --print-op-generic | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @condition
func.func @condition(%p: tensor<i1>, %x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>) {
  // CHECK: %y, %n = graph.if %p captures(%x : tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>) {
  // CHECK-NEXT: ^bb0(%a: tensor<?x4xf32>):
  %y, %n = graph.if %p captures(%x : tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>) {
  ^bb0(%a: tensor<?x4xf32>):
    %r = graph.relu %a : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %one = graph.constant dense<1.0> : tensor<f32>
    // CHECK: graph.yield %r, %one : tensor<?x4xf32>, tensor<f32>
    // CHECK-NEXT: } else {
    graph.yield %r, %one : tensor<?x4xf32>, tensor<f32>
  } else {
  ^bb0(%a: tensor<?x4xf32>):
    %two = graph.constant dense<2.0> : tensor<f32>
    graph.yield %a, %two : tensor<?x4xf32>, tensor<f32>
  }
  // CHECK: graph.if %p -> () {
  // CHECK-NEXT: graph.yield
  // CHECK-NEXT: } else {
  // CHECK-NEXT: graph.yield
  graph.if %p -> () {
    graph.yield
  } else {
    graph.yield
  }
  func.return %y, %n : tensor<?x4xf32>, tensor<f32>
}

// Branches of different sizes.
// CHECK-LABEL: func.func @sizes
func.func @sizes(%p: tensor<i1>, %x: tensor<3x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: %z = graph.if %p captures(%x, %y : tensor<3x4xf32>, tensor<?x4xf32>) attributes {sizes = ["size.0"]} -> (tensor<?x4xf32>) {
  %z = graph.if %p captures(%x, %y : tensor<3x4xf32>, tensor<?x4xf32>) attributes {sizes = ["size.0"]} -> (tensor<?x4xf32>) {
  ^bb0(%a: tensor<3x4xf32>, %b: tensor<?x4xf32>):
    graph.yield %a : tensor<3x4xf32>
  } else {
  ^bb0(%a: tensor<3x4xf32>, %b: tensor<?x4xf32>):
    graph.yield %b : tensor<?x4xf32>
  }
  func.return %z : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @counted
func.func @counted(%x: tensor<?xf32> {graph.dims = ["n"]}, %t: tensor<i64>) -> tensor<?xf32> {
  // CHECK: %a = graph.loop count "2*n" carries(%x : tensor<?xf32>) -> (tensor<?xf32>) {
  %a = graph.loop count "2*n" carries(%x : tensor<?xf32>) -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>):
    graph.yield %h : tensor<?xf32>
  }
  // CHECK: %b = graph.loop times(%t : tensor<i64>) carries(%a : tensor<?xf32>) captures(%x : tensor<?xf32>) -> (tensor<?xf32>) {
  %b = graph.loop times(%t : tensor<i64>) carries(%a : tensor<?xf32>) captures(%x : tensor<?xf32>) -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>, %c: tensor<?xf32>):
    %s = graph.add %h, %c : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    graph.yield %s : tensor<?xf32>
  }
  func.return %b : tensor<?xf32>
}

// CHECK-LABEL: func.func @scan
func.func @scan(%xs: tensor<?x4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
  // CHECK: %l, %ys = graph.loop carries(%h : tensor<4xf32>) slices(%xs : tensor<?x4xf32>) attributes {backward_slices = array<i64: 0>, backward_stacks = array<i64: 0>} -> (tensor<4xf32>, tensor<?x4xf32>) {
  %l, %ys = graph.loop carries(%h : tensor<4xf32>) slices(%xs : tensor<?x4xf32>)
      attributes {backward_slices = array<i64: 0>, backward_stacks = array<i64: 0>}
      -> (tensor<4xf32>, tensor<?x4xf32>) {
  // CHECK-NEXT: ^bb0(%i: tensor<i64>, %s: tensor<4xf32>, %x: tensor<4xf32>):
  ^bb0(%i: tensor<i64>, %s: tensor<4xf32>, %x: tensor<4xf32>):
    %n = graph.add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %n, %s : tensor<4xf32>, tensor<4xf32>
  }
  func.return %l, %ys : tensor<4xf32>, tensor<?x4xf32>
}

// What is stacked until a condition fails has a computed size, which is named from `kernels` on.
// CHECK-LABEL: func.func @stacked
func.func @stacked(%p: tensor<i1>, %t: tensor<i64>) -> tensor<?xi64> {
  // CHECK: %ys = graph.loop times(%t : tensor<i64>) while(%p : tensor<i1>) captures(%p : tensor<i1>) attributes {limit = 9 : i64, sizes = ["k"]} -> (tensor<?xi64>) {
  %ys = graph.loop times(%t : tensor<i64>) while(%p : tensor<i1>) captures(%p : tensor<i1>)
      attributes {limit = 9 : i64, sizes = ["k"]} -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>, %q: tensor<i1>):
    graph.yield %q, %i : tensor<i1>, tensor<i64>
  }
  func.return %ys : tensor<?xi64>
}

// CHECK-LABEL: func.func @condition_of_a_loop
func.func @condition_of_a_loop(%p: tensor<i1>) -> tensor<f32> {
  %x = graph.constant dense<1.0> : tensor<f32>
  // CHECK: graph.loop while(%p : tensor<i1>) carries(%x : tensor<f32>) attributes {limit = 9 : i64} -> (tensor<f32>) {
  %y = graph.loop while(%p : tensor<i1>) carries(%x : tensor<f32>) attributes {limit = 9 : i64} -> (tensor<f32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<f32>):
    %d = graph.add %h, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %q = graph.less %d, %h : (tensor<f32>, tensor<f32>) -> tensor<i1>
    graph.yield %q, %d : tensor<i1>, tensor<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: func.func @growing_with_the_iterations
func.func @growing_with_the_iterations(%x: tensor<4x2xf32>, %xs: tensor<?xi64>) -> tensor<?x2xf32> {
  // CHECK: graph.loop {{.*}} attributes {bounds = {{\[\[}}"4*loop.iterations+4", ""{{\]\]}}} -> (tensor<?x2xf32>) {
  %y = graph.loop carries(%x : tensor<4x2xf32>) slices(%xs : tensor<?xi64>) captures(%x : tensor<4x2xf32>)
      attributes {bounds = [["4*loop.iterations+4", ""]]} -> (tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?x2xf32>, %n: tensor<i64>, %v: tensor<4x2xf32>):
    %z = graph.concat %h, %v axis = 0 : (tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
    graph.yield %z : tensor<?x2xf32>
  }
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @growing(
func.func @growing(%x: tensor<4x2xf32>, %n: tensor<i64>) -> tensor<?x2xf32> {
  // CHECK: %y = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4x2xf32>) attributes {bounds = {{\[\[}}"2*m+9", ""{{\]\]}}} -> (tensor<?x2xf32>) {
  %y = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4x2xf32>)
      attributes {bounds = [["2*m+9", ""]]} -> (tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?x2xf32>):
    %z = graph.concat %h, %h axis = 0 : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    graph.yield %z : tensor<?x2xf32>
  }
  func.return %y : tensor<?x2xf32>
}
