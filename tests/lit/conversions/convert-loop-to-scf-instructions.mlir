// RUN: stepwell-opt %s -p "loop-legalize-vectors{target=x86-64-v3},convert-loop-to-scf" | filecheck %s

// An instruction is called where there is one of as many lanes, and else its body is computed.
// CHECK-LABEL: func.func private @pairs(
// CHECK: %[[A:[a-z0-9_]+]] = vector.shuffle %[[X:[a-z0-9_]+]], %[[X]] [0, 1, 0, 1, 0, 1, 0, 1] : vector<2xi16>, vector<2xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"(%[[A]], %{{.*}}) : (vector<8xi16>, vector<8xi16>) -> vector<4xi32>
// CHECK: %[[P:[a-z0-9_]+]] = arith.muli %{{.*}}, %{{.*}} : vector<4xi32>
// CHECK-NEXT: %[[L:[a-z0-9_]+]] = vector.shuffle %[[P]], %[[P]] [0, 2] : vector<4xi32>, vector<4xi32>
// CHECK-NEXT: %[[R:[a-z0-9_]+]] = vector.shuffle %[[P]], %[[P]] [1, 3] : vector<4xi32>, vector<4xi32>
// CHECK-NEXT: arith.addi %[[L]], %[[R]] : vector<2xi32>
loop.kernel @pairs(%x: memref<2xi16>, %w: memref<12xi16>) -> (%y: memref<6xi32>) {
  %a = loop.load %x ()[s0] -> (s0)() : memref<2xi16>, vector<2xi16>
  %b = loop.load %w ()[s0] -> (s0)() : memref<12xi16>, vector<12xi16>
  %p = loop.instruction "vpmaddwd"(%a, %b) : (vector<2xi16>, vector<12xi16>) -> vector<6xi32>
  loop.store %p, %y ()[s0] -> (s0)() : vector<6xi32>, memref<6xi32>
}
