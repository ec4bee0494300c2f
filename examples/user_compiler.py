"""An engineer who knows MLIR: a rewrite in PDL, the IR after it, and its place in a compilation."""

from pathlib import Path

import numpy as np

import stepwell as sw

Path("twice.mlir").write_text("""pdl.pattern @twice : benefit(1) { // x + x == x - -x
  %t = pdl.type
  %x = pdl.operand : %t
  %sum = pdl.operation "graph.add" (%x, %x : !pdl.value, !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %sum {
    %old = pdl.operation "graph.neg" (%x : !pdl.value) -> (%t : !pdl.type)
    %minus = pdl.result 0 of %old
    %new = pdl.operation "graph.sub" (%x, %minus : !pdl.value, !pdl.value) -> (%t : !pdl.type)
    pdl.replace %sum with %new } }""")
b = sw.Builder("main")
x = b.input("x", ("n",), "f32")
b.output(b.add(x, x), name="y")
print(sw.run_passes(b.module(), 'apply-pdl{pdl-file="twice.mlir"}'))
pipeline = sw.pipeline(threads=1).before("graph-simplify", 'apply-pdl{pdl-file="twice.mlir"}')
exe = sw.compile(b.module(), pipeline=pipeline, check=True)
print(exe(np.array([1, -0.0, 3], np.float32)), "after", len(exe.changes), "checked passes")
