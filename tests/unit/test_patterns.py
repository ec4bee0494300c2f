"""`stepwell.patterns`: what matches, what does not and why, and what is no pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

import stepwell as sw
from stepwell import patterns as p
from stepwell.core.registry import make_context
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import FusionKind
from stepwell.dialects.graph.ops.elementwise.bases import UnaryOp
from stepwell.frontends.builder import Value

Build = Callable[..., Any]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def program(build: Build, *inputs: tuple[int | str, ...], dtype: str = "f32") -> sw.Module:
    """The module of a function of a builder and values; by default of one 3x4 input."""
    b = sw.Builder()
    values = [b.input(f"x{n}", shape, dtype) for n, shape in enumerate(inputs or ((3, 4),))]
    returned = build(b, *values)
    for value in returned if isinstance(returned, tuple) else (returned,):
        b.output(value)
    return b.module()


def kinds(match: p.Match) -> list[str]:
    return [op.name.removeprefix("graph.") for op in match.ops]


@p.pattern
def dense_add_relu(x, w, c):
    return p.relu(p.add(p.dense(x, w, uses=1, name="fc"), c))


def layer(b: sw.Builder, x: Value) -> Value:
    h = b.dense(x, ones(5, 4), name="fc1")
    return b.relu(b.add(h, ones(5), name="add1"), name="act1")


class TestMatching:
    def test_bindings(self) -> None:
        module = program(layer)
        (match,) = dense_add_relu.matches(module)
        assert kinds(match) == ["dense", "add", "relu"]
        assert match["x"] is module.main.args[0]
        assert isinstance(match["w"], SSAValue)
        assert isinstance(match["fc"], graph.DenseOp)
        assert match.roots == (match.ops[-1].results[0],)
        assert match.origin == 'nodes "fc1", "add1", "act1"'
        assert repr(match) == '<match of dense_add_relu: nodes "fc1", "add1", "act1">'

    def test_commutative_operands(self) -> None:
        module = program(lambda b, x: b.relu(b.add(ones(5), b.dense(x, ones(5, 4)))))
        assert len(dense_add_relu.matches(module)) == 1

    def test_operands_of_a_difference_stay_in_order(self) -> None:
        @p.pattern
        def difference(x, y):
            return p.sub(p.exp(x), y)

        assert difference.matches(program(lambda b, x: b.exp(x) - x))
        assert not difference.matches(program(lambda b, x: x - b.exp(x)))

    def test_backtracking_through_commutative_operands(self) -> None:
        @p.pattern
        def pattern(x):
            return p.add(p.mul(x, p.exp(x)), p.mul(x, p.tanh(x)))

        module = program(lambda b, x: b.add(b.mul(b.tanh(x), x), b.mul(x, b.exp(x))))
        assert len(pattern.matches(module)) == 1

    def test_a_shared_value_is_one_value(self) -> None:
        @p.pattern
        def silu(x):
            return x * p.sigmoid(x)

        assert silu.matches(program(lambda b, x: b.sigmoid(x) * x))
        two = program(lambda b, x, y: b.sigmoid(x) * y, (3,), (3,))
        assert not silu.matches(two)

    def test_a_shared_operator_is_one_operator(self) -> None:
        @p.pattern
        def shared(x):
            h = p.exp(x)
            return p.add(p.relu(h), p.tanh(h))

        def once(b: sw.Builder, x: Value) -> Value:
            h = b.exp(x)
            return b.add(b.relu(h), b.tanh(h))

        (match,) = shared.matches(program(once))
        assert sorted(kinds(match)) == ["add", "exp", "relu", "tanh"]
        twice = program(lambda b, x: b.add(b.relu(b.exp(x)), b.tanh(b.exp(x))))
        assert not shared.matches(twice)

    def test_several_results(self) -> None:
        @p.pattern
        def siblings(x, v, w):
            return p.dense(x, v), p.dense(x, w)

        def branches(b: sw.Builder, x: Value) -> tuple[Value, Value]:
            return b.dense(x, ones(2, 4)), b.relu(b.dense(x, ones(3, 4)))

        matches = siblings.matches(program(branches))
        assert [kinds(match) for match in matches] == [["dense", "dense"]] * 2
        assert matches[0].roots == matches[1].roots[::-1]
        assert not siblings.matches(program(layer))

    def test_a_result_that_needs_another_from_outside(self) -> None:
        @p.pattern
        def pair(x, y):
            return p.exp(x) + p.tanh(y), p.tanh(y)

        @p.pattern
        def chained(x, y):
            h = p.exp(x)
            return h, p.mul(h, y)

        module = program(lambda b, x: b.mul(h := b.exp(x), b.tanh(h)))
        assert not chained.matches(module)
        (op,) = (op for op in module.op.walk() if isinstance(op, graph.ExpOp))
        assert "a root depends on another root through an operator outside the match" in (
            chained.explain(op)
        )
        assert chained.matches(program(lambda b, x: b.mul(b.exp(x), b.tanh(x))))

    def test_alternatives(self) -> None:
        @p.pattern
        def activated(x, w):
            h = p.dense(x, w)
            return p.one_of(p.relu(h), p.tanh(h), h)

        for build, expected in (
            (lambda b, x: b.relu(b.dense(x, ones(5, 4))), {"relu", "dense"}),
            (lambda b, x: b.tanh(b.dense(x, ones(5, 4))), {"tanh", "dense"}),
            (lambda b, x: b.exp(b.dense(x, ones(5, 4))), {"dense"}),
        ):
            assert set(kinds(activated.matches(program(build))[-1])) == expected

    def test_an_alternative_that_is_not_taken_binds_nothing(self) -> None:
        @p.pattern
        def pattern(x, c):
            return p.relu(p.one_of(p.add(x, c), x))

        (match,) = pattern.matches(program(lambda b, x: b.relu(x)))
        assert match["c"] is None

    def test_optional_operand(self) -> None:
        @p.pattern
        def dense(x, w, bias):
            return p.dense(x, w, p.optional(bias))

        (without,) = dense.matches(program(lambda b, x: b.dense(x, ones(5, 4))))
        (with_bias,) = dense.matches(program(lambda b, x: b.dense(x, ones(5, 4), ones(5))))
        assert without["bias"] is None
        assert isinstance(with_bias["bias"], SSAValue)

    def test_operands_that_are_left_out_are_absent(self) -> None:
        @p.pattern
        def bare(x, w):
            return p.dense(x, w)

        @p.pattern
        def any_dense(x):
            return p.dense(x, ...)

        module = program(lambda b, x: b.dense(x, ones(5, 4), ones(5)))
        assert not bare.matches(module)
        assert len(any_dense.matches(module)) == 1

    def test_variadic_operands(self) -> None:
        @p.pattern
        def concat(x, y):
            return p.concat([p.relu(x), y], axis=1)

        assert concat.matches(program(lambda b, x: b.concat([b.relu(x), x], axis=1)))
        assert not concat.matches(program(lambda b, x: b.concat([b.relu(x), x], axis=0)))
        assert not concat.matches(program(lambda b, x: b.concat([b.relu(x), x, x], axis=1)))

    @pytest.mark.parametrize(
        "wanted", [{"kind": "sum"}, {"axes": [0]}, {"axes": lambda a: 0 in a}, {"keepdims": False}]
    )
    def test_attributes(self, wanted: dict[str, Any]) -> None:
        @p.pattern
        def reduced(x):
            return p.reduce(x, **wanted)

        assert reduced.matches(program(lambda b, x: b.reduce(x, "sum", [0], False)))
        assert not reduced.matches(program(lambda b, x: b.reduce(x, "max", [1], True)))

    @pytest.mark.parametrize(
        ("constraint", "fits"),
        [
            ({"dtype": "f32"}, True),
            ({"dtype": ("f16", "f32")}, True),
            ({"dtype": "f16"}, False),
            ({"shape": (3, 4)}, True),
            ({"shape": (None, 4)}, True),
            ({"shape": (..., 4)}, True),
            ({"shape": (..., 3, 4)}, True),
            ({"shape": (4,)}, False),
            ({"shape": (..., 2, 3, 4)}, False),
            ({"rank": 2}, True),
            ({"rank": 1}, False),
            ({"constant": False}, True),
            ({"constant": True}, False),
            ({"uses": 1}, True),
            ({"uses": 2}, False),
            ({"when": lambda v: v.type.get_shape()[0] == 3}, True),
            ({"when": lambda v: False}, False),
        ],
    )
    def test_constraints(self, constraint: dict[str, Any], fits: bool) -> None:
        @p.pattern
        def by_default(x=p.value(**constraint)):
            return p.exp(x)

        @p.pattern
        def by_call(x):
            return p.exp(p.value(x, **constraint))

        module = program(lambda b, x: b.exp(x))
        assert bool(by_default.matches(module)) == fits
        assert bool(by_call.matches(module)) == fits

    def test_a_symbolic_size_is_no_number(self) -> None:
        @p.pattern
        def three(x=p.value(shape=(3, 4))):
            return p.exp(x)

        assert not three.matches(program(lambda b, x: b.exp(x), ("n", 4)))

    def test_one_constraint_for_two_parameters_is_for_two_values(self) -> None:
        vector = p.value(rank=1)

        @p.pattern
        def pattern(x=vector, y=vector):
            return p.sub(x, y)

        assert pattern.matches(program(lambda b, x, y: x - y, (3,), (3,)))
        assert not pattern.matches(program(lambda b, x, y: x - y, (3,), (2, 3)))

    def test_another_result_of_an_operator(self) -> None:
        @p.pattern
        def first(x):
            return p.relu(p.op("graph.call_packed", x))

        @p.pattern
        def second(x):
            return p.relu(p.op("graph.call_packed", x)[1])

        module = sw.from_mlir("""
            func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
              %a, %b = graph.call_packed "f"(%x) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
              %y = graph.relu %b : (tensor<3xf32>) -> tensor<3xf32>
              func.return %y : tensor<3xf32>
            }
        """)
        assert not first.matches(module)
        assert second.matches(module)
        (op,) = (op for op in module.op.walk() if isinstance(op, graph.ReluOp))
        assert first.explain(op).endswith(
            "operand 0 (x) is graph.call_packed, but another result, expected 0"
        )

    def test_operators_of_different_blocks(self) -> None:
        @p.pattern
        def pattern(x):
            return p.op("arith.addf", p.op("arith.mulf", x, ...), ...)

        text = """
            func.func @f(%x: f32, %c: i1) {
              %m = arith.mulf %x, %x : f32
              scf.if %c {
                %a = arith.addf %m, %x : f32
              }
              func.return
            }
        """
        module = Parser(make_context(), text).parse_module()
        assert not pattern.matches(module)
        (op,) = (op for op in module.walk() if isinstance(op, arith.AddfOp))
        assert "is arith.mulf of another block" in pattern.explain(op)

    def test_annotations(self) -> None:
        assert len(annotated.matches(program(lambda b, x: x * 2.0))) == 1
        assert not annotated.matches(program(lambda b, x: x * 3.0))
        assert not annotated.matches(program(lambda b, x, y: x * y, (3,), (3,)))

    def test_numbers_are_rounded_to_the_type_of_the_constant(self) -> None:
        @p.pattern
        def tenth(x):
            return x * 0.1

        @p.pattern
        def zero(x):
            return x + 0.0

        assert tenth.matches(program(lambda b, x: x * 0.1))
        assert zero.matches(program(lambda b, x: x + 0.0))
        assert not zero.matches(program(lambda b, x: x + -0.0))

    @pytest.mark.parametrize(
        "kind",
        ["graph.tanh", graph.TanhOp, UnaryOp, FusionKind.ELEMENTWISE, ("graph.exp", graph.TanhOp)],
    )
    def test_any_operator(self, kind: Any) -> None:
        @p.pattern
        def unary(x):
            return p.op(kind, x)

        assert unary.matches(program(lambda b, x: b.tanh(x)))
        assert not unary.matches(program(lambda b, x: b.softmax(x)))

    def test_operators_of_python(self) -> None:
        @p.pattern
        def arithmetic(x, y):
            return -(((x + 1) * 2 - y) / 3) @ (2 ** (x**2))

        module = program(lambda b, x, y: -(((x + 1) * 2 - y) / 3) @ (2 ** (x**2)), (3, 3), (3, 3))
        assert len(arithmetic.matches(module)) == 1

    def test_when(self) -> None:
        @p.pattern(when=lambda match: match["x"].type == match["y"].type)
        def same(x, y):
            return p.mul(x, y)

        assert same.matches(program(lambda b, x: x * b.exp(x)))
        module = program(lambda b, x: x * ones(4))
        assert not same.matches(module)
        (op,) = (op for op in module.op.walk() if isinstance(op, graph.MulOp))
        assert "`when` of the pattern refuses the match" in same.explain(op)

    def test_other_dialects(self) -> None:
        @p.pattern
        def product(x):
            return p.op("arith.mulf", x, x)

        one = arith.ConstantOp(FloatAttr(1.0, f32))
        op = arith.MulfOp(one.result, one.result)
        (match,) = product.matches(op)
        assert match["x"] is one.result

        @p.pattern
        def tensors(x):
            return p.op("arith.mulf", p.value(x, rank=0), ...)

        assert tensors.explain(op).endswith("operand 0 (lhs) is f32, expected a tensor")


TWO = p.constant(2)


@p.pattern
def annotated(x: p.value(constant=False), c: TWO):  # type: ignore[valid-type]
    return p.mul(x, c)


class TestExplaining:
    def explanation(self, pattern: p.Pattern, build: Build, name: str = "root") -> list[str]:
        head, *lines = pattern.explain(name, program(build)).splitlines()
        assert head.startswith(f'pattern "{pattern.name}" does not match ')
        return [line.strip() for line in lines]

    def test_another_operator(self) -> None:
        def build(b: sw.Builder, x: Value) -> Value:
            h = b.matmul(x, ones(4, 5), name="mm")
            return b.relu(b.sub(h, ones(5), name="s"), name="root")

        @p.pattern
        def pattern(x, w, c):
            return p.relu(p.sub(p.dense(x, w), c))

        assert self.explanation(pattern, build) == [
            (
                'graph.sub (node "s"): operand 0 (lhs) is graph.matmul (node "mm"), '
                "expected graph.dense"
            ),
        ]

    def test_each_alternative_that_came_as_far(self) -> None:
        def build(b: sw.Builder, x: Value) -> Value:
            return b.relu(b.add(b.exp(x, name="e"), ones(4), name="a"), name="root")

        assert self.explanation(dense_add_relu, build) == [
            'graph.add (node "a"): operand 0 (lhs) is graph.exp (node "e"), expected graph.dense',
            (
                'graph.add (node "a"): operand 1 (rhs) is graph.constant (node "a"), '
                "expected graph.dense"
            ),
        ]

    def test_the_root(self) -> None:
        assert self.explanation(dense_add_relu, lambda b, x: b.tanh(x, name="root")) == [
            'graph.tanh (node "root"): cannot be a result of the pattern, expected graph.relu'
        ]

    def test_an_argument(self) -> None:
        @p.pattern
        def pattern(x):
            return p.relu(p.exp(x))

        assert self.explanation(pattern, lambda b, x: b.relu(x, name="root")) == [
            (
                'graph.relu (node "root"): operand 0 (x) is an argument of type tensor<3x4xf32>, '
                "expected graph.exp"
            ),
        ]

    def test_a_use_outside(self) -> None:
        @p.pattern
        def pattern(x):
            return p.relu(p.exp(x))

        def build(b: sw.Builder, x: Value) -> tuple[Value, Value]:
            h = b.exp(x, name="e")
            return b.relu(h, name="root"), b.tanh(h, name="t")

        assert self.explanation(pattern, build) == [
            (
                'graph.exp (node "e"): is also used by graph.tanh (node "t"), '
                "but is not a result of the pattern"
            ),
        ]

    def test_a_second_result(self) -> None:
        @p.pattern
        def pattern(x, y):
            return p.exp(x), p.sub(p.tanh(x), y)

        def build(b: sw.Builder, x: Value) -> tuple[Value, ...]:
            return b.exp(x, name="root"), b.tanh(x, name="t"), b.sub(b.sin(x), x, name="s")

        assert self.explanation(pattern, lambda b, x: b.exp(x, name="root")) == [
            'graph.exp (node "root"): no operator near it is result 1 of the pattern'
        ]
        (line,) = self.explanation(pattern, build)
        assert line.startswith('graph.sub (node "s"): operand 0 (lhs) is graph.sin (node ')

    def test_uses(self) -> None:
        @p.pattern
        def pattern(x):
            return p.relu(p.exp(x, uses=1))

        def build(b: sw.Builder, x: Value) -> tuple[Value, Value]:
            h = b.exp(x, name="e")
            return b.relu(h, name="root"), b.tanh(h, name="t")

        assert self.explanation(pattern, build) == [
            'graph.exp (node "e"): is used 2 times, expected 1'
        ]

    @pytest.mark.parametrize(
        ("constraint", "expected"),
        [
            ({"dtype": "f16"}, "is tensor<3x4xf32>, expected elements of f16"),
            ({"shape": (..., 5)}, "is tensor<3x4xf32>, expected shape [..., 5]"),
            ({"shape": (None, 5)}, "is tensor<3x4xf32>, expected shape [any, 5]"),
            ({"rank": 3}, "is tensor<3x4xf32>, expected rank 3"),
            ({"constant": True}, "is not a constant, expected one"),
            ({"uses": 2}, "is used 1 times, expected 2"),
            ({"when": lambda v: False}, "is tensor<3x4xf32>, expected what `when` accepts"),
        ],
    )
    def test_constraints(self, constraint: dict[str, Any], expected: str) -> None:
        @p.pattern
        def pattern(x=p.value(**constraint)):
            return p.exp(x)

        assert self.explanation(pattern, lambda b, x: b.exp(x, name="root")) == [
            f'graph.exp (node "root"): operand 0 (x) {expected}'
        ]

    def test_a_number(self) -> None:
        @p.pattern
        def pattern(x):
            return p.sub(x, 2)

        assert self.explanation(pattern, lambda b, x: b.sub(x, 3.0, name="root")) == [
            (
                'graph.sub (node "root"): operand 1 (rhs) is another value, '
                "expected a literal constant 2"
            ),
        ]

    def test_another_value(self) -> None:
        @p.pattern
        def pattern(x):
            return p.sub(x, x)

        assert self.explanation(pattern, lambda b, x: b.sub(x, ones(4), name="root")) == [
            (
                'graph.sub (node "root"): operand 1 (rhs) is graph.constant (node "root"), '
                "not the value matched elsewhere"
            ),
        ]

    def test_attributes_and_operands(self) -> None:
        @p.pattern
        def attribute(x):
            return p.softmax(x, axis=0)

        @p.pattern
        def predicate(x):
            return p.softmax(x, axis=lambda axis: axis > 1)

        @p.pattern
        def operand(x, w):
            return p.dense(x, w)

        def softmax(b: sw.Builder, x: Value) -> Value:
            return b.softmax(x, 1, name="root")

        assert self.explanation(attribute, softmax) == [
            'graph.softmax (node "root"): axis is 1, expected 0'
        ]
        assert self.explanation(predicate, softmax) == [
            'graph.softmax (node "root"): axis is 1, expected what the predicate accepts'
        ]
        assert self.explanation(
            operand, lambda b, x: b.dense(x, ones(5, 4), ones(5), name="root")
        ) == ['graph.dense (node "root"): operand 2 (bias) has 1 values, expected 0']

    def test_a_match(self) -> None:
        module = program(layer)
        assert dense_add_relu.explain("act1", module) == (
            'pattern "dense_add_relu" matches graph.relu (node "act1"): nodes "fc1", "add1", "act1"'
        )
        (op,) = (op for op in module.op.walk() if isinstance(op, graph.ReluOp))
        assert dense_add_relu.explain(op) == dense_add_relu.explain(op.result)

    def test_nothing_to_explain(self) -> None:
        module = program(layer)
        for at, given, message in (
            ("nowhere", module, 'pattern "dense_add_relu": there is no node "nowhere"'),
            ("act1", None, 'there is no node "act1", got no module'),
            (module.main.args[0], None, "there is nothing to explain, expected the result of an"),
        ):
            with pytest.raises(sw.CompileError, match=re.escape(message)):
                dense_add_relu.explain(at, given)


class TestNoPattern:
    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda x, y: p.relu(x), 'wildcard "y" is not used'),
            (lambda x: x, "wrong result, expected an operator, got a wildcard"),
            (lambda x: p.one_of(p.relu(x), x), "wrong result"),
            (lambda x: None, "wrong result, expected an operator, got NoneType"),
            (lambda x: (), "returns nothing, expected 1 operator or more"),
            (lambda x, y: (p.exp(x), p.exp(y)), "its results have nothing in common"),
            (lambda x: p.relu(p.rleu(x)), 'no operator "rleu"; nearest: relu'),
            (lambda x: p.op("graph.rleu", x), 'no operator "graph.rleu"; nearest: graph.relu'),
            (lambda x: p.op("nowhere.relu", x), 'no operator "nowhere.relu"'),
            (lambda x: p.op(3, x), "wrong kind, expected a name, a class of operations"),
            (lambda x: p.op(sw.Builder, x), "wrong kind, expected a name, a class of operations"),
            (lambda x: p.relu(x, x), "graph.relu: too many positional arguments"),
            (
                lambda x: p.op("graph.relu", x, x),
                "graph.relu: too many operands, expected 1, got 2",
            ),
            (
                lambda x: p.softmax(x, axes=1),
                "graph.softmax: got an unexpected keyword argument 'axes'; it takes x, axis",
            ),
            (lambda x: p.op("graph.softmax", x, axes=1), 'no attribute "axes", expected axis'),
            (lambda x: p.cast(x, "f16"), 'graph.cast: no attribute "target", expected none'),
            (lambda x: p.relu("x"), "wrong operand, expected a term or a number, got str"),
            (lambda x: p.dense(x, ..., x), "... must come last among the operands"),
            (lambda x: p.one_of(p.relu(x)), "one_of: alternatives, expected 2 or more, got 1"),
            (lambda x: p.relu(p.value(x, dtype="f33")), 'unknown element type "f33"'),
            (lambda x: p.relu(p.value(x, shape=(3, ...))), "... must come first in a shape"),
            (lambda x: p.relu(x) if x else p.exp(x), "a term is neither true nor false"),
            (lambda x: p.relu(1 / 0), "raised ZeroDivisionError: division by zero"),
            (lambda x: p.exp(p.relu(x, name="x")), 'the name "x" is used twice'),
            (lambda *xs: p.relu(xs[0]), 'parameter "xs" stands for several values'),
        ],
    )
    def test_message(self, function: Callable[..., Any], message: str) -> None:
        with pytest.raises(sw.CompileError, match=re.escape(message)) as caught:
            p.pattern(function)
        assert str(caught.value).startswith('pattern "<lambda>": ')

    def test_annotations_that_cannot_be_evaluated(self) -> None:
        def f(x: Nonsense):  # type: ignore[name-defined]  # noqa: F821
            return p.relu(x)

        with pytest.raises(sw.CompileError, match="annotations cannot be evaluated: name 'Nons"):
            p.pattern(f)

    def test_an_unknown_operator_is_an_attribute_error_as_well(self) -> None:
        assert not hasattr(p, "rleu")
        assert not hasattr(p, "__wrapped__")
        assert {"relu", "dense", "one_of"} <= set(dir(p))

    def test_predicates_that_raise(self) -> None:
        @p.pattern
        def value(x=p.value(when=lambda v: 1 / 0)):
            return p.exp(x)

        @p.pattern(when=lambda match: match["z"])
        def whole(x):
            return p.exp(x)

        module = program(lambda b, x: b.exp(x))
        for pattern, message in (
            (value, 'pattern "value": raised ZeroDivisionError: division by zero'),
            (whole, "pattern \"whole\": raised KeyError: 'z'"),
        ):
            with pytest.raises(sw.CompileError, match=re.escape(message)):
                pattern.matches(module)


def test_words_of_patterns_are_no_operators() -> None:
    """A new operator must not be hidden by a word of the module."""
    own = {name for name in p.__all__ if name != "constant"}
    assert not own & {op.name.partition(".")[2] for op in graph_operators()}


def graph_operators() -> list[type[Operation]]:
    from stepwell.dialects.graph.dialect import Graph

    return list(Graph.operations)
