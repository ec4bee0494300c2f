// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v3},convert-loop-to-scf" | filecheck %s

// A machine without masks of its own stores a tile by them only where some lanes are not valid.

// CHECK-LABEL: func.func private @panels(
// CHECK:         %[[WHOLE:[a-z0-9_]+]] = arith.cmpi sge
// CHECK:         scf.if %[[WHOLE]] {
// CHECK-COUNT-2:   vector.store
// CHECK-NOT:       vector.maskedstore
// CHECK:         %[[CUT:[a-z0-9_]+]] = arith.cmpi slt
// CHECK-NEXT:    %[[MASK:[a-z0-9_]+]] = vector.create_mask
// CHECK-NEXT:    scf.if %[[CUT]] {
// CHECK-COUNT-2:   vector.maskedstore %{{.*}}, %[[MASK]]
// CHECK-NOT:     vector.store
loop.kernel @panels(%x: memref<2x24xf32>) -> (%y: memref<2x20xf32>) {
  loop.for "j" %j to 3 {
    %n = affine.min affine_map<(d0) -> (8, d0 * -8 + 20)>(%j)
    %v = loop.load %x (d0)[s0, s1] -> (s0, d0 * 8 + s1)(%j) : memref<2x24xf32>, vector<2x8xf32>
    loop.store %v, %y (d0)[s0, s1] -> (s0, d0 * 8 + s1)(%j) valid(1 : %n) : vector<2x8xf32>, memref<2x20xf32>
  }
}

// Where some lanes are never valid, there is no branch.

// CHECK-LABEL: func.func private @no_branch(
// CHECK-NOT:     arith.cmpi sge
// CHECK-COUNT-2: vector.maskedstore
loop.kernel @no_branch(%x: memref<2x8xf32>, %m: index) -> (%y: memref<2x8xf32>) {
  %c5 = arith.constant 5 : index
  %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x8xf32>, vector<2x8xf32>
  loop.store %v, %y ()[s0, s1] -> (s0, s1)() valid(0 : %m, 1 : %c5) : vector<2x8xf32>, memref<2x8xf32>
}
