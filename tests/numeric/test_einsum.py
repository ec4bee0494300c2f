"""Einsum of ONNX against NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import close, floats


def imported(equation: str, shapes: Sequence[Sequence[int | str]]) -> sw.Module:
    names = [f"x{n}" for n in range(len(shapes))]
    pairs = zip(names, shapes, strict=True)
    xs = [make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in pairs]
    y = make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = make_node("Einsum", names, ["y"], name="n", equation=equation)
    model = make_model(make_graph([node], "g", xs, [y]), opset_imports=[make_opsetid("", 20)])
    return sw.from_onnx(model)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        (" ij , jk ", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iji->j", [(3, 4, 3)]),
        ("iii->i", [(3, 3, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("...i,...i->...", [(4, 1, 3), (1, 5, 3)]),
        ("...ij,jk", [(2, 2, 3), (3, 4)]),
        ("bij,bjk,bkl->bil", [(2, 3, 4), (2, 4, 5), (2, 5, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
        ("ij,kl->ki", [(2, 3), (4, 5)]),
        ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
        (",i->i", [(), (3,)]),
    ],
)
def test_equation(equation: str, shapes: list[tuple[int, ...]]) -> None:
    xs = [floats(*shape) for shape in shapes]
    close(imported(equation, shapes).run_reference(*xs), np.einsum(equation, *xs), 1e-4, 1e-5)


def test_symbolic_sizes_become_one_product() -> None:
    module = imported("bqhd,bkhd->bhqk", [("b", "q", 4, 8), ("b", "k", 4, 8)])
    assert module.text().count("graph.matmul") == 1
    assert "graph.reduce" not in module.text()
    exe = sw.compile(module, threads=1)
    for b, q, k in ((1, 1, 3), (2, 5, 4)):
        xs = [floats(b, n, 4, 8) for n in (q, k)]
        close(exe(*xs), np.einsum("bqhd,bkhd->bhqk", *xs), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("ij->i", "the equation does not fit, expected 2 operands, got ij->i"),
        ("i$,jk->i", 'the equation cannot be read, expected such as "ij,jk->ik"'),
        ("i,jk->i", "the equation does not fit, expected 2 dimensions for i"),
        ("ij,jk->il", "the result of the equation is wrong, expected labels of operands"),
        ("ij,jk->ii", "the result of the equation is wrong, expected labels of operands"),
        ("ij,ij->i", "dimensions j of the equation differ, expected 3, got 4"),
        ("ii,ij->i", "dimensions i differ, expected 2, got 3"),
    ],
)
def test_what_does_not_fit(equation: str, text: str) -> None:
    with pytest.raises(sw.ImportModelError, match=re.escape(text)):
        imported(equation, [(2, 3), (2, 4)])
