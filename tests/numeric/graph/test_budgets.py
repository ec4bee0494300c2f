"""How far passes may move results: what is blamed, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.conversions.math_to_arith import polynomials
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context, passes
from stepwell.diagnosis.checking import Checker
from stepwell.dialects.graph import ops as graph

from ...harness import floats


def checked(
    module: sw.Module,
    names: str,
    inputs: Sequence[np.ndarray] | None = None,
    expected: Sequence[np.ndarray] | None = None,
) -> Checker:
    """The check of some passes of the graph level."""
    work = module.clone()
    ctx, checker = make_context(work.weights), Checker(module, inputs, None, expected)
    ctx.hooks.append(checker)
    run_passes(ctx, work.op, names)
    return checker


def spoiled(patch: pytest.MonkeyPatch, name: str, mistake: Callable[[ModuleOp], None]) -> None:
    """Let a pass make a mistake after its own work."""
    kind = passes()[name]()
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        mistake(op)

    patch.setattr(kind, "apply", wrong)


def scaled(factor: float) -> Callable[[ModuleOp], None]:
    """Multiply the result of a program by a number that is nearly 1."""

    def mistake(op: ModuleOp) -> None:
        function = next(iter(op.ops))
        end = function.regions[0].block.last_op
        assert end is not None
        number = graph.ConstantOp.literal(np.array(factor, np.float32))
        product = graph.MulOp(end.operands[0], number)
        function.regions[0].block.insert_ops_before([number, product], end)
        end.operands[0] = product.result

    return mistake


def exp_alone() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.exp(b.input("x", (3, 5))))
    return b.module()


def exp_inside() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.dense(b.exp(b.dense(b.input("x", (3, 5)), floats(4, 5) / 4)), floats(3, 4)))
    return b.module()


@pytest.mark.parametrize("program", [exp_alone, exp_inside])
def test_an_inaccurate_polynomial_is_blamed(
    program: Callable[[], sw.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(-0.34, 0.3465, 15, dtype=np.float32).reshape(3, 5)
    monkeypatch.setattr(polynomials, "_EXP", (*polynomials._EXP[:-1], 0.0260))
    with pytest.raises(sw.MiscompilationError, match=r"; the limit is \d+(\.\d+)? ulp") as caught:
        sw.compile(program(), threads=1, check=[x])
    assert caught.value.pass_name == "convert-math-to-arith"
    assert 50 < caught.value.ulp < 1024
    assert 8 <= caught.value.limit < 50
    sw.compile(program(), threads=1, check=[x], max_ulp=1024)


def network() -> sw.Module:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", (5, 33)), floats(17, 33), floats(17)))
    b.output(b.softmax(b.dense(h, floats(40, 17)) * 0.1, axis=-1))
    b.output(h)
    return b.module()


@pytest.mark.parametrize("type", ["bf16", "f16"])
def test_narrow_storage_is_no_miscompilation(type: str) -> None:
    names = f"graph-to-mixed-precision{{type={type}}},canonicalize,graph-cse,graph-fuse-ops"
    change = checked(network(), names).changes[0]
    assert change.pass_name == "graph-to-mixed-precision"
    # More than what all other passes may, in units of f32.
    assert change.ulp > 1024


def test_a_mistake_in_narrow_storage_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(op: ModuleOp) -> None:
        relu = next(inner for inner in op.walk() if isinstance(inner, graph.ReluOp))
        relu.results[0].replace_all_uses_with(relu.operands[0])

    spoiled(monkeypatch, "graph-to-mixed-precision", drop)
    with pytest.raises(sw.MiscompilationError, match="graph-to-mixed-precision: it changes"):
        checked(network(), "graph-to-mixed-precision{type=bf16}")


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        # One unit is too much for what only merges.
        ("graph-cse", 1 + 2.0**-23),
        # Sums of 33 terms.
        ("graph-simplify", 1 + 300 * 2.0**-23),
    ],
)
def test_what_is_beyond_a_budget_is_blamed(
    name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled(monkeypatch, name, scaled(factor))
    with pytest.raises(sw.MiscompilationError, match=f"{name}: it changes result 0 by"):
        checked(network(), name)


def test_what_is_within_a_budget_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(monkeypatch, "graph-simplify", scaled(1 + 2 * 2.0**-23))
    assert checked(network(), "graph-simplify").changes[0].ulp > 0


def test_what_a_program_magnifies_is_no_mistake() -> None:
    """x / 7 becomes x * (1 / 7): its last digits are all that m leaves."""
    b = sw.Builder("main")
    mean = floats(6) + np.float32(4000)
    b.output(b.sub(b.div(b.input("x", (3, 6)), 7), mean))
    inputs = [7 * (mean + floats(3, 6))]
    change = checked(b.module(), "graph-simplify", inputs).changes[0]
    assert change.ulp > 8


def test_budgets_add_up_against_results_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass moves the result in the same direction, and within its budget."""
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (3, 6))))
    given: list[Any] = [np.ones((3, 6), np.float32)]
    names = ",".join(["graph-open-composites"] * 5)
    with monkeypatch.context() as patch:
        spoiled(patch, "graph-open-composites", scaled(1 + 3 * 2.0**-23))
        assert len(checked(b.module(), names, given, given).changes) == 5
    spoiled(monkeypatch, "graph-open-composites", scaled(1 + 9 * 2.0**-23))
    # The operator may be off by 4, and its operand as well.
    with pytest.raises(sw.MiscompilationError, match=r"by 9 ulp .*; the limit is 8 ulp"):
        checked(b.module(), names, given, given)
