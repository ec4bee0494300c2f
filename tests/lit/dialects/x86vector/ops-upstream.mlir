// REQUIRES: mlir-opt
// RUN: stepwell-opt %s | mlir-opt | stepwell-opt | filecheck %s

// Upstream reads what is printed here, and the other way round.

// CHECK-LABEL: func.func @scale
// CHECK: x86vector.avx512.mask.scalef %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
func.func @scale(%src: vector<16xf32>, %a: vector<16xf32>, %b: vector<16xf32>, %k: i16, %rounding: i32) -> vector<16xf32> {
  %r = x86vector.avx512.mask.scalef %src, %a, %b, %k, %rounding : vector<16xf32>
  func.return %r : vector<16xf32>
}
