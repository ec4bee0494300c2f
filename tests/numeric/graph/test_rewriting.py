"""Rewriting and grouping by patterns keep what a program computes, or refuse as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

import stepwell as sw
from stepwell import patterns as p
from stepwell.core.ir.provenance import names
from stepwell.core.pipelines.decisions import Decision
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.frontends.builder import Builder, Value
from stepwell.passes.graph.fusion.outlining import has_kernel

from ...harness import close, floats


def program(build: Callable[..., Any], *shapes: tuple[int | str, ...]) -> sw.Module:
    b = Builder()
    values = [b.input(f"x{n}", shape) for n, shape in enumerate(shapes)]
    returned = build(b, *values)
    for value in returned if isinstance(returned, tuple) else (returned,):
        b.output(value)
    return b.module()


def operators(module: sw.Module) -> list[str]:
    found = [op.name.removeprefix("graph.") for op in module.main.body.block.ops]
    return [name for name in found if name not in ("constant", "func.return")]


def primitives(module: sw.Module) -> dict[str, list[str]]:
    """The operators of each primitive function."""
    functions = [f for f in module.op.ops if isinstance(f, func.FuncOp)]
    return {
        f.sym_name.data: [
            op.name.removeprefix("graph.") for op in f.walk() if isinstance(op, GraphOp)
        ]
        for f in functions
        if "graph.primitive" in f.attributes
    }


def as_before(before: sw.Module, after: sw.Module, *inputs: Any, tolerance: float = 1e-6) -> None:
    """Compare what the references of two programs give."""
    want, have = (module.run_reference(*inputs) for module in (before, after))
    close(have, want, tolerance, what=str(after))


@p.pattern
def multiply_add(x, y, z):
    return p.add(p.mul(x, y, name="product"), z)


@p.rewrite(multiply_add)
def fused(b, x, y, z):
    return b.fma(x, y, z)


@p.pattern
def identity(x):
    return p.neg(p.neg(x))


@p.rewrite(identity)
def nothing(b, x):
    return x


class TestApply:
    @pytest.mark.parametrize("rows", [1, 3, "n"])
    def test_multiply_add(self, rows: int | str) -> None:
        module = program(lambda b, x: b.relu(3 * x + floats(5)) * x + 2, (rows, 5))
        text = str(module)
        after = p.apply(module, [fused])
        assert operators(after) == ["fma", "relu", "fma"]
        assert str(module) == text
        x = floats(3 if rows == "n" else int(rows), 5)
        as_before(module, after, x)
        np.testing.assert_allclose(sw.compile(after)(x), module.run_reference(x), rtol=1e-5)

    def test_a_product_with_another_user_stays(self) -> None:
        module = program(lambda b, x: ((y := x * x) + 1, b.exp(y)), (5,))
        assert operators(p.apply(module, [fused])) == operators(module)

    def test_the_new_operator_stands_for_all_matched_nodes(self) -> None:
        module = program(lambda b, x: b.add(b.mul(x, x, name="m"), x, name="a"), (5,))
        decisions: list[Decision] = []
        after = p.apply(module, [fused], decisions=decisions)
        (op,) = (op for op in after.op.walk() if isinstance(op, graph.FmaOp))
        assert names(op) == ("m", "a")
        assert [str(d) for d in decisions] == [
            'nodes "m", "a": rewritten by "fused", because its pattern matches'
        ]

    def test_to_a_fixpoint_or_once(self) -> None:
        def chain(b: Builder, x: Value) -> Value:
            for _ in range(9):
                x = b.neg(x)
            return x

        module = program(chain, (5,))
        assert operators(p.apply(module, [nothing])) == ["neg"]

        @p.pattern
        def negation(x):
            return p.neg(x)

        @p.rewrite(negation)
        def twice(b, x):
            return b.neg(b.neg(b.neg(x)))

        assert operators(p.apply(module, [twice], once=True)) == ["neg"] * 27

    def test_several_results(self) -> None:
        @p.pattern
        def siblings(x, v=p.constant(), w=p.constant()):
            return p.dense(x, v), p.dense(x, w)

        @p.rewrite(siblings)
        def one(b, x, v, w):
            n = v.shape[0]
            wide = b.dense(x, b.concat([v, w], axis=0))
            return b.slice(wide, [0, 0], [3, n]), b.slice(wide, [0, n], [3, n + w.shape[0]])

        # The second product comes after an operator that needs the first.
        def branches(b: Builder, x: Value) -> tuple[Value, ...]:
            first = b.dense(x, floats(2, 4))
            between = b.relu(first)
            return between, b.dense(x, floats(5, 4)), first

        module = program(branches, (3, 4))
        after = p.apply(module, [one])
        assert operators(after).count("dense") == 1
        as_before(module, after, floats(3, 4))

    def test_arrays_of_a_replacement_go_into_the_weight_store(self) -> None:
        w = floats(5, 4)

        @p.pattern
        def pattern(x):
            return p.relu(x)

        @p.rewrite(pattern)
        def other(b, x):
            return b.max(x, b.constant(np.zeros(4, np.float32), "floor"))

        module = program(lambda b, x: b.dense(b.relu(x), w), (3, 4))
        after = p.apply(module, [other])
        assert "floor" in after.weights
        assert "floor" not in module.weights
        as_before(module, after, floats(3, 4))

    def test_names_of_operators_and_the_match(self) -> None:
        seen: list[Any] = []

        @p.rewrite(multiply_add)
        def look(b, product, match, x):
            seen.append((product.name, match.pattern, x.dtype))
            return b.fma(x, Value(b, match["y"]), Value(b, match["z"]))

        p.apply(program(lambda b, x: x * x + x, (5,)), [look])
        assert seen == [("graph.mul", multiply_add, "f32")]

    def test_declared_sizes_are_kept(self) -> None:
        """What a type declares is not hidden by an operator that infers less."""
        text = """
            func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<3x4xf32> {
              %m = graph.mul %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
              %a = graph.add %m, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<3x4xf32>
              func.return %a : tensor<3x4xf32>
            }
        """
        after = p.apply(sw.from_mlir(text), [fused])
        (op,) = (op for op in after.op.walk() if isinstance(op, graph.FmaOp))
        assert str(op.result.type) == "tensor<3x4xf32>"

    def test_dead_operators_go(self) -> None:
        module = program(lambda b, x: (b.exp(x), x * x + 1)[1], (5,))
        assert operators(module) == ["exp", "mul", "add"]
        assert operators(p.apply(module, [fused])) == ["fma"]


class NegTwice(RewritePattern):
    # -(-x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.NegOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, graph.NegOp):
            rewriter.replace(op, (), (inner.x,))


class TestWithXdsl:
    def test_patterns_of_xdsl(self) -> None:
        decisions: list[Decision] = []
        module = program(lambda b, x: b.neg(b.neg(x * x)) + 1, (5,))
        after = p.apply(module, [NegTwice(), fused], decisions=decisions)
        assert operators(after) == ["fma"]
        assert [d.what for d in decisions] == ['rewritten by "NegTwice"', 'rewritten by "fused"']

    def test_a_rule_in_a_walker_of_xdsl(self) -> None:
        module = program(lambda b, x: x * x + 1, (5,))
        PatternRewriteWalker(fused).rewrite_module(module.op)
        module.verify()
        assert operators(module) == ["fma"]

    def test_a_rule_without_a_weight_store(self) -> None:
        @p.rewrite(multiply_add)
        def wrong(b, x, y, z):
            return b.fma(x, y, b.add(z, floats(5)))

        module = program(lambda b, x: x * x + 1, (5,))
        (op,) = (op for op in module.op.walk() if isinstance(op, graph.AddOp))
        text = str(module)
        message = 'rewrite "wrong": there is no weight store for its arrays'
        with pytest.raises(sw.CompileError, match=message):
            wrong.match_and_rewrite(op, PatternRewriter(op))
        assert str(module) == text

    def test_in_a_pass(self) -> None:
        module = program(lambda b, x: x * x + 1, (5,))
        ctx = make_context(module.weights)
        assert p.rewrite_module(ctx, module.op, [fused]) == 1
        assert [d.what for d in ctx.decisions] == ['rewritten by "fused"']
        assert operators(module) == ["fma"]


def swapped(b: Builder, x: Value, y: Value, z: Value) -> Value:
    return b.add(z, b.mul(x, y))


OTHER = "result 0 has another type, expected tensor<5xf32>, got "


class TestRefused:
    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (swapped, "was applied 51 times and matches again, expected at most 50"),
            (lambda b, x: b.exp(b.reduce(x, "sum", [0])), OTHER + "tensor<f32>"),
            (lambda b, x: b.cast(x, "f16"), OTHER + "tensor<5xf16>"),
            (lambda b, x: (x, x), "wrong number of results, expected 1, got 2"),
            (lambda b, x: None, "wrong result, expected values of its builder, got NoneType"),
            (lambda b, x: 1.0, "wrong result, expected values of its builder, got float"),
            (lambda b, x: Builder().input("x", (5,)), "wrong result, expected values of its"),
            (lambda b, match: Value(b, match.roots[0]), "result 0 is one of the values to replace"),
            (lambda b, x: 1 / 0, "raised ZeroDivisionError: division by zero"),
            (lambda b, x: b.dense(x, floats(3, 3)), "graph.dense: inner dimensions differ"),
            (lambda b, x: b.rleu(x), 'raised AttributeError: Builder: no operator "rleu"; nearest'),
        ],
    )  # fmt: skip
    def test_replacement(self, function: Callable[..., Any], message: str) -> None:
        module = program(lambda b, x: b.add(b.mul(x, x, name="m"), x, name="a"), (5,))
        text = str(module)
        with pytest.raises(sw.CompileError, match=re.escape(message)) as caught:
            p.apply(module, [p.rewrite(multiply_add, name="r")(function)])
        assert str(caught.value).startswith('rewrite "r": ')
        assert 'node "m"' in str(caught.value) or 'nodes "m", "a"' in str(caught.value)
        assert str(module) == text
        assert not list(module.weights)

    def test_a_limit_of_ones_own(self) -> None:
        module = program(lambda b, x: x * x + 1, (5,))
        with pytest.raises(sw.CompileError, match="was applied 8 times and matches again"):
            p.apply(module, [p.rewrite(multiply_add)(swapped)], limit=7)

    def test_a_pattern_of_xdsl_that_raises_or_breaks(self) -> None:
        class Raises(RewritePattern):
            def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
                raise ValueError("no")

        class Breaks(RewritePattern):
            @op_type_rewrite_pattern
            def match_and_rewrite(self, op: graph.ExpOp, rewriter: PatternRewriter) -> None:
                rewriter.replace(op, graph.ReduceOp(op.x, "sum", [0]))

        module = program(lambda b, x: b.exp(x), (5,))
        text = str(module)
        with pytest.raises(sw.CompileError, match='rewrite "Raises": raised ValueError: no'):
            p.apply(module, [Raises()])
        with pytest.raises(sw.CompileError, match="patterns: the result does not verify: "):
            p.apply(module, [Breaks()])
        assert str(module) == text

    def test_what_is_no_rule(self) -> None:
        module = program(lambda b, x: b.exp(x), (5,))
        for call, message in (
            (lambda: p.apply(module, [multiply_add]), "rewrite: wrong rule, expected a rewrite of"),
            (
                lambda: p.apply(module.op, [fused]),
                "patterns: not a module, expected stepwell.Module",
            ),
            (lambda: p.rewrite(fused), "rewrite: not a pattern, expected a pattern, got Rule"),
            (
                lambda: p.rewrite(multiply_add)(lambda b, w: w),
                'pattern "multiply_add" has no "w", expected x, y, z, product, match',
            ),
            (lambda: p.group(module, {"a": fused}), 'group "a": no pattern, expected a pattern'),
            (lambda: p.group(module, {"a b": multiply_add}), 'group "a b": bad function name'),
        ):
            with pytest.raises(sw.CompileError, match=re.escape(message)):
                call()


@p.pattern
def dense_add(x, w, c):
    return p.add(p.dense(x, w), c)


class TestGroup:
    def model(self, rows: int | str) -> sw.Module:
        def build(b: Builder, x: Value) -> Value:
            for name in ("fc1", "fc2", "fc3"):
                h = b.dense(x, floats(4, 4), name=name)
                x = b.relu(b.add(h, floats(4), name=f"{name}.bias"))
            return x

        return program(build, (rows, 4))

    @pytest.mark.parametrize("rows", [1, 3, "n"])
    @pytest.mark.parametrize("level", [0, 3])
    def test_equal_groups_share_a_function(self, rows: int | str, level: int) -> None:
        module = self.model(rows)
        text = str(module)
        after = p.group(module, {"dense_add": dense_add})
        assert str(module) == text
        assert primitives(after) == {"dense_add": ["dense", "add"]}
        assert operators(after) == ["func.call", "relu"] * 3
        x = floats(3 if rows == "n" else int(rows), 4)
        as_before(module, after, x)
        exe = sw.compile(after, opt_level=level)
        np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5, atol=1e-6)
        assert re.findall(r"loop.kernel @(\w+)", exe.ir("kernels")).count("dense_add") == 1

    def test_fusion_leaves_the_group_as_it_is(self) -> None:
        exe = sw.compile(p.group(self.model(3), {"dense_add": dense_add}))
        assert exe.ir("fused").count("call @dense_add(") == 3
        assert exe.ir("fused").count("call @fused_relu(") == 3

    def test_first_pattern_first(self) -> None:
        @p.pattern
        def with_relu(x):
            return p.relu(p.add(p.dense(x, ...), ...))

        after = p.group(self.model(3), {"layer": with_relu, "dense_add": dense_add})
        assert primitives(after) == {"layer": ["dense", "add", "relu"]}
        after = p.group(self.model(3), {"dense_add": dense_add, "layer": with_relu})
        assert primitives(after) == {"dense_add": ["dense", "add"]}

    def test_other_shapes_are_other_functions(self) -> None:
        module = program(
            lambda b, x: b.add(
                b.dense(b.add(b.dense(x, floats(5, 4)), 1.0), floats(4, 5)), floats(4)
            ),
            (3, 4),
        )
        after = p.group(module, {"main": dense_add})
        # The literal is in its function, the vector an argument.
        assert primitives(after) == {
            "main_1": ["dense", "add"],
            "main_2": ["dense", "constant", "add"],
        }
        as_before(module, after, floats(3, 4))

    def test_several_results_with_an_operator_between(self) -> None:
        @p.pattern
        def pair(x):
            h = p.exp(x)
            return h, p.tanh(h)

        def build(b: Builder, x: Value) -> tuple[Value, Value]:
            h = b.exp(x)
            other = b.relu(h)
            return b.tanh(h), b.sub(other, h)

        module = program(build, (3, 4))
        after = p.group(module, {"pair": pair})
        assert primitives(after) == {"pair": ["exp", "tanh"]}
        x = floats(3, 4)
        as_before(module, after, x)
        for have, want in zip(sw.compile(after)(x), module.run_reference(x), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5)

    def test_no_cycles_between_groups(self) -> None:
        """Each of two groups could be outlined, but then each would need the other."""

        @p.pattern
        def first(x, y):
            s = p.neg(x)
            return p.exp(s), p.mul(p.tanh(s), y)

        @p.pattern
        def second(x, y):
            s = p.abs(x)
            return p.sin(s), p.sub(p.cos(s), y)

        def build(b: Builder, x: Value) -> tuple[Value, Value]:
            s, t = b.neg(x), b.abs(x)
            e, sine = b.exp(s), b.sin(t)
            return b.mul(b.tanh(s), b.relu(sine)), b.sub(b.cos(t), b.relu(e))

        module = program(build, (3, 4))
        assert first.matches(module)
        assert second.matches(module)
        after = p.group(module, {"first": first, "second": second})
        assert list(primitives(after)) == ["first"]
        as_before(module, after, floats(3, 4))

    def test_decisions_and_places(self) -> None:
        decisions: list[Decision] = []
        after = p.group(self.model(3), {"dense_add": dense_add}, decisions=decisions)
        assert str(decisions[-1]) == (
            "@dense_add: one kernel for graph.dense, graph.add, "
            'because pattern "dense_add" matches nodes "fc1", "fc1.bias"'
        )
        call = next(op for op in after.op.walk() if isinstance(op, func.CallOp))
        assert names(call) == ("fc1", "fc1.bias")

    def test_what_cannot_be_in_a_kernel(self) -> None:
        @p.pattern
        def normalized(a, x):
            return p.spmm(p.normalize(a), x)

        b = Builder()
        a, x = b.input("a", sw.SparseSpec((4, 4))), b.input("x", (4, 3))
        b.output(b.spmm(b.normalize(a, name="norm"), x))
        message = 'group "g": graph.normalize (node "norm") cannot be in a kernel; it does not'
        with pytest.raises(sw.CompileError, match=re.escape(message)):
            p.group(b.module(), {"g": normalized})


SETTINGS = settings(
    max_examples=settings().max_examples * 40 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def as_pattern(module: sw.Module) -> tuple[Operation, p.Pattern]:
    """What makes the first result of a program, and the pattern that describes all of it.

    Other results are roots too as far as they are connected with those before them.
    """
    block = module.main.body.block
    returned = cast(func.ReturnOp, block.last_op).arguments
    terms: dict[SSAValue, Any] = {arg: p.value() for arg in block.args}
    for op in block.ops:
        if isinstance(op, graph.ConstantOp):
            terms[op.result] = p.value(constant=True)
        elif isinstance(op, GraphOp):
            have = [getattr(op, name) for name, _ in op.get_irdl_definition().operands]
            operands = [
                [terms[part] for part in v] if isinstance(v, tuple) else v and terms[v]
                for v in have
            ]
            terms[op.results[0]] = p.op(type(op), *operands, **op.properties)
    roots = [v for v in dict.fromkeys(returned) if isinstance(v.owner, GraphOp)]
    assume(roots and not any(isinstance(v.owner, graph.ConstantOp) for v in roots))
    try:
        return cast(Operation, roots[0].owner), p.pattern(lambda: tuple(terms[v] for v in roots))
    except sw.CompileError:
        # Its results have nothing in common.
        reject()


@SETTINGS
@given(data=st.data())
def test_a_program_matches_itself(data: st.DataObject, programs: Any) -> None:
    module = data.draw(programs).module
    run_passes(make_context(module.weights), module.op, "graph-defuse")
    first, pattern = as_pattern(module)
    match = pattern.match(first)
    assert match is not None, pattern.explain(first) + str(module)
    other = data.draw(programs).module
    for op in other.main.body.block.ops:
        if op.results:
            assert pattern.explain(op).startswith('pattern "<lambda>" ')


@pytest.mark.parametrize("kind", [graph.AddOp, graph.MulOp, graph.ReluOp, graph.DenseOp])
@SETTINGS
@given(data=st.data())
def test_an_identity_keeps_the_results(kind: Any, data: st.DataObject, programs: Any) -> None:
    """Any operator of a kind, replaced by itself once, in any program."""
    case = data.draw(programs)
    pattern = p.pattern(lambda: p.op(kind, ...))

    @p.rewrite(pattern)
    def same(b, match):
        (op,) = match.ops
        values = [Value(b, v) for v in op.operands]
        return b.apply(kind, *values)

    after = p.apply(case.module, [same], once=True)
    as_before(case.module, after, *case.inputs, tolerance=0)


@SETTINGS
@given(data=st.data())
def test_groups_of_random_programs(
    data: st.DataObject, programs: Any, assert_same: Callable[..., Any]
) -> None:
    """Pairs and triples of operators are outlined, and put back, without a change."""
    case = data.draw(programs)

    def in_a_kernel(match: p.Match) -> bool:
        return all(has_kernel(op) and not isinstance(op, graph.ConstantOp) for op in match.ops)

    pure = p.pattern(when=in_a_kernel)
    first = pure(lambda: p.op(GraphOp, p.op(GraphOp, ...), ...))
    second = pure(lambda x=p.value(constant=False): (p.op(GraphOp, x), p.op(GraphOp, x)))
    after = p.group(case.module, {"chain": first, "siblings": second})
    as_before(case.module, after, *case.inputs, tolerance=0)
    assert_same(after, "graph-fuse-ops", *case.inputs)
