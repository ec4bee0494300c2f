// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-graph-to-loop | filecheck %s

// A contraction with its epilogue is one nest; a constant of the program is marked.
// CHECK-LABEL: func.func @dense_main
// CHECK: graph.call_dps @dense_relu(%{{.*}}, %{{.*}}, %{{.*}}) dims [["batch", ""]]
func.func @dense_main(%x: tensor<?x8xf32> {graph.name = "x", graph.dims = ["batch", ""]}) -> tensor<?x4xf32> {
  %w = graph.constant dense_resource<w> : tensor<4x8xf32>
  %b = graph.constant dense_resource<b> : tensor<4xf32>
  %y = func.call @dense_relu(%x, %w, %b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
// CHECK-LABEL: loop.kernel @dense_relu
// CHECK-SAME: (%x: memref<?x8xf32>, %w: memref<4x8xf32> {loop.constant}, %b: memref<4xf32> {loop.constant}) -> (%y: memref<?x4xf32>)
// CHECK: %[[N:.*]] = memref.dim %x
// CHECK: loop.for "i" %i to %[[N]] {
// CHECK-NEXT: loop.for "j" %j to 4 {
// CHECK-NEXT: %[[B:.*]] = loop.load %b (d0) -> (d0)(%j)
// CHECK-NEXT: %[[S:.*]] = loop.for "k" %k to 8 reduction carry(%[[ACC:.*]] = %[[B]] : f32 add) {
// CHECK-NEXT: %[[P:.*]] = loop.load %x (d0, d1) -> (d0, d1)(%i, %k)
// CHECK-NEXT: %[[Q:.*]] = loop.load %w (d0, d1) -> (d0, d1)(%j, %k)
// CHECK-NEXT: %[[T:.*]] = math.fma %[[P]], %[[Q]], %[[ACC]] : f32
// CHECK-NEXT: loop.yield %[[T]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[S]],
// CHECK-NEXT: loop.store %[[R]], %y (d0, d1) -> (d0, d1)(%i, %j)
func.func private @dense_relu(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> attributes {graph.primitive} {
  %0 = graph.dense %x, %w, %b : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = graph.relu %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}

// -----

// What a row needs once is computed before the loop over the row; its exponentials are kept.
// CHECK-LABEL: loop.kernel @softmax
// CHECK: loop.for "i" %i to 3 {
// CHECK-NEXT: %[[ROW:.*]] = loop.local : memref<5xf32>
// CHECK-NEXT: %[[MAX:.*]] = loop.for "k" %k to 5 reduction carry({{.*}} maxnum)
// CHECK: loop.for "j1" %j1 to 5 {
// CHECK: %[[EXP:.*]] = math.exp
// CHECK-NEXT: loop.store %[[EXP]], %[[ROW]] (d0) -> (d0)(%j1)
// CHECK: %[[SUM:.*]] = loop.for "k1" %k1 to 5 reduction carry({{.*}} add)
// CHECK-NEXT: loop.load %[[ROW]] (d0) -> (d0)(%k1)
// CHECK: %[[SCALE:.*]] = arith.divf %{{.*}}, %[[SUM]]
// CHECK: loop.for "j" %j to 5 {
// CHECK-NOT: reduction
// CHECK-NOT: math.exp
// CHECK: loop.load %[[ROW]] (d0) -> (d0)(%j)
// CHECK-NEXT: arith.mulf %{{.*}}, %[[SCALE]]
func.func private @softmax(%x: tensor<3x5xf32>) -> tensor<3x5xf32> attributes {graph.primitive} {
  %one = graph.constant dense<1.0> : tensor<f32>
  %max = graph.reduce maxnum %x axes = [1] keepdims = true : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %d = graph.sub %x, %max : (tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x5xf32>
  %e = graph.small_exp %d : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %sum = graph.reduce sum %e axes = [1] keepdims = true : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %scale = graph.div %one, %sum : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %0 = graph.mul %e, %scale : (tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x5xf32>
  func.return %0 : tensor<3x5xf32>
}

// -----

// Along axis 0 the columns come first, so that each has its maximum once.
// CHECK-LABEL: loop.kernel @softmax_columns
// CHECK: loop.for "i" %i to 5 {
// CHECK-NEXT: loop.for "k" %k to 3 reduction carry({{.*}} maxnum)
// CHECK: loop.for "j" %j to 3 {
// CHECK-NOT: loop.local
// CHECK: loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%j, %i)
func.func private @softmax_columns(%x: tensor<3x5xf32>) -> tensor<3x5xf32> attributes {graph.primitive} {
  %0 = graph.softmax %x axis = 0 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %0 : tensor<3x5xf32>
}

// -----

// A hidden row that the next product walks over is staged: no recomputation, no buffer outside.
// CHECK-LABEL: loop.kernel @gcn
// CHECK-SAME: (%a: memref<?xi32> {loop.indptr}, %a_1: memref<?xi32>, %a_2: memref<?xf32>, %a_3: index, %x: memref<?x16xf32>, %w: memref<16x7xf32>)
// CHECK: loop.for "i" %i to
// CHECK-NEXT: %[[H:.*]] = loop.local : memref<16xf32>
// CHECK-NEXT: loop.for "j1" %j1 to 16 {
// CHECK-NEXT: %[[S:.*]] = loop.for "e" %p, %c of %a, %a_1 row (d0) -> (d0)(%i) reduction carry({{.*}} add)
// CHECK-NEXT: loop.load %x (d0, d1) -> (d0, d1)(%c, %j1)
// CHECK-NEXT: loop.load %a_2 (d0) -> (d0)(%p)
// CHECK: %[[R:.*]] = arith.maximumf %[[S]],
// CHECK-NEXT: loop.store %[[R]], %[[H]] (d0) -> (d0)(%j1)
// CHECK: loop.for "j" %j to 7 {
// CHECK-NEXT: loop.for "k" %k to 16 reduction carry({{.*}} add)
// CHECK-NEXT: loop.load %[[H]] (d0) -> (d0)(%k)
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func private @gcn(%a: tensor<?x?xf32, #csr>, %x: tensor<?x16xf32>, %w: tensor<16x7xf32>) -> tensor<?x7xf32> attributes {graph.primitive} {
  %0 = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %1 = graph.relu %0 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %2 = graph.matmul %1, %w : (tensor<?x16xf32>, tensor<16x7xf32>) -> tensor<?x7xf32>
  func.return %2 : tensor<?x7xf32>
}

// -----

// What is expensive and read in two loops over a row of any size is kept in the result.
// CHECK-LABEL: loop.kernel @shares
// CHECK: loop.for "i" %i to
// CHECK-NEXT: loop.for "j1" %j1 to
// CHECK-NEXT: loop.load %x (d0, d1) -> (d0, d1)(%i, %j1)
// CHECK-NEXT: %[[E:.*]] = math.exp
// CHECK-NEXT: loop.store %[[E]], %y (d0, d1) -> (d0, d1)(%i, %j1)
// CHECK: %[[SUM:.*]] = loop.for "k" %k to {{.*}} reduction carry({{.*}} add)
// CHECK-NEXT: loop.load %y (d0, d1) -> (d0, d1)(%i, %k)
// CHECK: loop.for "j" %j to
// CHECK-NEXT: %[[OWN:.*]] = loop.load %y (d0, d1) -> (d0, d1)(%i, %j)
// CHECK-NEXT: %[[SHARE:.*]] = arith.divf %[[OWN]], %[[SUM]]
// CHECK-NEXT: loop.store %[[SHARE]], %y (d0, d1) -> (d0, d1)(%i, %j)
func.func private @shares(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {graph.primitive} {
  %e = graph.exp %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = graph.reduce sum %e axes = [1] keepdims = true : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %y = graph.div %e, %s : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// A transpose inside of a group is an index map.
// CHECK-LABEL: loop.kernel @transposed
// CHECK: loop.load %x (d0, d1) -> (d0, d1)(%j, %i) : memref<5x3xf32>, f32
// CHECK: loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%i, %j)
func.func private @transposed(%x: tensor<5x3xf32>) -> tensor<3x5xf32> attributes {graph.primitive} {
  %0 = graph.transpose %x permutation = [1, 0] : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %1 = graph.relu %0 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %1 : tensor<3x5xf32>
}

// -----

// Indices are checked before the kernel runs: it says against which extent.
// CHECK-LABEL: loop.kernel @rows
// CHECK-SAME: %ids: memref<?xi64> {loop.bounds = ["x0.0"]}
func.func private @rows(%x: tensor<?x4xf32>, %ids: tensor<?xi64>) -> tensor<?x4xf32> attributes {graph.primitive} {
  %0 = graph.gather %x, %ids axis = 0 : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}

// -----

// Sizes that have to agree are noted on the caller: kernels do not say.
// CHECK-LABEL: func.func @agree
// CHECK-SAME: attributes {graph.equal = {{\[}}["n", "m"]]}
func.func @agree(%x: tensor<?xf32> {graph.dims = ["n"]}, %y: tensor<?xf32> {graph.dims = ["m"]}) -> tensor<?xf32> {
  %0 = func.call @add(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
func.func private @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> attributes {graph.primitive} {
  %0 = graph.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

// -----

// f16 is computed in f32; a boolean takes a byte.
// CHECK-LABEL: loop.kernel @half
// CHECK: %[[X:.*]] = loop.load %x (d0) -> (d0)(%i) : memref<4xf16>, f16
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func private @half(%x: tensor<4xf16>) -> tensor<4xf16> attributes {graph.primitive} {
  %0 = graph.relu %x : (tensor<4xf16>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}

// -----

// What is compared is rounded to f16, and not again after a relu; what is only added is not.
// CHECK-LABEL: loop.kernel @compared
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[H]] : f16 to f32
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[W]], %{{.*}} : f32
// CHECK-NEXT: arith.cmpf olt, %{{.*}}, %[[R]] : f32
func.func private @compared(%x: tensor<4xf16>) -> tensor<4xi1> attributes {graph.primitive} {
  %0 = graph.add %x, %x : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = graph.relu %0 : (tensor<4xf16>) -> tensor<4xf16>
  %2 = graph.less %x, %1 : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  func.return %2 : tensor<4xi1>
}
// CHECK-LABEL: loop.kernel @added
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %{{.*}} : f32
// CHECK-NEXT: arith.truncf %[[T]] : f32 to f16
func.func private @added(%x: tensor<4xf16>) -> tensor<4xf16> attributes {graph.primitive} {
  %0 = graph.add %x, %x : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = graph.add %0, %x : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  func.return %1 : tensor<4xf16>
}

// -----

// A value for each entry is computed row by row, in loops over the rows and their entries.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: loop.kernel @ends
// CHECK: loop.for "i" %[[I:.*]] to
// CHECK: %[[START:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[COUNT:.*]] = arith.subi %{{.*}}, %[[START]]
// CHECK: loop.for "j" %[[J:.*]] to 2
// CHECK: loop.for "l" %[[L:.*]] to %[[COUNT]] {
// CHECK: %[[C:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: loop.load %x (d0, d1) -> (d0, d1)(%[[C]], %[[J]])
// CHECK: loop.store %{{.*}}, %y (d0, d1, d2) -> ((d0 + d1), d2)(%[[START]], %[[L]], %[[J]])
func.func private @ends(%a: tensor<?x?xf32, #csr>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> attributes {graph.primitive} {
  %0 = graph.sddmm add %a, %x, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %0 : tensor<?x2xf32>
}

// -----

// A module without primitive functions has nothing to convert.
// CHECK-LABEL: func.func @identity
// CHECK-NEXT: func.return %x
func.func @identity(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error-re @+1 {{graph.relu: operator outside of a primitive function {{.*}}; run graph-fuse-ops first}}
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @opaque(%a: tensor<3x3xf32, #csr>) -> tensor<3x3xf32> {
  // expected-error-re @+1 {{graph.normalize: an opaque operator has no kernel {{.*}}; one of constants is folded, others are replaced where a pass knows the user}}
  %0 = graph.normalize row %a self_loops = true : (tensor<3x3xf32, #csr>) -> tensor<3x3xf32, #csr>
  %1 = graph.to_dense %0 : (tensor<3x3xf32, #csr>) -> tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}

// -----

// Unsigned integers are computed in a signed type that holds them, and keep their low bits.
// CHECK-LABEL: loop.kernel @unsigned(%x: memref<4xi8>) -> (%y: memref<4xi8>)
// CHECK: %[[MASK:.*]] = arith.constant 255 : i32
// CHECK: %[[X:.*]] = loop.load %x (d0) -> (d0)(%i) : memref<4xi8>, i8
// CHECK-NEXT: %[[W:.*]] = arith.extui %[[X]] : i8 to i32
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[W]], %[[W]] : i32
// CHECK-NEXT: %[[L:.*]] = arith.andi %[[S]], %[[MASK]] : i32
// CHECK-NEXT: %[[N:.*]] = arith.trunci %[[L]] : i32 to i8
// CHECK-NEXT: loop.store %[[N]], %y
func.func private @unsigned(%x: tensor<4xui8>) -> tensor<4xui8> attributes {graph.primitive} {
  %y = graph.add %x, %x : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %y : tensor<4xui8>
}

// -----

// A kernel that stores each element once is merged with what is next to it: one nest.
// CHECK-LABEL: loop.kernel @merged
// CHECK: loop.for "i" %i to 4 {
// CHECK-NEXT: %[[X:.*]] = loop.load %x (d0) -> (d0)(%i)
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[E]]
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[S]],
// CHECK-NEXT: loop.store %[[M]], %y (d0) -> (d0)(%i)
// CHECK-NOT: loop.kernel
func.func private @merged(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = graph.call_dps @double(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = graph.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
loop.kernel @double(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %0 = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

// -----

// A kernel whose loops keep their order runs as it is, and is told what is a constant.
// CHECK-LABEL: func.func @whole
// CHECK: graph.call_dps @running(%x, %w)
func.func @whole(%x: tensor<?x?xf32> {graph.dims = ["n", "n"]}) -> tensor<?x?xf32> {
  %w = graph.constant dense_resource<w> : tensor<4xf32>
  %1 = func.call @last(%x, %w) : (tensor<?x?xf32>, tensor<4xf32>) -> tensor<?x?xf32>
  func.return %1 : tensor<?x?xf32>
}
func.func private @last(%x: tensor<?x?xf32> {graph.dims = ["a", "b"]}, %w: tensor<4xf32>) -> tensor<?x?xf32> attributes {graph.primitive} {
  %0 = graph.call_dps @running(%x, %w) dims [["a", "b"]] : (tensor<?x?xf32>, tensor<4xf32>) -> tensor<?x?xf32>
  func.return %0 : tensor<?x?xf32>
}
// CHECK: loop.kernel @running(%x: memref<?x?xf32>, %w: memref<4xf32> {loop.constant})
loop.kernel @running(%x: memref<?x?xf32>, %w: memref<4xf32>) -> (%y: memref<?x?xf32>) {
  loop.for "i" %i to 4 serial {
  }
}

// -----

// Numbers of the same rows are one nest, in which each reduction runs once; sums of other rows
// are another nest.
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

// CHECK-LABEL: loop.kernel @rows
// CHECK: loop.for "i" %{{.*}} to %{{.*}} {
// CHECK-NEXT: loop.for "e"
// CHECK-NOT: loop.for
// CHECK: loop.store %{{.*}}, %y0 (d0) -> (d0, 0)(%i)
// CHECK-NOT: loop.for
// CHECK: loop.store %{{.*}}, %y1 (d0) -> (d0)(%i)
// CHECK: loop.for "i1"
// CHECK-NEXT: loop.for "k"
func.func private @rows(%a: tensor<?x?xf32, #csr>, %x: tensor<3x4xf32>) -> (tensor<?x1xf32>, tensor<?xf32>, tensor<3xf32>) attributes {graph.primitive} {
  %d = graph.degree %a self_loops = false power = -1.0 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %s = graph.reshape %d shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
  %e = graph.degree %a self_loops = false power = 1.0 : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
  %r = graph.reduce sum %x axes = [1] keepdims = false : (tensor<3x4xf32>) -> tensor<3xf32>
  func.return %s, %e, %r : tensor<?x1xf32>, tensor<?xf32>, tensor<3xf32>
}

// -----

// An output may be written over what is read where it is written, if a call passes what nobody
// needs after it: not over an argument of the program (the first call) or what is needed later.
// CHECK-LABEL: loop.kernel @last_use
// CHECK-SAME: -> (%y: memref<?x4xf32> {loop.in_place = [1 : i64]})
// CHECK-LABEL: loop.kernel @used_later
// CHECK-SAME: -> (%y: memref<?x4xf32>)
func.func @main(%x: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> {
  %0 = func.call @used_later(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = func.call @used_later(%0, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = func.call @last_use(%x, %1) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = func.call @last_use(%2, %0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %3 : tensor<?x4xf32>
}
func.func private @last_use(%x: tensor<?x4xf32> {graph.dims = ["n", ""]}, %z: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> attributes {graph.primitive} {
  %s = graph.reduce sum %x axes = [1] keepdims = true : (tensor<?x4xf32>) -> tensor<?x1xf32>
  %y = graph.mul %s, %z : (tensor<?x1xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
func.func private @used_later(%x: tensor<?x4xf32> {graph.dims = ["n", ""]}, %z: tensor<?x4xf32> {graph.dims = ["n", ""]}) -> tensor<?x4xf32> attributes {graph.primitive} {
  %y = graph.add %x, %z : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// How many entries a matrix has is told where it is the same in all calls.
// CHECK-LABEL: func.func @counted
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @counted(%a: tensor<5x4xf32, #csr> {graph.nnz = 9 : i64}, %b: tensor<5x4xf32, #csr> {graph.nnz = 7 : i64}, %x: tensor<4x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) {
  %y = func.call @one(%a, %x) : (tensor<5x4xf32, #csr>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %z = func.call @two(%a, %x) : (tensor<5x4xf32, #csr>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %w = func.call @two(%b, %x) : (tensor<5x4xf32, #csr>, tensor<4x8xf32>) -> tensor<5x8xf32>
  func.return %y, %z, %w : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}
// CHECK: loop.kernel @one(%a: memref<6xi32> {loop.indptr}, %{{.*}}: memref<?xi32> {loop.entries = 9 : i64}, %{{.*}}: memref<?xf32>, %x: memref<4x8xf32>)
func.func private @one(%a: tensor<5x4xf32, #csr>, %x: tensor<4x8xf32>) -> tensor<5x8xf32> attributes {graph.primitive} {
  %0 = graph.spmm %a, %x : (tensor<5x4xf32, #csr>, tensor<4x8xf32>) -> tensor<5x8xf32>
  func.return %0 : tensor<5x8xf32>
}
// CHECK: loop.kernel @two(%a: memref<6xi32> {loop.indptr}, %{{.*}}: memref<?xi32>, %{{.*}}: memref<?xf32>, %x: memref<4x8xf32>)
func.func private @two(%a: tensor<5x4xf32, #csr>, %x: tensor<4x8xf32>) -> tensor<5x8xf32> attributes {graph.primitive} {
  %0 = graph.spmm %a, %x : (tensor<5x4xf32, #csr>, tensor<4x8xf32>) -> tensor<5x8xf32>
  func.return %0 : tensor<5x8xf32>
}

// -----

// A function that cannot be one kernel is refused; graph-fuse-ops would have made two of it.
// expected-error-re @below {{func.func: cannot be one kernel, got a reduction would be computed again in each iteration of loop "i" {{.*}}; graph-fuse-ops makes functions that can be one kernel}}
func.func private @columns(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {graph.primitive} {
  %0 = graph.reduce sum %x axes = [1] keepdims = false : (tensor<?x?xf32>) -> tensor<?xf32>
  %1 = graph.sub %x, %0 : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %2 = graph.reduce sum %x axes = [1] keepdims = true : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %3 = graph.mul %1, %2 : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  func.return %3 : tensor<?x?xf32>
}

// -----

// An operator that writes its result: what it reads is computed in its loops, and what follows.
// CHECK-LABEL: loop.kernel @smoothed
// CHECK: loop.for "i" %i to 3 {
// CHECK-NEXT: %[[B:.*]] = loop.load %b (d0) -> (d0, 0)(%i)
// CHECK-NEXT: loop.for "k" %k to %{{.*}} serial carry(%[[SUM:.*]] = %{{.*}} : f32) {
// CHECK-NEXT: %[[X:.*]] = loop.load %x (d0, d1) -> (d0, d1)(%i, %k)
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[X]],
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[R]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[SUM]], %[[B]]
// CHECK-NEXT: loop.store %[[Y]], %y (d0, d1) -> (d0, d1)(%i, %k)
// CHECK-NEXT: loop.yield %[[NEXT]]
func.func private @smoothed(%x: tensor<3x?xf32>, %b: tensor<3x1xf32>) -> tensor<3x?xf32> attributes {graph.primitive} {
  %0 = graph.relu %x : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %1 = graph.cumulative sum %0 axis = 1 exclusive = true reverse = false : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %2 = graph.add %1, %b : (tensor<3x?xf32>, tensor<3x1xf32>) -> tensor<3x?xf32>
  func.return %2 : tensor<3x?xf32>
}

// -----

// A scatter copies, then updates in order; indices are checked before the kernel runs.
// CHECK-LABEL: loop.kernel @put
// CHECK-SAME: %i: memref<?xi64> {loop.bounds = ["9"]}
// CHECK: loop.store %{{.*}}, %y
// CHECK: loop.for "k" %k to %{{.*}} serial {
// CHECK: %[[PLACE:.*]] = arith.select
// CHECK-NEXT: loop.for "i1" %i1 to 4 {
// CHECK-NEXT: %[[U:.*]] = loop.load %u (d0, d1) -> (d0, d1)(%k, %i1)
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[U]]
// CHECK-NEXT: loop.store add %[[N]], %y (d0, d1) -> (d0, d1)(%[[PLACE]], %i1)
func.func private @put(%x: tensor<9x4xf32>, %i: tensor<?xi64>, %u: tensor<?x4xf32>) -> tensor<9x4xf32> attributes {graph.primitive} {
  %0 = graph.neg %u : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.scatter_nd add %x, %0 at %i : (tensor<9x4xf32>, tensor<?x4xf32>, tensor<?xi64>) -> tensor<9x4xf32>
  func.return %1 : tensor<9x4xf32>
}

// -----

// A sort of a row of symbolic size: its records are on both sides of a local buffer.
// CHECK-LABEL: loop.kernel @sorted
// CHECK: %[[SIZE:.*]] = arith.addi %[[N:.*]], %
// CHECK: loop.for "i" %i to 3 {
// CHECK-NEXT: %[[RECORDS:.*]] = loop.local(%[[SIZE]]) : memref<2x?xi64>
// CHECK: loop.for "j" %j to %[[N]] {
// CHECK: %[[R:.*]] = arith.maximumf %{{.*}}, %{{.*}} : f32
// CHECK: arith.bitcast
// CHECK: loop.store %{{.*}}, %[[RECORDS]] (d0) -> (0, d0)(%j)
// CHECK: %[[COUNTS:.*]] = loop.local : memref<4x256xi32>
// CHECK: loop.for "k" %k to %[[N]] serial {
// CHECK: loop.store add %{{.*}}, %[[COUNTS]] (d0) -> (3, d0)
// CHECK: %[[HALF:.*]] = loop.for "k1" %k1 to 4 serial carry(
// CHECK: loop.for "k2" %k2 to %{{.*}} serial {
// CHECK: loop.store %{{.*}}, %[[RECORDS]] (d0, d1) -> (d0, d1)
// CHECK: loop.for "j2" %j2 to %[[N]] {
// CHECK: arith.index_cast %{{.*}} : i64 to index
// CHECK: loop.load %x (d0, d1) -> (d0, d1)(%i, %{{.*}})
// CHECK: math.exp
// CHECK-NEXT: loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%i, %j2)
func.func private @sorted(%x: tensor<3x?xf32>) -> tensor<3x?xf32> attributes {graph.primitive} {
  %0 = graph.relu %x : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %1, %2 = graph.sort %0 axis = 1 descending = false : (tensor<3x?xf32>) -> (tensor<3x?xf32>, tensor<3x?xi64>)
  %3 = graph.exp %1 : (tensor<3x?xf32>) -> tensor<3x?xf32>
  func.return %3 : tensor<3x?xf32>
}

// -----

// The size of an axis that has to be long enough is checked before the kernel runs.
// CHECK-LABEL: loop.kernel @best
// CHECK-SAME: %x: memref<?xf32> {loop.sizes = ["graph.top_k, dimension 0 of x: x0.0 >= 3", "graph.top_k, dimension 0 of x: x0.0 <= 2147483647"]}
func.func private @best(%x: tensor<?xf32>) -> tensor<3xf32> attributes {graph.primitive} {
  %0, %1 = graph.top_k %x axis = 0 k = 3 largest = true : (tensor<?xf32>) -> (tensor<3xf32>, tensor<3xi64>)
  func.return %0 : tensor<3xf32>
}

// -----

// So is one that is a quotient of the sizes of arguments.
// CHECK-LABEL: loop.kernel @best_of_pairs
// CHECK-SAME: "graph.top_k, dimension 0 of x: x0.0+x0.0//2 >= 2"
func.func private @best_of_pairs(%x: tensor<?x3xf32>) -> tensor<2x2xf32> attributes {graph.primitive} {
  %0 = graph.reshape %x shape = [-1, 2] : (tensor<?x3xf32>) -> tensor<?x2xf32>
  %1, %2 = graph.top_k %0 axis = 0 k = 2 largest = true : (tensor<?x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  func.return %1 : tensor<2x2xf32>
}

// -----

// The sums are stored inside of the padded tensor, and its border by nests of their own, each
// element once.
// CHECK-LABEL: loop.kernel @padded
// CHECK: loop.for "i" %i to 3 {
// CHECK-NEXT: loop.for "j" %j to 4 {
// CHECK: loop.for "k" %k to 5 reduction
// CHECK: loop.store %{{.*}}, %y (d0, d1) -> ((d0 + 1), (d1 + 2))(%i, %j)
// CHECK: loop.for "i{{.*}}" %[[I:.*]] to 1 {
// CHECK-NEXT: loop.for "j{{.*}}" %[[J:.*]] to 6 {
// CHECK-NEXT: loop.store %{{.*}}, %y (d0, d1) -> (d0, d1)(%[[I]], %[[J]])
// CHECK: loop.for "i{{.*}}" %[[K:.*]] to 3 {
// CHECK-NEXT: loop.for "j{{.*}}" %[[L:.*]] to 2 {
// CHECK-NEXT: loop.store %{{.*}}, %y (d0, d1) -> ((d0 + 1), d1)(%[[K]], %[[L]])
// CHECK-NOT: loop.store
func.func private @padded(%x: tensor<3x5xf32>, %w: tensor<4x5xf32>) -> tensor<4x6xf32> attributes {graph.primitive} {
  %0 = graph.dense %x, %w : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  %1 = graph.pad constant %0 low = [1, 2] high = [0, 0] value = 0.5 : f64 : (tensor<3x4xf32>) -> tensor<4x6xf32>
  func.return %1 : tensor<4x6xf32>
}
