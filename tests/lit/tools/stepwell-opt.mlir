// RUN: stepwell-opt %s -p canonicalize | filecheck %s
// RUN: not stepwell-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix UNKNOWN

// CHECK-LABEL: func.func @unused
func.func @unused(%a: i32) -> i32 {
  // CHECK-NEXT: func.return %a : i32
  %unused = arith.addi %a, %a : i32
  func.return %a : i32
}

// UNKNOWN: stepwell-opt: error: pipeline: unknown pass "canonicalise"; nearest names: canonicalize
