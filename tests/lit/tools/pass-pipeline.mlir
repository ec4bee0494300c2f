// RUN: stepwell-opt %s -p " canonicalize , graph-fuse-ops{max-ops=1}, func.func( cse ),func.func(canonicalize)," --dump-pass-pipeline 2>&1 >/dev/null | filecheck %s
// RUN: printf '# to run\ncanonicalize,\n# and this\ncse\n' > %t
// RUN: stepwell-opt %s -p @%t --dump-pass-pipeline 2>&1 >/dev/null | filecheck %s --check-prefix FILE
// RUN: stepwell-opt %s --pass-pipeline-file %t --dump-pass-pipeline --json 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: not stepwell-opt %s -p "graph-fuse-ops{max-op=1}" 2>&1 | filecheck %s --check-prefix OPTION

// CHECK: builtin.module(canonicalize,graph-fuse-ops{max-ops=1},func.func(cse,canonicalize))
// FILE: builtin.module(canonicalize,cse)
// JSON: {"report": "pipeline", "text": "builtin.module(canonicalize,cse)"}
// OPTION: stepwell-opt: error: graph-fuse-ops: bad options: there is no "max-op", expected max-ops, max-staged-width; nearest name: max-ops
func.func @main() {
  func.return
}
