"""DeformConv and TfIdfVectorizer of ONNX, against its reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid

import stepwell as sw

from ..harness import RNG, as_onnx, floats


def model(
    operator: str, inputs: Sequence[np.ndarray | None], batch: bool = False, **attributes: Any
) -> onnx.ModelProto:
    given = {f"x{n}": x for n, x in enumerate(inputs) if x is not None}
    names = [f"x{n}" if x is not None else "" for n, x in enumerate(inputs)]
    infos = [
        onnx.helper.make_tensor_value_info(
            name,
            onnx.helper.np_dtype_to_tensor_dtype(x.dtype),
            ["n", *x.shape[1:]] if batch and name not in ("x1", "x3") else x.shape,
        )
        for name, x in given.items()
    ]
    node = make_node(operator, names, ["y"], "n", **attributes)
    graph = make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    return make_model(graph, opset_imports=[make_opsetid("", 22)])


def node_as_onnx(
    operator: str, *inputs: np.ndarray | None, compiled: bool = False, **attributes: Any
) -> None:
    """Compare a model of one node; that of compiled code takes any batch."""
    program = model(operator, inputs, batch=compiled, **attributes)
    given = [x for x in inputs if x is not None]
    as_onnx(program, *given, ways=["compiled" if compiled else "reference"], rtol=1e-4, threads=2)


def test_windows_that_are_moved() -> None:
    x, w = floats(2, 4, 6, 5), floats(6, 4, 3, 2)
    offset = floats(2, 12, 4, 4) * 2
    node_as_onnx("DeformConv", x, w, offset, compiled=True)
    mask, bias = floats(2, 6, 4, 4), floats(6)
    node_as_onnx("DeformConv", x, w, offset, bias, mask)
    options = {"strides": [2, 1], "pads": [1, 0, 1, 2], "dilations": [2, 1]}
    node_as_onnx("DeformConv", x, w, floats(2, 12, 2, 6) * 3, None, floats(2, 6, 2, 6), **options)


def test_groups_of_channels() -> None:
    x, w = floats(2, 4, 5, 5), floats(6, 2, 2, 2)
    node_as_onnx("DeformConv", x, w, floats(2, 16, 4, 4), group=2, offset_group=2)
    node_as_onnx("DeformConv", x, w, floats(2, 8, 4, 4), None, floats(2, 4, 4, 4), group=2)


def test_windows_that_do_not_fit() -> None:
    x, w, offset = floats(1, 4, 5, 5), floats(6, 4, 2, 2), floats(1, 8, 4, 4)
    cases: list[tuple[list[Any], dict[str, Any], str]] = [
        ([x, w, floats(1, 8, 3, 4)], {}, "offset does not fit the windows"),
        ([x, w, offset, None, floats(1, 3, 4, 4)], {}, "mask does not fit the windows"),
        ([x, w, offset], {"group": 3}, "groups do not divide the channels"),
        ([x, w[:, :3], offset], {}, "filters do not fit"),
        ([x, w, offset], {"strides": [1]}, "strides, dilations or pads do not fit"),
        ([x, w[0], offset], {}, "operands have wrong ranks"),
    ]
    for inputs, attributes, message in cases:
        with pytest.raises(sw.ImportModelError, match=message):
            sw.from_onnx(model("DeformConv", inputs, **attributes))


POOL: dict[str, Any] = {
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 5, 4, 3, 7],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "min_gram_length": 1,
    "max_gram_length": 2,
}


def test_sequences_are_counted() -> None:
    x = RNG.integers(2, 9, (3, 12))
    for skip in (0, 3):
        options = {**POOL, "mode": "TF", "max_skip_count": skip}
        node_as_onnx("TfIdfVectorizer", x, compiled=skip == 0, **options)
    node_as_onnx("TfIdfVectorizer", x[0].astype(np.int32), **options)
    node_as_onnx("TfIdfVectorizer", x[:, :1], **{**options, "min_gram_length": 2})


def test_sequences_with_weights() -> None:
    """The weights are in the order of the pool, as in onnxruntime."""
    x, weights = RNG.integers(2, 9, (3, 12)), np.array([0.5, 2, 1, 3, 0.25, 1.5, 4], np.float32)
    own = np.zeros(8, np.float32)
    own[POOL["ngram_indexes"]] = weights
    options = {**POOL, "max_skip_count": 1}
    count = sw.from_onnx(model("TfIdfVectorizer", [x], mode="TF", **options)).run_reference(x)
    for mode, want in (("IDF", (count > 0) * own), ("TFIDF", count * own)):
        program = model("TfIdfVectorizer", [x], mode=mode, weights=weights.tolist(), **options)
        np.testing.assert_allclose(sw.from_onnx(program).run_reference(x), want, rtol=1e-6)


def test_sequences_that_do_not_fit() -> None:
    x = np.arange(12).reshape(3, 4)
    for change, message in (
        ({"mode": "DF"}, "mode is unknown, expected TF, IDF or TFIDF, got DF"),
        ({"weights": [1.0]}, "weights do not fit, expected 7, got 1"),
        ({"ngram_counts": [0, 5]}, "ngram_counts, ngram_indexes and the pool do not fit"),
        ({"ngram_indexes": [0, 1, 2, 5, 4, 3, 3]}, "several sequences of one column"),
    ):
        options = {"max_skip_count": 0, "mode": "TF", **POOL, **change}
        with pytest.raises(sw.ImportModelError, match=message):
            sw.from_onnx(model("TfIdfVectorizer", [x], **options))
    program = model("TfIdfVectorizer", [x.astype(np.float32)], max_skip_count=0, mode="TF", **POOL)
    with pytest.raises(sw.ImportModelError, match="operand has the wrong type, expected integers"):
        sw.from_onnx(program)
