"""Performance: the schedule of a kernel, changed step by step, timed, kept and compiled."""

import numpy as np

import stepwell as sw

b = sw.Builder("main")
x = b.input("x", (64, 256), "f32")
b.output(b.relu(b.dense(x, np.ones((128, 256), np.float32))), name="y")
module = b.module()

s = sw.schedule(module, "fused_dense_relu", start="none", threads=1)
s.split("j", 32).reorder("i", "j0", "j1").split("i", 4)
try:
    s.vectorize("k")
except sw.CompileError as error:
    print("refused:", error)
s.reorder("i0", "j0", "i1", "j1").vectorize("i1", "j1")
print(s)
print(s.time(seconds=0.05))
s.record("tuning.jsonl")
exe = sw.compile(module, threads=1, records="tuning.jsonl")
assert (exe(np.ones((64, 256), np.float32)) == 256).all()
print("used:", s.trace in exe.ir("scheduled"))
