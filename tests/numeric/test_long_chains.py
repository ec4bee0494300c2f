"""Hundreds of operators that follow each other: kernels of a bounded size, none by recursion."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw

from ..harness import floats

X = np.abs(floats(7, 33))
MOST = 100
"""The operators of a kernel."""


def chain(length: int) -> sw.Module:
    b = sw.Builder("main")
    y = b.input("x", X.shape, "f32")
    for _ in range(length):
        y = b.sqrt(y)
    b.output(y, name="y")
    return b.module()


@pytest.mark.parametrize(
    ("length", "kernels"),
    [(MOST, 1), (MOST + 1, 2), pytest.param(250, 3, marks=pytest.mark.slow)],
)
def test_a_chain_is_cut_into_kernels(length: int, kernels: int) -> None:
    module = chain(length)
    exe = sw.compile(module, threads=1)
    np.testing.assert_allclose(exe(X), module.run_reference(X), rtol=1e-5)
    assert exe.ir("kernels").count("graph.call_dps") == kernels
    assert (f"a kernel may have at most {MOST} operators" in exe.explain()) == (kernels > 1)


def test_a_function_with_too_many_operators_is_grouped_anew() -> None:
    kind, count = "tensor<7x33xf32>", MOST + 1
    lines = [f"%{n + 1} = graph.sqrt %{n} : ({kind}) -> {kind}" for n in range(count)]
    module = sw.from_mlir(
        f"func.func @main(%x: {kind}) -> {kind} {{ "
        f"%y = func.call @long(%x) : ({kind}) -> {kind} func.return %y : {kind} }}\n"
        f"func.func private @long(%0: {kind}) -> {kind} attributes {{graph.primitive}} {{ "
        f"{' '.join(lines)} func.return %{count} : {kind} }}"
    )
    exe = sw.compile(module, threads=1)
    assert exe.ir("kernels").count("graph.call_dps") == 2
    np.testing.assert_allclose(exe(X), chain(count).run_reference(X), rtol=1e-5)
