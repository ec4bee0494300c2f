// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%p: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.if: a branch yields other types than the results, expected (tensor<4xf32>), got ()}}
  %y = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    graph.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{graph.if: a branch yields other types than the results, expected (tensor<4xf32>), got (tensor<5xf32>)}}
  %z = graph.if %p captures(%x, %y : tensor<4xf32>, tensor<5xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    graph.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    graph.yield %b : tensor<5xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{graph.if: wrong arguments of a region, expected (tensor<4xf32>), got ()}}
  graph.if %p captures(%x : tensor<4xf32>) -> () {
  ^bb0(%a: tensor<4xf32>):
    graph.yield
  } else {
    graph.yield
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>) {
  // expected-error @+1 {{graph.if: a region does not end, expected graph.yield, got llvm.unreachable}}
  graph.if %p -> () {
    llvm.unreachable
  } else {
    graph.yield
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>) {
  // expected-error @+1 {{graph.if: wrong number of blocks in a region, expected 1, got 0}}
  graph.if %p -> () {
  } else {
    graph.yield
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: the loop has no end, expected count, times, slices or while}}
  %y = graph.loop carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.loop: two numbers of iterations, expected times, count or slices}}
  graph.loop count "3" times(%n : tensor<i64>) -> () {
  ^bb0(%i: tensor<i64>):
    graph.yield
  }
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.loop: negative count, expected 0 or more, got -3}}
  graph.loop count "-3" -> () {
  ^bb0(%i: tensor<i64>):
    graph.yield
  }
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.loop: count is not a size, expected a size, got "3/2"}}
  graph.loop count "3/2" -> () {
  ^bb0(%i: tensor<i64>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{graph.loop: a scalar has no slices, expected a tensor of rank 1 or more}}
  graph.loop slices(%x : tensor<f32>) -> () {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: wrong arguments of a region, expected (tensor<i64>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: results of other types than what is carried, expected (tensor<4xf32>), got (tensor<5xf32>)}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) -> (tensor<5xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: the region yields other types, expected (tensor<4xf32>, tensor<f32>), got (tensor<4xf32>)}}
  %y, %s = graph.loop count "3" carries(%x : tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.loop: a scalar is no stacked result, expected a tensor of rank 1 or more}}
  %s = graph.loop count "3" -> (tensor<f32>) {
  ^bb0(%i: tensor<i64>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%n: tensor<i64>) {
  // expected-error @+1 {{graph.loop: stacked results of an unknown size, expected count, slices or a limit}}
  %s = graph.loop times(%n : tensor<i64>) -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>):
    graph.yield %i : tensor<i64>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>) {
  // expected-error @+1 {{graph.loop: the last slice of a stacked result is stored first, expected a loop without a condition}}
  %s = graph.loop count "3" while(%p : tensor<i1>) captures(%p : tensor<i1>)
      attributes {backward_stacks = array<i64: 0>} -> (tensor<?xi64>) {
  ^bb0(%i: tensor<i64>, %q: tensor<i1>):
    graph.yield %q, %i : tensor<i1>, tensor<i64>
  }
  func.return
}

// -----

func.func @f() {
  // expected-error @+1 {{graph.loop: wrong limit, expected 1 or more, for a loop without count and slices, got 3}}
  graph.loop count "3" attributes {limit = 3 : i64} -> () {
  ^bb0(%i: tensor<i64>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: number of a backward value out of range, expected below 1, got (1,)}}
  graph.loop slices(%x : tensor<4xf32>) attributes {backward_slices = array<i64: 1>} -> () {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>):
    graph.yield
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: bounds do not fit what is carried, expected [1] texts, got [2]}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) attributes {bounds = [["", "7"]]} -> (tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: a bound is negative, expected 0 or more, got -7}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) attributes {bounds = [["-7"]]} -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>):
    graph.yield %h : tensor<?xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: bound is not a size, expected a size, got "7/2"}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) attributes {bounds = [["7/2"]]} -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>):
    graph.yield %h : tensor<?xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{graph.loop: no size is the number of iterations that a bound names, 2*loop.iterations, expected count or slices}}
  %y = graph.loop times(%n : tensor<i64>) carries(%x : tensor<4xf32>) attributes {bounds = [["2*loop.iterations"]]} -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<?xf32>):
    graph.yield %h : tensor<?xf32>
  }
  func.return
}

// -----

// What changes its size has no size in the type of the region's argument.
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.loop: wrong arguments of a region, expected (tensor<i64>, tensor<?xf32>), got (tensor<i64>, tensor<4xf32>)}}
  %y = graph.loop count "3" carries(%x : tensor<4xf32>) attributes {bounds = [["9"]]} -> (tensor<?xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    graph.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{graph.loop: numbers of iterations differ, expected 4, got 5}}
  graph.loop slices(%x, %y : tensor<4xf32>, tensor<5xf32>) -> () {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>, %b: tensor<f32>):
    graph.yield
  }
  func.return
}
