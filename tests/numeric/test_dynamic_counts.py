"""TopK, Split, Tile, Pad and OneHot of ONNX with counts that come at run time, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.helper import make_node

import stepwell as sw

from ..harness import cases, import_level
from .test_dynamic_shapes import F32, I64, both_ways, model, numbers
from .test_operators import random


def test_top_k() -> None:
    nodes = [
        make_node("TopK", ["x", "k"], ["y", "p"], axis=1, name="top"),
        make_node("TopK", ["x", "k"], ["z", "q"], axis=-1, largest=0),
        make_node("Shape", ["x"], ["all"], start=1),
        make_node("TopK", ["x", "all"], ["s", "r"]),
    ]
    inputs = {"x": (F32, (2, "n")), "k": (I64, (1,))}
    outputs = dict.fromkeys("yzs", (F32, None)) | dict.fromkeys("pqr", (I64, None))
    run = both_ways(model(nodes, inputs, outputs), import_level())
    x = np.round(random((2, 9)))  # with ties
    x[0, 3] = np.nan
    for k in (0, 1, 4, 9):
        y, z, s, p, q, r = run(x, numbers(k))
        order = np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=1, kind="stable")
        np.testing.assert_array_equal(p, order[:, :k])
        np.testing.assert_array_equal(y, np.take_along_axis(x, order[:, :k], 1))
        np.testing.assert_array_equal(q, np.argsort(x, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(z, np.sort(x, axis=1)[:, :k])
        np.testing.assert_array_equal((s[:, :k], r[:, :k]), (y, p))
    for k in (10, -1):
        text = rf'node "top": a size is out of range, expected 0 to 9, got {k}'
        with pytest.raises(sw.InputError, match=text):
            run(x, numbers(k))


def test_split() -> None:
    nodes = [
        make_node("Split", ["x", "s"], ["a", "b", "c"], axis=0, name="apart"),
        make_node("Split", ["x"], ["d", "e"], axis=0, num_outputs=2),
    ]
    inputs = {"x": (F32, ("n", 2)), "s": (I64, (3,))}
    run = both_ways(model(nodes, inputs, dict.fromkeys("abcde", (F32, None))), import_level())
    x = random((7, 2))
    for sizes in ((1, 4, 2), (0, 0, 7), (7, 0, 0)):
        *parts, d, e = run(x, numbers(*sizes))
        for part, want in zip(parts, np.split(x, np.cumsum(sizes)[:2]), strict=True):
            np.testing.assert_array_equal(part, want)
        np.testing.assert_array_equal(d, x[:4])
        np.testing.assert_array_equal(e, x[4:])
    assert [len(part) for part in run(x[:0], numbers(0, 0, 0))] == [0] * 5
    sums = "parts of dimension 0 do not add up to its size, expected 7, got 6"
    signs = "a part of dimension 0 has a negative size, expected 0 or more, got -1"
    for sizes, text in (((1, 4, 1), sums), ((8, -1, 0), signs), ((-1, 4, 4), signs)):
        with pytest.raises(sw.InputError, match=f'node "apart": {text}$'):
            run(x, numbers(*sizes))


def test_even_parts_of_symbolic_sizes() -> None:
    nodes = [
        make_node("Concat", ["x", "x"], ["xx"], axis=0),
        make_node("Split", ["xx"], ["a", "b"], axis=0),
        make_node("Add", ["a", "b"], ["sum"]),
        make_node("Split", ["x"], ["c", "d"], axis=0, name="even"),
    ]
    source = model(nodes, {"x": (F32, ("n", 3))}, dict.fromkeys(("sum", "c", "d"), (F32, None)))
    source.opset_import[0].version = 13
    run = both_ways(source, import_level())
    x = random((4, 3))
    total, c, d = run(x)
    np.testing.assert_array_equal(total, x + x)
    np.testing.assert_array_equal(np.concatenate([c, d]), x)
    with pytest.raises(sw.InputError, match=r'node "even": parts .* size, expected 3, got 2$'):
        run(x[:3])


def test_tile() -> None:
    nodes = [
        make_node("Tile", ["x", "r"], ["y"], name="tiled"),
        make_node("Tile", ["w", "r"], ["z"], name="fixed"),
    ]
    inputs = {"x": (F32, ("n", 3)), "w": (F32, (2, 3)), "r": (I64, (2,))}
    run = both_ways(model(nodes, inputs, {"y": (F32, None), "z": (F32, (4, "m"))}), import_level())
    x, w = random((5, 3)), random((2, 3))
    for r in ((2, 3), (2, 0), (2, 1)):
        y, z = run(x, w, numbers(*r))
        np.testing.assert_array_equal(y, np.tile(x, r))
        np.testing.assert_array_equal(z, np.tile(w, r))
    with pytest.raises(sw.InputError, match=r'node "tiled": a size is out of range, .*, got -1'):
        run(x, w, numbers(2, -1))
    text = r'node "fixed": a size that is computed differs from the declared one, expected 2, got 3'
    with pytest.raises(sw.InputError, match=text):
        run(x, w, numbers(3, 1))


def test_one_hot() -> None:
    node = make_node("OneHot", ["i", "depth", "values"], ["y"], axis=1)
    inputs = {"i": (I64, (2, "n")), "depth": (F32, (1,)), "values": (F32, (2,))}
    run = both_ways(model([node], inputs, {"y": (F32, None)}), import_level())
    i, values = np.array([[0, -1, 5], [2, -4, 3]]), np.array([0.5, 2], np.float32)
    for depth in (4, 1, 0):
        y = run(i, np.array([depth], np.float32), values)
        places = np.arange(depth)[None, :, None]
        same = (i[:, None] == places) | (i[:, None] + depth == places)
        np.testing.assert_array_equal(y, np.where(same, values[1], values[0]))
    with pytest.raises(sw.InputError, match='node "OneHot:y": a size is out of range'):
        run(i, np.array([-2], np.float32), values)


@pytest.mark.parametrize(
    "mode", cases(["constant", "edge", "reflect", "wrap"], ["constant", "reflect"])
)
def test_pad(mode: str) -> None:
    node = make_node("Pad", ["x", "p", "c"], ["y"], mode=mode, name="padded")
    inputs = {"x": (F32, ("n", 3)), "p": (I64, (4,)), "c": (F32, ())}
    run = both_ways(model([node], inputs, {"y": (F32, None)}), import_level())
    x, fill = random((4, 3)), np.array(7, np.float32)
    own = {"constant_values": 7} if mode == "constant" else {}
    for p in ((1, 0, 2, 3), (0, 2, 0, 0), (9, 1, 0, 8), (-1, 2, 1, -1), (-2, 0, -2, 0)):
        if p == (-2, 0, -2, 0) and mode != "constant":
            continue
        cut = x[max(0, -p[0]) : 4 - max(0, -p[2]), max(0, -p[1]) : 3 - max(0, -p[3])]
        ends = [(max(0, p[0]), max(0, p[2])), (max(0, p[1]), max(0, p[3]))]
        np.testing.assert_array_equal(run(x, numbers(*p), fill), np.pad(cut, ends, mode, **own))
    if mode == "constant":
        assert run(x[:0], numbers(1, 1, 1, 0), fill).tolist() == [[7] * 4] * 2
    else:
        with pytest.raises(sw.InputError, match="index"):
            run(x[:0], numbers(1, 0, 0, 0), fill)
    with pytest.raises(sw.InputError, match='node "padded": a size is out of range'):
        run(x, numbers(-3, 0, -2, 0), fill)


def test_pads_of_a_declared_size_and_a_constant_of_the_call() -> None:
    nodes = [
        make_node("Constant", [], ["ends"], value_ints=[1, 2]),
        make_node("Pad", ["x", "ends", "c"], ["y"]),
        make_node("Pad", ["x", "p"], ["z"], name="declared"),
    ]
    inputs = {"x": (F32, (3,)), "c": (F32, (1,)), "p": (I64, (2,))}
    run = both_ways(model(nodes, inputs, {"y": (F32, None), "z": (F32, (5,))}), import_level())
    x = np.array([1, 2, 3], np.float32)
    y, z = run(x, np.array([np.nan], np.float32), numbers(2, 0))
    np.testing.assert_array_equal(y, [np.nan, 1, 2, 3, np.nan, np.nan])
    np.testing.assert_array_equal(z, [0, 0, 1, 2, 3])
    with pytest.raises(sw.InputError, match=r'"declared": a size that .*, expected 5, got 4'):
        run(x, np.zeros(1, np.float32), numbers(1, 0))


def test_wrong_operands() -> None:
    x, k = {"x": (F32, (4,))}, (I64, (2,))
    for node, text in (
        (make_node("TopK", ["x", "k"], ["y", "p"]), "wrong number of counts, expected 1, got 2"),
        (make_node("Split", ["x", "k"], ["y", "p", "q"]), "wrong number of parts, expected 3, got"),
        (make_node("Tile", ["x", "k"], ["y"]), "repeats do not fit, expected 1 counts, got 2"),
        (make_node("OneHot", ["x", "k", "k"], ["y"]), "operand 1 is not a scalar"),
        (make_node("Pad", ["x", "k", "x"], ["y"]), "the constant is not a scalar, expected 1"),
    ):
        source = model([node], x | {"k": k}, {"y": (F32, None)})
        with pytest.raises(sw.ImportModelError, match=text):
            sw.from_onnx(source)
