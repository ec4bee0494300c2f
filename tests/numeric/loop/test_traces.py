"""A trace replayed gives the kernel again; one that does not fit is one error and no change."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser

import stepwell as sw
from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.loop.nests import ScheduleError, loops_named
from stepwell.dialects.loop.ops import SCHEDULE, KernelOp
from stepwell.dialects.loop.trace import structure_of, trace_of
from stepwell.dialects.loop.trace_text import parse_traces
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler.primitives import PRIMITIVES
from stepwell.passes.loop.scheduler.replay import replay
from stepwell.passes.loop.scheduler.schedule import Schedule

from ...harness import floats


def mlp() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (None, 40), "f32")
    hidden = b.relu(b.dense(x, floats(64, 40), bias=floats(64)))
    b.output(b.softmax(b.dense(hidden, floats(10, 64))), name="y")
    return b.module()


def convolutions() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (1, 3, 18, 18), "f32")
    y = b.relu(b.conv(x, floats(16, 3, 3, 3), bias=floats(16)))
    y = b.conv(b.pad(y, low=(0, 0, 1, 1), high=(0, 0, 1, 1)), floats(20, 16, 3, 3))
    b.output(b.layer_norm(y, floats(16), floats(16)), name="y")
    return b.module()


def large_products() -> sw.Module:
    """Panels that are copied, and weights that are prefetched."""
    b = sw.Builder("main")
    x, y = b.input("x", (600, 700), "f32"), b.input("y", (700, 900), "f32")
    b.output(b.dense(b.matmul(x, y), floats(64, 900)), name="z")
    return b.module()


def graph_network() -> sw.Module:
    model = gnn.Sequential(
        gnn.GCNConv(floats(24, 16), floats(16)),
        gnn.ReLU(),
        gnn.GATConv(floats(7, 16), floats(1, 1, 7), floats(1, 1, 7)),
    )
    return model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 24), "f32"))


MODELS = (mlp, convolutions, large_products, graph_network)


def parsed(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


@functools.cache
def kernels_text(model: Callable[[], sw.Module]) -> str:
    """The text of stage `kernels`, the same for all tests."""
    return Compilation.of(Request(model(), threads=2)).text("kernels")


def kernels_of(module: ModuleOp) -> dict[str, KernelOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("model", MODELS)
def test_every_trace_replays(model: Callable[[], sw.Module], target: str) -> None:
    before = parsed(kernels_text(model))
    scheduled = 0
    for name, kernel in kernels_of(before).items():
        free = kernel.clone()
        expected = schedule_kernel(kernel.clone(), named(target))[0].kernel
        again = replay(free, trace_of(expected))
        assert str(again) == str(expected), name
        scheduled += bool(trace_of(expected))
    assert scheduled >= 2


def test_the_stage_shows_traces_that_the_pass_takes() -> None:
    """The text of the stage holds all that is needed to schedule in the same way again."""
    compilation = Compilation.of(Request(mlp()))
    scheduled = kernels_of(parsed(compilation.text("scheduled")))
    traces = {name: trace_of(kernel) for name, kernel in scheduled.items()}
    assert all(traces.values())
    text = " ".join(f"@{name}: {trace}" for name, trace in traces.items())
    again = parsed(compilation.text("kernels"))
    run_passes(make_context(), again, f'loop-schedule{{trace="{text}"}}')
    found = kernels_of(again)
    assert {n: str(k) for n, k in found.items()} == {n: str(k) for n, k in scheduled.items()}


def test_a_trace_fits_another_kernel(kernels, normal, same_before_and_after) -> None:
    trace = (
        "split(j, 16, tail=mask); pack(1, j0, k, j1); split(i, 3, tail=split); vectorize(i1, j1)"
    )
    for m, n, k in ((7, 20, 5), (6, 33, 2), (13, 16, 9)):
        inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
        text = kernels.dense(m, n, k)
        after = same_before_and_after(text, inputs, lambda kernel: replay(kernel, trace))
        assert trace_of(after) == trace


def test_a_trace_grows_from_pass_to_pass(kernels, kernel_of) -> None:
    module = kernel_of(kernels.dense(4, 20, 5)).parent_op()
    assert isinstance(module, ModuleOp)
    passes = "loop-split{loop=j factor=8 tail=mask},loop-vectorize{loops=i,j1}"
    run_passes(make_context(), module, f"{passes},loop-unroll{{loop=k factor=2}}")
    (kernel,) = kernels_of(module).values()
    assert trace_of(kernel) == "split(j, 8, tail=mask); vectorize(i, j1); unroll(k, 2)"


REFUSED = {
    "split(j, 8, tail=mask); vectorize(q)": (
        r'^trace for @dense: step 2, vectorize\(q\): loop-vectorize: no loop "q" in @dense, '
        'expected "i", "j0", "j1", "k"$'
    ),
    "vectorize(k)": (
        r'step 1, vectorize\(k\): loop-vectorize: loop "k" of @dense: is not the whole '
        "body of another reduction; split it first$"
    ),
    "reorder(j, k)": r'loop-reorder: loop "k" of @dense: it carries values',
    "fly(i)": r"step 1, fly\(i\): fly: no such primitive; there are balance, ",
    "spilt(i, 4)": r"spilt: no such primitive; did you mean split$",
    "split(i)": r"split: factor is missing, expected split\(loop, factor, tail, cases, alone\)$",
    "split(4, i)": r"split: wrong loop, expected a name, got 4$",
    "split(i, j)": r"split: wrong factor, expected a number, got j$",
    "split(i, 4, cases, 5, 3, 6)": r"split: 6 is one argument too many, expected split\(loop, ",
    "split(i, 4, tial=mask)": r"split: tial is one argument too many",
    "split(i, tail=mask, 4)": (
        r"^trace: cannot read split\(i, tail=mask, 4\), expected names after values, got 4$"
    ),
    "split(i, 4": r"^trace: cannot read step 1, expected name\(.*\); ..., got 'split\(i, 4'$",
    "tiles(i); split(i, 4) tiles(i0)": r"^trace: cannot read step 2, expected .* got 'split",
    "tiles(i); split(i, 4.5)": (
        r"^trace: cannot read split\(i, 4.5\), expected the name of a loop, .* got '4.5'$"
    ),
    "@dense: tiles(i)": r"^trace: it is for kernels that it names, expected .*, got @dense$",
    "@a: tiles(i) @a: tiles(i)": r"^trace: @a is named twice$",
}


@pytest.mark.parametrize("trace", REFUSED)
def test_what_does_not_fit_is_one_error_and_no_change(kernels, kernel_of, trace) -> None:
    kernel = kernel_of(kernels.dense(4, 20, 5))
    module = kernel.parent_op()
    before = str(module)
    with pytest.raises(ScheduleError, match=REFUSED[trace]):
        replay(kernel, trace)
    assert str(module) == before


def test_one_trace_that_does_not_fit_leaves_all_kernels() -> None:
    """Of two traces the second is wrong: the first has not been taken either."""
    module = parsed(Compilation.of(Request(mlp())).text("kernels"))
    first, second, *_ = kernels_of(module)
    before = str(module)
    wrong = f"@{first}: drop_unit_loops() @{second}: tiles(nowhere)"
    with pytest.raises(CompileError, match=f'trace for @{second}: step 1, .* no loop "nowhere"'):
        run_passes(make_context(), module, f'loop-schedule{{trace="{wrong}"}}')
    assert str(module) == before


def test_trace_in_a_file(tmp_path, kernels, kernel_of) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("# made by hand\n@dense:\n  split(j, 8, tail=mask);\n  vectorize(i, j1)\n")
    module = kernel_of(kernels.dense(4, 20, 5)).parent_op()
    ctx = make_context()
    run_passes(ctx, module, f'loop-schedule{{trace-file="{path}"}}')
    (kernel,) = kernels_of(module).values()
    assert trace_of(kernel) == "split(j, 8, tail=mask); vectorize(i, j1)"
    assert [(d.what, d.why) for d in ctx.decisions] == [(trace_of(kernel), "its trace is given")]


FILES = {
    'trace-file="{path}/none.txt"': r"trace: cannot read .*none.txt: No such file or directory",
    'trace-file="{path}/binary"': r"trace: cannot read .*binary: not a text",
    'trace="tiles(i)" trace-file="{path}/none.txt"': r"trace: is given as text and as a file",
    'trace="@other: tiles(i)"': r"trace: no such kernel, expected @dense, got @other",
    'trace="tiles(i) ; @dense: tiles(i)"': r"trace: the only kernel has two traces",
}


@pytest.mark.parametrize("options", FILES)
def test_options_that_are_refused(tmp_path, kernels, kernel_of, options) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    module = kernel_of(kernels.dense(4, 20, 5)).parent_op()
    before = str(module)
    with pytest.raises(CompileError, match=FILES[options]):
        run_passes(make_context(), module, f"loop-schedule{{{options.format(path=tmp_path)}}}")
    assert str(module) == before


LOOPS = st.sampled_from(
    [
        "i",
        "j",
        "k",
        "i0",
        "i1",
        "i1t",
        "j0",
        "j1",
        "j1t",
        "k0",
        "k1",
        "e",
        "a",
        "ia",
        "ib",
        "i_j",
        "j0_j1",
    ]
)
STEPS = st.one_of(
    st.tuples(
        st.just("split"),
        LOOPS,
        st.integers(0, 5),
        st.sampled_from(["peel", "mask", "split", "cases"]),
    ),
    st.tuples(st.just("balance"), LOOPS, LOOPS, st.integers(0, 5), st.integers(0, 3)),
    st.tuples(st.sampled_from(["tiles", "sink"]), LOOPS),
    st.tuples(st.sampled_from(["reorder", "vectorize"]), LOOPS),
    st.tuples(st.sampled_from(["reorder", "vectorize"]), LOOPS, LOOPS),
    st.tuples(st.just("pack"), st.integers(0, 4), LOOPS, LOOPS, LOOPS),
    st.tuples(st.just("stage"), st.integers(0, 4), LOOPS),
    st.tuples(st.just("prefetch"), st.integers(0, 4), LOOPS),
    st.tuples(st.just("unroll"), LOOPS, st.integers(1, 5)),
    st.tuples(st.just("drop_unit_loops")),
    st.tuples(st.just("hoist"), LOOPS),
    st.tuples(st.just("fuse"), LOOPS, LOOPS),
    st.tuples(st.just("pad"), LOOPS, st.integers(1, 8)),
    st.tuples(st.just("split_border"), LOOPS, st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.sampled_from(["compute_at", "distribute", "merge"]), LOOPS, LOOPS),
)


@settings(max_examples=settings().max_examples * 80 // 100, deadline=None)
@given(
    kind=st.sampled_from(["dense", "matmul", "softmax", "spmm", "blurred", "centred", "padded"]),
    known=st.booleans(),
    sizes=st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)),
    steps=st.lists(STEPS, min_size=1, max_size=8),
)
def test_any_trace_is_refused_or_changes_no_number(
    kernels, normal, csr, same_compiled, kind, known, sizes, steps
) -> None:
    """Steps at random, those that are refused left out; the trace that is left replays.

    The kernel computes the same, interpreted and as machine code.
    """
    m, n, k = sizes
    given = sizes if known else (None, None, None)
    if kind == "dense":
        text, inputs = kernels.dense(*given), [normal(m, k), normal(n, k), normal(n), normal(m, n)]
    elif kind == "matmul":
        text, inputs = kernels.matmul(2, *given), [normal(2, m, k), normal(k, n), normal(2, m, n)]
    elif kind == "softmax":
        text, inputs = kernels.softmax(*given[:2]), [normal(m, n), normal(m, n)]
    elif kind == "blurred":
        m, n = max(m, 1), max(n, 1)
        text, inputs = kernels.blurred(m, n, 2), [normal(m, n + 1), normal(1), normal(m, n)]
    elif kind == "centred":
        n, k = max(n, 1), max(k, 1)
        text = kernels.centred(m if known else None, n, k)
        inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
    elif kind == "padded":
        m, n = max(m, 1), max(n, 1)
        text, inputs = kernels.padded(m, n, 1, 2), [normal(m, n), normal(m + 3, n + 3)]
    else:
        features = n or 3
        text = kernels.spmm(features if known else None)
        graph = csr([m % 4, 0, k % 4], 4)
        inputs = [*graph, normal(4, features), normal(features), normal(3, features)]

    def schedule(kernel: KernelOp) -> KernelOp:
        unscheduled = kernel.clone()
        for name, *arguments in steps:
            before = str(kernel)
            try:
                kernel = replay(kernel, f"{name}({', '.join(map(str, arguments))})")
            except ScheduleError:
                assert str(kernel) == before
        assert str(replay(unscheduled, trace_of(kernel))) == str(kernel)
        return kernel

    same_compiled(text, inputs, schedule)


def test_an_attempt_that_fails_leaves_no_trace(kernels, kernel_of) -> None:
    kernel = kernel_of(kernels.dense(4, 20, 5))
    kernel.detach()
    schedule = Schedule(kernel, named("x86-64-v3"))
    schedule.unroll("k", 2)
    before = str(schedule.kernel)
    assert schedule.attempt(lambda: schedule.unroll("k", 4)) is None
    assert schedule.attempt(lambda: schedule.tiles("k")) is None
    assert str(schedule.kernel) == before
    assert str(schedule) == "unroll(k, 2)"


def test_attempts_come_back_to_where_each_of_them_began(kernels, kernel_of) -> None:
    kernel = kernel_of(kernels.dense(4, 20, 5))
    kernel.detach()
    schedule, texts = Schedule(kernel, named("x86-64-v3")), list[str]()

    def inner(factor: int) -> None:
        schedule.split("k", factor)
        schedule.unroll("k1", 7)  # refused, as it is longer than a chunk

    def outer() -> None:
        for step in (("i", 2), ("j", 3)):
            schedule.split(*step)
            texts.append(str(schedule.kernel))
            for factor in (5, 2):
                assert schedule.attempt(lambda factor=factor: inner(factor)) is None
                assert str(schedule.kernel) == texts[-1]

    schedule.reorder("j", "i")
    before = str(schedule.kernel)
    for _ in range(2):
        assert schedule.attempt(lambda: inner(5)) is None
        assert schedule.attempt(outer) is None
        assert str(schedule.kernel) == before
    assert schedule.attempt(lambda: schedule.split("i", 2, "mask")) is not None
    assert str(schedule) == "reorder(j, i); split(i, 2, tail=mask)"
    assert len(set(texts)) == 2


def test_steps_leave_what_does_not_change(kernel_of) -> None:
    text = """
        loop.kernel @two(%x: memref<8x4xf32>) -> (%y: memref<8x4xf32>, %z: memref<4xf32>) {
          loop.for "i" %i to 8 {
            loop.for "j" %j to 4 {
              %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<8x4xf32>, f32
              %w = arith.addf %v, %v : f32
              loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<8x4xf32>
            }
          }
          loop.for "k" %k to 4 {
            %u = loop.load %x (d0, d1) -> (d1, d0)(%k, %k) : memref<8x4xf32>, f32
            loop.store %u, %z (d0) -> (d0)(%k) : f32, memref<4xf32>
          }
        }
    """
    kernel = kernel_of(text)
    kernel.detach()
    (other,) = loops_named("test", kernel, ["k"])
    kept, before = {*other.walk(), *(op for op in kernel.walk() if "add" in op.name)}, str(other)
    schedule = Schedule(kernel, named("x86-64-v3"))
    schedule.reorder("j", "i")
    schedule.split("i", 2)
    schedule.split("j", 3, "mask")
    assert kept < set(schedule.kernel.walk())
    assert str(other) == before


def test_indices_that_follow_from_the_variable_of_a_split_loop(kernel_of) -> None:
    text = """
        loop.kernel @next(%x: memref<9x4xf32>) -> (%y: memref<8x4xf32>) {
          loop.for "i" %i to 8 {
            %a = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
            loop.for "j" %j to 4 {
              %v = loop.load %x (d0, d1) -> (d0, d1)(%a, %j) : memref<9x4xf32>, f32
              loop.store %v, %y (d0, d1) -> (d0 - 1, d1)(%a, %j) : f32, memref<8x4xf32>
            }
          }
        }
    """
    kernel = replay(kernel_of(text), "split(i, 4)")
    assert "affine.apply" not in str(kernel)
    assert "-> ((((d0 * 4) + d1) + 1), d2)(%i0, %i1, %j)" in str(kernel)
    assert "-> (((d0 * 4) + d1), d2)(%i0, %i1, %j)" in str(kernel)


def test_the_structure_of_a_kernel_is_without_names(kernels, kernel_of) -> None:
    text = kernels.dense(4, 20, 5)
    renamed = text.replace("@dense", "@other").replace("%p", "%factor")
    assert structure_of(kernel_of(text)) == structure_of(kernel_of(renamed))
    scheduled = kernel_of(text)
    scheduled.attributes[SCHEDULE] = StringAttr("tiles(i)")
    assert structure_of(scheduled) == structure_of(kernel_of(text))
    for other in (kernels.dense(4, 21, 5), text.replace('"k"', '"l"')):
        assert structure_of(kernel_of(other)) != structure_of(kernel_of(text))


def test_steps_are_the_passes() -> None:
    """Whatever a pass of this folder does to a single kernel, a trace can say."""
    from stepwell.core.registry import own_passes

    names = {
        name.removeprefix("loop-").replace("-", "_")
        for name in own_passes()
        if name.startswith("loop-")
    }
    assert names - {"schedule", "align_rows", "legalize_vectors"} == set(PRIMITIVES)


def test_steps_print_as_they_were_read() -> None:
    text = "split(i, 4, tail=mask); pack(1, i0, k, i1); drop_unit_loops()"
    (steps,) = parse_traces(text).values()
    assert "; ".join(map(str, steps)) == text


DIAGONAL = """
loop.kernel @diagonal(%x: memref<8x8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %v = loop.load %x (d0) -> (d0, d0)(%i) : memref<8x8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}"""


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_says_that_it_consumes_its_kernel(name) -> None:
    first, *_ = inspect.signature(PRIMITIVES[name].function).parameters.values()
    assert first.annotation == "Consumed"


@pytest.mark.parametrize("step", ["split(i, 3)", "tiles(i)", "vectorize(i)", "unroll(i)"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_consumed_kernel_has_a_successor(step, alone) -> None:
    module = parsed(DIAGONAL)
    (kernel,) = kernels_of(module).values()
    before = replay(kernel.clone(), step)
    if alone:
        kernel.detach()
    (taken,) = parse_traces(step)[None]
    primitive = PRIMITIVES[taken.name].function
    with pytest.raises(ScheduleError):
        primitive(kernel, "no") if taken.name != "split" else primitive(kernel, "no", 2)
    assert trace_of(kernel) == ""
    arguments = (["i"],) if taken.name == "vectorize" else taken.arguments
    new = primitive(kernel, *arguments)
    assert str(new) == str(before)
    assert new.parent_op() is (None if alone else module)
    assert [*module.ops] == ([] if alone else [new])
