"""The text of every stage, with weights beside it, is a module that can be read and run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn

from ..harness import RNG, cases, same

CALLABLE = [stage for stage in IR_STAGES if stage != "llvm"]
GRAPH = gnn.Graph.from_networkx(nx.karate_club_graph())
FEATURES = RNG.random((34, 5), np.float32)
Program = tuple[sw.Module, tuple[Any, ...]]


def perceptron() -> Program:
    b = sw.Builder("main")
    x = b.input("x", ("batch", 5), "f32")
    h = b.relu(b.dense(x, RNG.random((7, 5), np.float32), bias=RNG.random(7, np.float32)))
    b.output(b.softmax(h), name="y")
    b.output(b.reduce(x, "max", axes=[1]), name="largest")
    return b.module(), (FEATURES,)


def selection() -> Program:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", (None,), "i64")
    rows = b.gather(x, i, axis=0)
    b.output(b.concat([rows, b.clip(rows * 1e30, -1.0, float("inf"))], axis=1))
    b.output(b.cast(x, "f16"))
    return b.module(), (FEATURES[:, :3].copy(), np.array([3, -1, 0]))


def convolution(model_input: str) -> Program:
    w = RNG.random((5, 4), np.float32)
    model = gnn.Sequential(gnn.GCNConv(w, w[0]), gnn.ReLU(), gnn.GCNConv(w[:4, :3], w[0, :3]))
    sparse = csr_array(FEATURES * (FEATURES > 0.5))
    if model_input == "constant":
        return model.to_module(GRAPH, features=sparse), ()
    if model_input == "sparse":
        spec = sw.SparseSpec((34, 5), "f32", nnz=sparse.nnz)
        return model.to_module(GRAPH, features=spec), (sparse,)
    spec = sw.TensorSpec((None, 5), "f32")
    return model.to_module(gnn.GraphSpec(), features=spec), (GRAPH, FEATURES)


def disagreeing() -> Program:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 5), "f32") + b.input("z", ("m", 5), "f32"))
    return b.module(), (FEATURES, FEATURES)


def registered() -> Program:
    @sw.register_function("stages.scale")
    def scale(x: np.ndarray, y: np.ndarray) -> None:
        np.multiply(x, 3, out=y)

    b = sw.Builder("main")
    x = b.input("x", ("n", 5), "f32")
    b.output(b.exp(b.call_packed("stages.scale", x, results=sw.TensorSpec(("n", 5)))))
    return b.module(), (FEATURES,)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "perceptron": perceptron,
    "selection": selection,
    "disagreeing": disagreeing,
    "registered": registered,
    "convolution, all constant": lambda: convolution("constant"),
    "convolution, sparse features": lambda: convolution("sparse"),
    "convolution, any graph": lambda: convolution("graph"),
}

LONG = "convolution, any graph"
"""The program of the longest texts; `test_stages_reread.py` reads a similar one."""

QUICK = ("selection", "registered")
"""The programs whose text is read where slow tests are left out."""

COMPILED = ("loops",)
"""The stages that are compiled again there; in `test_stages_reread.py` all are."""

SHOWN = ("fused", "llvm")
"""The stages whose text is compared for all programs where slow tests are left out: each takes
another lowering to it."""


def stages(module: sw.Module, level: int) -> Iterator[tuple[str, sw.Module]]:
    """The module at each stage, with the weights of that stage, until the next one is taken."""
    compilation = Compilation.of(Request(module, threads=1, opt_level=level))
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        yield stage, work


def reach(module: sw.Module, stage: str, level: int) -> sw.Module:
    """The module at a stage, with the weights of that stage."""
    return next(reached for name, reached in stages(module, level) if name == stage)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param("perceptron", 0, marks=pytest.mark.slow),
        *((name, 3) for name in QUICK),
        *(pytest.param(name, 3, marks=pytest.mark.slow) for name in PROGRAMS if name not in QUICK),
        pytest.param(LONG, 0, marks=pytest.mark.slow),
    ],
)
def test_every_stage_is_read_back(name: str, level: int, tmp_path: Path, all_tests: bool) -> None:
    module, inputs = PROGRAMS[name]()
    exe = sw.compile(module, threads=1, opt_level=level)
    expected = exe(*inputs)
    for stage, (reached, saved) in zip(IR_STAGES, stages(module, level), strict=True):
        assert reached == stage
        if stage in SHOWN or name == "registered" or all_tests:
            assert exe.ir(stage) == saved.text()
        saved.save(tmp_path / f"{stage}.mlir")
        read = sw.from_mlir(tmp_path / f"{stage}.mlir")
        assert read.text(locations=True) == saved.text(locations=True), stage
        assert sw.from_mlir(saved.text(), weights=saved.weights).text() == saved.text(), stage
        if stage == "llvm" or not (all_tests or stage in COMPILED):
            continue
        again = sw.compile(read, threads=1, opt_level=level)
        assert again.inputs == exe.inputs, stage
        assert again.outputs == exe.outputs, stage
        same(again(*inputs), expected, stage)


@pytest.mark.parametrize("stage", cases(CALLABLE, ["loops"]))
def test_inputs_are_checked_the_same_from_every_stage(stage: str, tmp_path: Path) -> None:
    module, inputs = convolution("graph")
    reach(module, stage, 3).save(tmp_path / "m.mlir")
    exe = sw.compile(sw.from_mlir(tmp_path / "m.mlir"), threads=1)
    with pytest.raises(sw.InputError, match="expected 34, got 33"):
        exe(GRAPH, FEATURES[:33])
    bad = (GRAPH.to_csr("f32").indptr, np.full(GRAPH.num_edges, 99, np.int32), inputs[1][:0, 0])
    with pytest.raises(sw.InputError, match="indices and values differ in length"):
        exe(bad, FEATURES)
    bad = (*bad[:2], np.ones(GRAPH.num_edges, np.float32))
    with pytest.raises(sw.InputError, match="column index out of range at entry 0, got 99"):
        exe(bad, FEATURES)
    reach(disagreeing()[0], stage, 3).save(tmp_path / "d.mlir")
    exe = sw.compile(sw.from_mlir(tmp_path / "d.mlir"), threads=1)
    with pytest.raises(sw.InputError, match="call: dimensions n and m must agree"):
        exe(FEATURES, FEATURES[:2])


@cache
def on_buffers(stage: str) -> tuple[str, sw.WeightStore]:
    module = reach(perceptron()[0], stage, 0)
    return module.text(), module.weights


SIGNED = "graph.signature = (tensor<?x5xf32>) -> (tensor<?x7xf32>, tensor<?xf32>)"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (SIGNED, "graph.other = 1", "does not say what its buffers are, expected graph.signature"),
        (SIGNED, SIGNED.replace("?x7", "9x7"), "its type does not fit graph.signature"),
        (SIGNED, SIGNED.replace("7xf32", "7xf64"), "its type does not fit graph.signature"),
        (SIGNED, SIGNED.replace("(tensor<?x5xf32>)", "()"), "wrong attributes, expected 0"),
        (SIGNED, SIGNED.replace("tensor<?x5xf32>", "f32"), 'module: "x" is not a tensor'),
        ('graph.sizes = ["batch", "5"]', 'graph.sizes = ["batch"]', "expected 2 sizes, got 1"),
        (
            'graph.sizes = ["batch", "5"]',
            'graph.sizes = ["2*batch", "5"]',
            "wrong size of an argument, expected a number or a name, got 2*batch",
        ),
        (
            'graph.sizes = ["batch", "7"]',
            'graph.sizes = ["other", "7"]',
            "a size is not that of an argument, expected ['batch'], got other",
        ),
        (
            'graph.sizes = ["batch", "7"]',
            'graph.sizes = ["batch/2", "7"]',
            'wrong size, expected a text such as "2*n", got "batch/2"',
        ),
        ("graph.arguments = [{", "graph.arguments = [1, {", "wrong attributes, expected 1"),
        (SIGNED, f'{SIGNED}, graph.equal = [["batch"]]', "wrong graph.equal, expected pairs"),
        (SIGNED, f"{SIGNED}, graph.equal = 3", "wrong graph.equal, expected pairs"),
        (SIGNED, f'{SIGNED}, graph.equal = [["batch", "m"]]', "not that of an argument"),
        ("rt.constant %ctx, 1", "rt.constant %ctx, 2", "slots are not numbered from 0"),
        ("rt.constant %ctx, 1", "rt.constant %ctx, 0", "slot 0 is used for two things"),
        ('0 "dense_w"', '0 "elsewhere"', 'constant "elsewhere": is not in the weight store'),
        ('0 "dense_w"', '0 "dense_bias"', 'constant "dense_bias": wrong array'),
    ],
)
@pytest.mark.parametrize("stage", cases(["buffers", "loops"], ["loops"]))
def test_texts_on_buffers_that_contradict_themselves(
    stage: str, old: str, new: str, message: str
) -> None:
    text, weights = on_buffers(stage)
    assert old in text
    changed = sw.from_mlir(text.replace(old, new, 1), weights=weights)
    with pytest.raises(sw.CompileError, match=re.escape(message)):
        sw.compile(changed, threads=1)


@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_numbers_that_print_as_their_bits(element: str) -> None:
    """Infinities, NaN and large whole numbers among the elements of a dense attribute."""
    dtype = np.dtype(f"float{element[1:]}")
    numbers = np.array([np.inf, -np.inf, np.nan, 60000, 1 / 3, -0.0, 6e-8], dtype)
    if element != "f16":
        numbers = np.append(numbers, np.array([8388735, 2.0**100, 1e30], dtype))
    b = sw.Builder("main")
    b.output(b.input("x", (len(numbers),), element) + numbers)
    text = sw.compile(b.module(), threads=1, opt_level=0).ir("graph")
    listed = ", ".join(_written(number) for number in numbers)
    size = len(numbers)
    literal = f"dense<[{listed}]> : tensor<{size}x{element}>"
    text = re.sub(r"graph\.constant .*", f"graph.constant {literal}", text)
    module = sw.from_mlir(text)
    again = sw.from_mlir(module.text())
    x = np.zeros(size, dtype)
    for one in (module, again):
        np.testing.assert_array_equal(sw.compile(one, threads=1)(x), numbers + x)


def _written(number: np.floating) -> str:
    """A number as its bits: what any float may be written as."""
    return f"0x{int.from_bytes(number.tobytes()[::-1]):0{2 * number.itemsize}X}"
