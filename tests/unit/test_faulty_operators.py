"""Operators of plug-ins with faults: each is one error that names the operator and its node."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.parser import Parser

from stepwell.core.errors import CompileError
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    Indices,
    Nest,
)
from stepwell.dialects.graph.nests.nest import WritingNest
from stepwell.dialects.graph.nests.recording_nest import RecordingNest

from .unary import Unary


class Faulty(Unary):
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE


@irdl_op_definition
class BeforeOp(Faulty):
    name = "faulty.before"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, (index[0] + -1, *index[1:]))


@irdl_op_definition
class BehindOp(Faulty):
    name = "faulty.behind"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        nest.fill(0, lambda index: nest.at(self.x, index))
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as (row, column):
            nest.update(0, (row + 1, column), nest.at(self.x, (row, column)))


@irdl_op_definition
class FirstOp(Faulty):
    """x[0] + x[i] in the first dimension, which is right."""

    name = "faulty.first"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, (index[0] * 0, *index[1:]))


@irdl_op_definition
class SameOp(Faulty):
    name = "faulty.same"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, index)


@irdl_op_definition
class LateOp(Faulty):
    """Raises when its kernel is built, which is after it has been recorded."""

    name = "faulty.late"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        if not isinstance(nest, RecordingNest):
            raise KeyError("late")
        return nest.at(self.x, index)


@irdl_op_definition
class LateLoopsOp(Faulty):
    name = "faulty.late_loops"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        nest.fill(0, lambda index: nest.at(self.x, index))
        if not isinstance(nest, RecordingNest):
            raise KeyError("late")


@irdl_op_definition
class SumOp(Faulty):
    name = "faulty.sum"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    def write(self, k: Any, x: Any, y: Any) -> None:
        y[0, 0] = k.sum(x.shape[1], lambda t: x[0, t])


DIALECT = Dialect("faulty", [BeforeOp, BehindOp, FirstOp, LateOp, LateLoopsOp, SameOp, SumOp])
X = "tensor<?x6xf32>"


def lowered(body: str) -> str:
    ctx = make_context(WeightStore(), named("x86-64-v4"))
    ctx.load_dialect(DIALECT)
    text = f"func.func @main(%x: {X}) -> {X} {{\n{body}\nfunc.return %y : {X}\n}}"
    module = Parser(ctx, text).parse_module()
    assert isinstance(module, ModuleOp)
    module.verify()
    run_passes(ctx, module, "graph-fuse-ops,convert-graph-to-loop")
    return str(module)


def applied(name: str) -> str:
    return f'%y = faulty.{name} %x : ({X}) -> {X} loc("here")'


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("before", r"an access may be outside of dimension 0.*, got x\[i - 1, j\] .*clamp"),
        (
            "behind",
            r"an access may be outside of dimension 0.*, got y\[i1 \+ 1, j1\] .*clamp",
        ),
        ("late", "raised KeyError: 'late'"),
        ("late_loops", "raised KeyError: 'late'"),
        ("sum", r"there is no k\.sum .*; there are k\.abs, (?!.*k\.(sum|max)\b)"),
    ],
)
def test_faults_are_errors_that_name_the_operator(name: str, message: str) -> None:
    with pytest.raises(CompileError, match=rf"^faulty\.{name}: {message}") as found:
        lowered(applied(name))
    assert str(found.value).count('node "here"') == 1


def test_what_is_read_through_other_operators_is_inside_too() -> None:
    relu = f'%r = graph.relu %x : ({X}) -> {X} loc("relu")\n'
    with pytest.raises(CompileError, match=r'faulty.before: an access may .*node "here"'):
        lowered(relu + applied("before").replace("%x", "%r"))
    assert "loop.fits" not in lowered(relu + applied("first").replace("%x", "%r"))


def test_indices_of_other_operators_are_trusted() -> None:
    """A sort computes places that only the sort knows to be inside."""
    pair = f"({X}) -> ({X}, tensor<?x6xi64>)"
    sort = f"%s, %t = graph.sort %x axis = 1 descending = false : {pair}\n"
    assert lowered(sort + applied("same").replace("%x", "%s")).count("loop.kernel") == 1
