"""The language of rewrite rules: what an identity matches, and what it becomes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.traits import Commutative

import stepwell as sw
from stepwell.core.exactness import EXACT, Exactness, states
from stepwell.core.patterns.identity import side
from stepwell.core.patterns.matching import Matcher
from stepwell.core.provenance import names
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.op_builder import InsertingBuilder, graph_operators
from stepwell.dialects.graph.rules import IdentityRule, rule
from stepwell.tools.rule_list import all_rules

Build = Callable[..., Any]


def module_of(build: Build, kind: str = "f32") -> sw.Module:
    b = sw.Builder("main")
    b.output(build(b, *(b.input(name, ("n", 4), kind) for name in "xyz")))
    return b.module()


def rewritten(one: IdentityRule, build: Build, kind: str = "f32") -> list[str]:
    """The operators after one use of a rule, in order, without those that nothing uses."""
    module = module_of(build, kind)
    PatternRewriteWalker(one, apply_recursively=False).rewrite_module(module.op)
    module.verify()
    found = [op for op in module.op.walk() if op.name.startswith("graph.")]
    return [op.name.removeprefix("graph.") for op in found if any(r.uses for r in op.results)]


def always(text: str, **families: Any) -> IdentityRule:
    @rule(text, EXACT, **families)
    def some_rule() -> None: ...

    return some_rule


def test_a_rule_has_the_name_of_its_condition() -> None:
    one = always("x - -y == x + y")
    assert (one.name, one.identity, one.exactness) == ("SomeRule", "x - -y == x + y", EXACT)
    assert Exactness.of(one) is EXACT
    assert one.roots == (graph.SubOp,)


def test_operands_of_commutative_operators_match_in_either_order() -> None:
    one = always("x + y * -z == x - y * z")
    for build in (
        lambda b, x, y, z: x + y * b.neg(z),
        lambda b, x, y, z: b.neg(z) * y + x,
    ):
        assert rewritten(one, build)[-2:] == ["mul", "sub"]
    assert rewritten(always("x - -y == x + y"), lambda b, x, y, z: b.neg(y) - x)[-1] == "sub"


def test_a_name_is_one_value() -> None:
    one = always("x - x * y == x")
    assert rewritten(one, lambda b, x, y, z: b.exp(x - y * x)) == ["exp"]
    assert "sub" in rewritten(one, lambda b, x, y, z: b.exp(x - y * z))


def test_numbers_are_rounded_and_have_signs() -> None:
    one = always("x + 0.1 == -x")
    assert rewritten(one, lambda b, x, y, z: x + 0.1, "f16")[-1] == "neg"
    none = always("x + -0.0 == -x")
    assert rewritten(none, lambda b, x, y, z: x + b.constant(0.0, "f32"))[-1] == "add"
    assert rewritten(none, lambda b, x, y, z: x + b.constant(-0.0, "f32"))[-1] == "neg"


def test_a_number_may_be_none_of_an_integer_type() -> None:
    for text in ("x * -1 == x", "x * 0.5 == x", "x * 256 == x"):
        for build in (lambda b, x, y, z: x * 255, lambda b, x, y, z: x * 0):
            assert rewritten(always(text), build, "ui8")[-1] == "mul"
    assert rewritten(always("x * 255 == -x"), lambda b, x, y, z: x * 255, "ui8")[-1] == "neg"


def test_attributes_are_captured_required_or_anything() -> None:
    def softmax(axis: int) -> Build:
        return lambda b, x, y, z: b.log(b.softmax(x, axis=axis))

    kept = always("log(softmax(x, axis=a)) == log_softmax(x, axis=a)")
    module = module_of(softmax(0))
    PatternRewriteWalker(kept).rewrite_module(module.op)
    (new,) = [op for op in module.op.walk() if isinstance(op, graph.LogSoftmaxOp)]
    assert new.axis.value.data == 0
    one = always("log(softmax(x, axis=1)) == x")
    assert rewritten(one, softmax(1)) == []
    assert rewritten(one, softmax(0)) == ["softmax", "log"]
    assert rewritten(always("log(softmax(x)) == x"), softmax(0)) == []


def test_an_operand_that_is_not_written_is_absent() -> None:
    def layer(*bias: int) -> Build:
        return lambda b, x, y, z: b.dense(
            x, b.constant([[1.0] * 4] * 4, "f32"), *([1.0] * 4 for _ in bias)
        )

    one = always("dense(x, w) == matmul(x, w)")
    assert rewritten(one, layer())[-1] == "matmul"
    assert rewritten(one, layer(1))[-1] == "dense"


def test_a_family_matches_as_written_unless_all_are_commutative() -> None:
    as_written = always("f(x, exp(y)) == f(x, y)", f=graph.BinaryOp)
    either = always("f(x, exp(y)) == f(x, y)", f=(graph.BinaryOp, Commutative))
    assert rewritten(as_written, lambda b, x, y, z: b.exp(x) * y) == ["exp", "mul"]
    assert rewritten(either, lambda b, x, y, z: b.exp(x) * y) == ["mul"]
    assert rewritten(as_written, lambda b, x, y, z: x - b.exp(y)) == ["sub"]
    assert rewritten(either, lambda b, x, y, z: x - b.exp(y)) == ["exp", "sub"]


def test_numbers_stand_for_names() -> None:
    one = always("f(x, e) == x", f=graph.BinaryOp)
    assert rewritten(one.of(e=2), lambda b, x, y, z: b.exp(x / 2)) == ["exp"]
    assert rewritten(one.of(e=3), lambda b, x, y, z: b.exp(x / 2))[-2:] == ["div", "exp"]


def test_a_condition_refuses_or_adds_names() -> None:
    seen: list[tuple[str, str]] = []

    @rule("(t := x + y) * c == x * factor  in another world", EXACT)
    def changed(op: graph.MulOp, t: SSAValue, c: SSAValue) -> dict[str, float] | None:
        seen.append((op.name, t.owner.name))  # type: ignore[union-attr]
        return {"factor": 7.0} if graph.splat_of(c) == 2 else None

    assert rewritten(changed, lambda b, x, y, z: (x + y) * 2) == ["constant", "mul"]
    assert rewritten(changed, lambda b, x, y, z: (x + y) * 3)[-1] == "mul"
    assert set(seen) == {("graph.mul", "graph.add")}


def test_a_condition_may_build_the_replacement() -> None:
    @rule("x ** c == a product of n factors x  for whole n", EXACT)
    def product(b: InsertingBuilder, x: SSAValue, c: SSAValue) -> SSAValue | None:
        made = x
        for _ in range(int(graph.splat_of(c) or 0) - 1):
            made = b.mul(made, x)
        return made if graph.splat_of(c) != 5 else None

    assert rewritten(product, lambda b, x, y, z: b.pow(x, 3)) == ["mul", "mul"]
    assert rewritten(product, lambda b, x, y, z: b.pow(x, 5)) == ["constant", "pow"]


def test_a_replacement_of_another_type_is_refused() -> None:
    one = always("x - y == x")
    assert rewritten(one, lambda b, x, y, z: b.exp(x - y)) == ["exp"]
    assert rewritten(one, lambda b, x, y, z: b.constant([0.0] * 4, "f32") - y) == [
        "constant",
        "sub",
    ]


def test_a_replacement_has_the_names_of_what_it_replaces() -> None:
    module = module_of(lambda b, x, y, z: b.sub(x, b.neg(y, name="minus"), name="less"))
    PatternRewriteWalker(always("x - -y == x + y")).rewrite_module(module.op)
    (new,) = [op for op in module.op.walk() if isinstance(op, graph.AddOp)]
    assert names(new) == ("minus", "less")


def test_it_may_become_a_composite() -> None:
    one = always("x * sigmoid(x) == silu(x)")
    assert rewritten(one, lambda b, x, y, z: b.sigmoid(x) * x) == ["silu"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + y", r'rule "x \+ y": it is no equation, expected left == right'),
        ("x + == y", r'rule "x \+ == y": "x \+" is no expression'),
        ("x == x + 0", "its left side is no operator"),
        ("add(sin_of(x), y) == x", 'no operator "sin_of"'),
        ("add(x[0], y) == x", r"x\[0\] has no meaning"),
        ("concat([x, y], axis=0) == x", "has no meaning"),
    ],
)
def test_mistakes_in_a_text(text: str, message: str) -> None:
    with pytest.raises(sw.CompileError, match=message):
        rewritten(always(text), lambda b, x, y, z: b.concat([x + y, x], axis=0))


def test_lists_of_operands_cannot_be_written() -> None:
    with pytest.raises(
        sw.CompileError, match=r"graph\.concat has several optional operands, or lists"
    ):
        rewritten(always("concat(x, axis=0) == x"), lambda b, x, y, z: b.concat([x], axis=0))


def test_a_class_states_its_identities() -> None:
    @states(EXACT, "a == b", "c == d")
    class Some: ...

    assert (Some.identity, Exactness.of(Some)) == ("a == b\nc == d", EXACT)  # type: ignore[attr-defined]


WRITTEN = {r.name: r for r in all_rules().values() if isinstance(r, IdentityRule)}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_identity_compiles(name: str) -> None:
    """The right side too, unless the condition builds it."""
    one = WRITTEN[name]
    known = {"e": 1.0} if " e)" in one.identity else {}
    for kind in graph_operators().values():
        finder = one.of(**known).finder_of(kind)
        if finder is not None and "b" not in inspect.signature(one.condition).parameters:
            side(one.sides.right, {})


def _refusing(found: list[object], op: Operation, values: Any, below: Any) -> bool:
    """Note a match, and go on with the next one."""
    found.append(values)
    return False


def test_compiled_and_explaining_matchers_agree() -> None:
    """On each operator of a few programs, for each rule without a condition."""
    programs: list[Build] = [
        lambda b, x, y, z: b.neg(x) * b.neg(y) - b.neg(z),
        lambda b, x, y, z: 1 / (b.exp(b.neg(x)) + 1) + b.neg(b.neg(y)),
        lambda b, x, y, z: b.log(b.softmax(x, axis=1)) * -1 + 2 * z / 3 + 5 + 6,
        lambda b, x, y, z: b.max(x, x) + b.relu(b.relu(y)) + b.cast(b.cast(z, "f64"), "f32"),
    ]
    matches = 0
    for build in programs:
        module = module_of(build)
        for op in module.op.walk():
            for one in WRITTEN.values():
                finder = one.finder_of(type(op))
                if finder is None:
                    continue
                found = list[object]()
                finder.find(op, _refusing, found)
                matcher = Matcher([finder.term], op.parent)
                states = [state for state, _ in matcher.states(op.results[0])]
                assert bool(states) <= bool(found), one.name
                matches += bool(states)
    assert matches > 10
