"""Rewrite a multiply and an add to one fused multiply-add, and remove dead code.

python examples/fma_rewrite.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw
from stepwell import patterns as p


@p.pattern
def multiply_add(x, y, z):
    return p.add(p.mul(x, y), z)


@p.rewrite(multiply_add)
def fused(b, x, y, z):
    return b.fma(x, y, z)


def polynomial() -> sw.Module:
    """x^3 + 2 x^2 + 3 x + 4 by Horner's rule, beside a value that nothing uses."""
    b = sw.Builder()
    x = b.input("x", ("n",))
    b.exp(x, name="unused")
    b.output(((x + 2) * x + 3) * x + 4, name="y")
    return b.module()


def main() -> None:
    before = polynomial()
    after = p.apply(before, [fused])
    print(before)
    print(after)

    x = np.linspace(-2, 2, 7, dtype=np.float32)
    y = sw.compile(after)(x)
    np.testing.assert_allclose(y, before.run_reference(x), rtol=1e-6, atol=1e-6)
    operators = [op.name for op in after.op.walk()]
    assert operators.count("graph.fma") == 2
    assert "graph.mul" not in operators
    assert "graph.exp" not in operators
    print("y =", y.round(3))


if __name__ == "__main__":
    main()
