"""Malformed and hostile MLIR text: always one error of ours, at whatever stage it was made.

Text is cut at every token and changed at random. Down to the stage `fused` what still compiles
is called too: operators cannot say anything that leaves a buffer. From the stage `kernels` on
the text is code, with loops and addresses of its own, and is only compiled.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.core.pipelines.staircase import pipeline, pipeline_text
from stepwell.core.target import host
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.tools import main as stepwell_command
from stepwell.tools import stepwell_opt

from ..harness import cases, floats

Apart = Callable[[Callable[[], object]], str]
CALLED = ("graph", "optimized", "fused")
QUICK = ("graph", "scheduled", "buffers", "loops")
"""Stages of other operations; those between them have the same."""
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%@#!^]?[\w.$-]+|->|\S')
X = floats(4)


def test_apart_sees_what_goes_wrong(apart: Apart) -> None:
    with pytest.raises(AssertionError, match="the process died of signal 9"):
        apart(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        apart(lambda: 1 // 0)
    assert apart(lambda: None) == "works"


# Programs whose text is cut and changed.


@dataclass(frozen=True)
class Sample:
    """The text of a program at a stage, with what it takes to compile and call it."""

    text: str
    weights: sw.WeightStore
    inputs: tuple[Any, ...]
    call: bool

    def compile(self, text: str) -> None:
        """What a user does with a text; raises what they would see."""
        module = sw.from_mlir(f"\n{text}", weights=self.weights)
        exe = sw.compile(module, threads=1)
        if self.call:
            exe(*self.inputs)


def _dense() -> tuple[sw.Module, tuple[Any, ...]]:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", (4,), "i64")
    h = b.relu(b.dense(b.gather(x, i, axis=0), floats(5, 3)))
    h = b.transpose(b.slice(b.concat([h, h * 2.0], axis=1), [0, 8], [4, -1], [1, -2]), [1, 0])
    b.output(b.log_softmax(h), name="y")
    b.output(b.cast(b.reduce(x, "max", axes=[0]), "f64"), name="z")
    return b.module(), (floats(6, 3), np.array([0, 5, -1, 2]))


def _sparse() -> tuple[sw.Module, tuple[Any, ...]]:
    graph = gnn.Graph.from_networkx(nx.path_graph(7))
    w = floats(5, 4)
    model = gnn.Sequential(gnn.GCNConv(w, w[0]), gnn.ReLU())
    spec = sw.SparseSpec((None, 5), "f32")
    return model.to_module(gnn.GraphSpec(), spec), (graph, csr_array(np.eye(7, 5, dtype="f4")))


@cache
def samples(program: str) -> dict[str, Sample]:
    """A program at each stage."""
    module, inputs = {"dense": _dense, "sparse": _sparse}[program]()
    compilation, found = Compilation(Request(module, host(), pipeline=pipeline())), {}
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        found[stage] = Sample(work.text(), ctx.weights, inputs, stage in CALLED)
    return found


@pytest.mark.parametrize("program", [pytest.param("dense", marks=pytest.mark.slow), "sparse"])
@pytest.mark.parametrize("stage", cases(list(IR_STAGES), [*QUICK, "llvm"]))
def test_text_cut_at_a_token(stage: str, program: str, apart: Apart) -> None:
    given = samples(program)[stage]
    ends = [found.end() for found in TOKEN.finditer(given.text)]
    places = settings().max_examples // 2
    chosen = ends[:-1] if stage == "graph" else ends[: -1 : max(1, len(ends) // places)]

    def cut() -> None:
        for end in chosen:
            with pytest.raises(sw.ImportModelError):
                sw.from_mlir(f"\n{given.text[:end]}", weights=given.weights)

    assert apart(cut) == "works"


INTRUDERS = (
    *("0", "-1", "3", "4294967296", "9223372036854775807", "9223372036854775808", "1e400", "nan"),
    *("0x7F800000", "true", "unit", "none", '""', '"n"', "()", "{", "}", "(", ")", "[", "<", ">"),
    *("?", "f32", "f16", "bf16", "i1", "i64", "i128", "index", "tensor<?xf32>", "tensor<*xf32>"),
    *("memref<?xf32>", "vector<4xf32>", "vector<0xf32>", "tensor<4611686018427387904x9xf32>"),
    *("%x", "%0", "@main", "@nobody", "^bb0", "#csr", "!rt.context", "dense<0>", "array<i64>"),
    *("affine_map<(d0) -> (d0 floordiv 0)>", "loc(unknown)", "graph.relu", "func.call", "é", "\0"),
)


def kind(token: str) -> str:
    """What a token is; another one of its kind often gives text that parses."""
    if token[0] in '%@#!^"':
        return token[0]
    if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", token):
        return "number"
    if re.fullmatch(r"([\d?]+x)*(f16|f32|f64|i\d+)", token):
        return "type"
    return "operation" if "." in token else token


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """The text with one to three of its tokens replaced, left out or repeated, or lines moved."""
    for _ in range(draw(st.integers(1, 3))):
        spans = [found.span() for found in TOKEN.finditer(text)]
        start, end = draw(st.sampled_from(spans))
        token = text[start:end]
        alike = sorted({text[a:b] for a, b in spans if kind(text[a:b]) == kind(token)} - {token})
        choices: list[str] = ["", f"{token} {token}", draw(st.sampled_from(INTRUDERS))]
        new = draw(st.sampled_from([*alike, *alike, *choices]))
        text = text[:start] + new + text[end:]
    lines = text.split("\n")
    if draw(st.integers(0, 9)) == 0:
        first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines.insert(second, lines.pop(first))
    return "\n".join(lines)


@pytest.mark.parametrize("program", [pytest.param("dense", marks=pytest.mark.slow), "sparse"])
@pytest.mark.parametrize("stage", cases([s for s in IR_STAGES if s != "llvm"], QUICK))
def test_text_changed_at_random(stage: str, program: str, apart: Apart, all_tests: bool) -> None:
    original = samples(program)[stage]

    @settings(
        max_examples=settings().max_examples * (25 if all_tests else 16) // 100,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(changed(original.text))
    def check(text: str) -> None:
        apart(lambda: original.compile(text))

    assert apart(lambda: original.compile(original.text)) == "works"
    check()


# Texts written to do harm.


def function(body: str, type: str = "tensor<4xf32>", head: str = "") -> str:
    return f"""{head}
func.func @main(%x: {type}) -> {type} {{
{body}
}}"""


RETURN = "func.return %x : tensor<4xf32>"
CALL = """%0 = func.call @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
func.return %0 : tensor<4xf32>"""


def private(name: str, callee: str, attributes: str = "") -> str:
    return f"""func.func private @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {attributes} {{
  %0 = func.call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}}
"""


def sparse_type(widths: str, map: str = "(d0, d1) -> (d0 : dense, d1 : compressed)") -> str:
    return f"tensor<4x4xf32, #sparse_tensor.encoding<{{ map = {map}{widths} }}>>"


def product(type: str) -> str:
    return f"""func.func @main(%a: {type}, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
  %0 = graph.spmm %a, %x : ({type}, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}}"""


CSC = "(d0, d1) -> (d1 : dense, d0 : compressed)"
HUGE = "4611686018427387904x8xf32"

NOT_ONE_BLOCK = "CompileError: func.func @main: shapes are unknown, @main is not one block"

CSR_32 = (
    "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), "
    "posWidth = 32, crdWidth = 32 }>"
)

HOSTILE: dict[str, tuple[str, str]] = {
    "calls itself": (
        function(CALL.replace("@a", "@main")),
        "CompileError: shapes are unknown, @main is recursive",
    ),
    "calls in a circle": (
        private("a", "b") + private("b", "a") + function(CALL),
        "CompileError: shapes are unknown, @a is recursive",
    ),
    "a primitive calls itself": (
        private("a", "a", "attributes {graph.primitive}") + function(CALL),
        "CompileError: shapes are unknown, @a is recursive",
    ),
    "a primitive calls a function": (
        private("a", "b", "attributes {graph.primitive}")
        + function(RETURN).replace("@main", "private @b")
        + function(CALL),
        "UnsupportedError: func.call: has no value at an index",
    ),
    "calls what is no primitive": (
        function(RETURN).replace("@main", "private @a") + function(CALL),
        "CompileError: convert-graph-to-rt: func.call: cannot be converted to the run time",
    ),
    "calls a declaration": (
        "func.func private @a(tensor<4xf32>) -> tensor<4xf32>" + function(CALL),
        "CompileError: convert-graph-to-rt: func.call: cannot be converted to the run time",
    ),
    "unknown symbol": (
        function(CALL),
        "ImportModelError: text:3:1: '@a' could not be found in symbol table",
    ),
    "unknown kernel": (
        function(CALL.replace("func.call", "graph.call_dps")),
        "ImportModelError: text:3:1: graph.call_dps: the module has no kernel @a",
    ),
    "symbol twice": (
        2 * function(RETURN).replace("@main", "private @a") + function(RETURN),
        'ImportModelError: text:5:1: Redefinition of symbol "a"',
    ),
    "two public functions": (
        function(RETURN) + function(RETURN).replace("@main", "@other"),
        "CompileError: module: one public function is needed, expected 1, got main, other",
    ),
    "no function": (
        "builtin.module {\n}",
        "CompileError: module: one public function is needed, expected 1, got none",
    ),
    "a declaration": (
        "func.func @main(tensor<4xf32>) -> tensor<4xf32>\n",
        NOT_ONE_BLOCK,
    ),
    "an endless loop": (
        function("cf.br ^bb1\n^bb1:\ncf.br ^bb1"),
        NOT_ONE_BLOCK,
    ),
    "no return": (
        function("%0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>"),
        "ImportModelError: text:3:1: Operation graph.relu terminates block",
    ),
    "used before it is defined": (
        function(
            "%0 = graph.relu %1 : (tensor<4xf32>) -> tensor<4xf32>\n"
            "%1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>\n" + RETURN
        ),
        "ImportModelError: text:3:1: graph.relu: operand 0 is used before it is defined",
    ),
    "defined by itself": (
        function("%0 = graph.relu %0 : (tensor<4xf32>) -> tensor<4xf32>\n" + RETURN),
        "ImportModelError: text:3:1: graph.relu: operand 0 is used before it is defined",
    ),
    "defined after the region that it is used in": (
        function(
            "%n = arith.constant 1 : index\nrt.parallel_tiles %n {\n^bb0(%tile: index):\n"
            "%0 = arith.addi %1, %tile : index\nrt.yield\n}\n%1 = arith.constant 1 : index\n"
            + RETURN
        ),
        "ImportModelError: text:6:1: arith.addi: operand 0 is used before it is defined",
    ),
    "defined on one way only": (
        function(
            "%c = arith.constant true\ncf.cond_br %c, ^bb1, ^bb2\n^bb1:\n"
            "%0 = arith.constant 1 : i32\ncf.br ^bb2\n^bb2:\n%1 = arith.addi %0, %0 : i32\n"
            + RETURN
        ),
        "ImportModelError: text:9:1: arith.addi: operand 0 is used before it is defined",
    ),
    "no operator": (
        function("%0 = arith.addf %x, %x : tensor<4xf32>\nfunc.return %0 : tensor<4xf32>"),
        "CompileError: convert-graph-to-rt: arith.addf: cannot be converted to the run time",
    ),
    "linalg": (
        function(
            "%c = arith.constant 0.0 : f32\n"
            "%0 = linalg.fill ins(%c : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>\n"
            "func.return %0 : tensor<4xf32>"
        ),
        "UnsupportedError: linalg.fill: no stage has the dialect linalg, expected graph, loop, rt,",
    ),
    "affine": (
        function("affine.for %i = 0 to 4 {\n}\nfunc.return %x : memref<4xf32>", "memref<4xf32>"),
        "UnsupportedError: affine.for: no stage has the dialect affine, expected graph",
    ),
    "affine behind kernels": (
        (
            "func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32\n"
            "attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {\n"
            "%0 = arith.constant 0 : index\n%1 = affine.apply affine_map<(i) -> (i + 1)> (%0)\n"
            "%2 = memref.load %x[%1] : memref<4xf32>\nmemref.store %2, %y[%0] : memref<4xf32>\n"
            "%3 = arith.constant 0 : i32\nfunc.return %3 : i32\n}"
        ),
        "CompileError: convert-to-llvm: affine.apply: cannot be converted to the llvm dialect",
    ),
    "memory beside tensors": (
        function(
            "%c = arith.constant 0 : index\n%m = memref.alloc() : memref<4xindex>\n"
            "memref.store %c, %m[%c] : memref<4xindex>\n" + RETURN
        ),
        "CompileError: arith.constant: cannot be converted to the run time, expected operations of",
    ),
    "a cast of nothing": (
        function(
            "%0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tensor<4xf32>\n"
            "func.return %0 : tensor<4xf32>"
        ),
        "CompileError: convert-graph-to-rt: builtin.unrealized_conversion_cast: cannot be",
    ),
    "an operation of nobody": (
        function('"foo.bar"() : () -> ()\n' + RETURN),
        "ImportModelError: text:3:2: Operation foo.bar is not registered",
    ),
    "a type of nobody": (
        function("func.return %x : !foo.bar", "!foo.bar"),
        "ImportModelError: text:2:",
    ),
    "a number": (
        function("func.return %x : f32", "f32"),
        'CompileError: module: "arg0" is not a tensor, expected tensor, got f32',
    ),
    "a buffer": (
        function("func.return %x : memref<4xf32>", "memref<4xf32>"),
        'CompileError: module: "arg0" is not a tensor, expected tensor, got memref<4xf32>',
    ),
    "no rank": (
        function("func.return %x : tensor<*xf32>", "tensor<*xf32>"),
        'CompileError: module: "arg0" is not a tensor, expected tensor, got tensor<*xf32>',
    ),
    "unknown elements": (
        function("func.return %x : tensor<4xf80>", "tensor<4xf80>"),
        'CompileError: module: "arg0" has elements of an unknown type, expected f16, bf16',
    ),
    "other columns": (
        product(sparse_type(", posWidth = 32, crdWidth = 32", CSC)),
        "ImportModelError: text:2:3: graph.spmm: a is not a matrix of compressed sparse rows",
    ),
    "widths that differ": (
        product(sparse_type(", posWidth = 32, crdWidth = 64")),
        "CompileError: func.func @main: sparse format that cannot be called, expected CSR",
    ),
    "a sparse result": (
        function("func.return %x : TYPE", "TYPE").replace(
            "TYPE", sparse_type(", posWidth = 32, crdWidth = 32")
        ),
        "CompileError: convert-graph-to-rt: func.func: result 0 is sparse, expected a dense",
    ),
    "names that are none": (
        function("func.return %x : tensor<?xf32>", 'tensor<?xf32> {graph.dims = ["a b"]}').replace(
            "-> tensor<?xf32> {graph.dims", "-> (tensor<?xf32>) attributes {graph.was"
        ),
        "CompileError: func.func @main: graph.dims does not fit the type, expected 1 names",
    ),
    "names of too many sizes beside an operator": (
        """func.func @main(%x: tensor<?xf32> {graph.dims = ["a", "b"]}) -> tensor<?xf32> {
          %y = graph.relu %x : (tensor<?xf32>) -> tensor<?xf32>
          func.return %y : tensor<?xf32>
        }""",
        "CompileError: func.func @main: graph.dims does not fit the type, expected 1 names",
    ),
    "bytes beyond counting": (
        function(
            f"%0 = graph.broadcast_to %x shape = [4611686018427387904, 8] : (tensor<1xf32>) -> "
            f"tensor<{HUGE}>\n%1 = graph.softmax %0 axis = 0 : (tensor<{HUGE}>) -> tensor<{HUGE}>\n"
            f"%t = graph.transpose %1 permutation = [1, 0] : (tensor<{HUGE}>) -> "
            f"tensor<8x{1 << 62}xf32>\n%m = graph.matmul %t, %1 : "
            f"(tensor<8x{1 << 62}xf32>, tensor<{HUGE}>) -> tensor<8x8xf32>\n"
            "%2 = graph.reduce sum %m axes = [0] keepdims = false : (tensor<8x8xf32>) -> "
            "tensor<8xf32>\n%3 = graph.slice %2 starts = [0] ends = [1] steps = [1] : "
            "(tensor<8xf32>) -> tensor<1xf32>\nfunc.return %3 : tensor<1xf32>",
            "tensor<1xf32>",
        ),
        "CompileError: convert-graph-to-rt: func.func: buffers of 29514790517935282",
    ),
    "a literal beyond memory": (
        function("%0 = graph.constant dense<1.0> : tensor<1000000000000xf32>\n" + RETURN),
        "ImportModelError: text:3:34: the literal is too large, expected 67108864 elements",
    ),
    "a dimension beyond 64 bits": (
        function(RETURN, "tensor<99999999999999999999xf32>"),
        "ImportModelError: text:3:",
    ),
    "deep nesting": (
        "builtin.module {" * 5000,
        "ImportModelError: text:1:1040: nested too deeply, expected at most 64 brackets",
    ),
    "a deep attribute": (
        function(RETURN).replace("{\n", "attributes {a = " + "[" * 20000 + "} {\n", 1),
        "ImportModelError: text:2:132: nested too deeply",
    ),
    "calls with other numbers of operands": (
        function(
            "%c = graph.constant dense<1.0> : tensor<4xf32>\n"
            "%0 = graph.call_dps @k(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
            "%1 = graph.call_dps @k(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
            "%2 = graph.relu %1 : (tensor<4xf32>) -> tensor<4xf32>\n"
            "func.return %2 : tensor<4xf32>"
        )
        + "\nloop.kernel @k(%x: memref<4xf32>, %z: memref<4xf32>) -> (%y: memref<4xf32>) {\n"
        'loop.for "i" %i to 4 {\n'
        "%v = loop.load %z (d0) -> (d0)(%i) : memref<4xf32>, f32\n"
        "loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>\n}\n}",
        "CompileError: convert-graph-to-rt: graph.call_dps: wrong number of buffers for @k",
    ),
    "a matrix of entries for one buffer": (
        (
            f"#csr = {CSR_32}\n"
            "func.func @f(%x: tensor<4x4xf32, #csr>, %i: tensor<2xi64>) -> tensor<2xf32> {\n"
            "%0 = graph.call_dps @k(%x, %i)\n"
            " : (tensor<4x4xf32, #csr>, tensor<2xi64>) -> tensor<2xf32>\n"
            "func.return %0 : tensor<2xf32>\n}\n"
            'loop.kernel @k(%x: memref<4xf32>, %i: memref<2xi64> {loop.bounds = ["x0.0"]})\n'
            " -> (%y: memref<2xf32>) {\n}"
        ),
        "CompileError: convert-graph-to-rt: graph.call_dps: wrong number of buffers for @k",
    ),
    "a weight of nobody": (
        function(f"%0 = graph.constant dense_resource<w> : tensor<4xf32>\n{RETURN}"),
        'ImportModelError: text:3:1: weight "w" is not in the weights beside the text',
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text(name: str, apart: Apart) -> None:
    text, message = HOSTILE[name]
    error, _, fact = message.partition(": ")
    outcome = apart(lambda: sw.compile(sw.from_mlir(text), threads=1)(X))
    assert outcome.startswith(f"{error}: ")
    assert fact in outcome


def test_other_passes_may_convert_other_dialects() -> None:
    text = function("%c = arith.constant 0.0 : f32\n%0 = varith.add %c, %c : f32\n" + RETURN)
    module, passes = sw.from_mlir(text), pipeline_text(pipeline())
    with pytest.raises(sw.UnsupportedError, match=r"varith.add: no stage has the dialect varith"):
        sw.compile(module, pipeline=passes)
    exe = sw.compile(module, pipeline=f"convert-varith-to-arith,\n{passes}")
    np.testing.assert_array_equal(exe(X), X)


def test_long_and_wide_programs_are_compiled() -> None:
    names = ["x", *map(str, range(300))]
    chain = [
        f"%{new} = graph.neg %{old} : (tensor<4xf32>) -> tensor<4xf32>"
        for old, new in pairwise(names)
    ]
    text = function("\n".join([*chain, "func.return %299 : tensor<4xf32>"]))
    np.testing.assert_array_equal(sw.compile(sw.from_mlir(text), threads=1)(X), X)
    types = ", ".join(["tensor<4xf32>"] * 100)
    wide = function(
        f"%0 = graph.concat {', '.join(['%x'] * 100)} axis = 0 : ({types}) -> tensor<400xf32>\n"
        "%1 = graph.slice %0 starts = [396] ends = [400] steps = [1] : (tensor<400xf32>) -> "
        "tensor<4xf32>\nfunc.return %1 : tensor<4xf32>"
    )
    np.testing.assert_array_equal(sw.compile(sw.from_mlir(wide), threads=1)(X), X)


@pytest.mark.parametrize("name", ["malloc", "fused_relu", "rt_check_csr_i32_i32", '"a b\\22\\0A"'])
def test_names_that_are_in_the_way(name: str) -> None:
    body = "%0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>\nfunc.return %0 : tensor<4xf32>"
    module = sw.from_mlir(function(body).replace("@main", f"@{name}"))
    np.testing.assert_array_equal(sw.compile(module, threads=1)(X), np.maximum(X, 0))


# Weights.


def weighted(tmp_path: Path, weights: sw.WeightStore) -> Path:
    """A saved perceptron, beside which the given weights are put."""
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", ("n", 4), "f32"), np.ones((3, 4), np.float32)))
    b.module().save(tmp_path / "m.mlir")
    weights.save(tmp_path / "m.safetensors")
    return tmp_path / "m.mlir"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((3, 5), np.float32), "differs from its type, expected ((3, 4), 'float32'), got"),
        (np.ones((3, 4)), "differs from its type, expected ((3, 4), 'float32'), got"),
        (csr_array(np.ones((3, 4), np.float32)), "is stored sparse, unlike its type"),
    ],
)
def test_weights_of_another_type(tmp_path: Path, array: Any, message: str) -> None:
    weights = sw.WeightStore()
    weights.add("dense_w", array)
    with pytest.raises(sw.ImportModelError, match=re.escape(f'weight "dense_w" {message}')):
        sw.from_mlir(weighted(tmp_path, weights))


def test_weights_that_are_missing(tmp_path: Path) -> None:
    path = weighted(tmp_path, sw.WeightStore())
    with pytest.raises(sw.ImportModelError, match='weight "dense_w" is not in the weights beside'):
        sw.from_mlir(path)
    path.with_suffix(".safetensors").unlink()
    with pytest.raises(sw.ImportModelError, match='weight "dense_w" is not in the weights beside'):
        sw.from_mlir(path)


@settings(
    max_examples=settings().max_examples * 60 // 100, deadline=None, derandomize=True, database=None
)
@given(st.data())
def test_corrupt_weights(data: st.DataObject) -> None:
    """A file of weights that is cut or changed anywhere is refused or read, never a crash."""
    raw = bytearray(_file())
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        del raw[place:]
    else:
        raw[place] = data.draw(st.integers(0, 255))
    path = Path(_folder()) / "w.safetensors"
    path.write_bytes(raw)
    with suppress(sw.ImportModelError):
        store = sw.WeightStore.load(path)
        assert all(len(store[name].shape) <= 2 for name in store)


@cache
def _folder() -> str:
    import tempfile

    return tempfile.mkdtemp()


@cache
def _file() -> bytes:
    store = sw.WeightStore()
    store.add("dense", floats(3, 4))
    store.add("sparse", csr_array(np.eye(3, dtype=np.float32)))
    path = Path(_folder()) / "good.safetensors"
    store.save(path)
    return path.read_bytes()


# Commands.


@pytest.mark.parametrize("name", HOSTILE)
def test_commands_say_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(HOSTILE[name][0])
    code, lines = finished(lambda: stepwell_command.main(["compile", str(path)]), capsys)
    assert code == 1
    assert lines[0].startswith("stepwell: error: ")
    passes = pipeline()["optimized"]
    code, more = finished(lambda: stepwell_opt.main([str(path), "-p", passes]), capsys)
    assert not code or more[0].startswith("stepwell-opt: error: ")
    assert len(lines) == 1
    # The place in the text, and what is below it.
    assert not code or len(more) == 1 or {*more[2]} == {" ", "^"}, more
    assert not code or len(more) in (1, 3), more
    assert "internal error" not in "".join([*lines, *more])


def finished(
    run: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> tuple[object, list[str]]:
    """The status with which a command ends, and what it leaves on stderr."""
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
    return code, capsys.readouterr().err.splitlines()


def test_a_format_that_cannot_be_called_is_told_before_passes_run() -> None:
    module = sw.from_mlir(product(sparse_type(", posWidth = 32, crdWidth = 64")))
    message = "^func.func @main: sparse format that cannot be called, expected CSR with posWidth ="
    for use in (lambda: Compilation.of(Request(module)), lambda: module.run_reference(None, None)):
        with pytest.raises(sw.CompileError, match=message):
            use()
