"""The language of rewrite rules: what an identity matches, and what it becomes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.rewriter import Rewriter
from xdsl.traits import Commutative

import stepwell as sw
from stepwell.core.ir.provenance import names
from stepwell.core.patterns.identity import side
from stepwell.core.patterns.matching import Matcher
from stepwell.core.patterns.terms import Rest, subterms
from stepwell.core.pipelines.exactness import EXACT, ROUNDING, SPECIAL, Exactness, states
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.known import sizes_of
from stepwell.dialects.graph.op_builder import InsertingBuilder, graph_operators
from stepwell.dialects.graph.rules import IdentityRule, rule
from stepwell.dialects.graph.traits import Homogeneous
from stepwell.passes.graph.rules.permission import Permission, RuleTable
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


def test_a_list_of_operands_has_any_length() -> None:
    def joined(*places: int) -> Build:
        return lambda b, x, y, z: b.exp(b.concat([(x, y, b.neg(z))[n] for n in places], axis=1))

    alone = always("concat([x]) == x")
    assert rewritten(alone, joined(0)) == ["exp"]
    assert rewritten(alone, joined(0, 0))[-2:] == ["concat", "exp"]
    last = always("exp(concat([*x, -y])) == sin(concat([*x, y], axis=1))")
    for places in ((2,), (0, 2), (0, 1, 2)):
        module = module_of(joined(*places))
        PatternRewriteWalker(last, apply_recursively=False).rewrite_module(module.op)
        (new,) = [op for op in module.op.walk() if isinstance(op, graph.SinOp)]
        assert len(new.x.owner.operands) == len(places)  # type: ignore[union-attr]
    assert rewritten(last, joined(2, 0))[-1] == "exp"


def test_each_place_of_a_list_is_tried() -> None:
    seen: list[tuple[int, int]] = []

    @rule(
        "concat([*before, -x, y, *after], axis=a) == concat([*before, y, x, *after], axis=a)", EXACT
    )
    def swapped(before: tuple[SSAValue, ...], after: tuple[SSAValue, ...]) -> bool:
        seen.append((len(before), len(after)))
        return len(before) == 2

    module = module_of(lambda b, x, y, z: b.concat([b.neg(x), y, b.neg(z), x], axis=1))
    PatternRewriteWalker(swapped, apply_recursively=False).rewrite_module(module.op)
    assert seen == [(0, 2), (2, 0)]
    (new,) = [op for op in module.op.walk() if isinstance(op, graph.ConcatOp)]
    x, _, z = module.main.args
    assert new.inputs[2:] == (x, z)
    assert rewritten(swapped, lambda b, x, y, z: b.concat([y, b.neg(z)], axis=1))[-1] == "concat"


def test_an_operand_may_be_absent() -> None:
    w, bias = [[1.0] * 4] * 4, [1.0] * 4
    one = always("dense(x * y, w, *v) == add(dense(x, w) * y, *v)")
    for given, expected in (([], ["mul"]), ([bias], ["mul", "add"])):
        made = rewritten(
            one, lambda b, x, y, z, given=given: b.dense(x * y, b.constant(w, "f32"), *given)
        )
        assert made[made.index("dense") + 1 :] == expected


def test_an_operator_is_captured_with_its_attributes() -> None:
    @rule("f(x) * -y == -f(x * y)  for a homogeneous f", EXACT, f=(GraphOp, Homogeneous))
    def scaled(f: GraphOp) -> bool:
        return f.name != "graph.abs"

    assert rewritten(scaled, lambda b, x, y, z: b.relu(x) * b.neg(y)) == ["mul", "relu", "neg"]
    for kept in (lambda b, x: b.exp(x), lambda b, x: b.abs(x)):
        assert rewritten(scaled, lambda b, x, y, z, f=kept: f(b, x) * b.neg(y))[-1] == "mul"
    one = always("exp(f(x, *y)) == f(exp(x), *y)", f=graph.PadOp | graph.ConcatOp)
    module = module_of(lambda b, x, y, z: b.exp(b.pad(x, [0, 1], [0, 2], value=3.0)))
    PatternRewriteWalker(one).rewrite_module(module.op)
    new = module.main.body.block.last_op.operands[0].owner  # type: ignore[union-attr]
    assert isinstance(new, graph.PadOp)
    assert (new.number, sizes_of(new.result)) == (3.0, (DYNAMIC_INDEX, 7))
    made = rewritten(one, lambda b, x, y, z: b.exp(b.concat([x, y, z], axis=1)))
    assert made == ["exp", "concat"]


def test_a_value_that_is_named_may_be_read_again() -> None:
    one = always("(t := exp(x)) / (y + t) == x + y")
    assert rewritten(one, lambda b, x, y, z: b.div(t := b.exp(x), t + z))[-1] == "add"
    assert rewritten(one, lambda b, x, y, z: b.div(b.exp(x), b.exp(x) + z))[-1] == "div"


def test_a_new_value_has_the_sizes_that_were_declared() -> None:
    some = DYNAMIC_INDEX
    for declared, expected in (((3, 4), "sin"), ((some, 4), "sin"), ((some, some), "exp")):
        b = sw.Builder()
        made = b.exp(b.input("x", ("n", 4)))
        b.output(made)
        module = b.module()
        (op,) = [op for op in module.op.walk() if isinstance(op, graph.ExpOp)]
        Rewriter.replace_value_with_new_type(op.result, TensorType(f32, declared))
        PatternRewriteWalker(always("exp(x) == sin(x)")).rewrite_module(module.op)
        new = module.main.body.block.first_op
        assert new is not None
        assert new.name == f"graph.{expected}"
        assert sizes_of(new.results[0]) == declared


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


def test_an_operator_that_refuses_its_operands_is_not_made() -> None:
    one = always("exp(f(x)) == dequantize(f(x), x, x)", f=graph.UnaryOp)
    assert rewritten(one, lambda b, x, y, z: b.exp(b.neg(x))) == ["neg", "exp"]


def test_a_replacement_has_the_names_of_what_it_replaces() -> None:
    module = module_of(lambda b, x, y, z: b.sub(x, b.neg(y, name="minus"), name="less"))
    PatternRewriteWalker(always("x - -y == x + y")).rewrite_module(module.op)
    (new,) = [op for op in module.op.walk() if isinstance(op, graph.AddOp)]
    assert names(new) == ("minus", "less")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The operator of its class.
        ("sqrt(exp(x)) == exp(sqrt(x))", {"sqrt": "root", "exp": "exp root"}),
        # The innermost ones above all that it is computed from.
        ("exp(x) / -y == cos(sin(x)) * y", {"sin": "exp", "cos": "exp", "mul": "neg root"}),
        ("exp(x) - sin(x) == -cos(x)", {"cos": "exp sin", "neg": "exp sin root"}),
        ("exp(x) / -y == abs(x + y) * x", {"add": "root", "abs": "root", "mul": "exp neg root"}),
    ],
)
def test_operators_have_the_names_of_those_they_stand_for(
    text: str, expected: dict[str, str]
) -> None:
    builds: dict[str, Build] = {
        "sqrt": lambda b, x, y: b.sqrt(b.exp(x, name="exp"), name="root"),
        "div": lambda b, x, y: b.div(b.exp(x, name="exp"), b.neg(y, name="neg"), name="root"),
        "sub": lambda b, x, y: b.sub(b.exp(x, name="exp"), b.sin(x, name="sin"), name="root"),
    }
    one = always(text)
    module = module_of(lambda b, x, y, z: builds[one.sides.root](b, x, y))
    old = set(module.op.walk())
    PatternRewriteWalker(one, apply_recursively=False).rewrite_module(module.op)
    new = [op for op in module.op.walk() if op not in old]
    assert {op.name.removeprefix("graph."): " ".join(names(op)) for op in new} == expected


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
        ("concat([x, y[0]], axis=0) == x", r"y\[0\] has no meaning"),
        ("concat(x, axis=0) == x", r"inputs is a list of operands, expected \[x, \*y\]"),
        ("concat([*x, *y, *z], axis=0) == x", r"graph\.concat has more than two lists"),
        ("attention(x, y, z) == x", r"graph\.attention has several optional operands, or lists"),
        ("f(f(x)) + y == x", "f is read before it is found, or found twice"),
        ("add(y, t) - (t := x + y) == x", "t is read before it is found, or found twice"),
        ("(t := -x) * (y + t) == x", r"graph\.neg is read before it is found"),
    ],
)
def test_mistakes_in_a_text(text: str, message: str) -> None:
    with pytest.raises(sw.CompileError, match=message):
        _compiled(text)


def _compiled(text: str) -> None:
    one = always(text, f=graph.UnaryOp)
    for kind in one.roots:
        one.finder_of(kind)


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
                # The explaining matcher takes the operators of users apart, which have no lists.
                if finder is None or any(isinstance(t, Rest) for t in subterms(finder.term)):
                    continue
                found = list[object]()
                finder.find(op, _refusing, found)
                matcher = Matcher([finder.term], op.parent)
                states = [state for state, _ in matcher.states(op.results[0])]
                assert bool(states) <= bool(found), one.name
                matches += bool(states)
    assert matches > 10


def test_a_table_tries_exact_rules_first_and_asks_where_a_left_side_is_found() -> None:
    @rule("x + tanh(y) == x - y", ROUNDING)
    def rounded() -> None: ...

    @rule("exp(x) == sin(x)", SPECIAL)
    def other() -> None: ...

    @rule("exp(-x) == cos(x)", EXACT)
    def exact() -> None: ...

    module = module_of(lambda b, x, y, z: b.exp(b.neg(x)) + b.exp(y) + b.tanh(z))
    asked: list[tuple[Exactness | None, str]] = []

    class Asking(Permission):
        def allows(self, exactness: Exactness | None, op: Operation) -> bool:
            asked.append((exactness, op.name))
            return exactness == SPECIAL

    table = RuleTable(Asking(module.op), [rounded, other, exact])
    PatternRewriteWalker(table, apply_recursively=False).rewrite_module(module.op)
    found = [op.name.removeprefix("graph.") for op in module.op.walk() if op.results]
    assert found == ["neg", "cos", "sin", "add", "tanh", "add"]
    assert asked == [(SPECIAL, "graph.exp"), (ROUNDING, "graph.add")]
