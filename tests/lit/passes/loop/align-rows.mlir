// RUN: stepwell-opt %s -p loop-align-rows --split-input-file | filecheck %s
// RUN: stepwell-opt %s -p loop-align-rows --split-input-file --remarks --remarks-filter=loop-align-rows 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// 28 bytes of a row of 64: 3 of 8 rows would be in two lines. Rows of 40 numbers (160 bytes) are in three
// lines with or without 32 bytes more, which a power of two would need.
// REMARK-COUNT-1: rows of 7 elements take the place of 8
// REMARK-NOT: rows of
// CHECK-LABEL: func.func @gathered
// CHECK-NEXT:    %h = graph.call_dps @make(%x) : (tensor<90x7xf32>) -> tensor<90x8xf32>
// CHECK-NEXT:    %y = graph.call_dps @rows(%h, %at) : (tensor<90x8xf32>, tensor<5xi64>) -> tensor<5x7xf32>
// CHECK-NEXT:    %g = graph.call_dps @make_wide(%w) : (tensor<90x40xf32>) -> tensor<90x40xf32>
func.func @gathered(%x: tensor<90x7xf32>, %w: tensor<90x40xf32>, %at: tensor<5xi64>) -> (tensor<5x7xf32>, tensor<5x40xf32>) {
  %h = graph.call_dps @make(%x) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %y = graph.call_dps @rows(%h, %at) : (tensor<90x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %g = graph.call_dps @make_wide(%w) : (tensor<90x40xf32>) -> tensor<90x40xf32>
  %z = graph.call_dps @rows_wide(%g, %at) : (tensor<90x40xf32>, tensor<5xi64>) -> tensor<5x40xf32>
  func.return %y, %z : tensor<5x7xf32>, tensor<5x40xf32>
}
// CHECK-LABEL: loop.kernel @make(%x: memref<90x7xf32>) -> (%y: memref<90x8xf32>)
// CHECK:         loop.for "j" %j to 7
// CHECK:           loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x8xf32>
loop.kernel @make(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
// CHECK-LABEL: loop.kernel @rows(%x: memref<90x8xf32>, %at: memref<5xi64>) -> (%y: memref<5x7xf32>)
loop.kernel @rows(%x: memref<90x7xf32>, %at: memref<5xi64>) -> (%y: memref<5x7xf32>) {
  loop.for "i" %i to 5 {
    loop.for "j" %j to 7 {
      %n = loop.load %at (d0) -> (d0)(%i) : memref<5xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x7xf32>
    }
  }
}
loop.kernel @make_wide(%x: memref<90x40xf32>) -> (%y: memref<90x40xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 40 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x40xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x40xf32>
    }
  }
}
loop.kernel @rows_wide(%x: memref<90x40xf32>, %at: memref<5xi64>) -> (%y: memref<5x40xf32>) {
  loop.for "i" %i to 5 {
    loop.for "j" %j to 40 {
      %n = loop.load %at (d0) -> (d0)(%i) : memref<5xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %j) : memref<90x40xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x40xf32>
    }
  }
}

// -----

// What the program returns, what a kernel of two calls makes, and what loops alone count stays.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     90x8xf32
// CHECK:         func.return
func.func @kept(%x: tensor<90x7xf32>, %at: tensor<5xi64>) -> (tensor<90x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<90x7xf32>) {
  %h = graph.call_dps @make(%x) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %y = graph.call_dps @rows(%h, %at) : (tensor<90x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %a = graph.call_dps @twice(%x) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %b = graph.call_dps @twice(%a) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %c = graph.call_dps @others(%b, %at) : (tensor<90x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %d = graph.call_dps @first(%x) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %e = graph.call_dps @second(%d) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  func.return %h, %y, %c, %e : tensor<90x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<90x7xf32>
}
loop.kernel @make(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @twice(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @first(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @second(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @rows(%x: memref<90x7xf32>, %at: memref<5xi64>) -> (%y: memref<5x7xf32>) {
  loop.for "i" %i to 5 {
    loop.for "j" %j to 7 {
      %n = loop.load %at (d0) -> (d0)(%i) : memref<5xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x7xf32>
    }
  }
}
loop.kernel @others(%x: memref<90x7xf32>, %at: memref<5xi64>) -> (%y: memref<5x7xf32>) {
  loop.for "i" %i to 5 {
    loop.for "j" %j to 7 {
      %n = loop.load %at (d0) -> (d0)(%i) : memref<5xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x7xf32>
    }
  }
}

// -----

// A kernel that may write over its input: both stay.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT:     90x8xf32
// CHECK:         func.return
func.func @in_place(%x: tensor<90x7xf32>, %at: tensor<5xi64>) -> tensor<5x7xf32> {
  %h = graph.call_dps @make(%x) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %g = graph.call_dps @over(%h) : (tensor<90x7xf32>) -> tensor<90x7xf32>
  %y = graph.call_dps @rows(%g, %at) : (tensor<90x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  func.return %y : tensor<5x7xf32>
}
loop.kernel @make(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32>) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @over(%x: memref<90x7xf32>) -> (%y: memref<90x7xf32> {loop.in_place = [0]}) {
  loop.for "i" %i to 90 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<90x7xf32>
    }
  }
}
loop.kernel @rows(%x: memref<90x7xf32>, %at: memref<5xi64>) -> (%y: memref<5x7xf32>) {
  loop.for "i" %i to 5 {
    loop.for "j" %j to 7 {
      %n = loop.load %at (d0) -> (d0)(%i) : memref<5xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%r, %j) : memref<90x7xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<5x7xf32>
    }
  }
}
