"""If, Loop and Scan of ONNX models against ONNX's own evaluator."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

import stepwell as sw
from stepwell.core.errors import ImportModelError, InputError

from ..harness import cases, close, import_level, onnx_results

TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


def info(text: str) -> onnx.ValueInfoProto:
    """A value written as `x:f:4,3`; a size may be a name."""
    name, kind, sizes = text.split(":")
    shape = [int(size) if size.isdigit() else size for size in sizes.split(",") if size]
    return make_tensor_value_info(name, TYPES[kind], shape)


def body(nodes: Sequence[onnx.NodeProto], inputs: str, outputs: str) -> onnx.GraphProto:
    values = [[info(text) for text in texts.split()] for texts in (inputs, outputs)]
    return make_graph(list(nodes), "body", *values)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: str,
    outputs: str,
    weights: Mapping[str, Any] = {},
    opset: int = 18,
) -> onnx.ModelProto:
    graph = body(nodes, inputs, outputs)
    graph.initializer.extend(from_array(np.asarray(a), name) for name, a in weights.items())
    return make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=9)


def calls_as_onnx(proto: onnx.ModelProto, *calls: Sequence[Any]) -> sw.Executable:
    """Compare the reference and what is compiled with ONNX's evaluator in each call."""
    module = sw.from_onnx(proto)
    exe = sw.compile(module, threads=1, opt_level=import_level())
    for inputs in calls:
        expected = onnx_results(proto, *inputs)
        for run in (exe, module.run_reference):
            close(run(*inputs), expected, atol=1e-6)
    return exe


def numbers(*shape: int) -> np.ndarray:
    """Those of a shape are the same wherever they are."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_branches_read_values_and_weights_from_outside() -> None:
    w = numbers(4)
    then = [make_node("Add", ["h", "w"], ["t"]), make_node("Mul", ["t", "w"], ["u"])]
    orelse = [make_node("Mul", ["h", "w"], ["v"])]
    nodes = [
        make_node(
            "If",
            ["p"],
            ["y"],
            name="choice",
            then_branch=body(then, "", "u:f:n,4"),
            else_branch=body(orelse, "", "v:f:n,4"),
        ),
        # Nodes need not be sorted: the branches read `h`.
        make_node("Relu", ["x"], ["h"]),
    ]
    proto = model(nodes, "p:b: x:f:n,4", "y:f:n,4", {"w": w})
    exe = sw.compile(sw.from_onnx(proto))
    h = np.maximum(numbers(3, 4), 0)
    for holds, expected in ((True, (h + w) * w), (False, h * w)):
        got = exe(np.array(holds), numbers(3, 4))
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert list(sw.from_onnx(proto).weights) == ["w"]


def test_of_a_known_condition_only_one_branch_is_read() -> None:
    then = [make_node("Relu", ["x"], ["u"])]
    orelse = [make_node("NoSuchOperator", ["x"], ["v"])]
    branches = {"then_branch": body(then, "", "u:f:4"), "else_branch": body(orelse, "", "v:f:7")}
    node = make_node("If", ["p"], ["y"], **branches)
    exe = compiled(model([node], "x:f:4", "y:f:4", {"p": np.array(True)}))
    np.testing.assert_array_equal(exe(numbers(4)), np.maximum(numbers(4), 0))


def compiled(proto: onnx.ModelProto) -> sw.Executable:
    return sw.compile(sw.from_onnx(proto), threads=1)


LOOP = [
    make_node("Identity", ["more"], ["again"]),
    make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
    make_node("Mul", ["h", "w"], ["p"]),
    make_node("Add", ["p", "f"], ["k"]),
]


def test_a_loop_of_a_run_time_count() -> None:
    step = body(LOOP, "i:i: more:b: h:f:n,3", "again:b: k:f:n,3")
    node = make_node("Loop", ["m", "c", "x"], ["y"], body=step)
    proto = model([node], "m:i: c:b: x:f:n,3", "y:f:n,3", {"w": numbers(3)})
    yes = np.array(True)
    calls = [(np.array(count), yes, numbers(2, 3)) for count in (0, 1, 5)]
    calls_as_onnx(proto, *calls, (np.array(5), np.array(False), numbers(2, 3)))


def test_a_loop_that_stacks_what_it_makes() -> None:
    step = body(LOOP, "i:i: more:b: h:f:3", "again:b: k:f:3 p:f:3")
    node = make_node("Loop", ["m", "", "x"], ["y", "rows"], body=step)
    proto = model([node], "x:f:3", "y:f:3 rows:f:40,3", {"w": numbers(3), "m": np.array(40)})
    exe = compiled(proto)
    assert 'graph.loop count "40"' in exe.ir("graph")
    h, rows = numbers(3), list[np.ndarray]()
    for number in range(40):
        rows.append(h * numbers(3))
        h = rows[-1] + np.float32(number)
    y, stacked = exe(numbers(3))
    np.testing.assert_allclose(y, h, rtol=1e-5)
    np.testing.assert_allclose(stacked, np.stack(rows), rtol=1e-5)


def test_a_condition_ends_a_loop_that_stacks() -> None:
    nodes = [
        make_node("Add", ["h", "h"], ["k"]),
        make_node("ReduceMax", ["k"], ["largest"], keepdims=0),
        make_node("Less", ["largest", "most"], ["again"]),
    ]
    step = body(nodes, "i:i: more:b: h:f:3", "again:b: k:f:3 h:f:3")
    node = make_node("Loop", ["m", "c", "x"], ["y", "rows"], body=step)
    follows = make_node("ReduceSum", ["rows", "axes"], ["sum"], keepdims=0)
    weights = {"m": np.array(6), "axes": np.array([0])}
    proto = model([node, follows], "c:b: most:f: x:f:3", "rows:f:r,3 sum:f:3", weights)
    yes, x = np.array(True), np.ones(3, np.float32)
    calls_as_onnx(proto, *((yes, np.float32(most), x) for most in (1, 10, 1000)))
    none = sw.compile(sw.from_onnx(proto))(np.array(False), np.float32(10), x)
    assert [array.shape for array in none] == [(0, 3), (3,)]


def test_a_loop_of_a_run_time_count_that_stacks() -> None:
    nodes = [
        make_node("Add", ["h", "h"], ["k"]),
        make_node("ReduceMax", ["k"], ["largest"], keepdims=0),
        make_node("Less", ["largest", "most"], ["below"]),
    ]
    step = body(nodes, "i:i: more:b: h:f:3", "below:b: k:f:3 h:f:3")
    always = body([*nodes[:1], make_node("Identity", ["more"], ["on"])], *BOTH)
    loops = [
        make_node("Loop", ["m", "c", "x"], ["y", "rows"], body=step, name="until"),
        make_node("Loop", ["m", "yes", "x"], ["z", "all"], body=always, name="all"),
    ]
    follows = make_node("ReduceSum", ["all", "axes"], ["sum"], keepdims=0)
    results = "y:f:3 rows:f:r,3 z:f:3 all:f:s,3 sum:f:3"
    weights = {"axes": np.array([0]), "yes": np.array(True)}
    proto = model([*loops, follows], "m:i: c:b: most:f: x:f:3", results, weights)
    yes, x = np.array(True), np.ones(3, np.float32)
    calls = ((5, 10), (2, 10), (70, 1000), (1, 0))
    exe = calls_as_onnx(proto, *((np.array(m), yes, np.float32(most), x) for m, most in calls))
    for m, flag in ((0, True), (-4, True), (3, False)):
        y, rows, _, every, _ = exe(np.array(m), np.array(flag), np.float32(10), x)
        assert (y.tolist(), rows.shape, every.shape) == ([1] * 3, (0, 3), (max(m, 0), 3))


def test_a_loop_of_a_run_time_count_that_stacks_in_a_condition_or_a_scan() -> None:
    """The rows are summed inside, and they are what a branch gives."""
    step = body([*LOOP, make_node("Identity", ["k"], ["o"])], "i:i: more:b: h:f:3", STACKED)
    loop = make_node("Loop", ["m", "yes", "x"], ["end", "rows"], body=step)
    summed = make_node("ReduceSum", ["rows", "axes"], ["u"], keepdims=0)
    other = make_node("Unsqueeze", ["x", "axes"], ["v"])
    more = make_node("Loop", ["n", "yes", "x"], ["end", "v"], body=step)
    nodes = [
        choice(
            "total",
            body([loop, summed], "", "u:f:3"),
            body([make_node("Neg", ["x"], ["v"])], "", "v:f:3"),
        ),
        choice("one", body([loop], "", "rows:f:r,3"), body([other], "", "v:f:1,3")),
        choice("some", body([loop], "", "rows:f:r,3"), body([more], "", "v:f:s,3")),
        make_node("Neg", ["some"], ["less"]),
    ]
    weights = {"w": numbers(3), "axes": np.array([0]), "yes": np.array(True)}
    outputs = "total:f:3 one:f:k,3 some:f:l,3 less:f:l,3"
    proto = model(nodes, "p:b: m:i: n:i: x:f:3", outputs, weights)
    calls = [(p, m, n) for p in (True, False) for m, n in ((1, 2), (5, 3), (90, 1))]
    exe = calls_as_onnx(proto, *((*map(np.array, call), numbers(3)) for call in calls))
    total, one, some, less = exe(np.array(True), np.array(0), np.array(3), numbers(3))
    assert total.tolist() == [0, 0, 0]
    assert one.shape == some.shape == less.shape == (0, 3)

    loop = make_node("Loop", ["m", "yes", "x"], ["k", "rows"], body=step)
    inner = body([loop, summed], "x:f:3 m:i:", "k:f:3 u:f:3")
    scan = make_node("Scan", ["x", "counts"], ["y", "z"], body=inner, num_scan_inputs=1)
    proto = model([scan], "x:f:3 counts:i:t", "y:f:3 z:f:t,3", weights)
    calls_as_onnx(proto, *((numbers(3), np.array(counts)) for counts in ([1, 5, 2], [9])))


BOTH = "i:i: more:b: h:f:3", "on:b: k:f:3 h:f:3"
STACKED = "again:b: k:f:3 o:f:3"


def choice(name: str, then: onnx.GraphProto, orelse: onnx.GraphProto) -> onnx.NodeProto:
    return make_node("If", ["p"], [name], name=name, then_branch=then, else_branch=orelse)


def test_a_count_that_follows_from_values() -> None:
    """The number of rows that are not 0, which is a size that the program computes."""
    step = [make_node("Add", ["h", "h"], ["k"]), make_node("Identity", ["more"], ["on"])]
    nodes = [
        make_node("NonZero", ["x"], ["places"]),
        make_node("Shape", ["places"], ["m"], start=1),
        make_node("Loop", ["m", "yes", "x"], ["y", "rows"], body=body(step, *BOTH)),
    ]
    proto = model(nodes, "x:f:3", "y:f:3 rows:f:r,3", {"yes": np.array(True)})
    calls_as_onnx(proto, *((np.array(x, np.float32),) for x in ([1, 0, 2], [0, 0, 3])))


def test_a_condition_ends_a_loop() -> None:
    nodes = [
        make_node("Add", ["h", "h"], ["k"]),
        make_node("ReduceMax", ["k"], ["largest"], keepdims=0),
        make_node("Less", ["largest", "most"], ["again"]),
    ]
    step = body(nodes, "i:i: more:b: h:f:3", "again:b: k:f:3")
    for most in ("", "m"):
        node = make_node("Loop", [most, "c", "x"], ["y"], body=step)
        weights = {"c": np.array(True), "m": np.array(4), "most": np.float32(50)}
        proto = model([node], "x:f:3", "y:f:3", weights)
        calls_as_onnx(proto, (np.abs(numbers(3)) + 1,))


def test_a_short_loop_is_unrolled_where_shapes_may_change() -> None:
    nodes = [
        make_node("Identity", ["more"], ["again"]),
        make_node("Concat", ["h", "h"], ["k"], axis=0),
        make_node("Gather", ["x", "i"], ["row"], axis=0),
    ]
    step = body(nodes, "i:i: more:b: h:f:n", "again:b: k:f:m row:f:")
    node = make_node("Loop", ["m", "", "x"], ["y", "rows"], body=step)
    proto = model([node], "x:f:3", "y:f:24 rows:f:3", {"m": np.array(3)})
    exe = compiled(proto)
    assert "graph.loop" not in exe.ir("graph")
    y, rows = exe(numbers(3))
    np.testing.assert_array_equal(y, np.tile(numbers(3), 8))
    np.testing.assert_array_equal(rows, numbers(3))


def test_a_short_loop_stacks_symbolic_sizes() -> None:
    nodes = [make_node("Identity", ["more"], ["on"]), make_node("Add", ["h", "h"], ["k"])]
    node = make_node("Loop", ["m", "yes", "x"], ["y", "rows"], body=body(nodes, *WIDE))
    weights = {"m": np.array(3), "yes": np.array(True)}
    exe = compiled(model([node], "x:f:n,2", "y:f:n,2 rows:f:3,n,2", weights))
    assert "graph.loop" not in exe.ir("graph")
    for n in (4, 0):
        y, rows = exe(numbers(n, 2))
        np.testing.assert_array_equal(y, numbers(n, 2) * 8)
        np.testing.assert_array_equal(rows, np.stack([numbers(n, 2) * by for by in (1, 2, 4)]))


WIDE = "i:i: more:b: h:f:n,2", "on:b: k:f:n,2 h:f:n,2"


def test_what_grows_by_known_sizes_in_a_long_loop() -> None:
    nodes = [
        make_node("Concat", ["h", "row"], ["k"], axis=0),
        make_node("ReduceSum", ["k", "axes"], ["sums"], keepdims=0),
        make_node("ReduceMax", ["sums"], ["largest"], keepdims=0),
        make_node("Less", ["largest", "most"], ["again"]),
        make_node("Concat", ["c", "row", "row"], ["d"], axis=0),
    ]
    state = "h:f:p,3 c:f:r,3", "k:f:p,3 d:f:r,3"
    step = body(nodes, f"i:i: more:b: {state[0]}", f"again:b: {state[1]} sums:f:3")
    node = make_node("Loop", ["m", "yes", "x", "row"], ["y", "w", "s"], body=step)
    follows = make_node("Relu", ["w"], ["u"])
    weights = {"m": np.array(30), "axes": np.array([0]), "yes": np.array(True)}
    results = "y:f:a,3 u:f:c,3 s:f:d,3"
    proto = model([node, follows], "x:f:n,3 row:f:1,3 most:f:", results, weights)
    row = np.ones((1, 3), np.float32)
    calls = [(numbers(40, 3), row, np.float32(most)) for most in (0, 20, 200)]
    exe = calls_as_onnx(proto, *calls)
    assert 'bounds = [["n+30", ""], ["61", ""]]' in exe.ir("graph")


def test_what_grows_in_as_many_iterations_as_the_call_says() -> None:
    """By one row and by two, until a condition fails; and in a branch, from rows of a loop."""
    nodes = [
        make_node("Concat", ["h", "row"], ["k"], axis=0),
        make_node("Concat", ["c", "row", "row"], ["d"], axis=0),
        make_node("ReduceSum", ["k"], ["sum"], keepdims=0),
        make_node("Less", ["sum", "most"], ["again"]),
    ]
    step = body(nodes, "i:i: more:b: h:f:p,3 c:f:r,3", "again:b: k:f:p,3 d:f:r,3")
    first = make_node("Loop", ["m", "yes", "x", "row"], ["y", "w"], body=step)
    longer = make_node("Loop", ["m", "yes", "x", "row"], ["u", "v"], body=step)
    sums = [
        make_node("Identity", ["l"], ["on"]),
        longer,
        make_node("ReduceSum", ["v"], ["t"], keepdims=0),
        make_node("Add", ["s", "t"], ["n"]),
    ]
    outer = make_node(
        "Loop", ["m", "yes", "zero"], ["z"], body=body(sums, "j:i: l:b: s:f:", "on:b: n:f:")
    )
    weights = {"yes": np.array(True), "zero": np.float32(0)}
    inputs, outputs = "m:i: x:f:n,3 row:f:1,3 most:f:", "y:f:a,3 w:f:b,3 z:f:"
    proto = model([first, outer], inputs, outputs, weights)
    x, row = numbers(4, 3), np.ones((1, 3), np.float32)
    calls = [(np.array(m), x, row, np.float32(most)) for m, most in ((5, 99), (1, 99), (9, 8))]
    exe = calls_as_onnx(proto, *calls)
    assert 'bounds = [["loop.iterations+n", ""], ["2*loop.iterations+1", ""]]' in exe.ir("graph")
    close(exe.run_at("llvm", *calls[0]), exe(*calls[0]))
    again = sw.compile(sw.from_mlir(exe.ir("buffers"), exe.weights("buffers")), threads=1)
    close(again(*calls[0]), exe(*calls[0]))
    for m in (0, -3):
        y, w, z = exe(np.array(m), x, row, np.float32(99))
        assert (len(y), len(w), z) == (4, 1, 0)


GROWING = [
    make_node("Mul", ["s", "two"], ["t"]),
    make_node("Concat", ["h", "t"], ["k"], axis=0),
    make_node("ReduceSum", ["k"], ["sum"], keepdims=0),
    make_node("Size", ["k"], ["rows"]),
    make_node("Cast", ["rows"], ["length"], to=TensorProto.FLOAT),
    make_node("ReduceMax", ["t"], ["largest"], keepdims=0),
    make_node("Neg", ["t"], ["row"]),
]
ENDED = {"a state": "largest", "what grows": "sum", "the size of what grows": "length"}


@pytest.mark.parametrize("by", ENDED)
@pytest.mark.parametrize("most", [None, 2**63 - 1])
def test_what_grows_until_a_condition_fails(by: str, most: int | None, all_tests: bool) -> None:
    """Without a number of iterations, or with one that is none."""
    step = body(
        [*GROWING, make_node("Less", [ENDED[by], "end"], ["again"])],
        "i:i: more:b: s:f:1 h:f:p",
        "again:b: t:f:1 k:f:q row:f:1",
    )
    ends = ["" if most is None else "many", "yes"]
    node = make_node("Loop", [*ends, "x", "start"], ["s", "h", "rows"], body=step)
    weights = {"many": np.array(most or 0), "yes": np.array(True)}
    weights |= {"two": np.float32(1.1)}
    proto = model([node], "x:f:1 start:f:n end:f:", "s:f:1 h:f:q rows:f:r,1", weights)
    x = np.ones(1, np.float32)
    calls = [(x, numbers(3), np.float32(end)) for end in (40, 0)]
    if all_tests:
        calls.append((x, numbers(0), np.float32(150)))
    exe = calls_as_onnx(proto, *calls)
    assert len(exe(*calls[0])[1]) > 16, "more iterations than are tried first"
    again = "3 of 8 nodes of its body run once" if by == "a state" else "run up to 3 times"
    assert re.search(rf'Loop "Loop:s": counted first, because .*{again} more', exe.explain())


@pytest.mark.parametrize("by", ["what grows", "a number"])
def test_what_begins_with_a_size_without_an_upper_bound_grows(by: str, all_tests: bool) -> None:
    step = body(
        [*GROWING, make_node("Less", [ENDED.get(by, "largest"), "end"], ["again"])],
        "i:i: more:b: s:f:1 h:f:p",
        "again:b: t:f:1 k:f:q row:f:1",
    )
    nodes = [
        make_node("Range", ["zero", "n", "one"], ["numbers"]),
        make_node("Cast", ["numbers"], ["start"], to=TensorProto.FLOAT),
        make_node(
            "Loop",
            ["n" if by == "a number" else "", "yes", "x", "start"],
            ["s", "h", "rows"],
            body=step,
        ),
        make_node("Neg", ["h"], ["negative"]),
    ]
    weights = {"zero": np.array(0), "one": np.array(1), "yes": np.array(True)}
    weights |= {"two": np.float32(1.1)}
    proto = model(nodes, "x:f:1 n:i: end:f:", "negative:f:q rows:f:r,1 s:f:1", weights)
    x = np.ones(1, np.float32)
    calls = [(x, np.array(n), np.float32(end)) for n, end in ((3, 40), (1, 40), (50, 0))]
    exe = calls_as_onnx(proto, *calls)
    assert 'bounds = [[""], ["loop.iterations+loop.start"]]' in exe.ir("graph")
    if by == "a number" and not all_tests:
        return
    close(exe.run_at("llvm", *calls[0]), exe(*calls[0]))
    again = sw.compile(sw.from_mlir(exe.ir("buffers"), exe.weights("buffers")), threads=1)
    close(again(*calls[0]), exe(*calls[0]))


def test_what_is_stacked_has_its_declared_size() -> None:
    nodes = [
        make_node("Identity", ["more"], ["again"]),
        make_node("Unsqueeze", ["i", "zero"], ["start"]),
        make_node("Add", ["start", "one"], ["end"]),
        make_node("Slice", ["x", "start", "end"], ["part"]),
        make_node("Add", ["h", "part"], ["sum"]),
        make_node("Identity", ["sum"], ["row"]),
    ]
    step = body(nodes, "i:i: more:b: h:f:1,2", "again:b: sum:f:1,2 row:f:1,2")
    weights = {"one": np.array([1]), "zero": np.array([0]), "h": np.zeros((1, 2), np.float32)}
    node = make_node("Loop", ["m", "", "h"], ["last", "rows"], name="each", body=step)
    exe = compiled(model([node], "m:i: x:f:n,2", "last:f:1,2 rows:f:m,1,2", weights))
    x = numbers(4, 2)
    _, rows = exe(np.array(3), x)
    np.testing.assert_allclose(rows, np.cumsum(x[:3], 0)[:, None], rtol=1e-6)
    with pytest.raises(InputError, match="each"):
        exe(np.array(3), x[:2])


def test_states_whose_size_is_another_one_after_the_body(all_tests: bool) -> None:
    """As many rows as there are indices; some of those before; and as many as iterations ago."""
    again = make_node("Identity", ["more"], ["again"])
    gathered = [again, make_node("Gather", ["h", "at"], ["k"], axis=0)]
    fewer = [
        make_node("ReduceMax", ["h"], ["most"], axes=[1], keepdims=0),
        make_node("Greater", ["most", "least"], ["large"]),
        make_node("Compress", ["h", "large"], ["some"], axis=0),
        make_node("Mul", ["some", "half"], ["k"]),
    ]
    wide = [
        again,
        make_node("MatMul", ["v", "h"], ["k"]),
        make_node("ReduceSum", ["k"], ["o"], axes=[0], keepdims=0),
    ]
    rows = [make_node("MatMul", ["v", "h"], ["u"]), make_node("Add", ["u", "row"], ["k"])]
    state = "i:i: more:b: h:f:n,3", "again:b: k:f:q,3"
    nodes = [
        make_node("Loop", ["m", "yes", "x"], ["a"], body=body(gathered, *state)),
        make_node("Loop", ["m", "yes", "x"], ["b"], body=body([again, *fewer], *state)),
        make_node(
            "Loop", ["m", "yes", "x"], ["c", "d"], body=body(wide, state[0], f"{state[1]} o:f:3")
        ),
        make_node(
            "Scan",
            ["x", "xs"],
            ["e", "f"],
            num_scan_inputs=1,
            body=body(
                [*rows, make_node("Neg", ["k"], ["o"])], "h:f:n,3 row:f:3", "k:f:q,3 o:f:q,3"
            ),
        ),
    ]
    weights = {"yes": np.array(True), "least": np.float32(0.2), "half": np.float32(0.5)}
    inputs = "m:i: x:f:n,3 at:i:j v:f:l,l xs:f:t,3"
    outputs = "a:f:p,3 b:f:q,3 c:f:r,3 d:f:w,3 e:f:s,3 f:f:t,s,3"
    proto = model(nodes, inputs, outputs, weights, opset=12)
    calls = list[tuple[np.ndarray, ...]]()
    for m in (1, 4):
        given = numbers(4, 3), np.array([0, 3, 1, 1, 2]), numbers(4, 4), numbers(2, 3)
        calls.append((np.array(m), *given))
    exe = calls_as_onnx(proto, *calls)
    if all_tests:
        close(exe.run_at("llvm", *calls[1]), exe(*calls[1]))
    none = exe(np.array(0), *calls[0][1:])
    assert [array.shape[0] for array in none] == [4, 4, 4, 0, 4, 2]


def test_sizes_of_what_a_region_has_are_data(all_tests: bool) -> None:
    """That of what a loop carries and of slices; that of an input of flags."""
    grown = [
        make_node("Identity", ["more"], ["again"]),
        make_node("Concat", ["h", "row"], ["k"], axis=0),
        make_node("Shape", ["k"], ["rows"], start=0, end=1),
        make_node("Slice", ["w", "zero", "rows"], ["part"]),
        make_node("ReduceSum", ["part"], ["o"]),
    ]
    step = body(grown, "i:i: more:b: h:f:n,3", "again:b: k:f:q,3 o:f:1")
    sliced = [
        make_node("Shape", ["row2"], ["count"]),
        make_node("Slice", ["w", "zero", "count"], ["part"]),
        make_node("ReduceSum", ["part"], ["total"], keepdims=0),
        make_node("Add", ["row2", "total"], ["o2"]),
    ]
    nodes = [
        make_node("Loop", ["many", "yes", "x"], ["a", "b"], body=step),
        make_node(
            "Scan", ["xs"], ["c"], body=body(sliced, "row2:f:k", "o2:f:k"), num_scan_inputs=1
        ),
        make_node("Shape", ["flags"], ["ends"]),
        make_node("Slice", ["w", "zero", "ends"], ["d"]),
        make_node("Expand", ["one", "ends"], ["e"]),
    ]
    weights = {"yes": np.array(True), "zero": np.array([0]), "many": np.array(70)}
    weights |= {"one": np.ones(1, np.float32)}
    inputs = "x:f:n,3 row:f:1,3 w:f:l xs:f:t,k flags:b:p"
    proto = model(nodes, inputs, "a:f:q,3 b:f:70,1 c:f:t,k d:f:u e:f:p", weights)
    given = numbers(1, 3), numbers(12), numbers(2, 5), np.array([True, False])
    exe = calls_as_onnx(proto, (numbers(4, 3), *given), (numbers(1, 3), *given))
    if all_tests:
        close(exe.run_at("llvm", numbers(4, 3), *given), exe(numbers(4, 3), *given))


def test_a_scan_in_both_directions_along_any_axis() -> None:
    nodes = [make_node("Add", ["h", "a"], ["k"]), make_node("Mul", ["k", "b"], ["o"])]
    step = body(nodes, "h:f:2 a:f:2 b:f:2", "k:f:2 o:f:2")
    node = make_node(
        "Scan",
        ["h0", "as", "bs"],
        ["last", "os"],
        body=step,
        num_scan_inputs=2,
        scan_input_axes=[0, -1],
        scan_input_directions=[0, 1],
        scan_output_axes=[1],
        scan_output_directions=[1],
    )
    proto = model([node], "h0:f:2 as:f:5,2 bs:f:2,5", "last:f:2 os:f:2,5")
    h, a, b = numbers(2), numbers(5, 2), numbers(2, 5)
    state, expected = h, np.empty((2, 5), np.float32)
    for t in range(5):
        state = state + a[t]
        expected[:, 4 - t] = state * b[:, 4 - t]
    last, outputs = compiled(proto)(h, a, b)
    np.testing.assert_allclose(last, state, rtol=1e-5)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5)


def test_a_scan_of_batches() -> None:
    nodes = [make_node("Add", ["h", "a"], ["k"]), make_node("Identity", ["k"], ["o"])]
    step = body(nodes, "h:f:2 a:f:2", "k:f:2 o:f:2")
    node = make_node("Scan", ["", "h0", "as"], ["last", "os"], body=step, num_scan_inputs=1)
    proto = model([node], "h0:f:b,2 as:f:b,t,2", "last:f:b,2 os:f:b,t,2", opset=8)
    h, a = numbers(3, 2), numbers(3, 4, 2)
    last, outputs = compiled(proto)(h, a)
    expected = h[:, None] + np.cumsum(a, 1)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, expected[:, -1], rtol=1e-5, atol=1e-6)


def test_a_condition_in_a_loop_reads_what_the_loop_carries() -> None:
    then = body([make_node("Mul", ["h", "w"], ["u"])], "", "u:f:3")
    orelse = body([make_node("Identity", ["h"], ["v"])], "", "v:f:3")
    nodes = [
        make_node("Identity", ["more"], ["again"]),
        make_node("Less", ["i", "n"], ["early"]),
        make_node("If", ["early"], ["k"], then_branch=then, else_branch=orelse),
    ]
    step = body(nodes, "i:i: more:b: h:f:3", "again:b: k:f:3")
    node = make_node("Loop", ["m", "", "x"], ["y"], body=step)
    proto = model([node], "m:i: n:i: x:f:3", "y:f:3", {"w": numbers(3)})
    exe = compiled(proto)
    for n, times in ((0, 0), (2, 2), (9, 6)):
        expected = numbers(3) * numbers(3) ** times
        got = exe(np.array(6), np.array(n), numbers(3))
        np.testing.assert_allclose(got, expected, rtol=1e-5)


REFUSED = {
    "scan outputs need a largest number of iterations, operand 0": (  # it has no end
        "more:b: h:f:3",
        "again:b: k:f:3 p:f:3",
        "y:f:3 rows:f:m,3",
        ["Mul"],
    ),
    r"loop state 0 changes from float32 \[3\] to float32 \[2\*size.0\], which has no known": (
        "more:b: h:f:3",
        "again:b: k:f:6",
        "y:f:3",
        ["Concat"],
    ),
}


def test_stacked_slices_of_sizes_of_an_iteration_are_refused() -> None:
    own = [make_node("NonZero", ["s"], ["at"]), make_node("Squeeze", ["at", "zero"], ["o"])]
    node = make_node("Scan", ["x"], ["y"], body=body(own, "s:f:3", "o:i:q"), num_scan_inputs=1)
    message = r"stacked output 0 has a size that an iteration computes: int64 \[size.0\]"
    with pytest.raises(ImportModelError, match=message):
        sw.from_onnx(model([node], "x:f:n,3", "y:i:n,q", {"zero": np.array([0])}))


@pytest.mark.parametrize("reason", REFUSED)
def test_what_a_region_cannot_express_is_refused(reason: str) -> None:
    inputs, outputs, results, (operator,) = REFUSED[reason]
    made = {"axis": 0} if operator == "Concat" else {}
    nodes = [
        make_node("Identity", ["more"], ["again"]),
        make_node(operator, ["h", "h"], ["k"], **made),
        make_node("Add", ["h", "h"], ["p"]),
    ]
    names = [text.partition(":")[0] for text in results.split()]
    step = body(nodes, f"i:i: {inputs}", outputs)
    ends = ["", "c"] if operator == "Mul" else ["m", ""]
    node = make_node("Loop", [*ends, "x"], names, name="repeat", body=step)
    with pytest.raises(ImportModelError, match=reason):
        sw.from_onnx(model([node], "m:i: c:b: x:f:3", results))


def test_scanned_inputs_of_different_lengths_are_refused() -> None:
    step = body([make_node("Add", ["a", "b"], ["o"])], "a:f:2 b:f:2", "o:f:2")
    node = make_node("Scan", ["as", "bs"], ["os"], name="pairs", body=step, num_scan_inputs=2)
    message = r'numbers of iterations differ, expected 5, got 4 \(node "pairs"\)'
    with pytest.raises(ImportModelError, match=message):
        sw.from_onnx(model([node], "as:f:5,2 bs:f:4,2", "os:f:5,2"))
    symbolic = compiled(model([node], "as:f:m,2 bs:f:n,2", "os:f:m,2"))
    with pytest.raises(InputError, match="must agree, expected 5, got 4"):
        symbolic(numbers(5, 2), numbers(4, 2))


def test_conditions_and_counts_that_are_no_scalars_are_refused() -> None:
    branch = {n: body([make_node("Relu", ["x"], [n])], "", f"{n}:f:3") for n in ("s", "t")}
    node = make_node("If", ["p"], ["y"], then_branch=branch["s"], else_branch=branch["t"])
    with pytest.raises(ImportModelError, match=r"onnx.If: not a single element, expected a scalar"):
        sw.from_onnx(model([node], "p:b:2 x:f:3", "y:f:3"))
    step = body(
        [*LOOP[:1], make_node("Add", ["h", "x"], ["k"])], "i:i: more:b: h:f:3", "again:b: k:f:3"
    )
    for most, message in (("n", "not a single element"), ("", "the loop has no end")):
        node = make_node("Loop", [most, "", "x"], ["y"], body=step)
        with pytest.raises(ImportModelError, match=rf"onnx.Loop: {message}, expected"):
            sw.from_onnx(model([node], "n:i:2 x:f:3", "y:f:3"))


def test_branches_of_different_sizes() -> None:
    """Two results whose sizes differ in the same way have one size."""
    then = [make_node("Relu", ["x"], ["u"]), make_node("Neg", ["x"], ["u2"])]
    orelse = [make_node("Concat", ["x", "x"], ["v"], axis=0), make_node("Abs", ["v"], ["v2"])]
    branches = {
        "then_branch": body(then, "", "u:f:n,3 u2:f:n,3"),
        "else_branch": body(orelse, "", "v:f:k,3 v2:f:k,3"),
    }
    nodes = [make_node("If", ["p"], ["a", "b"], **branches), make_node("Add", ["a", "b"], ["y"])]
    proto = model(nodes, "p:b: x:f:n,3", "y:f:m,3")
    exe, x = compiled(proto), numbers(5, 3)
    twice = np.concatenate([x, x])
    for holds, expected in ((True, np.maximum(x, 0) - x), (False, twice + np.abs(twice))):
        np.testing.assert_array_equal(exe(np.array(holds), x), expected)


WRONG = {
    "shapes": make_node("MatMul", ["x", "w"], ["u"], name="wrong"),
    "operator": make_node("NoSuchOperator", ["x"], ["u"], name="wrong"),
}
WHY = {
    "shapes": r'node "choice/wrong": MatMul \(opset 18\): inner dim.* differ, expected 4, got 7',
    "operator": 'node "choice/wrong": NoSuchOperator \\(opset 18\\): no such operator in ONNX',
}


BRANCHES = list(itertools.product(WRONG, (True, False)))


@pytest.mark.parametrize("case", cases(BRANCHES, [("shapes", True), ("operator", False)]), ids=str)
def test_a_branch_that_cannot_be_converted_is_an_error_when_it_is_taken(
    case: tuple[str, bool],
) -> None:
    """What it demands of sizes before, that n is even, is not demanded of other calls."""
    kind, holds = case
    halves = make_node("Reshape", ["x", "shape"], ["halves"])
    wrong = body([halves, WRONG[kind], make_node("Neg", ["u"], ["u2"])], "", "u:f:n,5 u2:f:n,5")
    right = [make_node("Relu", ["x"], ["v"]), make_node("Compress", ["x", "some"], ["v2"], axis=0)]
    right = body(right, "", "v:f:n,4 v2:f:k,4")
    branches = (wrong, right) if holds else (right, wrong)
    named = dict(zip(("then_branch", "else_branch"), branches, strict=True))
    node = make_node("If", ["p"], ["y", "z"], name="choice", **named)
    weights = {"w": numbers(7, 5), "shape": np.array([2, -1, 4])}
    proto = model([node], "p:b: x:f:n,4 some:b:n", "z:f:k,4 y:f:n,4", weights)
    exe, x, some = compiled(proto), numbers(3, 4), np.array([True, False, True])
    z, y = exe(np.array(not holds), x, some)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(z, x[some])
    calls = [exe, sw.from_onnx(proto).run_reference]
    calls += [lambda *given, stage=s: exe.run_at(stage, *given) for s in ("fused", "buffers")]
    message = f'node "choice": the branch that is taken cannot be converted: {WHY[kind]}$'
    for run in calls:
        with pytest.raises(InputError, match=message):
            run(np.array(holds), x, some)
    assert re.search(f'branch "body" of "choice": left out, because .*{WHY[kind]}', exe.explain())


def test_branches_of_which_none_can_be_converted_are_refused() -> None:
    def choice_of(*branches: onnx.NodeProto) -> onnx.ModelProto:
        bodies = [body([node], "", "u:f:n") for node in branches]
        return model([choice("y", *bodies)], "p:b: x:f:3,4", "y:f:n", {"w": numbers(7, 5)})

    with pytest.raises(ImportModelError, match=f"^onnx.MatMul: inner .*{'wrong'}.\\)$"):
        sw.from_onnx(choice_of(WRONG["operator"], WRONG["shapes"]))
    with pytest.raises(ImportModelError, match="2 parts of the model are not supported\n") as error:
        sw.from_onnx(choice_of(WRONG["operator"], WRONG["operator"]))
    assert str(error.value).count("no such operator") == 2
    # What a branch needs from outside is needed whether it is taken or not.
    other = make_node("NoSuchOperator", ["x"], ["w"], name="before")
    bodies = [body([make_node(kind, ["w"], ["u"])], "", "u:f:n") for kind in ("Neg", "Relu")]
    with pytest.raises(ImportModelError, match=r"1 part of .*\n.*before"):
        sw.from_onnx(model([other, choice("y", *bodies)], "p:b: x:f:3,4", "y:f:n"))


def test_branches_of_different_ranks_where_nothing_needs_the_rank() -> None:
    then = [make_node("Squeeze", ["x"], ["u"]), make_node("Neg", ["x"], ["u2"])]
    orelse = [make_node("Identity", ["x"], ["v"]), make_node("Relu", ["x"], ["v2"])]
    bodies = body(then, "", "u:f:4 u2:f:1,4"), body(orelse, "", "v:f:1,4 v2:f:1,4")
    node = make_node("If", ["p"], ["a", "b"], then_branch=bodies[0], else_branch=bodies[1])
    x = numbers(1, 4)
    exe = compiled(model([node, make_node("Abs", ["a"], ["c"])], "p:b: x:f:1,4", "b:f:1,4"))
    for holds, expected in ((True, -x), (False, np.maximum(x, 0))):
        np.testing.assert_array_equal(exe(np.array(holds), x), expected)


def test_branches_of_different_ranks_are_refused() -> None:
    branches = {
        "then_branch": body([make_node("Relu", ["x"], ["u"])], "", "u:f:3"),
        "else_branch": body([make_node("ReduceSum", ["x"], ["v"], keepdims=0)], "", "v:f:"),
    }
    node = make_node("If", ["p"], ["y"], name="choice", **branches)
    message = r"different results 0: float32 \[3\] and float32 \[\]"
    with pytest.raises(ImportModelError, match=message):
        sw.from_onnx(model([node], "p:b: x:f:3", "y:f:n"))


def test_an_unsupported_node_in_a_body_is_reported_once() -> None:
    nodes = [
        make_node("Identity", ["more"], ["again"]),
        make_node("RandomNormalLike", ["h"], ["k"], name="noise"),
    ]
    step = body(nodes, "i:i: more:b: h:f:3", "again:b: k:f:3")
    node = make_node("Loop", ["m", "", "x"], ["y"], name="repeat", body=step)
    with pytest.raises(ImportModelError) as error:
        sw.from_onnx(model([node], "m:i: x:f:3", "y:f:3"))
    lines = str(error.value).splitlines()
    assert len(lines) == 2
    assert 'node "repeat/noise": RandomNormalLike' in lines[1]
