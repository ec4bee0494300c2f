"""Operators, a Python function and a kernel written by hand in one program.

python examples/mixed_functions.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw


@sw.register_function("env.linear")
def linear(x, w, y):
    """y = x w^T by NumPy: the arguments are views of the program's memory, and y is written."""
    np.matmul(x, w.T, out=y)


@sw.kernel
def pairs(k, x, y):
    """The sum of each pair of neighbours in a row."""
    with k.loops(*y.shape) as (i, j):
        y[i, j] = x[i, 2 * j] + x[i, 2 * j + 1]


def main() -> None:
    w = np.random.default_rng(0).standard_normal((6, 4), np.float32)
    b = sw.Builder("main")
    x = b.input("x", ("n", 4), "f32")
    h = b.call_packed("env.linear", b.relu(x), w, results=sw.TensorSpec(("n", 6), "f32"))
    h = b.call_kernel(pairs, h, results=sw.TensorSpec(("n", 3), "f32"))
    b.output(h + 1, name="y")
    module = b.module()
    print(module)

    exe = sw.compile(module)
    print(exe.ir("kernels"))
    x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
    y = exe(x)
    product = np.maximum(x, 0) @ w.T
    np.testing.assert_allclose(y, product[:, 0::2] + product[:, 1::2] + 1, rtol=1e-5, atol=1e-5)
    print("y[1] =", y[1].round(3))


if __name__ == "__main__":
    main()
