"""Group each dense layer with its bias into its own function by a pattern: one kernel each.

python examples/group_dense_add.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw
from stepwell import patterns as p


@p.pattern
def dense_add(x, w, bias=p.constant()):
    return p.add(p.dense(x, w), bias)


def network() -> sw.Module:
    """Three layers, of which the first two have the same sizes; the third has no bias."""
    rng = np.random.default_rng(0)
    b = sw.Builder()
    x = b.input("x", ("batch", 8))
    for name in ("fc1", "fc2"):
        w, bias = rng.standard_normal((8, 8), np.float32), rng.standard_normal(8, np.float32)
        x = b.tanh(b.dense(x, w, name=name) + bias)
    b.output(b.dense(x, rng.standard_normal((3, 8), np.float32), name="fc3"), name="y")
    return b.module()


def main() -> None:
    before = network()
    grouped = p.group(before, {"dense_add": dense_add})
    print(grouped)
    print(dense_add.explain("fc3", before))

    # The group is a kernel; `graph-fuse-ops` makes kernels of the rest.
    exe = sw.compile(grouped)
    kernels = exe.ir("kernels")
    assert kernels.count("loop.kernel @dense_add(") == 1
    assert kernels.count("call_dps @dense_add(") == 2

    x = np.ones((5, 8), np.float32)
    y = exe(x)
    np.testing.assert_allclose(y, before.run_reference(x), rtol=1e-4, atol=1e-5)
    print("y[0] =", y[0])


if __name__ == "__main__":
    main()
