"""A table of your own lowerings: loops written in Python replace operators.

python examples/custom_lowering.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw


@sw.kernel
def dense(k, x, w, bias, y):
    """Rows of x times rows of w, plus the bias if there is one."""
    with k.loops(*y.shape) as (i, j):
        total = k.sum(x.shape[1], lambda t: x[i, t] * w[j, t])
        y[i, j] = total if bias is None else total + bias[j]


@sw.kernel
def tanh(k, x, y):
    """A quick tanh: x (27 + x^2) / (27 + 9 x^2), good to 0.03 for |x| < 3."""
    with k.loops(*y.shape) as place:
        square = x[place] * x[place]
        y[place] = x[place] * (27 + square) / (27 + 9 * square)


def main() -> None:
    rng = np.random.default_rng(0)
    w, bias = rng.standard_normal((3, 7), np.float32), rng.standard_normal(3, np.float32)
    b = sw.Builder("main")
    x = b.input("x", ("n", 7), "f32")
    b.output(b.tanh(b.dense(x, w / 7, bias=bias, name="fc"), name="act"), name="y")
    module = b.module()

    exe = sw.compile(module, legalize={"graph.dense": dense, "graph.tanh": tanh})
    print(exe.ir("kernels"))
    assert "math.tanh" not in exe.ir("kernels")

    x = rng.uniform(-1, 1, (5, 7)).astype(np.float32)
    difference = np.abs(exe(x) - module.run_reference(x)).max()
    assert 1e-6 < difference < 0.03
    print(f"the quick tanh is off by {difference:.4f}")


if __name__ == "__main__":
    main()
