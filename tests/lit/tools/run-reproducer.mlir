// RUN: stepwell-opt %s --run-reproducer | filecheck %s
// RUN: stepwell-opt %s | filecheck %s --check-prefix PLAIN
// RUN: not stepwell-opt %s --run-reproducer -p cse 2>&1 | filecheck %s --check-prefix BESIDE
// RUN: sed -e 's/canonicalize/canonicalise/' %s | not stepwell-opt --run-reproducer 2>&1 | filecheck %s --check-prefix UNKNOWN

// What mlir-opt writes is run, too.

// CHECK-LABEL: func.func @main
// CHECK-NEXT: func.return %x
// PLAIN: arith.addi
// BESIDE: error: --run-reproducer: the file says which passes run, expected no -p
// UNKNOWN: error: pipeline: unknown pass "canonicalise"; nearest names: canonicalize
func.func @main(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  func.return %x : i32
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(func.func(canonicalize))",
      disable_threading: false,
      verify_each: true
    }
  }
#-}
