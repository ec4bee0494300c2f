"""`bisect`: mistakes in patterns and steps of all levels, each blamed on its one use."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, llvm, math, scf
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, ModuleOp, f64
from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.transforms.common_subexpression_elimination import CSEDriver

import stepwell as sw
from stepwell.conversions import (
    convert_graph_to_loop,
    convert_loop_to_scf,
    convert_math_to_arith,
)
from stepwell.conversions.convert_arith_to_llvm import ARITH
from stepwell.conversions.convert_scf_to_cf import STRUCTURED
from stepwell.conversions.graph_to_rt import slots
from stepwell.conversions.math_to_arith import polynomials
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.registry import passes
from stepwell.diagnosis.failures import FailureKind
from stepwell.dialects.graph import identities
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.rules import IdentityRule
from stepwell.dialects.loop import ops as loop
from stepwell.passes.graph import (
    canonicalize_ops,
    fold_constant,
    fold_scale_axis,
    open_composites,
)
from stepwell.passes.graph.fusion import outlining
from stepwell.passes.graph.rules import arithmetic
from stepwell.passes.loop.scheduler.primitives import PRIMITIVES
from stepwell.passes.rt import outline_tiles
from stepwell.tools import stepwell_opt

Patch = pytest.MonkeyPatch


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def model(rows: int = 3) -> sw.Module:
    """A program that every pass of the `graph` level finds something to do in."""
    b = sw.Builder("main")
    x = b.input("x", (rows, 12))
    h = b.batch_norm(x, numbers(12), numbers(12), numbers(12), np.abs(numbers(12)))
    h = b.relu(b.add(b.dense(h, numbers(9, 12)), numbers(9)))
    t = b.add(b.neg(b.tanh(h)), h)
    t = b.div(b.mul(t, np.float32(1)), np.float32(4))
    t = b.sub(b.exp(t), b.mul(b.exp(t), b.sqrt(np.float32([4.0]))))
    y = b.softmax(b.dense(t, numbers(5, 9)), axis=-1)
    b.output(b.sub(y, np.float32(0.5)))
    return b.module()


def kernels() -> sw.Module:
    """A shorter one for later passes, in three kernels of any number of rows."""
    b = sw.Builder("main")
    x = b.add(b.input("x", ("n", 12)), numbers(12))
    h = b.relu(b.add(b.dense(x, numbers(9, 12)), numbers(9)))
    t = b.sub(h, b.tanh(h))
    b.output(b.add(b.softmax(t), np.float32(0.5)))
    return b.module()


def kernel() -> sw.Module:
    """One kernel of them."""
    b = sw.Builder("main")
    h = b.relu(b.add(b.dense(b.input("x", ("n", 12)), numbers(9, 12)), numbers(9)))
    b.output(b.sub(h, b.tanh(h)))
    return b.module()


def function() -> sw.Module:
    """A kernel without sums."""
    b = sw.Builder("main")
    b.output(b.tanh(b.input("x", (3, 12))))
    return b.module()


def wrapped(patch: Patch, owner: Any, name: str, then: Callable[[Any], Any], only: str) -> None:
    """Let what a function makes go through another one, if its text has a word in it."""
    whole = getattr(owner, name)

    @functools.wraps(whole)
    def function(*args: Any, **options: Any) -> Any:
        result = whole(*args, **options)
        return then(result) if only in str(result) else result

    patch.setattr(owner, name, function)


def in_pattern(
    patch: Patch,
    kind: type[RewritePattern] | IdentityRule,
    mistake: Callable[[Sequence[Operation]], object],
) -> None:
    """Add a mistake to what a pattern, or each one of a class, puts in."""
    of_class = IdentityRule if isinstance(kind, IdentityRule) else kind
    whole = of_class.match_and_rewrite

    def rewrite(self: RewritePattern, op: Operation, rewriter: PatternRewriter) -> None:
        new: list[Operation] = []
        note = new.append
        if self is not kind and of_class is IdentityRule:
            whole(self, op, rewriter)
            return
        rewriter.operation_insertion_handler.append(note)
        whole(self, op, rewriter)
        rewriter.operation_insertion_handler.remove(note)
        if rewriter.has_done_action:
            mistake([made for made in new if made.parent is not None])

    patch.setattr(of_class, "match_and_rewrite", rewrite)


def one(given: Any, kind: type[Any]) -> Any:
    """The first operation of a kind."""
    walked = given.walk() if isinstance(given, Operation) else given
    return next(op for op in walked if isinstance(op, kind))


def has(given: Sequence[Operation], kind: type[Operation]) -> bool:
    return any(isinstance(op, kind) for op in given)


def swapped(kind: type[Operation]) -> Callable[[Any], Any]:
    """Let an operation have its operands the wrong way round."""

    def mistake(given: Any) -> Any:
        op = one(given, kind)
        op.operands = [op.operands[1], op.operands[0]]
        return given

    return mistake


def dropped(kind: type[Operation]) -> Callable[[Any], Any]:
    """Leave an operation out."""

    def mistake(given: Any) -> Any:
        op = one(given, kind)
        op.results[0].replace_all_uses_with(op.operands[0])
        return given

    return mistake


def short(kernel: Any) -> Any:
    """Let a loop run once."""
    op = one(kernel, loop.ForOp)
    bound = op.properties["bound"].data
    results = tuple(result * 0 + 1 for result in bound.results)
    fewer = AffineMap(bound.num_dims, bound.num_symbols, results)
    op.properties["bound"] = AffineMapAttr(fewer)
    return kernel


def same_place(kernel: Any) -> Any:
    """Let the first load that moves read the beginning."""
    for op in kernel.walk():
        if isinstance(op, loop.LoadOp) and op.indices:
            data = op.map.data
            zero = AffineMap(data.num_dims, data.num_symbols, tuple(r * 0 for r in data.results))
            op.properties["map"] = AffineMapAttr(zero)
            break
    return kernel


def without_bias(given: Any) -> None:
    op = one(given, graph.DenseOp)
    op.operands = op.operands[:2]


def wrong_one(patch: Patch) -> None:
    whole = IdentityRule.match_and_rewrite

    def rewrite(self: IdentityRule, op: Operation, rewriter: PatternRewriter) -> None:
        if self.name != identities.neutral_operand.name:
            whole(self, op, rewriter)
        elif isinstance(op, graph.MulOp) and graph.splat_of(op.operands[1]) == 1:
            rewriter.replace(op, graph.NegOp(op.operands[0]))

    patch.setattr(IdentityRule, "match_and_rewrite", rewrite)


def wrong_merge(patch: Patch) -> None:
    whole = CSEDriver._replace_and_delete

    def replace(self: CSEDriver, op: Operation, existing: Operation) -> None:
        whole(self, op, existing)
        if op.name == "graph.exp":
            dropped(graph.ExpOp)([existing])

    patch.setattr(CSEDriver, "_replace_and_delete", replace)


def wrong_fold(patch: Patch) -> None:
    whole = fold_constant._Folder._constant

    def constant(self: Any, op: Any, result: Any, array: Any) -> Any:
        return whole(self, op, result, array + 1 if op.name == "graph.sqrt" else array)

    patch.setattr(fold_constant._Folder, "_constant", constant)


def wrong_lowering(patch: Patch) -> None:
    def lowered(op: Operation, lowering: Any) -> Any:
        operands = [lowering.value(operand) for operand in op.operands]
        flags = {"fastmathFlags": llvm.FastMathAttr(None)}
        return lowering.emit(llvm.FAddOp, operands, op.results[0].type, flags)

    patch.setitem(ARITH, arith.MulfOp, lowered)


def one_too_many(patch: Patch) -> None:
    whole = STRUCTURED[scf.ForOp]

    def lowered(op: scf.ForOp, around: Any) -> Any:
        test = op.body.block
        results = whole(op, around)
        one(test.ops, arith.CmpiOp).properties["predicate"] = IntegerAttr(3, 64)
        return results

    patch.setitem(STRUCTURED, scf.ForOp, lowered)


def broken(patch: Patch) -> None:
    whole = IdentityRule.match_and_rewrite

    def rewrite(self: IdentityRule, op: Operation, rewriter: PatternRewriter) -> None:
        if self is arithmetic.divide_by_power_of_two and op.name == "graph.div":
            raise IndexError("there is no such axis")
        whole(self, op, rewriter)

    patch.setattr(IdentityRule, "match_and_rewrite", rewrite)


def of_two_types(given: Any) -> Any:
    one(given, arith.SubfOp).results[0].type = f64
    return given


DENSE = "@fused_dense_relu"

PLANTED: list[tuple[str, str, str, Callable[[Patch], None]]] = [
    (
        "graph-open-composites",
        "CompositeIsItsBody",
        "graph.batch_norm",
        lambda patch: in_pattern(
            patch,
            open_composites.CompositeIsItsBody,
            lambda new: dropped(graph.RsqrtOp)(new) if has(new, graph.RsqrtOp) else new,
        ),
    ),
    ("graph-cse", "merge", "graph.exp", wrong_merge),
    ("graph-fold-constant", "fold", "graph.sqrt", wrong_fold),
    ("canonicalize", "NeutralOperand", "graph.mul", wrong_one),
    (
        "graph-canonicalize-ops",
        "BiasIsAnOperand",
        "graph.add",
        lambda patch: in_pattern(patch, canonicalize_ops.bias_is_an_operand, without_bias),
    ),
    (
        "graph-canonicalize-ops",
        "SubtractConstant",
        "graph.sub",
        lambda patch: in_pattern(patch, canonicalize_ops.subtract_constant, dropped(graph.AddOp)),
    ),
    (
        "graph-simplify",
        "AddNegated",
        "graph.add",
        lambda patch: in_pattern(patch, arithmetic.add_negated, swapped(graph.SubOp)),
    ),
    (
        "graph-simplify",
        "DivideByPowerOfTwo",
        "graph.div",
        lambda patch: in_pattern(patch, arithmetic.divide_by_power_of_two, dropped(graph.MulOp)),
    ),
    (
        "graph-fold-scale-axis",
        "ProductOfScaled",
        "graph.dense",
        lambda patch: in_pattern(patch, fold_scale_axis.ProductOfScaled, dropped(graph.MulOp)),
    ),
    (
        "graph-fuse-ops",
        "outline",
        "graph.sub",
        lambda patch: wrapped(
            patch, outlining.Outliner, "outline", dropped(graph.ReluOp), "graph.relu"
        ),
    ),
    (
        "convert-graph-to-loop",
        "build kernel",
        "func.func",
        lambda patch: wrapped(patch, convert_graph_to_loop, "build_kernel", short, DENSE),
    ),
    (
        "loop-schedule",
        "split(i, ",
        "loop.kernel",
        lambda patch: wrapped(patch, PRIMITIVES["split"], "function", same_place, "@fused_add"),
    ),
    (
        "loop-schedule",
        "vectorize(",
        "loop.kernel",
        lambda patch: wrapped(patch, PRIMITIVES["vectorize"], "function", same_place, DENSE),
    ),
    (
        "convert-graph-to-rt",
        "share a slot",
        "graph.call_dps",
        lambda patch: patch.setattr(slots, "_choose", lambda size, slots, free: len(slots) - 1),
    ),
    (
        "convert-loop-to-scf",
        "convert kernel",
        "loop.kernel",
        lambda patch: wrapped(
            patch, convert_loop_to_scf, "_convert_kernel", swapped(arith.SubfOp), DENSE
        ),
    ),
    (
        "rt-outline-tiles",
        "outline",
        "rt.parallel_tiles",
        lambda patch: wrapped(
            patch, outline_tiles, "_outline", dropped(arith.AddfOp), "@fused_add_tiles"
        ),
    ),
    (
        "convert-math-to-arith",
        "expand",
        "math.tanh",
        lambda patch: patch.setitem(convert_math_to_arith._F32, math.TanhOp, polynomials.exp),
    ),
    (
        "convert-scf-to-cf",
        "lower to branches",
        "scf.for",
        one_too_many,
    ),
    ("convert-to-llvm", "lower", "arith.mulf", wrong_lowering),
    ("graph-simplify", "DivideByPowerOfTwo", "graph.div", broken),
    (
        "convert-loop-to-scf",
        "convert kernel",
        "loop.kernel",
        lambda patch: wrapped(patch, convert_loop_to_scf, "_convert_kernel", of_two_types, DENSE),
    ),
]


VECTOR = ("vector.store", "vector.maskedstore")
"""Which of the two it is depends on the vectors of the machine."""
WRITES = {
    "loop-schedule": ("loop.store", "loop.store"),
    "convert-loop-to-scf": ("loop.store", VECTOR),
    "rt-outline-tiles": (VECTOR, VECTOR),
    "convert-math-to-arith": (VECTOR, VECTOR),
}
"""What writes the first wrong element, before and after a pass."""


ALIKE = {"SubtractConstant", "AddNegated", "DivideByPowerOfTwo", "ProductOfScaled"}
"""Patterns with wrong results that are blamed as those of other rules are."""

LONG = {"expand", "lower to branches", "vectorize(", "rt-outline-tiles"}
"""Steps, and a pass, that are found after so many others that their tests take the longest."""

SHORTER = {"build kernel": kernel, "convert kernel": kernel, "lower": function}
"""Steps that are as well found in a program of one kernel."""

EARLY = pipeline()["optimized"] + "," + pipeline()["fused"]
"""The passes of the `graph` level."""

STEPS = [
    pytest.param(
        *planted,
        id=f"{number}:{planted[0]}:{planted[1]}",
        marks=[
            *(
                [pytest.mark.slow]
                if LONG & {*planted[:2]} or (planted[1] in ALIKE and planted[3] is not broken)
                else ()
            ),
            *(
                [pytest.mark.unguarded("no slots are shared")]
                if planted[1] == "share a slot"
                else ()
            ),
        ],
    )
    for number, planted in enumerate(PLANTED)
]


@pytest.mark.parametrize(("pass_name", "action", "operation", "plant"), STEPS)
def test_the_step_to_blame(
    pass_name: str,
    action: str,
    operation: str,
    plant: Callable[[Patch], None],
    monkeypatch: Patch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(monkeypatch)
    rows = 13 if operation == "loop.kernel" else 3  # more than a register tile has, or few
    is_early = pass_name.startswith(("graph-", "canonicalize"))
    program = model if is_early else SHORTER.get(action, kernels)
    options: dict[str, Any] = {"pipeline": EARLY} if is_early else {"threads": 1}
    found = sw.bisect(program(), [numbers(rows, 12)], **options)
    assert found is not None
    assert found.pass_name == pass_name
    assert found.action is not None, str(found)
    assert found.action.name.startswith(action), str(found)
    assert found.action.operation == operation
    assert 0 < found.action_number <= found.actions
    if found.failure.kind is not FailureKind.CRASH:
        assert found.diff()
    if found.failure.kind is FailureKind.RESULT and pass_name in WRITES:
        before, after = WRITES[pass_name]
        assert (found.statement_before or "").startswith(before), str(found)
        assert (found.statement or "").startswith(after), str(found)
    path = found.save(tmp_path / "found.mlir")
    with pytest.raises(SystemExit):
        stepwell_opt.main(["--run-reproducer", str(path)])
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(f"stepwell-opt: error: {pass_name}: ")


def test_nothing_fails() -> None:
    assert sw.bisect(model(), [numbers(3, 12)], pipeline=EARLY) is None
    assert sw.bisect(function(), [numbers(3, 12)], threads=1) is None


def test_what_a_pass_does_beside_its_steps(monkeypatch: Patch) -> None:
    kind = passes()["graph-canonicalize-ops"]()
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        if any(isinstance(inner, graph.TanhOp) for inner in op.walk()):
            dropped(graph.TanhOp)(op)

    monkeypatch.setattr(kind, "apply", wrong)
    found = sw.bisect(model(), [numbers(3, 12)], threads=1)
    assert found is not None
    assert (found.pass_name, found.action, found.actions) == ("graph-canonicalize-ops", None, 5)
    assert str(found).endswith("none of its 5 actions: the rest of the pass")
    assert re.search(r"^[-+].*graph\.neg", found.diff(), re.MULTILINE)


def test_a_report(monkeypatch: Patch) -> None:
    in_pattern(monkeypatch, arithmetic.add_negated, swapped(graph.SubOp))
    found = sw.bisect(model(), pipeline="graph-canonicalize-ops,graph-simplify")
    assert found is not None
    report = str(found).splitlines()
    assert re.fullmatch(r"graph-simplify: it changes result 0 by .* ulp in @main at .*", report[0])
    assert report[1] == "pass 2 of 2: graph-simplify"
    assert re.fullmatch(
        r'action 1 of \d: "AddNegated" on graph.add in @main of test_bisection.py:\d+', report[2]
    )
    assert len(report) == 3
    assert (found.function, found.operation, len(found.nodes)) == ("main", "graph.sub", 1)
    changed = [line for line in found.diff().splitlines() if line[:1] in "+-"]
    assert any("graph.sub" in line and line.startswith("+") for line in changed)
    assert len(changed) < 12


def test_results_that_are_expected() -> None:
    b = sw.Builder("main")
    x = b.input("x", (3, 4))
    b.output(b.exp(x))
    module, given = b.module(), numbers(3, 4)
    assert sw.bisect(module, [given], threads=1, expected=[np.exp(given)]) is None
    wrong = np.exp(given)
    wrong[1, 2] = 0
    with pytest.raises(sw.MiscompilationError, match=r"the model itself: .* element \[1, 2\]"):
        sw.bisect(module, [given], threads=1, expected=[wrong])
    with pytest.raises(sw.InputError, match="results without inputs"):
        sw.bisect(module, expected=[wrong])
    with pytest.raises(sw.InputError, match="wrong number of expected results, expected 1, got 2"):
        sw.bisect(module, [given], expected=[wrong, wrong])
    with pytest.raises(sw.InputError, match='expected result "result0" does not fit'):
        sw.bisect(module, [given], expected=[wrong[0]])


def test_a_pass_that_drifts_from_what_is_expected(monkeypatch: Patch) -> None:
    in_pattern(monkeypatch, arithmetic.add_negated, swapped(graph.SubOp))
    given = numbers(3, 12)
    right = model().run_reference(given)
    found = sw.bisect(model(), [given], threads=1, expected=[right])
    assert found is not None
    assert found.action is not None
    assert found.action.name == "AddNegated"
    assert found.reproducer.inputs is not None
    np.testing.assert_array_equal(found.reproducer.inputs[0], given)


def test_a_refusal_is_a_finding() -> None:
    found = sw.bisect(model(), pipeline="convert-graph-to-loop")
    assert found is not None
    assert found.failure.kind is FailureKind.REFUSAL
    assert "operator outside of a primitive function" in str(found)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(sw.CompileError, match='unknown pass "graph-simplfy"; nearest names'):
        sw.bisect(model(), pipeline="graph-simplfy")
    with pytest.raises(sw.CompileError, match=r"bisect: not a module, expected stepwell\.Module"):
        sw.bisect("m.mlir")  # pyright: ignore[reportArgumentType]
    with pytest.raises(sw.InputError, match="wrong number of inputs"):
        sw.bisect(model(), [])
