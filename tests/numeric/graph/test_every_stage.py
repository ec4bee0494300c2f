"""Every stage of the staircase, interpreted, gives what the program gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser

import stepwell as sw
from stepwell.core.pipelines.stages import IR_STAGES, TEXT_STAGES
from stepwell.core.registry import make_context
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn

from ...harness import RNG, close, floats
from ..low_bit_program import low_bits

pytestmark = pytest.mark.usefixtures("every_stage_verified")

X = floats(5, 20)
Program = tuple[sw.Module, tuple[Any, ...]]


def mlp() -> Program:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", ("n", 20)), floats(8, 20)))
    b.output(b.softmax(h))
    return b.module(), (X,)


def convolution() -> Program:
    b = sw.Builder("main")
    x = b.input("x", (1, 3, 9, 9))
    y = b.relu(b.conv(x, floats(8, 3, 3, 3), strides=[2, 2]))
    b.output(b.pool(y, "max", [2, 2], [1, 1]))
    return b.module(), (floats(1, 3, 9, 9),)


def graph_network() -> Program:
    w = floats(6, 8)
    heads = gnn.GATConv(floats(4, 8), w[:1, :4].copy(), w[1:2, :4].copy())
    model = gnn.Sequential(gnn.GCNConv(w), gnn.ReLU(), heads)
    index = RNG.integers(0, 5, (2, 9))
    module = model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 6)))
    return module, (gnn.Graph.from_edge_index(index, 5), X[:, :6].copy())


def quantised() -> Program:
    b = sw.Builder("main")
    x, scale = b.input("x", (5, 20)), np.float32(0.05)
    q = b.quantize(x, scale, np.uint8(128))
    b.output(b.dequantize(q, scale, np.uint8(128)))
    for value in (b.cast(x, "bf16"), b.cast(x, "f16"), b.cast(b.floor(x), "i8"), b.greater(x, 0.0)):
        b.output(value)
    return b.module(), (X,)


def integers() -> Program:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 20)), b.input("i", (3,), "i64")
    b.output(b.gather(x, i, axis=0))
    b.output(b.reduce(i, "sum", axes=[0]))
    return b.module(), (X, np.array([4, -5, 0]))


def angles() -> Program:
    """Large ones are for the C library, in a branch of the vectors that have one."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 20))
    b.output(b.add(b.sin(x), b.tan(x)))
    b.output(b.cos(b.reshape(x, [-1, 4])))
    large = X.copy()
    large[1, 3] = 1e9
    return b.module(), (large,)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "mlp": mlp,
    "convolution": convolution,
    "graph_network": graph_network,
    "quantised": quantised,
    "low_bits": low_bits,
    "integers": integers,
    "angles": angles,
}


WAYS = [
    pytest.param(*way, marks=pytest.mark.slow if way[0] == "mlp" or way[1:] != (3, 2) else ())
    for way in itertools.product(PROGRAMS, (0, 3), (1, 2))
]


@pytest.mark.parametrize(("name", "level", "threads"), WAYS)
def test_stages_agree(name: str, level: int, threads: int, all_tests: bool) -> None:
    module, inputs = PROGRAMS[name]()
    exe = sw.compile(module, threads=threads, opt_level=level)
    expected = module.run_reference(*inputs)
    if all_tests:
        for stage in exe.stages:
            close(exe.run_at(stage, *inputs), expected, 1e-4, 1e-5, what=stage)
        return
    # All stages of one way down, instead of one for each.
    compilation = Compilation.of(Request(module, threads=threads, opt_level=level))
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        as_it_is = compilation.of_module(work).running(dict.fromkeys(IR_STAGES, ""))
        close(as_it_is.run(stage, inputs), expected, 1e-4, 1e-5, what=stage)
    close(exe(*inputs), expected, 1e-4, 1e-5)


@settings(
    max_examples=settings().max_examples * 16 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_stages_of_random_programs(data: st.DataObject, programs: Any) -> None:
    case = data.draw(programs)
    exe = sw.compile(case.module, threads=data.draw(st.sampled_from([1, 2])))
    stage = data.draw(st.sampled_from(["kernels", "scheduled", "buffers", "loops", "llvm"]))
    expected = case.module.run_reference(*case.inputs)
    close(exe.run_at(stage, *case.inputs), expected, 0, case.tolerance, scaled=True)


def test_registered_functions_are_called() -> None:
    @sw.register_function("test.every_stage.double")
    def double(x: np.ndarray, y: np.ndarray) -> None:
        if x[0, 0] == 7:
            raise ValueError("seven")
        np.multiply(x, 2, out=y)

    b = sw.Builder("main")
    x = b.input("x", ("n", 20))
    b.output(b.call_packed("test.every_stage.double", b.relu(x), results=sw.TensorSpec(("n", 20))))
    exe = sw.compile(b.module(), threads=1)
    seven = X.copy()
    seven[0, 0] = 7
    for stage in ("kernels", "buffers", "loops", "llvm"):
        np.testing.assert_array_equal(exe.run_at(stage, X), 2 * np.maximum(X, 0))
        with pytest.raises(sw.StepwellError, match=r"test\.every_stage\.double.*seven"):
            exe.run_at(stage, seven)


@pytest.fixture(scope="module")
def gathering() -> sw.Executable:
    return sw.compile(integers()[0], threads=1)


@pytest.fixture(scope="module")
def multiplying() -> sw.Executable:
    b = sw.Builder("main")
    b.output(b.spmm(b.input("a", sw.SparseSpec(("n", 20))), X.T.copy()))
    return sw.compile(b.module(), threads=1)


@pytest.mark.parametrize("stage", ["buffers", "loops", "llvm", "asm"])
def test_calls_are_refused_as_by_compiled_code(
    stage: str, gathering: sw.Executable, multiplying: sw.Executable
) -> None:
    exe = gathering
    with pytest.raises(sw.InputError, match=r"index out of range at position 1, .* got -6"):
        exe.run_at(stage, X, np.array([0, -6, 1]))
    with pytest.raises(sw.InputError, match="wrong dtype"):
        exe.run_at(stage, X, np.array([0, -6, 1], np.int32))
    exe = multiplying
    broken = np.array([0, 2, 1]), np.array([1]), np.ones(1, np.float32)
    with pytest.raises(sw.InputError) as compiled:
        exe((*(part.astype(np.int32) for part in broken[:2]), broken[2]))
    with pytest.raises(sw.InputError) as at_stage:
        exe.run_at(stage, (*(part.astype(np.int32) for part in broken[:2]), broken[2]))
    assert str(at_stage.value) == str(compiled.value)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("kernels", "loop.load: index of dimension 0 is outside of the buffer, .* got 5"),
        ("buffers", "loop.load: index of dimension 0 is outside of the buffer, .* got 5"),
        ("loops", "memref.load: index of dimension 0 is outside of the buffer, .* got 5"),
        ("llvm", "llvm.load: 4 bytes are outside of the buffer, .* got 20"),
    ],
)
def test_accesses_beyond_a_buffer_are_named(stage: str, message: str) -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", ("n",))))
    text = sw.compile(b.module(), threads=1, opt_level=0).ir("kernels")
    loop = '    loop.for "i" %i to %1 {'
    assert text.count(loop) == 1
    # One iteration too many for any size: the size is known at run time only.
    more = "    %one = arith.constant 1 : index\n    %more = arith.addi %1, %one : index\n"
    text = text.replace(loop, more + loop.replace("%1", "%more"))
    with pytest.raises(sw.ImportModelError, match="fused_relu: an access may be outside of dim"):
        sw.from_mlir(text)
    # As a faulty pass would leave it.
    too_far = sw.Module(Parser(make_context(), text).parse_module(), sw.WeightStore())
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(too_far, threads=1, opt_level=0).run_at(stage, X[0, :5].copy())


def test_accesses_beyond_a_buffer_of_known_size_are_not_read() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (5,))))
    text = sw.compile(b.module(), threads=1, opt_level=0).ir("kernels")
    assert text.count("to 5 ") == 1
    message = r"loop.load: x\[i\] is outside of dimension 0, expected 0 <= index < 5, got 5"
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_mlir(text.replace("to 5 ", "to 6 "))


def test_what_is_not_written_is_not_a_number() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (5,))))
    text = sw.compile(b.module(), threads=1, opt_level=0).ir("kernels")
    kernel = text[text.index("  loop.kernel") : text.rindex("}")]
    twice = text.replace(
        "    func.return %0",
        "    %1 = graph.call_dps @fused_relu(%0) : (tensor<5xf32>) -> tensor<5xf32>\n"
        "    func.return %1",
    )
    # The first of two kernels stops short: what is between them has an element of no value.
    short = kernel.replace("@fused_relu", "@short").replace("to 5 ", "to 4 ")
    text = twice.replace("@fused_relu(%x)", "@short(%x)").replace(kernel, short + kernel)
    exe = sw.compile(sw.from_mlir(text, trusted=True), threads=1, opt_level=0)
    for stage in ("kernels", "buffers", "loops", "llvm"):
        found = exe.run_at(stage, X[0, :5].copy())
        assert np.isnan(found).tolist() == [False] * 4 + [True], stage


def test_unknown_stages() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", ("n", 20))))
    exe = sw.compile(b.module(), threads=1)
    with pytest.raises(sw.StepwellError, match='did you mean "loops"'):
        exe.run_at("loop", X)
    later = sw.compile(sw.from_mlir(exe.ir("kernels")), threads=1)
    with pytest.raises(sw.StepwellError, match='"graph" is before, got "kernels"'):
        later.run_at("graph", X)
    assert set(IR_STAGES) | set(TEXT_STAGES) >= set(later.stages)
