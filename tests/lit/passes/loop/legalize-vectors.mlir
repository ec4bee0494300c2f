// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v4}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v3}" | filecheck %s --check-prefix=V3
// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v4}" | stepwell-opt -p "loop-legalize-vectors{target=x86-64-v3}" | filecheck %s --check-prefix=V3

// What remains of a row is masked where the machine has masks, else it is several vectors. The other
// axes are rows of the same kind. A row of one lane is a scalar, and needs no mention.

// CHECK-LABEL: loop.kernel @tile
// CHECK-SAME:    attributes {loop.vectors = #loop.vectors<hoist 16, 23 = [16, 7 of 8]>} {
// V3-LABEL:    loop.kernel @tile
// V3-SAME:       attributes {loop.vectors = #loop.vectors<hoist 8, 23 = [8, 8, 4, 2, 1]>} {
loop.kernel @tile(%x: memref<3xf32>, %w: memref<23xf32>) -> (%y: memref<3x23xf32>) {
  %p = loop.load %x ()[s0, s1] -> (s0)() : memref<3xf32>, vector<3x1xf32>
  %q = loop.load %w ()[s0] -> (s0)() : memref<23xf32>, vector<23xf32>
  %pb = vector.broadcast %p : vector<3x1xf32> to vector<3x23xf32>
  %qb = vector.broadcast %q : vector<23xf32> to vector<3x23xf32>
  %t = arith.mulf %pb, %qb : vector<3x23xf32>
  loop.store %t, %y ()[s0, s1] -> (s0, s1)() : vector<3x23xf32>, memref<3x23xf32>
}

// The widest numbers of a kernel decide how many lanes all of its vectors have.

// CHECK-LABEL: loop.kernel @wide
// CHECK-SAME:    #loop.vectors<hoist 16, 16 = [8, 8]>
// V3-LABEL:    loop.kernel @wide
// V3-SAME:       #loop.vectors<hoist 8, 16 = [4, 4, 4, 4]>
loop.kernel @wide(%x: memref<16xf32>) -> (%y: memref<16xf64>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<16xf32>, vector<16xf32>
  %w = arith.extf %v : vector<16xf32> to vector<16xf64>
  loop.store %w, %y ()[s0] -> (s0)() : vector<16xf64>, memref<16xf64>
}

// An expensive function is computed on some vectors of a row step by step: on as many as there are
// registers for.

// CHECK-LABEL: loop.kernel @function
// CHECK:         math.exp %{{.*}} {loop.interleave = 2 : i64} : vector<32xf32>
// CHECK:         math.exp %{{.*}} : f32
// V3-LABEL:    loop.kernel @function
// V3:            math.exp %{{.*}} {loop.interleave = 4 : i64} : vector<32xf32>
// V3:            math.exp %{{.*}} : f32
loop.kernel @function(%x: memref<32xf32>) -> (%y: memref<32xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<32xf32>, vector<32xf32>
  %e = math.exp %v : vector<32xf32>
  loop.store %e, %y ()[s0] -> (s0)() : vector<32xf32>, memref<32xf32>
  %s = loop.load %x () -> (0)() : memref<32xf32>, f32
  %f = math.exp %s : f32
  loop.store %f, %y () -> (0)() : f32, memref<32xf32>
}

// Small axes of which the first is folded share a machine vector, unless one of them is limited.

// CHECK-LABEL: loop.kernel @folded
// CHECK-SAME:    #loop.vectors<hoist 16, 4 = [4], 2 = [2], merged [2, 4]>
// V3-LABEL:    loop.kernel @folded
// V3-SAME:       #loop.vectors<hoist 8, 4 = [4], 2 = [2], merged [2, 4]>
loop.kernel @folded(%x: memref<2x4xf32>, %z: memref<4x2xf32>, %n: index) -> (%y: memref<4xf32>, %w: memref<2xf32>) {
  %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x4xf32>, vector<2x4xf32>
  %f = loop.fold %v axis 0 add : vector<2x4xf32> -> vector<1x4xf32>
  loop.store %f, %y ()[s0, s1] -> (s0 + s1)() : vector<1x4xf32>, memref<4xf32>
  %u = loop.load %z ()[s0, s1] -> (s0, s1)() valid(1 : %n) : memref<4x2xf32>, vector<4x2xf32>
  %g = loop.fold %u axis 0 add : vector<4x2xf32> -> vector<1x2xf32>
  loop.store %g, %w ()[s0, s1] -> (s0 + s1)() : vector<1x2xf32>, memref<2xf32>
}

// A kernel of scalars does not change.

// CHECK-LABEL: loop.kernel @scalars
// CHECK-SAME:    (%x: memref<4xf32>) -> (%y: memref<4xf32>) {
// V3-LABEL:    loop.kernel @scalars
loop.kernel @scalars(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}

// A column of which a function is computed is one machine vector, unless a load of it is limited.

// CHECK-LABEL: loop.kernel @column
// CHECK-SAME:    merged [4, 1]
// V3-LABEL:    loop.kernel @column
// V3-SAME:       merged [4, 1]
loop.kernel @column(%x: memref<4xf32>) -> (%y: memref<4x8xf32>) {
  %v = loop.load %x ()[s0, s1] -> (s0)() : memref<4xf32>, vector<4x1xf32>
  %e = math.exp %v : vector<4x1xf32>
  %w = vector.broadcast %e : vector<4x1xf32> to vector<4x8xf32>
  loop.store %w, %y ()[s0, s1] -> (s0, s1)() : vector<4x8xf32>, memref<4x8xf32>
}

// CHECK-LABEL: loop.kernel @limited_column
// CHECK-NOT:     merged
// V3-LABEL:    loop.kernel @limited_column
// V3-NOT:        merged
loop.kernel @limited_column(%x: memref<?xf32>, %n: index) -> (%y: memref<4x8xf32>) {
  %v = loop.load %x ()[s0, s1] -> (s0)() valid(0 : %n) : memref<?xf32>, vector<4x1xf32>
  %e = math.exp %v : vector<4x1xf32>
  %w = vector.broadcast %e : vector<4x1xf32> to vector<4x8xf32>
  loop.store %w, %y ()[s0, s1] -> (s0, s1)() : vector<4x8xf32>, memref<4x8xf32>
}

// The operands of an instruction in groups are cut as its result, with a group for each lane.

// CHECK-LABEL: loop.kernel @instruction
// CHECK-SAME:    #loop.vectors<hoist 16, 2 = [2], 48 = [32, 16], 24 = [16, 8]>
// CHECK:         loop.instruction "vpmaddwd"(%{{.*}}, %{{.*}}) {loop.intrinsics = {"4" = "llvm.x86.sse2.pmadd.wd", "8" = "llvm.x86.avx2.pmadd.wd", "16" = "llvm.x86.avx512.pmaddw.d.512"}}
// V3-LABEL:    loop.kernel @instruction
// V3-SAME:       #loop.vectors<hoist 8, 2 = [2], 48 = [16, 16, 16], 24 = [8, 8, 8]>
// V3:            loop.instruction "vpmaddwd"(%{{.*}}, %{{.*}}) {loop.intrinsics = {"4" = "llvm.x86.sse2.pmadd.wd", "8" = "llvm.x86.avx2.pmadd.wd"}}
loop.kernel @instruction(%x: memref<2xi16>, %w: memref<48xi16>) -> (%y: memref<24xi32>) {
  %a = loop.load %x ()[s0] -> (s0)() : memref<2xi16>, vector<2xi16>
  %b = loop.load %w ()[s0] -> (s0)() : memref<48xi16>, vector<48xi16>
  %p = loop.instruction "vpmaddwd"(%a, %b) : (vector<2xi16>, vector<48xi16>) -> vector<24xi32>
  loop.store %p, %y ()[s0] -> (s0)() : vector<24xi32>, memref<24xi32>
}

// A store of limited lanes branches around its masks, unless the machine has them for every type.

// CHECK-LABEL: loop.kernel @limited
// CHECK:         loop.store %{{.*}} valid(0 : %m) : vector<16xf32>, memref<?xf32>
// V3-LABEL:    loop.kernel @limited
// V3:            loop.store %{{.*}} valid(0 : %m) {loop.branch} : vector<16xf32>, memref<?xf32>
// V3:            loop.store %{{.*}} valid(0 : %m) : vector<2x16xf32>, memref<?x16xf32>
loop.kernel @limited(%x: memref<16xf32>, %z: memref<2x16xf32>, %m: index) -> (%y: memref<?xf32>, %w: memref<?x16xf32>) {
  %v = loop.load %x ()[s0] -> (s0)() : memref<16xf32>, vector<16xf32>
  loop.store %v, %y ()[s0] -> (s0)() valid(0 : %m) : vector<16xf32>, memref<?xf32>
  %u = loop.load %z ()[s0, s1] -> (s0, s1)() : memref<2x16xf32>, vector<2x16xf32>
  loop.store %u, %w ()[s0, s1] -> (s0, s1)() valid(0 : %m) : vector<2x16xf32>, memref<?x16xf32>
}
