"""Convolution, batch norm, relu: the IR before the passes of the graph level and after each.

python examples/conv_block.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context

RANDOM = np.random.default_rng(0)


def block() -> sw.Module:
    """Images [n, 3, 9, 9] to [n, 4, 7, 7]."""
    weight = RANDOM.standard_normal((4, 3, 3, 3), np.float32)
    scale, bias, mean, variance = RANDOM.uniform(0.5, 2, (4, 4)).astype(np.float32)
    b = sw.Builder("main")
    x = b.input("x", ("n", 3, 9, 9), "f32")
    h = b.conv(x, weight, name="conv")
    h = b.batch_norm(h, scale, bias, mean, variance, epsilon=1e-5, axis=1, name="bn")
    b.output(b.relu(h, name="relu"), name="y")
    return b.module()


def main() -> None:
    module = block()
    x = RANDOM.standard_normal((2, 3, 9, 9), np.float32)
    expected = module.run_reference(x)
    print("before")
    print(module)

    step = module.clone()
    ctx = make_context(step.weights)
    texts = pipeline(opt_level=3)
    for name in f"{texts['optimized']},{texts['fused']}".split(","):
        before = str(step)
        run_passes(ctx, step.op, name)
        np.testing.assert_allclose(step.run_reference(x), expected, rtol=1e-4, atol=1e-4)
        changed = str(step) != before
        print(f"after {name}" if changed else f"after {name}: the same")
        if changed:
            print(step)

    exe = sw.compile(module)
    difference = np.abs(exe(x) - expected).max()
    assert "graph.batch_norm" not in exe.ir("fused")
    assert exe.ir("kernels").count("loop.kernel") == 1
    assert difference < 1e-4
    print(f"one kernel; the largest difference to NumPy is {difference:.1e}")


if __name__ == "__main__":
    main()
