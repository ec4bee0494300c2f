// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

// CHECK-LABEL: func.func @scale
// CHECK-NEXT: %r = x86vector.avx512.mask.scalef %src, %a, %b, %k, %rounding : vector<16xf32>
func.func @scale(%src: vector<16xf32>, %a: vector<16xf32>, %b: vector<16xf32>, %k: i16, %rounding: i32) -> vector<16xf32> {
  %r = x86vector.avx512.mask.scalef %src, %a, %b, %k, %rounding : vector<16xf32>
  func.return %r : vector<16xf32>
}
