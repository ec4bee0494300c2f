"""EyeLike, ReverseSequence and TensorScatter of ONNX, with sizes of each call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import floats


def imported(operator: str, *shapes: Sequence[int | str], **attributes: Any) -> sw.Module:
    """A model of one node; its operands are floats, those of one dimension integers."""
    names = [f"x{n}" for n in range(len(shapes))]
    infos = [
        make_tensor_value_info(
            name, TensorProto.INT64 if len(shape) == 1 else TensorProto.FLOAT, shape
        )
        for name, shape in zip(names, shapes, strict=True)
    ]
    node = make_node(operator, names, ["y"], name="n", **attributes)
    graph = make_graph([node], "g", infos, [make_tensor_value_info("y", 0, None)])
    return sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 24)]))


def test_ones_on_a_diagonal() -> None:
    for k in (-1, 0, 2):
        module = imported("EyeLike", ("n", "m"), k=k, dtype=TensorProto.INT32)
        run = sw.compile(module, threads=1) if k == -1 else module.run_reference
        for shape in ((3, 5), (1, 1), (4, 0)):
            want = np.eye(*shape, k=k, dtype=np.int32)
            np.testing.assert_array_equal(run(np.ones(shape, np.float32)), want)


@pytest.mark.parametrize("time", [0, 1])
def test_the_beginnings_of_sequences_are_reversed(time: int) -> None:
    shape = ("t", "b", 2) if time == 0 else ("b", "t", 2)
    module = imported("ReverseSequence", shape, ("b",), time_axis=time, batch_axis=1 - time)
    exe = sw.compile(module, threads=1)
    x = floats(3, 4, 2)  # batch, time
    lens = np.array([4, 0, 3])
    want = np.stack([np.concatenate([x[b, :n][::-1], x[b, n:]]) for b, n in enumerate(lens)])
    got = exe(x if time else np.ascontiguousarray(x.swapaxes(0, 1)), lens)
    np.testing.assert_array_equal(got if time else got.swapaxes(0, 1), want)
    with pytest.raises(sw.InputError, match='node "n"'):
        exe(x if time else np.ascontiguousarray(x.swapaxes(0, 1)), np.array([4, 5, 1]))


def test_rows_of_a_cache_are_written(all_tests: bool) -> None:
    cache = floats(2, 3, 5, 4)
    update = floats(2, 3, 2, 4)
    shapes = (("b", 3, "s", 4), ("b", 3, "t", 4), ("b",))
    linear = sw.compile(imported("TensorScatter", *shapes), threads=1)
    module = imported("TensorScatter", *shapes, mode="circular")
    circular = sw.compile(module, threads=1) if all_tests else module.run_reference
    for exe, starts in ((linear, (0, 3)), (circular, (4, 7))):
        want = cache.copy()
        for b, start in enumerate(starts):
            want[b][:, (start + np.arange(2)) % 5] = update[b]
        np.testing.assert_array_equal(exe(cache, update, np.array(starts)), want)
    with pytest.raises(sw.InputError, match='node "n"'):
        linear(cache, update, np.array([0, 4]))


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "text"),
    [
        ("EyeLike", [(2, 3, 4)], {}, "operand is not a matrix, expected rank 2, got rank 3"),
        ("ReverseSequence", [(2, 3), (3,)], {"time_axis": 1}, "batch_axis and time_axis do not"),
        ("ReverseSequence", [(2, 3), (2,)], {}, "sequence_lens has the wrong shape, expected"),
        ("TensorScatter", [(2, 5, 4), (2, 2, 3)], {}, "the update does not fit"),
        (
            "TensorScatter",
            [(2, 5, 4), (2, 2, 4)],
            {"mode": "x"},
            "mode is unknown, expected linear",
        ),
    ],
)
def test_what_does_not_fit(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], text: str
) -> None:
    with pytest.raises(sw.ImportModelError, match=re.escape(text)):
        imported(operator, *shapes, **attributes)
