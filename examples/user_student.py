"""A student: a four-line model on each step of the staircase, and what a pass did to it."""

import numpy as np

import stepwell as sw

b = sw.Builder("main")
x = b.input("x", ("n", 8), "f32")
b.output(b.relu(b.dense(x, np.eye(4, 8, dtype=np.float32)), name="act"), name="y")
module = b.module()


class Counts(sw.PassHook):
    def after_pass(self, ctx, op):
        print(f"{ctx.stage:10} {ctx.pass_name:28} {sum(1 for _ in op.walk())} operations")


exe = sw.compile(module, hooks=[Counts()])
data = np.arange(16, dtype=np.float32).reshape(2, 8) - 6
for stage in exe.stages[:8]:
    assert np.array_equal(exe.run_at(stage, data), exe(data)), stage
print(exe.ir("scheduled", brief=True))
print(exe.why("act"))
print("the same results on", len(exe.stages[:8]), "stages")
