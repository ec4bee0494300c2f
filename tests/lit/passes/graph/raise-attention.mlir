// RUN: stepwell-opt %s -p graph-raise-attention | filecheck %s

// softmax(q k^T * scale + mask) v == attention(q, k, v, mask, scale)

// CHECK-LABEL: func.func @scaled_and_masked
func.func @scaled_and_masked(%q: tensor<?x12x?x64xf32>, %k: tensor<?x12x?x64xf32>, %v: tensor<?x12x?x8xf32>, %m: tensor<?x1x1x?xf32>) -> tensor<?x12x?x8xf32> {
  // CHECK-NEXT: %t = graph.transpose %k
  // CHECK-NEXT: %[[K:.*]] = graph.transpose %t permutation = [0, 1, 3, 2]
  // CHECK-NEXT: %[[Y:.*]] = graph.attention %q, %[[K]], %v mask %m : tensor<?x1x1x?xf32> scale = 1.250000e-01 softcap = 0.000000e+00 left = -1 right = -1 at_end = false safe = false
  // CHECK-NEXT: func.return %[[Y]]
  %c = graph.constant dense<0.125> : tensor<f32>
  %t = graph.transpose %k permutation = [0, 1, 3, 2] : (tensor<?x12x?x64xf32>) -> tensor<?x12x64x?xf32>
  %p = graph.matmul %q, %t : (tensor<?x12x?x64xf32>, tensor<?x12x64x?xf32>) -> tensor<?x12x?x?xf32>
  %s = graph.mul %c, %p : (tensor<f32>, tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
  %a = graph.add %m, %s : (tensor<?x1x1x?xf32>, tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
  %e = graph.softmax %a axis = 3 : (tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
  %y = graph.matmul %e, %v : (tensor<?x12x?x?xf32>, tensor<?x12x?x8xf32>) -> tensor<?x12x?x8xf32>
  func.return %y : tensor<?x12x?x8xf32>
}

// Scores that do not count are -inf, or as good as that.
// CHECK-LABEL: func.func @chosen
func.func @chosen(%q: tensor<2x50x4xf32>, %k: tensor<2x4x60xf32>, %v: tensor<2x60x4xf32>, %m: tensor<60xi1>) -> (tensor<2x50x4xf32>, tensor<2x50x4xf32>) {
  // CHECK: graph.attention %q, %{{.*}}, %v mask %m : tensor<60xi1> scale = 1.000000e+00
  %low = graph.constant dense<0xff800000> : tensor<f32>
  %p = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x60xf32>) -> tensor<2x50x60xf32>
  %s = graph.where %m, %p, %low : (tensor<60xi1>, tensor<2x50x60xf32>, tensor<f32>) -> tensor<2x50x60xf32>
  %e = graph.softmax %s axis = 2 : (tensor<2x50x60xf32>) -> tensor<2x50x60xf32>
  %y = graph.matmul %e, %v : (tensor<2x50x60xf32>, tensor<2x60x4xf32>) -> tensor<2x50x4xf32>
  // CHECK: %[[ADDED:.*]] = graph.where %m, %{{.*}}, %{{.*}} : (tensor<60xi1>, tensor<f32>, tensor<f32>) -> tensor<60xf32>
  // CHECK: graph.attention %q, %{{.*}}, %v mask %[[ADDED]] : tensor<60xf32> scale = 5.000000e-01
  %half = graph.constant dense<0.5> : tensor<f32>
  %least = graph.constant dense<-3.0e+38> : tensor<f32>
  %p1 = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x60xf32>) -> tensor<2x50x60xf32>
  %h1 = graph.mul %p1, %half : (tensor<2x50x60xf32>, tensor<f32>) -> tensor<2x50x60xf32>
  %s1 = graph.where %m, %h1, %least : (tensor<60xi1>, tensor<2x50x60xf32>, tensor<f32>) -> tensor<2x50x60xf32>
  %e1 = graph.softmax %s1 axis = 2 : (tensor<2x50x60xf32>) -> tensor<2x50x60xf32>
  %y1 = graph.matmul %e1, %v : (tensor<2x50x60xf32>, tensor<2x60x4xf32>) -> tensor<2x50x4xf32>
  func.return %y, %y1 : tensor<2x50x4xf32>, tensor<2x50x4xf32>
}

// Another axis, a mask that is scaled or too small, shares that are a result, and matrices stay.
// CHECK-LABEL: func.func @stays
func.func @stays(%q: tensor<2x50x4xf32>, %k: tensor<2x4x50xf32>, %m: tensor<50xf32>, %c: tensor<50xi1>, %a: tensor<5x4xf32>, %b: tensor<4x5xf32>) -> (tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x50xf32>, tensor<5x4xf32>) {
  // CHECK-NOT: graph.attention
  %half = graph.constant dense<0.5> : tensor<f32>
  %little = graph.constant dense<-1.0e+4> : tensor<f32>
  %p = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %e = graph.softmax %p axis = 1 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %y = graph.matmul %e, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  %p1 = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %a1 = graph.add %p1, %m : (tensor<2x50x50xf32>, tensor<50xf32>) -> tensor<2x50x50xf32>
  %s1 = graph.mul %a1, %half : (tensor<2x50x50xf32>, tensor<f32>) -> tensor<2x50x50xf32>
  %e1 = graph.softmax %s1 axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %y1 = graph.matmul %e1, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  %p2 = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %s2 = graph.where %c, %p2, %little : (tensor<50xi1>, tensor<2x50x50xf32>, tensor<f32>) -> tensor<2x50x50xf32>
  %e2 = graph.softmax %s2 axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %y2 = graph.matmul %e2, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  %p3 = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %e3 = graph.softmax %p3 axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %y3 = graph.matmul %e3, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  %p4 = graph.matmul %a, %b : (tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
  %e4 = graph.softmax %p4 axis = 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %y4 = graph.matmul %e4, %a : (tensor<5x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  func.return %y, %y1, %y2, %y3, %e3, %y4 : tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x4xf32>, tensor<2x50x50xf32>, tensor<5x4xf32>
}

// A NaN that is made 0 is a row without keys.
// CHECK-LABEL: func.func @safe
func.func @safe(%q: tensor<2x50x4xf32>, %k: tensor<2x4x50xf32>) -> (tensor<2x50x4xf32>, tensor<2x50x4xf32>) {
  // CHECK: graph.attention %q, %{{.*}}, %q {{.*}} safe = true
  %zero = graph.constant dense<0.0> : tensor<f32>
  %p = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %e = graph.softmax %p axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %same = graph.equal %e, %e : (tensor<2x50x50xf32>, tensor<2x50x50xf32>) -> tensor<2x50x50xi1>
  %nan = graph.logical_not %same : (tensor<2x50x50xi1>) -> tensor<2x50x50xi1>
  %w = graph.where %nan, %zero, %e : (tensor<2x50x50xi1>, tensor<f32>, tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %y = graph.matmul %w, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  // CHECK: graph.attention %q, %{{.*}}, %q {{.*}} safe = true
  %p1 = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %e1 = graph.softmax %p1 axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %same1 = graph.equal %e1, %e1 : (tensor<2x50x50xf32>, tensor<2x50x50xf32>) -> tensor<2x50x50xi1>
  %w1 = graph.where %same1, %e1, %zero : (tensor<2x50x50xi1>, tensor<2x50x50xf32>, tensor<f32>) -> tensor<2x50x50xf32>
  %y1 = graph.matmul %w1, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  func.return %y, %y1 : tensor<2x50x4xf32>, tensor<2x50x4xf32>
}

// A one in the place of a NaN is something else.
// CHECK-LABEL: func.func @ones
func.func @ones(%q: tensor<2x50x4xf32>, %k: tensor<2x4x50xf32>) -> tensor<2x50x4xf32> {
  // CHECK-NOT: graph.attention
  %one = graph.constant dense<1.0> : tensor<f32>
  %p = graph.matmul %q, %k : (tensor<2x50x4xf32>, tensor<2x4x50xf32>) -> tensor<2x50x50xf32>
  %e = graph.softmax %p axis = 2 : (tensor<2x50x50xf32>) -> tensor<2x50x50xf32>
  %same = graph.equal %e, %e : (tensor<2x50x50xf32>, tensor<2x50x50xf32>) -> tensor<2x50x50xi1>
  %w = graph.where %same, %e, %one : (tensor<2x50x50xi1>, tensor<2x50x50xf32>, tensor<f32>) -> tensor<2x50x50xf32>
  %y = graph.matmul %w, %q : (tensor<2x50x50xf32>, tensor<2x50x4xf32>) -> tensor<2x50x4xf32>
  func.return %y : tensor<2x50x4xf32>
}

// Few scores stay in a cache anyway.
// CHECK-LABEL: func.func @few
func.func @few(%q: tensor<2x15x4xf32>, %k: tensor<2x4x15xf32>) -> tensor<2x15x4xf32> {
  // CHECK-NOT: graph.attention
  %p = graph.matmul %q, %k : (tensor<2x15x4xf32>, tensor<2x4x15xf32>) -> tensor<2x15x15xf32>
  %e = graph.softmax %p axis = 2 : (tensor<2x15x15xf32>) -> tensor<2x15x15xf32>
  %y = graph.matmul %e, %q : (tensor<2x15x15xf32>, tensor<2x15x4xf32>) -> tensor<2x15x4xf32>
  func.return %y : tensor<2x15x4xf32>
}
