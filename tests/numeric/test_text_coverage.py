"""Kernels in text store every element of their results, or are refused."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineMap

import stepwell as sw
from stepwell.core.ir.weights import WeightStore
from stepwell.dialects.loop.loops import enclosing
from stepwell.dialects.loop.ops import KernelOp, StoreOp
from stepwell.dialects.program import named_weights
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.tools.main import main

from ..harness import RNG

ROWS = 'tensor<?x6xf32> {graph.dims = ["n", ""]}'
HEAD = f"""func.func @main(%x: {ROWS}) -> ({ROWS}) {{
  %y = graph.call_dps @k(%x) dims [["n", ""]] : (tensor<?x6xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}}
loop.kernel @k(%x: memref<?x6xf32>) -> (%y: memref<?x6xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x6xf32>
"""


def copy(bound: str = "d0", columns: int = 6, place: str = "d0, d1", store: str = "") -> str:
    """A program that copies its operand, or a part of it."""
    usual = f"loop.store %v, %y (d0, d1) -> ({place})(%i, %j) : f32, memref<?x6xf32>"
    return f"""{HEAD}  loop.for "i" %i to min (d0) -> ({bound})(%n) serial {{
    loop.for "j" %j to {columns} serial {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x6xf32>, f32
      {store or usual}
    }}
  }}
}}"""


UNDER_A_CONDITION = """%b = arith.cmpf ogt, %v, %v : f32
      %r = arith.select %b, %c1, %c0 : index
      loop.for "g" %g to %r serial {
        loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x6xf32>
      }"""
ADDED = """loop.store add %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x6xf32>"""


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (copy("d0 - 1"), "[0:n-1, 0:6]"),
        (copy(columns=5), "[0:n, 0:5]"),
        (copy(place="d0, 0"), "[0:n, 0:1]"),
        (copy("d0 floordiv 2", place="d0 * 2, d1"), "none with a known place"),
        (copy("d0 floordiv 2", place="d0, d1"), "[0:?, 0:6]"),
        (copy(store=UNDER_A_CONDITION), "none with a known place"),
        (copy(store="%w = arith.addf %v, %v : f32"), "nothing"),
        (copy("d0 - 1", store=ADDED.replace(" add", "")), "[0:n-1, 0:6]"),
    ],
)
def test_what_is_not_stored_is_refused(text: str, got: str) -> None:
    message = (
        'text:5:1: kernel k: not all elements of "y" are proved to be stored, expected stores '
        f"that cover [n, 6], got {got}; store a first value to each; for text of Stepwell's own "
        "give trusted=True (--trusted)"
    )
    scheduled = text.replace(") {\n  %c0", ') attributes {loop.schedule = ""} {\n  %c0')
    for refused in (text, scheduled):
        with pytest.raises(sw.ImportModelError) as caught:
            sw.from_mlir(refused)
        assert str(caught.value) == message
    assert sw.from_mlir(text, trusted=True).op.ops


def test_one_of_two_results() -> None:
    text = copy().replace("(%y: memref<?x6xf32>)", "(%y: memref<?x6xf32>, %s: memref<2xf32>)")
    text = text.replace("-> tensor<?x6xf32>\n", "-> (tensor<?x6xf32>, tensor<2xf32>)\n")
    text = text.replace("%y = graph", "%y, %s = graph").replace('"n", ""]] :', '"n", ""], [""]] :')
    with pytest.raises(sw.ImportModelError, match=r'of "s" are .* cover \[2\], got nothing'):
        sw.from_mlir(text)


def test_one_of_two_results_whose_rows_end_early() -> None:
    """Nothing reads the first result; the second one is returned."""
    kernel = copy(columns=5).replace(
        "(%y: memref<?x6xf32>)", "(%y: memref<?x6xf32>, %s: memref<?x6xf32>)"
    )
    text = kernel.replace("%y = graph", "%y, %s = graph").replace(
        '[["n", ""]]', '[["n", ""], ["n", ""]]'
    )
    text = text.replace("-> tensor<?x6xf32>\n", "-> (tensor<?x6xf32>, tensor<?x6xf32>)\n")
    text = text.replace("return %y", "return %s")
    with pytest.raises(sw.ImportModelError, match=r'of "s" are .* cover \[n, 6\], got nothing'):
        sw.from_mlir(text)


def test_what_is_stored_as_a_whole() -> None:
    vectors = copy(columns=2, place="d0, d1 * 3 + s0")
    vectors = vectors.replace("(d0, d1)(%i", "(d0, d1 * 3 + s0)(%i")
    vectors = vectors.replace("(d0, d1) ->", "(d0, d1)[s0] ->").replace(", f32", ", vector<3xf32>")
    for text in (copy(), vectors.replace(": f32", ": vector<3xf32>")):
        assert sw.from_mlir(text).op.ops


def test_the_command_trusts_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(copy("d0 - 1"))
    for name in ("compile", "explain"):
        with pytest.raises(SystemExit) as stop:
            main([name, str(path)])
        assert stop.value.code == 1
        assert f"error: {path}:5:1: kernel k: not all" in capsys.readouterr().err
        with contextlib.suppress(SystemExit):
            main([name, str(path), "--trusted"])
        assert "error" not in capsys.readouterr().err


Text = tuple[str, WeightStore]


@functools.cache
def texts(name: str) -> dict[str, Text]:
    """The text of a program with its kernels, and with these scheduled."""
    found: dict[str, Text] = {}
    compilation = Compilation.of(Request(PROGRAMS[name](), "x86-64-v3", threads=2))
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        if stage in ("kernels", "scheduled"):
            found[stage] = work.text(), work.weights.only(named_weights(work.op))
        if stage == "scheduled":
            break
    return found


def dense() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", ("n", 20)), np.ones((40, 20), np.float32))))
    return b.module()


def flat() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.reshape(b.input("x", ("n", 6)), (-1,))))
    return b.module()


def attention() -> sw.Module:
    w = np.ones((12, 20), np.float32)
    vectors = np.ones((2, 6), np.float32), np.ones((2, 6), np.float32)
    layer = gnn.GATConv(w, *vectors, np.ones(12, np.float32))
    return gnn.Sequential(layer).to_module(gnn.GraphSpec(), sw.TensorSpec((None, 20)))


def seven_classes() -> sw.Module:
    """The rows of 7 elements that other rows gather have room for 8."""
    edges = RNG.integers(0, 3000, (2, 20_000))
    graph = gnn.Graph.from_edge_index(edges, 3000)
    first, last = (gnn.GCNConv(np.ones(shape, np.float32)) for shape in ((20, 16), (16, 7)))
    layers = gnn.Sequential(first, gnn.ReLU(), last)
    return layers.to_module(graph, sw.TensorSpec((3000, 20)))


def frame() -> sw.Module:
    """The border of an image is filled by four nests beside that of the image."""
    b = sw.Builder("main")
    b.output(b.pad(b.input("x", (2, 3, 30, 30)), [0, 0, 3, 3], [0, 0, 3, 3]))
    return b.module()


def places() -> sw.Module:
    """The number of places is computed along with them."""
    b = sw.Builder("main")
    b.output(b.nonzero(b.input("x", ("n",)))[0])
    return b.module()


PROGRAMS: dict[str, Callable[[], sw.Module]] = {
    f.__name__: f for f in (dense, flat, attention, seven_classes, frame, places)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_programs_are_proved(name: str) -> None:
    for text, weights in texts(name).values():
        assert sw.from_mlir(text, weights).op.ops


def test_elements_after_rows_are_not_read() -> None:
    text, weights = texts("seven_classes")["scheduled"]
    read, buffer = "(d0, s0)(%c) : memref<3000x8xf32>", "memref<3000x8xf32>"
    assert text.count(read) == 1
    with pytest.raises(sw.ImportModelError, match=r"cover \[3000, 8\], got \[\?:\?, 0:7\]"):
        sw.from_mlir(text.replace(read, f"(d0, s0 + 1)(%c) : {buffer}"), weights)


@settings(max_examples=settings().max_examples * 10 // 100, deadline=None)
@given(st.sampled_from(list(PROGRAMS)), st.sampled_from(["kernels", "scheduled"]), st.data())
def test_what_is_left_out_is_noticed(name: str, stage: str, data: st.DataObject) -> None:
    """A store is left out, is elsewhere, or runs once less."""
    text, weights = texts(name)[stage]
    module = sw.from_mlir(text, weights)
    kernels = [op for op in module.op.walk() if isinstance(op, KernelOp)]
    outputs = {output for kernel in kernels for output in kernel.outputs}
    stores = [op for op in module.op.walk() if isinstance(op, StoreOp) and op.buffer in outputs]
    store = data.draw(st.sampled_from(stores))
    loops = [loop for loop in enclosing(store) if not loop.over_entries]
    changed = data.draw(st.sampled_from(["store", *(loop.loop_name.data for loop in loops)]))
    if changed == "store":
        store.detach()
        store.erase()
    for loop in loops:
        if loop.loop_name.data == changed:
            loop.bound = AffineMapAttr(with_results(loop.bound.data, -1))
    with pytest.raises(sw.ImportModelError, match="not all elements of"):
        sw.from_mlir(module.text(), weights)


def with_results(map: AffineMap, added: int) -> AffineMap:
    """A map whose results are larger."""
    results = tuple(expr + added for expr in map.results)
    return AffineMap(map.num_dims, map.num_symbols, results)
