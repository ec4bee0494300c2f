"""Bind arrays to the inputs of a program: they become constants, and their sizes known.

python examples/bound_parameters.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw


def layer() -> sw.Module:
    """A layer of any size: x [batch, in], w [out, in] and b [out] come with each call."""
    b = sw.Builder("main")
    x = b.input("x", ("batch", "in"), "f32")
    w, bias = b.input("w", ("out", "in"), "f32"), b.input("b", ("out",), "f32")
    b.output(b.relu(b.dense(x, w, bias=bias)), name="y")
    return b.module()


def main() -> None:
    rng = np.random.default_rng(0)
    w, bias = rng.standard_normal((3, 8), np.float32), rng.standard_normal(3, np.float32)
    module = layer()
    bound = sw.bind_params(module, {"w": w, "b": bias})
    print(module)
    print(bound)

    # Constants are folded, laid out for the vectors of this machine, and not passed with a call.
    exe = sw.compile(bound)
    x = rng.standard_normal((5, 8), np.float32)
    np.testing.assert_allclose(exe(x), sw.compile(module)(x, w, bias), rtol=1e-5, atol=1e-5)
    for made in (module, exe):
        print("inputs:", ", ".join(f"{spec.name} {spec.shape}" for spec in made.inputs))

    try:
        sw.bind_params(module, {"w": w, "b": bias[:2]})
    except sw.InputError as error:
        print("arrays that do not fit together:", error)


if __name__ == "__main__":
    main()
