// RUN: stepwell-opt %s --split-input-file -p convert-graph-to-rt | filecheck %s

// What is between kernels of a device stays there; inputs and results are copied once, constants
// are on both.
// CHECK-LABEL: func.func @main(%ctx: !rt.context, %x: memref<8xf32>, %result: memref<8xf32>) -> i32
// CHECK: %[[H:.*]] = memref.view %arena
// CHECK-NEXT: %[[W:.*]] = rt.constant %ctx, 0 "w" : memref<8xf32>
// CHECK-NEXT: rt.to_device %x : memref<8xf32>
// CHECK-NEXT: rt.call @sum(%x, %[[W]], %[[H]]) device writes 1
// CHECK-NEXT: rt.call @sum(%[[H]], %x, %result) device writes 1
// CHECK-NEXT: %[[OK:.*]] = arith.constant 0 : i32
// CHECK-NEXT: rt.to_host %result : memref<8xf32>
// CHECK-NEXT: func.return %[[OK]] : i32
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = graph.constant dense_resource<w> : tensor<8xf32>
  %0 = graph.call_dps @sum(%x, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = graph.call_dps @sum(%0, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
loop.kernel @sum(%x: memref<8xf32>, %w: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 threads {
    %a = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    %b = loop.load %w (d0) -> (d0)(%i) : memref<8xf32>, f32
    %c = arith.addf %a, %b : f32
    loop.store %c, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

// -----

// What the host reads is copied to it, and what it writes to the device. The second function reads
// what is still there from the first copy.
// CHECK-LABEL: func.func @functions
// CHECK: rt.to_device %x
// CHECK-NEXT: rt.call @copied(%x, %[[A:[0-9]+]]) device writes 1
// CHECK-NEXT: rt.to_host %[[A]]
// CHECK-NEXT: rt.call_packed %ctx, 0 "f" ins(%[[A]] : memref<8xf32>) outs(%[[B:[0-9]+]] : memref<8xf32>)
// CHECK-NEXT: rt.to_device %[[B]]
// CHECK-NEXT: rt.call_packed %ctx, 0 "f" ins(%[[A]] : memref<8xf32>) outs(%[[C:[0-9]+]] : memref<8xf32>)
// CHECK-NEXT: rt.to_device %[[C]]
// CHECK-NEXT: rt.call @copied(%[[B]], %result) device writes 1
// CHECK-NEXT: rt.call @copied(%[[C]], %result_1) device writes 1
// CHECK: rt.to_host %result
// CHECK-NEXT: rt.to_host %result_1
func.func @functions(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = graph.call_dps @copied(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = graph.call_packed "f"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = graph.call_packed "f"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = graph.call_dps @copied(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = graph.call_dps @copied(%2) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %3, %4 : tensor<8xf32>, tensor<8xf32>
}
loop.kernel @copied(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 threads {
    %a = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %a, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

// -----

// An input that the host alone reads is not copied, nor is a result that it alone writes.
// CHECK-LABEL: func.func @host_only
// CHECK-NEXT: rt.to_device %x
// CHECK-NEXT: rt.call @copied(%x, %result) device writes 1
// CHECK-NEXT: "memref.copy"(%z, %result_1)
// CHECK-NEXT: arith.constant
// CHECK-NEXT: rt.to_host %result : memref<8xf32>
// CHECK-NEXT: func.return
func.func @host_only(%x: tensor<8xf32> {graph.name = "x"}, %z: tensor<8xf32> {graph.name = "z"}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = graph.call_dps @copied(%x) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0, %z : tensor<8xf32>, tensor<8xf32>
}
loop.kernel @copied(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 threads {
    %a = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %a, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

// -----

// Without loops for a device, kernels run on the host.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: rt.to_
// CHECK: rt.call @serial(%x, %result) : memref<8xf32>, memref<8xf32>
// CHECK-NOT: rt.to_
func.func @plain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = graph.call_dps @serial(%x) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
loop.kernel @serial(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %a = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %a, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}
