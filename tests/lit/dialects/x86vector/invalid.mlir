// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @lanes(%a: vector<8xf32>, %k: i16, %rounding: i32) {
  // expected-error @+1 {{operand 'src' at position 0 does not verify}}
  %r = "x86vector.avx512.mask.scalef"(%a, %a, %a, %k, %rounding) : (vector<8xf32>, vector<8xf32>, vector<8xf32>, i16, i32) -> vector<8xf32>
  func.return
}

// -----

func.func @mask(%a: vector<16xf32>, %k: i8, %rounding: i32) {
  // expected-error @+1 {{operand 'k' at position 3 does not verify}}
  %r = "x86vector.avx512.mask.scalef"(%a, %a, %a, %k, %rounding) : (vector<16xf32>, vector<16xf32>, vector<16xf32>, i8, i32) -> vector<16xf32>
  func.return
}
