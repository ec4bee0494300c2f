// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v4},convert-loop-to-scf" | filecheck %s

// Scalars: one accumulator, then several with what is left in a loop of its own.

// CHECK-LABEL: func.func private @dot(
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: memref<?xf32> {llvm.noalias}, %[[Y:[a-z0-9_]+]]: memref<1xf32> {llvm.noalias})
// CHECK:         %[[N:[a-z0-9_]+]] = memref.dim %[[X]]
// CHECK:         %[[FULL:[a-z0-9_]+]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK:         %[[S:[a-z0-9_]+]], %[[T:[a-z0-9_]+]] = scf.for %[[K:[a-z0-9_]+]] = %{{.*}} to %[[FULL]] step %{{.*}} iter_args(%[[A:[a-z0-9_]+]] = %{{.*}}, %[[B:[a-z0-9_]+]] = %{{.*}}) -> (f32, f32)
// CHECK-NEXT:      %[[P:[a-z0-9_]+]] = memref.load %[[X]][%[[K]]]
// CHECK-NEXT:      math.fma %[[P]], %[[P]], %[[A]]
// CHECK-NEXT:      %[[L:[a-z0-9_]+]] = arith.addi %[[K]]
// CHECK-NEXT:      %[[Q:[a-z0-9_]+]] = memref.load %[[X]][%[[L]]]
// CHECK-NEXT:      math.fma %[[Q]], %[[Q]], %[[B]]
// CHECK:         %[[ST:[a-z0-9_]+]] = arith.addf %[[S]], %[[T]] : f32
// CHECK:         scf.for %{{.*}} = %[[FULL]] to %[[N]] step %{{.*}} iter_args(%{{.*}} = %[[ST]])
loop.kernel @dot(%x: memref<?xf32>) -> (%y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %s = loop.for "k" %k to %n reduction unroll 2 carry(%acc = %zero : f32 add) {
    %p = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %t = math.fma %p, %p, %acc : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// A register tile: loads and splats come just before the fma that need them.

// CHECK-LABEL: func.func private @tile(
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: memref<?x9xf32> {llvm.noalias}, %[[W:[a-z0-9_]+]]: memref<9x32xf32>
// CHECK:         scf.for %[[I:[a-z0-9_]+]] =
// CHECK:           %[[R0:[a-z0-9_]+]] = arith.muli %[[I]]
// CHECK:           %[[R1:[a-z0-9_]+]] = arith.addi %[[R0]]
// CHECK:           scf.for %[[K:[a-z0-9_]+]] = {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-NEXT:        %[[A:[a-z0-9_]+]] = memref.load %[[X]][%[[R0]], %[[K]]]
// CHECK-NEXT:        %[[SA:[a-z0-9_]+]] = vector.broadcast %[[A]] : f32 to vector<16xf32>
// CHECK-NEXT:        %[[W0:[a-z0-9_]+]] = vector.load %[[W]][%[[K]], %{{.*}}] : memref<9x32xf32>, vector<16xf32>
// CHECK-NEXT:        math.fma %[[SA]], %[[W0]]
// CHECK-NEXT:        %[[W1:[a-z0-9_]+]] = vector.load %[[W]]
// CHECK-NEXT:        math.fma %[[SA]], %[[W1]]
// CHECK-NEXT:        %[[B:[a-z0-9_]+]] = memref.load %[[X]][%[[R1]], %[[K]]]
// CHECK-NEXT:        %[[SB:[a-z0-9_]+]] = vector.broadcast %[[B]]
// CHECK-NEXT:        math.fma %[[SB]], %[[W0]]
// CHECK-NEXT:        math.fma %[[SB]], %[[W1]]
// CHECK-NEXT:        scf.yield
// CHECK:           vector.store %{{.*}} : memref<?x32xf32>, vector<16xf32>
loop.kernel @tile(%x: memref<?x9xf32>, %w: memref<9x32xf32>) -> (%y: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<2x32xf32>
  %n = memref.dim %x, %c0 : memref<?x9xf32>
  loop.for "i0" %i to min (d0) -> (d0 floordiv 2)(%n) {
    %s = loop.for "k" %k to 9 reduction carry(%acc = %zero : vector<2x32xf32> add) {
      %p = loop.load %x (d0, d1)[s0, s1] -> (d0 * 2 + s0, d1)(%i, %k) : memref<?x9xf32>, vector<2x1xf32>
      %q = loop.load %w (d0)[s0, s1] -> (d0, s1)(%k) : memref<9x32xf32>, vector<1x32xf32>
      %pb = vector.broadcast %p : vector<2x1xf32> to vector<2x32xf32>
      %qb = vector.broadcast %q : vector<1x32xf32> to vector<2x32xf32>
      %t = math.fma %pb, %qb, %acc : vector<2x32xf32>
      loop.yield %t : vector<2x32xf32>
    }
    loop.store %s, %y (d0)[s0, s1] -> (d0 * 2 + s0, s1)(%i) : vector<2x32xf32>, memref<?x32xf32>
  }
}

// Rows clamp their loads and guard their stores; lanes are masked, the mask made once.

// CHECK-LABEL: func.func private @tail(
// CHECK:         %[[MASK:[a-z0-9_]+]] = vector.create_mask
// CHECK-NOT:     vector.create_mask
// CHECK:         scf.for
// CHECK:           %[[COUNT:[a-z0-9_]+]] = arith.minsi
// CHECK:           %[[FIRST:[a-z0-9_]+]] = arith.muli
// CHECK-NEXT:      vector.maskedload %{{.*}}[%[[FIRST]], %{{.*}}], %[[MASK]]
// CHECK-NEXT:      vector.maskedstore
// CHECK:           %[[INSIDE:[a-z0-9_]+]] = arith.cmpi slt, %{{.*}}, %[[COUNT]] : index
// CHECK:           %[[LAST:[a-z0-9_]+]] = arith.addi %[[COUNT]]
// CHECK:           %[[SECOND:[a-z0-9_]+]] = arith.minsi %[[LAST]]
// CHECK:           %[[ROW:[a-z0-9_]+]] = arith.addi %[[FIRST]], %[[SECOND]]
// CHECK-NEXT:      vector.maskedload %{{.*}}[%[[ROW]], %{{.*}}], %[[MASK]]
// CHECK:           scf.if %[[INSIDE]] {
// CHECK-NEXT:        vector.maskedstore
loop.kernel @tail(%x: memref<?x?xf32>, %m: index) -> (%y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  loop.for "i0" %i to min (d0) -> (d0 ceildiv 2)(%n) {
    %rows = affine.min affine_map<(d0, d1) -> (2, d0 - d1 * 2)>(%n, %i)
    %v = loop.load %x (d0)[s0, s1] -> (d0 * 2 + s0, s1)(%i) valid(0 : %rows, 1 : %m) : memref<?x?xf32>, vector<2x16xf32>
    loop.store %v, %y (d0)[s0, s1] -> (d0 * 2 + s0, s1)(%i) valid(0 : %rows, 1 : %m) : vector<2x16xf32>, memref<?x?xf32>
  }
}

// Where nothing may be valid, nothing is read.

// CHECK-LABEL: func.func private @nothing(
// CHECK:         %[[SOME:[a-z0-9_]+]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK:         scf.if %[[SOME]] -> (vector<4xf32>) {
// CHECK:           vector.load
// CHECK:         } else {
// CHECK:         scf.if %[[SOME]] {
// CHECK-NEXT:      vector.store
loop.kernel @nothing(%x: memref<?x4xf32>, %m: index) -> (%y: memref<?x4xf32>) {
  %v = loop.load %x ()[s0, s1] -> (0, s1)() valid(0 : %m) : memref<?x4xf32>, vector<1x4xf32>
  loop.store %v, %y ()[s0, s1] -> (s0, s1)() valid(0 : %m) : vector<1x4xf32>, memref<?x4xf32>
}

// The entries of a row, and a block that is carried over them.

// CHECK-LABEL: func.func private @spmm(
// CHECK-SAME:    %[[IP:[a-z0-9_]+]]: memref<?xi32> {llvm.noalias}, %[[IX:[a-z0-9_]+]]: memref<?xi32>
// CHECK:         scf.for %[[I:[a-z0-9_]+]] =
// CHECK:           %[[P0:[a-z0-9_]+]] = memref.load %[[IP]][%[[I]]]
// CHECK-NEXT:      %[[START:[a-z0-9_]+]] = arith.index_cast %[[P0]] : i32 to index
// CHECK:           %[[END:[a-z0-9_]+]] = arith.index_cast
// CHECK:           scf.for %[[P:[a-z0-9_]+]] = %[[START]] to %[[END]] step %{{.*}} -> (vector<8xf32>) {
// CHECK:             %[[J:[a-z0-9_]+]] = arith.index_cast
// CHECK:             vector.load %{{.*}}[%[[J]], %{{.*}}]
loop.kernel @spmm(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf32>, %x: memref<?x8xf32>) -> (%y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %n = memref.dim %y, %c0 : memref<?x8xf32>
  loop.for "i" %i to %n {
    %s = loop.for "e" %p, %j of %ip, %ix row (d0) -> (d0)(%i) reduction carry(%acc = %zero : vector<8xf32> add) : memref<?xi32>, memref<?xi32> {
      %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
      %b = loop.load %x (d0)[s0] -> (d0, s0)(%j) : memref<?x8xf32>, vector<8xf32>
      %ab = vector.broadcast %a : f32 to vector<8xf32>
      %t = math.fma %ab, %b, %acc : vector<8xf32>
      loop.yield %t : vector<8xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%i) : vector<8xf32>, memref<?x8xf32>
  }
}

// Numbers of neighbouring entries that each fill a vector: four are read at a time, and stay within
// 128 bits on their way.

// CHECK-LABEL: func.func private @spmm_by_fours(
// CHECK:         scf.for %[[P:[a-z0-9_]+]] = %{{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-NEXT:      %[[FOUR:[a-z0-9_]+]] = vector.load %v[%[[P]]] : memref<?xf32>, vector<4xf32>
// CHECK-NEXT:      %[[ALL:[a-z0-9_]+]] = vector.shuffle %[[FOUR]], %[[FOUR]] [0, 1, 2, 3, 0, 1, 2, 3]
// CHECK:           vector.shuffle %[[ALL]], %[[ALL]] [0, 0, 0, 0, 4, 4, 4, 4]
// CHECK:           vector.shuffle %[[ALL]], %[[ALL]] [3, 3, 3, 3, 7, 7, 7, 7]
// CHECK:         scf.for
// CHECK:           memref.load %v
loop.kernel @spmm_by_fours(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf32>, %x: memref<?x8xf32>) -> (%y: memref<1x8xf32>) {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %s = loop.for "e" %p, %j of %ip, %ix row () -> (0)() reduction unroll 4 carry(%acc = %zero : vector<8xf32> add) : memref<?xi32>, memref<?xi32> {
    %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
    %b = loop.load %x (d0)[s0] -> (d0, s0)(%j) : memref<?x8xf32>, vector<8xf32>
    %ab = vector.broadcast %a : f32 to vector<8xf32>
    %t = math.fma %ab, %b, %acc : vector<8xf32>
    loop.yield %t : vector<8xf32>
  }
  loop.store %s, %y ()[s0] -> (0, s0)() : vector<8xf32>, memref<1x8xf32>
}

// Chunks of entries start from 0, and are added to the total; the last one ends with the row. A long
// row has larger ones: a multiple of the unrolled iterations in each of 64.

// CHECK-LABEL: func.func private @spmm_in_chunks(
// CHECK-DAG:     %[[PARTS:[a-z0-9_]+]] = arith.constant 128 : index
// CHECK-DAG:     %[[LEAST:[a-z0-9_]+]] = arith.constant 512 : index
// CHECK:         %[[COUNT:[a-z0-9_]+]] = arith.subi
// CHECK-NEXT:    %[[STEPS:[a-z0-9_]+]] = arith.divui %[[COUNT]], %[[PARTS]]
// CHECK-NEXT:    %[[SHARE:[a-z0-9_]+]] = arith.muli %[[STEPS]]
// CHECK-NEXT:    %[[STEP:[a-z0-9_]+]] = arith.maxsi %[[SHARE]], %[[LEAST]]
// CHECK-NEXT:    %[[TOTAL:[a-z0-9_]+]] = scf.for %[[C:[a-z0-9_]+]] = %{{.*}} to %[[END:[a-z0-9_]+]] step %[[STEP]] iter_args(%[[T:[a-z0-9_]+]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:      %[[NEXT:[a-z0-9_]+]] = arith.addi %[[STEP]], %[[C]]
// CHECK-NEXT:      %[[STOP:[a-z0-9_]+]] = arith.minsi
// CHECK:           scf.for %{{.*}} = %[[C]] to %{{.*}} step %{{.*}} iter_args(%[[A:[a-z0-9_]+]] = %[[ZERO:[a-z0-9_]+]], %[[B:[a-z0-9_]+]] = %[[ZERO]]) -> (f32, f32) {
// CHECK:           %[[S:[a-z0-9_]+]] = scf.for %{{.*}} to %[[STOP]] step
// CHECK:           %[[U:[a-z0-9_]+]] = arith.addf %[[T]], %[[S]] : f32
// CHECK-NEXT:      scf.yield %[[U]] : f32
// CHECK:         memref.store %[[TOTAL]]
loop.kernel @spmm_in_chunks(%ip: memref<?xi32>, %ix: memref<?xi32>, %x: memref<?xf32>) -> (%y: memref<1xf32>) {
  %bias = arith.constant 1.0 : f32
  %s = loop.for "e" %p, %j of %ip, %ix row () -> (0)() reduction unroll 2 cascade 512 carry(%acc = %bias : f32 add) : memref<?xi32>, memref<?xi32> {
    %b = loop.load %x (d0) -> (d0)(%j) : memref<?xf32>, f32
    %t = arith.addf %acc, %b : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// A fold: halves of a vector, then its last lanes.

// CHECK-LABEL: func.func private @fold(
// CHECK:         %[[V:[a-z0-9_]+]] = vector.load
// CHECK:         %[[LOW:[a-z0-9_]+]] = vector.shuffle %[[V]], %[[V]] [0, 1]
// CHECK:         %[[HIGH:[a-z0-9_]+]] = vector.shuffle %[[V]], %[[V]] [2, 3]
// CHECK:         %[[TWO:[a-z0-9_]+]] = arith.addf %[[LOW]], %[[HIGH]] : vector<2xf32>
// CHECK:         %[[A:[a-z0-9_]+]] = vector.extract %[[TWO]][0]
// CHECK:         %[[B:[a-z0-9_]+]] = vector.extract %[[TWO]][1]
// CHECK:         arith.addf %[[A]], %[[B]] : f32
loop.kernel @fold(%x: memref<4xf32>) -> (%y: memref<1xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  %f = loop.fold %v axis 0 add : vector<4xf32> -> vector<1xf32>
  loop.store %f, %y ()[s0] -> (s0)() : vector<1xf32>, memref<1xf32>
}

// A load of entries without a use in an unrolled loop.

// CHECK-LABEL: func.func private @unused_entries(
// CHECK-NOT:     vector.load %v
loop.kernel @unused_entries(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf32>) -> (%y: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %s = loop.for "e" %p, %j of %ip, %ix row () -> (0)() reduction unroll 4 carry(%acc = %zero : f32 add) : memref<?xi32>, memref<?xi32> {
    %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
    %t = arith.addf %acc, %one : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}

// Numbers of entries read by fours in a loop and in one inside it: each is broadcast from its own
// four, also where it is used after the inner loop.

// CHECK-LABEL: func.func private @nested_fours(
// CHECK:         scf.for %[[P:[a-z0-9_]+]] =
// CHECK-NEXT:      %[[FOUR:[a-z0-9_]+]] = vector.load %v[%[[P]]] : memref<?xf32>, vector<4xf32>
// CHECK:           scf.for %[[Q:[a-z0-9_]+]] =
// CHECK-NEXT:        vector.load %w[%[[Q]]] : memref<?xf32>, vector<4xf32>
// CHECK-NOT:       memref.load %v
// CHECK:         scf.for %p_1 =
// CHECK:           memref.load %v[%p_1]
loop.kernel @nested_fours(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf32>, %w: memref<?xf32>) -> (%y: memref<1x8xf32>) {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %s = loop.for "e" %p, %j of %ip, %ix row () -> (0)() reduction unroll 4 carry(%acc = %zero : vector<8xf32> add) : memref<?xi32>, memref<?xi32> {
    %r = loop.for "f" %q, %l of %ip, %ix row (d0) -> (d0)(%j) reduction unroll 4 carry(%sum = %acc : vector<8xf32> add) : memref<?xi32>, memref<?xi32> {
      %b = loop.load %w (d0) -> (d0)(%q) : memref<?xf32>, f32
      %c = vector.broadcast %b : f32 to vector<8xf32>
      %u = arith.addf %sum, %c : vector<8xf32>
      loop.yield %u : vector<8xf32>
    }
    %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
    %d = vector.broadcast %a : f32 to vector<8xf32>
    %t = arith.addf %r, %d : vector<8xf32>
    loop.yield %t : vector<8xf32>
  }
  loop.store %s, %y ()[s0] -> (0, s0)() : vector<8xf32>, memref<1x8xf32>
}

// What reductions carry is never NaN: a comparison and a selection become one instruction.

// CHECK-LABEL: func.func private @fold_accumulators(
// CHECK:         %[[S:[a-z0-9_]+]] = scf.for
// CHECK:         %[[A:[a-z0-9_]+]] = vector.extract %[[S]][0]
// CHECK:         %[[B:[a-z0-9_]+]] = vector.extract %[[S]][1]
// CHECK:         %[[ABOVE:[a-z0-9_]+]] = arith.cmpf ogt, %[[A]], %[[B]] : f32
// CHECK:         arith.select %[[ABOVE]], %[[A]], %[[B]] : f32
loop.kernel @fold_accumulators(%n: index, %x: memref<?x2xf32>) -> (%y: memref<1xf32>) {
  %low = arith.constant dense<0xFF800000> : vector<2xf32>
  %s = loop.for "k" %k to %n reduction carry(%acc = %low : vector<2xf32> maxnum) {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%k) : memref<?x2xf32>, vector<2xf32>
    %t = arith.maxnumf %v, %acc : vector<2xf32>
    loop.yield %t : vector<2xf32>
  }
  %f = loop.fold %s axis 0 maxnum : vector<2xf32> -> vector<1xf32>
  loop.store %f, %y ()[s0] -> (s0)() : vector<1xf32>, memref<1xf32>
}

// What is loaded may be NaN.

// CHECK-LABEL: func.func private @fold_maxnum(
// CHECK:         %[[V:[a-z0-9_]+]] = vector.load
// CHECK:         %[[A:[a-z0-9_]+]] = vector.extract %[[V]][0]
// CHECK:         %[[B:[a-z0-9_]+]] = vector.extract %[[V]][1]
// CHECK:         arith.maxnumf %[[A]], %[[B]] : f32
loop.kernel @fold_maxnum(%x: memref<2xf32>) -> (%y: memref<1xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<2xf32>, vector<2xf32>
  %f = loop.fold %v axis 0 maxnum : vector<2xf32> -> vector<1xf32>
  loop.store %f, %y ()[s0] -> (s0)() : vector<1xf32>, memref<1xf32>
}

// A hint counts on behind the end of a row.

// CHECK-LABEL: func.func private @hint(
// CHECK:         scf.for %[[I:[a-z0-9_]+]] =
// CHECK:           memref.prefetch %{{[a-z0-9_]+}}[%{{.*}}], read, locality<3>, data : memref<9x32xf32>
loop.kernel @hint(%w: memref<9x32xf32>) -> (%y: memref<9xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 9 {
    loop.prefetch %w (d0) -> (8, d0 * 32)(%i) : memref<9x32xf32>
    loop.store %z, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
}

// Where a part of rows begins: what the rows before it cost at least, without products that
// overflow, then a binary search, in which a sign is a mask.

// CHECK-LABEL: func.func private @part(
// CHECK:         %[[LAST:[a-z0-9_]+]] = memref.load %indptr[%n] : memref<?xi32>
// CHECK:         %[[W:[a-z0-9_]+]] = arith.muli %n, %{{.*}} : index
// CHECK:         %[[TOTAL:[a-z0-9_]+]] = arith.addi %[[W]], %{{.*}} : index
// CHECK-NEXT:    arith.divui %[[TOTAL]], %p : index
// CHECK-NEXT:    arith.remui %[[TOTAL]], %p : index
// CHECK:         %[[R:[a-z0-9_]+]], %{{.*}} = scf.while (%[[F:[a-z0-9_]+]] = %{{.*}}, %[[L:[a-z0-9_]+]] = %n) : (index, index) -> (index, index) {
// CHECK-NEXT:      %[[MORE:[a-z0-9_]+]] = arith.cmpi ne, %[[L]], %{{.*}} : index
// CHECK-NEXT:      scf.condition(%[[MORE]]) %[[F]], %[[L]] : index, index
// CHECK-NEXT:    } do {
// CHECK-NEXT:    ^bb0(%[[F2:[a-z0-9_]+]]: index, %{{.*}}: index):
// CHECK:           memref.load %indptr
// CHECK:           %[[SIGN:[a-z0-9_]+]] = arith.subi
// CHECK-NEXT:      %[[CLAMPED:[a-z0-9_]+]] = arith.maxsi %[[SIGN]], %{{.*}} : index
// CHECK-NEXT:      %[[BELOW:[a-z0-9_]+]] = arith.minsi %[[CLAMPED]], %{{.*}} : index
// CHECK-NEXT:      %[[STEP:[a-z0-9_]+]] = arith.andi %{{.*}}, %[[BELOW]] : index
// CHECK-NEXT:      %[[NEW:[a-z0-9_]+]] = arith.addi %[[F2]], %[[STEP]] : index
// CHECK:           scf.yield %[[NEW]], %{{.*}} : index, index
// CHECK:         memref.store %{{.*}}, %y[%[[R]]]
loop.kernel @part(%indptr: memref<?xi32>, %v: memref<1xf32>, %n: index, %t: index, %p: index) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  %r = loop.partition_point %indptr rows %n part %t of %p weight 4 : memref<?xi32>
  loop.store %a, %y (d0) -> (d0)(%r) : f32, memref<?xf32>
}

// Whether a part owns a place is one comparison.

// CHECK-LABEL: func.func private @owned(
// CHECK:         %[[FIRST:[a-z0-9_]+]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[OFFSET:[a-z0-9_]+]] = arith.subi %q, %[[FIRST]] : index
// CHECK-NEXT:    %[[INSIDE:[a-z0-9_]+]] = arith.cmpi ult, %[[OFFSET]], %n : index
// CHECK-NEXT:    %[[MANY:[a-z0-9_]+]] = arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[RUNS:[a-z0-9_]+]] = arith.cmpi slt, %{{.*}}, %[[MANY]] : index
// CHECK-NEXT:    scf.if %[[RUNS]] {
loop.kernel @owned(%v: memref<1xf32>, %q: index, %t: index, %n: index) -> (%y: memref<?xf32>) {
  %a = loop.load %v () -> (0)() : memref<1xf32>, f32
  %m = loop.owned %q part %t size %n
  loop.for "o" %o to %m {
    loop.store %a, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
  }
}

// A function of many vectors is computed for some of them at a time, so that they stand together.

// CHECK-LABEL: func.func private @together(
// CHECK:         arith.addf
// CHECK:         arith.addf
// CHECK:         %[[A:[a-z0-9_]+]] = math.exp
// CHECK-NEXT:    %[[B:[a-z0-9_]+]] = math.exp
// CHECK:         vector.store %[[A]]
// CHECK:         vector.store %[[B]]
loop.kernel @together(%x: memref<32xf32>) -> (%y: memref<32xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<32xf32>, vector<32xf32>
  %s = arith.addf %v, %v : vector<32xf32>
  %e = math.exp %s : vector<32xf32>
  loop.store %e, %y ()[s0] -> (s0)() : vector<32xf32>, memref<32xf32>
}

// Tile loops that are one inside the other become one range; constants are copied in.

// CHECK-LABEL: func.func private @tiles(
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: memref<6x4xf32> {llvm.noalias}, %[[Y:[a-z0-9_]+]]: memref<6x4xf32>
// CHECK:         %[[COUNT:[a-z0-9_]+]] = arith.constant 24 : index
// CHECK:         rt.parallel_tiles %[[COUNT]] captures(%[[X]], %[[Y]] : memref<6x4xf32>, memref<6x4xf32>)
// CHECK:         ^{{.*}}(%[[T:[a-z0-9_]+]]: index, %[[XT:[a-z0-9_]+]]: memref<6x4xf32>, %[[YT:[a-z0-9_]+]]: memref<6x4xf32>):
// CHECK-NEXT:      %[[FOUR:[a-z0-9_]+]] = arith.constant 4 : index
// CHECK-NEXT:      %[[J:[a-z0-9_]+]] = arith.remui %[[T]], %[[FOUR]] : index
// CHECK-NEXT:      %[[I:[a-z0-9_]+]] = arith.divui %[[T]], %[[FOUR]] : index
// CHECK:           memref.load %[[XT]][%[[I]], %[[J]]]
// CHECK:           memref.store %{{.*}}, %[[YT]][%[[I]], %[[J]]]
// CHECK:           rt.yield
loop.kernel @tiles(%x: memref<6x4xf32>) -> (%y: memref<6x4xf32>) {
  loop.for "i" %i to 6 tiles {
    loop.for "j" %j to 4 tiles {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<6x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<6x4xf32>
    }
  }
}

// Loops of threads are one range, also those of one iteration.
// CHECK-LABEL: func.func private @threads(
// CHECK:         %[[N:.*]] = arith.constant 12 : index
// CHECK-NOT:     scf.for
// CHECK:         rt.parallel_tiles %[[N]] device captures(%y : memref<3x4x1xf32>) {
// CHECK-NOT:     scf.for
// CHECK:         memref.store
loop.kernel @threads() -> (%y: memref<3x4x1xf32>) {
  loop.for "i" %i to 3 threads {
    loop.for "j" %j to 4 threads {
      loop.for "k" %k to 1 threads {
        %zero = arith.constant 0.0 : f32
        loop.store %zero, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : f32, memref<3x4x1xf32>
      }
    }
  }
}

// A loop of threads whose size depends on another one runs in each of its threads, and so does what is
// in it.
// CHECK-LABEL: func.func private @cut(
// CHECK:         %[[N:.*]] = arith.constant 2 : index
// CHECK:         rt.parallel_tiles %[[N]] device
// CHECK:           scf.for
// CHECK-NEXT:        %{{.*}} = arith
// CHECK-NOT:         scf.
// CHECK:             memref.store
loop.kernel @cut() -> (%y: memref<10x1xf32>) {
  loop.for "i0" %i0 to 2 threads {
    loop.for "i1" %i1 to min (d0) -> (8, d0 * -8 + 10)(%i0) threads {
      loop.for "j" %j to 1 threads {
        %zero = arith.constant 0.0 : f32
        loop.store %zero, %y (d0, d1, d2) -> (d0 * 8 + d1, d2)(%i0, %i1, %j) : f32, memref<10x1xf32>
      }
    }
  }
}

// The threads of a block are ranges in it. They wait where one reads what another one has written,
// in the next iteration as well; a part of each thread needs no waiting.
// CHECK-LABEL: func.func private @blocks(
// CHECK:         rt.parallel_tiles %{{[a-z0-9_]+}} device block 64 captures(
// CHECK:           memref.alloca() {rt.shared, {{.*}}} : memref<40xf32>
// CHECK:           memref.alloca() {rt.parts = 40 : i64, {{.*}}} : memref<40x2xf32>
// CHECK:           scf.for
// CHECK-NEXT:        rt.barrier
// CHECK-NEXT:        rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK:               rt.slice %{{.*}}, %{{.*}} {rt.parts = 40 : i64} : memref<40x2xf32> to memref<2xf32>
// CHECK:               memref.store %{{.*}}, %{{.*}} : memref<40xf32>
// CHECK:               memref.store %{{.*}}, %{{.*}} : memref<2xf32>
// CHECK:             rt.barrier
// CHECK-NEXT:        rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK:           }
// CHECK-NOT:       rt.barrier
// CHECK:           rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK:               rt.slice
loop.kernel @blocks(%x: memref<3x5x40xf32>) -> (%y: memref<3x5x40xf32>, %z: memref<3x40xf32>) {
  loop.for "b" %b to 3 blocks {
    %s = loop.local : memref<40xf32, #loop<space shared>>
    %r = loop.local : memref<40x2xf32, #loop<space threads>>
    loop.for "k" %k to 5 serial {
      loop.for "t" %t to 40 threads {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %t) : memref<3x5x40xf32>, f32
        loop.store %v, %s (d0) -> (d0)(%t) : f32, memref<40xf32, #loop<space shared>>
        loop.store %v, %r (d0) -> (d0, 1)(%t) : f32, memref<40x2xf32, #loop<space threads>>
      }
      loop.for "u" %u to 40 threads {
        %v = loop.load %s (d0) -> (39 - d0)(%u) : memref<40xf32, #loop<space shared>>, f32
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %u) : f32, memref<3x5x40xf32>
      }
    }
    loop.for "w" %w to 40 threads {
      %v = loop.load %r (d0) -> (d0, 1)(%w) : memref<40x2xf32, #loop<space threads>>, f32
      loop.store %v, %z (d0, d1) -> (d0, d1)(%b, %w) : f32, memref<3x40xf32>
    }
  }
}

// What another thread of the warp has is shuffled, by its number in the block.
// CHECK-LABEL: func.func private @shuffles(
// CHECK:           rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK:           rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK-NEXT:      ^{{.*}}(%{{.*}}: index, %[[P:[a-z0-9_]+]]: memref<64xf32>
// CHECK:             %[[V:.*]] = rt.shuffle %[[P]], %{{.*}} {rt.parts = 64 : i64} : memref<64xf32>
// CHECK-NEXT:        memref.store %[[V]]
// CHECK:           rt.shuffle %{{.*}}, %{{.*}} {rt.parts = 32 : i64} : memref<32xf32>
loop.kernel @shuffles() -> (%y: memref<3x2x32xf32>, %z: memref<3x32xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "b" %b to 3 blocks {
    %p = loop.local : memref<2x32xf32, #loop<space threads>>
    loop.for "w" %w to 2 threads {
      loop.for "l" %l to 32 threads {
        loop.store %one, %p (d0, d1) -> (d0, d1)(%w, %l) : f32, memref<2x32xf32, #loop<space threads>>
      }
    }
    loop.for "v" %w to 2 threads {
      loop.for "m" %l to 32 threads {
        %v = loop.load %p (d0, d1) -> (d0, (d1 + 5) mod 32)(%w, %l) : memref<2x32xf32, #loop<space threads>>, f32
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %w, %l) : f32, memref<3x2x32xf32>
      }
    }
  }
  loop.for "c" %c to 3 blocks {
    %p = loop.local : memref<32xf32, #loop<space threads>>
    loop.for "i" %i to 32 threads {
      loop.store %one, %p (d0) -> (d0)(%i) : f32, memref<32xf32, #loop<space threads>>
    }
    %v = loop.load %p () -> (7)() : memref<32xf32, #loop<space threads>>, f32
    loop.for "j" %j to 32 threads {
      loop.store %v, %z (d0, d1) -> (d0, d1)(%c, %j) : f32, memref<3x32xf32>
    }
  }
}

// CHECK-LABEL: func.func private @alternating(
// CHECK:         rt.parallel_tiles %{{[a-z0-9_]+}} alternating captures(
loop.kernel @alternating(%x: memref<6xf32>) -> (%y: memref<6xf32>) {
  loop.for "i" %i to 6 alternating_tiles {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<6xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<6xf32>
  }
}

// Unrolled loops have constant indices; what the program always can read is read once.

// CHECK-LABEL: func.func private @unrolled(
// CHECK:         %[[W0:[a-z0-9_]+]] = vector.load %{{.*}} : memref<2x4xf32>, vector<4xf32>
// CHECK:         %[[W1:[a-z0-9_]+]] = vector.load %{{.*}} : memref<2x4xf32>, vector<4xf32>
// CHECK:         scf.for
// CHECK-NOT:       scf.for
// CHECK:           arith.mulf %[[W0]], %[[W0]]
// CHECK:           arith.mulf %[[W1]], %[[W1]]
loop.kernel @unrolled(%w: memref<2x4xf32>) -> (%y: memref<?x2x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x2x4xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 2 unroll {
      %v = loop.load %w (d0)[s0] -> (d0, s0)(%j) : memref<2x4xf32>, vector<4xf32>
      %s = arith.mulf %v, %v : vector<4xf32>
      loop.store %s, %y (d0, d1)[s0] -> (d0, d1, s0)(%i, %j) : vector<4xf32>, memref<?x2x4xf32>
    }
  }
}

// A loop of at most one iteration is a condition; a negative number of tiles is none.

// CHECK-LABEL: func.func private @at_most_once(
// CHECK:         %[[ONCE:[a-z0-9_]+]] = arith.addi %[[N:[a-z0-9_]+]], %{{.*}} : index
// CHECK:         %[[IF:[a-z0-9_]+]] = arith.cmpi slt, %{{.*}}, %[[ONCE]] : index
// CHECK-NEXT:    scf.if %[[IF]] {
// CHECK-NEXT:      vector.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}]
// CHECK-NEXT:    }
// CHECK:         %[[TILES:[a-z0-9_]+]] = arith.maxsi %{{.*}}, %{{.*}} : index
// CHECK:         rt.parallel_tiles %[[TILES]]
loop.kernel @at_most_once() -> (%y: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : vector<4xf32>
  %n = memref.dim %y, %c0 : memref<?x4xf32>
  loop.for "i" %i to min (d0) -> (1, d0 - 3)(%n) {
    loop.store %z, %y (d0)[s0] -> (d0, s0)(%i) : vector<4xf32>, memref<?x4xf32>
  }
  loop.for "j" %j to min (d0) -> (d0 floordiv 4 - 1)(%n) tiles {
    loop.store %z, %y (d0)[s0] -> (d0 * 4, s0)(%j) : vector<4xf32>, memref<?x4xf32>
  }
}

// Neighbours in memory are in different rows: vectors along the columns are read and turned over.

// CHECK-LABEL: func.func private @turned_over(
// CHECK:         %[[A:[a-z0-9_]+]] = vector.load %x[%[[C0:[a-z0-9_]+]], %[[C0]]] : memref<4x4xf32>, vector<4xf32>
// CHECK-NEXT:    %[[B:[a-z0-9_]+]] = vector.load %x[%{{.*}}, %[[C0]]] : memref<4x4xf32>, vector<4xf32>
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.shuffle %[[A]], %[[B]] [0, 4, 2, 6] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    vector.shuffle %[[A]], %[[B]] [1, 5, 3, 7] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    vector.shuffle {{.*}} [0, 4, 2, 6]
// CHECK-NEXT:    vector.shuffle {{.*}} [1, 5, 3, 7]
// CHECK-NEXT:    vector.shuffle {{.*}} [0, 1, 4, 5]
// CHECK-NEXT:    vector.shuffle {{.*}} [2, 3, 6, 7]
// CHECK-COUNT-4: vector.store
loop.kernel @turned_over(%x: memref<4x4xf32>) -> (%y: memref<4x4xf32>) {
  %v = loop.load %x ()[s0, s1] -> (s1, s0)() : memref<4x4xf32>, vector<4x4xf32>
  loop.store %v, %y ()[s0, s1] -> (s0, s1)() : vector<4x4xf32>, memref<4x4xf32>
}

// What is inside of the buffer is masked along the columns; a column that is outside is zero.

// CHECK-LABEL: func.func private @partly_turned_over(
// CHECK-DAG:     %[[ZERO:[a-z0-9_]+]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-DAG:     %[[MASK:[a-z0-9_]+]] = arith.constant dense<[true, true, true, false]> : vector<4xi1>
// CHECK-COUNT-2: vector.maskedload %x[%{{.*}}, %{{.*}}], %[[MASK]], %[[ZERO]]
// CHECK-NOT:     vector.maskedload
// CHECK:         vector.shuffle {{.*}} [0, 4, 2, 6]
// CHECK-COUNT-3: vector.maskedstore
loop.kernel @partly_turned_over(%x: memref<2x3xf32>) -> (%y: memref<3x2xf32>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = loop.load %x ()[s0, s1] -> (s1, s0)() valid(0 : %c3, 1 : %c2) : memref<2x3xf32>, vector<4x4xf32>
  loop.store %v, %y ()[s0, s1] -> (s0, s1)() valid(0 : %c3, 1 : %c2) : vector<4x4xf32>, memref<3x2xf32>
}

// What is no kernel does not change.

// CHECK-LABEL: func.func @other(
// CHECK-NEXT:    func.return %{{.*}} : f32
func.func @other(%x: f32) -> f32 {
  func.return %x : f32
}

// A row of 8 has room for the lane that 7 leave to spare: it is read whole. A row of 7 has not, nor have integers.
// CHECK-LABEL: func.func private @room
// CHECK-NOT:     vector.maskedload %x
// CHECK:         vector.load %x[%{{.*}}, %{{.*}}] : memref<9x8xf32>, vector<8xf32>
// CHECK:         vector.maskedload %z
// CHECK:         vector.maskedload %n
loop.kernel @room(%x: memref<9x8xf32>, %z: memref<9x7xf32>, %n: memref<9x8xi32>) -> (%y: memref<9x7xf32>, %m: memref<9x7xi32>) {
  loop.for "i" %i to 9 {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<9x8xf32>, vector<7xf32>
    %w = loop.load %z (d0)[s0] -> (d0, s0)(%i) : memref<9x7xf32>, vector<7xf32>
    %k = loop.load %n (d0)[s0] -> (d0, s0)(%i) : memref<9x8xi32>, vector<7xi32>
    %r = arith.addf %v, %w : vector<7xf32>
    loop.store %r, %y (d0)[s0] -> (d0, s0)(%i) : vector<7xf32>, memref<9x7xf32>
    loop.store %k, %m (d0)[s0] -> (d0, s0)(%i) : vector<7xi32>, memref<9x7xi32>
  }
}

// Carried values are iter_args, of each as many vectors as it has; a store in each iteration.
// CHECK-LABEL: func.func private @carried
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}) -> (vector<16xf32>, vector<16xf32>, f32) {
// CHECK-DAG:       arith.addf %[[A]], %{{.*}} : vector<16xf32>
// CHECK-DAG:       arith.addf %[[B]], %{{.*}} : vector<16xf32>
// CHECK-DAG:       arith.maximumf %[[M]], %{{.*}} : f32
// CHECK:           scf.yield %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>, vector<16xf32>, f32
loop.kernel @carried(%x: memref<?x32xf32>) -> (%y: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x32xf32>
  %z = arith.constant dense<0.0> : vector<32xf32>
  %o = arith.constant 0.0 : f32
  %s, %m = loop.for "t" %t to %n serial carry(%a = %z : vector<32xf32>, %b = %o : f32) {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%t) : memref<?x32xf32>, vector<32xf32>
    %e = loop.load %x (d0) -> (d0, 7)(%t) : memref<?x32xf32>, f32
    %p = arith.addf %a, %v : vector<32xf32>
    %q = arith.maximumf %b, %e : f32
    loop.store %p, %y (d0)[s0] -> (d0, s0)(%t) : vector<32xf32>, memref<?x32xf32>
    loop.yield %p, %q : vector<32xf32>, f32
  }
}

// Two iterations at a time, each with accumulators of its own, which their combiners join.
// CHECK-LABEL: func.func private @two
// CHECK:         %[[S:.*]], %[[M:.*]], %[[T:.*]], %[[U:.*]] = scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK:         %[[J:.*]] = arith.addf %[[S]], %[[T]] : f32
// CHECK:         %[[K:.*]] = arith.maximumf %[[M]], %[[U]] : f32
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[J]], %{{.*}} = %[[K]]) -> (f32, f32)
loop.kernel @two(%x: memref<?xf32>) -> (%y: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %z = arith.constant 0.0 : f32
  %s, %m = loop.for "k" %k to %n reduction unroll 2 carry(%a = %z : f32 add, %b = %z : f32 max) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
    %p = arith.addf %a, %v : f32
    %q = arith.maximumf %b, %v : f32
    loop.yield %p, %q : f32, f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<2xf32>
  loop.store %m, %y () -> (1)() : f32, memref<2xf32>
}

// What accumulates is loaded, joined and stored, lanes beyond the limit by a mask; what was stored
// to a local buffer before is known.

// CHECK-LABEL: func.func private @accumulate(
// CHECK:         %[[M:[a-z0-9_]+]] = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK:         %[[P:[a-z0-9_]+]] = vector.maskedload %[[Y:[a-z0-9_]+]][%{{.*}}], %[[M]], %{{.*}}
// CHECK-NEXT:    %[[S:[a-z0-9_]+]] = arith.addf %[[V:[a-z0-9_]+]], %[[P]] : vector<16xf32>
// CHECK-NEXT:    vector.maskedstore %[[Y]][%{{.*}}], %[[M]], %[[S]]
// CHECK-NEXT:    %[[T:[a-z0-9_]+]] = arith.mulf %[[V]], %[[V]] : vector<16xf32>
// CHECK-NEXT:    vector.store %[[T]], %[[Y]]
loop.kernel @accumulate(%x: memref<16xf32>, %n: index) -> (%y: memref<16xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<16xf32>, vector<16xf32>
  loop.store %v, %y ()[s0] -> (s0)() : vector<16xf32>, memref<16xf32>
  loop.store add %v, %y ()[s0] -> (s0)() valid(0 : %n) : vector<16xf32>, memref<16xf32>
  %h = loop.local : memref<16xf32>
  loop.store %v, %h ()[s0] -> (s0)() : vector<16xf32>, memref<16xf32>
  loop.store mul %v, %h ()[s0] -> (s0)() : vector<16xf32>, memref<16xf32>
  %w = loop.load %h ()[s0] -> (s0)() : memref<16xf32>, vector<16xf32>
  loop.store %w, %y ()[s0] -> (s0)() : vector<16xf32>, memref<16xf32>
}

// A large buffer, or one of symbolic size, is on the heap for one iteration; a small one on the stack.
// CHECK-LABEL: func.func private @locals(
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK: scf.for
// CHECK: %[[A:.*]] = memref.alloc(%n) : memref<2x?xf32>
// CHECK-NEXT: %[[B:.*]] = memref.alloc() : memref<70000xi8>
// CHECK: memref.dealloc %[[A]] : memref<2x?xf32>
// CHECK-NEXT: memref.dealloc %[[B]] : memref<70000xi8>
// CHECK-NEXT: }
loop.kernel @locals(%x: memref<8xf32>, %n: index) -> (%y: memref<8xf32>) {
  %one = arith.constant 1 : i8
  loop.for "i" %i to 8 {
    %a = loop.local(%n) : memref<2x?xf32>
    %b = loop.local : memref<70000xi8>
    %c = loop.local : memref<16xf32>
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %v, %a (d0) -> (1, d0)(%i) : f32, memref<2x?xf32>
    loop.store %v, %c (d0) -> (d0)(%i) : f32, memref<16xf32>
    loop.store %one, %b (d0) -> (d0)(%i) : i8, memref<70000xi8>
    %w = loop.load %a (d0) -> (1, d0)(%i) : memref<2x?xf32>, f32
    %u = loop.load %c (d0) -> (d0)(%i) : memref<16xf32>, f32
    %s = arith.addf %w, %u : f32
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

// 16 bytes of an aligned argument are copied without waiting, those of another one element by element.
// CHECK-LABEL: func.func private @copies(
// CHECK:         rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK:           rt.copy_async %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}] {rt.shared} : memref<4x8xf32> to memref<8xf32>
// CHECK-NEXT:      rt.yield
// CHECK:         rt.parallel_tiles %{{[a-z0-9_]+}} device captures(
// CHECK-NOT:       rt.copy_async
// CHECK:           memref.load
loop.kernel @copies(%x: memref<4x8xf32>, %w: memref<?xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "b" %b to 4 blocks {
    %s = loop.local : memref<8xf32, #loop<space shared>>
    %r = loop.local : memref<8xf32, #loop<space shared>>
    loop.for "t" %t to 2 threads {
      loop.for "c" %c to 4 async {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1 * 4 + d2)(%b, %t, %c) : memref<4x8xf32>, f32
        loop.store %v, %s (d0, d1) -> (d0 * 4 + d1)(%t, %c) : f32, memref<8xf32, #loop<space shared>>
      }
    }
    loop.for "u" %u to 2 threads {
      loop.for "d" %c to 4 async {
        %v = loop.load %w (d0, d1) -> (d0 * 4 + d1)(%u, %c) : memref<?xf32>, f32
        loop.store %v, %r (d0, d1) -> (d0 * 4 + d1)(%u, %c) : f32, memref<8xf32, #loop<space shared>>
      }
    }
    loop.for "j" %j to 8 threads {
      %v = loop.load %s (d0) -> (7 - d0)(%j) : memref<8xf32, #loop<space shared>>, f32
      %q = loop.load %r (d0) -> (7 - d0)(%j) : memref<8xf32, #loop<space shared>>, f32
      %z = arith.addf %v, %q : f32
      loop.store %z, %y (d0, d1) -> (d0, d1)(%b, %j) : f32, memref<4x8xf32>
    }
  }
}
func.func private @copying(%ctx: !rt.context, %x: memref<4x8xf32>, %w: memref<3x?xf32>, %y: memref<4x8xf32>, %n: index) {
  %row = rt.slice %w, %n : memref<3x?xf32> to memref<?xf32>
  rt.call @copies(%x, %row, %y) device writes 1 : memref<4x8xf32>, memref<?xf32>, memref<4x8xf32>
  func.return
}

// What a device is called with begins at a multiple of 16 bytes, unless it is a row of any place.
// CHECK-LABEL: func.func private @of_device(
// CHECK-SAME:    memref<4xf32> {llvm.noalias, llvm.align = 16 : i64}, %{{[a-z0-9_]+}}: memref<3xf32> {llvm.noalias},
// CHECK-SAME:    memref<?xf32> {llvm.noalias, llvm.align = 16 : i64}, %{{[a-z0-9_]+}}: memref<4xf32> {llvm.noalias})
loop.kernel @of_device(%a: memref<4xf32>, %b: memref<3xf32>, %c: memref<?xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 threads {
    %v = loop.load %a (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}
func.func private @calls(%ctx: !rt.context, %x: memref<8x4xf32>, %y: memref<8x3xf32>, %n: index) {
  %bytes = arith.constant 4096 : index
  %places = arith.constant 64 : index
  %odd = arith.constant 68 : index
  %arena = rt.arena %ctx, %bytes : memref<?xi8>
  %lines = arith.muli %n, %places : index
  %place = arith.addi %lines, %places : index
  %a = rt.slice %x, %n : memref<8x4xf32> to memref<4xf32>
  %b = rt.slice %y, %n : memref<8x3xf32> to memref<3xf32>
  %c = memref.view %arena[%place][%n] : memref<?xi8> to memref<?xf32>
  %d = memref.view %arena[%odd][] : memref<?xi8> to memref<4xf32>
  rt.call @of_device(%a, %b, %c, %d) device writes 1 : memref<4xf32>, memref<3xf32>, memref<?xf32>, memref<4xf32>
  func.return
}

// Every second element: the second of two vectors ends at the last one. Every element in reverse.

// CHECK-LABEL: func.func private @every_second(
// CHECK:         %[[LOW:[a-z0-9_]+]] = vector.load %{{.*}}[%{{.*}}, %[[ZERO:[a-z0-9_]+]]] : memref<3x31xf32>, vector<16xf32>
// CHECK-NEXT:    %[[HIGH:[a-z0-9_]+]] = vector.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x31xf32>, vector<16xf32>
// CHECK-NEXT:    %[[EVEN:[a-z0-9_]+]] = vector.shuffle %[[LOW]], %[[HIGH]] [0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK:         %[[ALL:[a-z0-9_]+]] = vector.load %{{.*}}[%{{.*}}, %[[ZERO]]] : memref<3x31xf32>, vector<16xf32>
// CHECK-NEXT:    vector.shuffle %[[ALL]], %[[ALL]] [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
// CHECK-NOT:     vector.insert
loop.kernel @every_second(%x: memref<3x31xf32>) -> (%y: memref<3x16xf32>) {
  loop.for "i" %i to 3 {
    %v = loop.load %x (d0)[s0] -> (d0, s0 * 2)(%i) : memref<3x31xf32>, vector<16xf32>
    %w = loop.load %x (d0)[s0] -> (d0, 15 - s0)(%i) : memref<3x31xf32>, vector<16xf32>
    %s = arith.addf %v, %w : vector<16xf32>
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%i) : vector<16xf32>, memref<3x16xf32>
  }
}
