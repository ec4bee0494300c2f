"""`to_mixed_precision`: store values in 16 bits where a policy allows, and measure the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ..core.errors import CompileError, InputError, explain
from ..core.ir.module import Module
from ..core.ir.provenance import names
from ..core.ir.weights import WeightStore
from ..core.pipelines.decisions import Decision
from ..core.pipelines.staircase import LATE, pipeline, run_passes, without
from ..core.registry import make_context
from ..dialects.graph.ops import ConstantOp
from ..passes.graph.to_mixed_precision import GraphToMixedPrecisionPass

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp


@dataclass(frozen=True)
class Difference:
    """The error of a value with respect to f32, over all samples.

    `absolute` is the largest difference of two elements, `relative` the same relative to the
    largest element in f32. Both are infinite or NaN if an element is, but was not in f32.
    """

    name: str
    nodes: tuple[str, ...]
    absolute: float
    relative: float

    def __str__(self) -> str:
        nodes = f" ({', '.join(self.nodes)})" if self.nodes else ""
        return f"{self.name}{nodes}: {self.absolute:.2e} absolute, {self.relative:.2e} relative"


@dataclass(frozen=True)
class MixedPrecision:
    """A module that stores values in 16 bits, the decisions, and the measured error.

    `outputs` has the results of the program, `operators` the operators that store 16 bits now. The
    error of an operator includes those of the operators before it.
    """

    module: Module
    decisions: tuple[Decision, ...]
    outputs: tuple[Difference, ...]
    operators: tuple[Difference, ...]
    samples: int

    def __str__(self) -> str:
        runs = "sample" if self.samples == 1 else "samples"
        lines = [f"largest differences from f32, over {self.samples} {runs}"]
        for title, found in (("outputs", self.outputs), ("stored in 16 bits", self.operators)):
            lines += [f"  {title}", *(f"    {difference}" for difference in found)]
        return "\n".join(lines)


def to_mixed_precision(
    module: Module,
    samples: Sequence[Sequence[Any]],
    type: str = "bf16",
    always: Sequence[str] = (),
    follow: Sequence[str] = (),
    never: Sequence[str] = (),
) -> MixedPrecision:
    """Optimise a module, run `graph-to-mixed-precision` on it, and measure the error.

    Args:
        module: a module of stage `graph`; it is not changed.
        samples: representative inputs, each a sequence with a value for each input.
        type: "bf16" or "f16".
        always: operators that store 16 bits, whatever their own policy.
        follow: operators that store 16 bits if their operands have 16 bits.
        never: operators that do not store 16 bits.

    Raises:
        InputError: without samples, or if one does not fit the inputs.
        CompileError: if the module is not of stage `graph`, or the type or an operator is
            unknown.
    """
    if not samples:
        raise InputError(explain("to_mixed_precision", "no samples to measure the error on"))
    step = GraphToMixedPrecisionPass(type, tuple(always), tuple(follow), tuple(never))
    exact = module.clone()
    # Policies name operators, also such as `graph.softmax`.
    passes = without(pipeline()["optimized"], LATE)
    run_passes(make_context(exact.weights), exact.op, passes)
    mixed = exact.clone()
    ctx = make_context(mixed.weights)
    ctx.pass_name = step.name
    before = list(exact.main.walk())
    places = {op: place for place, op in enumerate(mixed.main.walk())}
    try:
        replaced = step.replace(ctx, mixed.op)
    except PassFailedException as error:
        raise CompileError(str(error)) from error
    pairs = {before[places[old]]: new for old, new in replaced.items() if old in places}
    outputs, operators = _measure(exact, mixed, pairs, samples)
    run_passes(ctx, mixed.op, "graph-fold-constant,canonicalize,graph-canonicalize-cast")
    kept = tuple(d for d in ctx.decisions if d.pass_name == step.name)
    result = Module(mixed.op, _used(mixed))
    return MixedPrecision(result, kept, outputs, operators, len(samples))


def _used(module: Module) -> WeightStore:
    """The weights that a module still names."""
    result = WeightStore()
    for op in module.op.walk():
        if isinstance(op, ConstantOp) and op.key is not None and op.key not in result:
            result.add(op.key, module.weights[op.key])
    return result


def _measure(
    exact: Module,
    mixed: Module,
    pairs: Mapping[Operation, Operation],
    samples: Sequence[Sequence[Any]],
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """The differences between the results of both modules, and between the first results of pairs
    of operators."""
    left = _watching(exact, [op.results[0] for op in pairs])
    right = _watching(mixed, [op.results[0] for op in pairs.values()])
    found = [
        [
            _distance(want, have)
            for want, have in zip(_results(left, sample), _results(right, sample), strict=True)
        ]
        for sample in samples
    ]
    worst = [tuple(map(float, pair)) for pair in np.max(found, axis=0)]
    count = len(exact.outputs)
    outputs = [
        Difference(spec.name, (), *pair)
        for spec, pair in zip(exact.outputs, worst[:count], strict=True)
    ]
    operators = [
        Difference(op.name, names(op), *pair) for op, pair in zip(pairs, worst[count:], strict=True)
    ]
    return tuple(outputs), tuple(operators)


def _watching(module: Module, values: Sequence[SSAValue]) -> Module:
    """A copy of a module that returns some of its values after its results."""
    places = {value: place for place, value in enumerate(_values(module.main))}
    copy = module.clone()
    main, there = copy.main, list(_values(copy.main))
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    last.operands = [*last.operands, *(there[places[value]] for value in values)]
    main.properties.pop("res_attrs", None)
    main.update_function_type()
    return copy


def _values(function: FuncOp) -> list[SSAValue]:
    return [result for op in function.walk() for result in op.results]


def _results(module: Module, sample: Sequence[Any]) -> tuple[Any, ...]:
    found = module.run_reference(*sample)
    return found if isinstance(found, tuple) else (found,)


def _distance(want: Any, have: Any) -> tuple[float, float]:
    """The largest difference of two arrays, absolute and relative to the largest element."""
    wide, other = (np.asarray(array, np.float64) for array in (want, have))
    with np.errstate(all="ignore"):
        difference = np.where(wide == other, 0.0, np.abs(wide - other))
        both = np.isnan(wide) & np.isnan(other)
        absolute = float(np.where(both, 0.0, difference).max(initial=0.0))
        largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    return absolute, absolute / largest if largest else absolute
