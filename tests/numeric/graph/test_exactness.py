"""Every rule says how exact it is, and is shown to be.

A rule of one operand is applied to all values of f16 and i8, one of two operands to all pairs of i8
and to the pairs of a few hundred values of f16: special values, powers of two and what is beside
them, and the neighbours of ties. Both sides then have the same bits, on the reference and, as they
are compiled without any optimisation, on this machine. Programs are made from the identities of
rules; those that need certain attributes or shapes have programs of their own.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriteWalker, RewritePattern

import stepwell as sw
from stepwell.core.pipelines.exactness import Exactness
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.rules import IdentityRule
from stepwell.dialects.loop.dialect import Loop
from stepwell.dialects.program import is_on_buffers
from stepwell.dialects.rt.dialect import Rt
from stepwell.passes.graph.raise_messages import Shapes
from stepwell.passes.graph.rules import legalization
from stepwell.passes.graph.rules.permission import RuleTable
from stepwell.runtime.interpreted import interpreted
from stepwell.runtime.lowered import lowered
from stepwell.tools.rule_list import all_rules

from ...fuzz.choices import Choices
from ...harness import cases, floats, results
from . import drawn_control, drawn_dense, drawn_nests, drawn_quantized, drawn_sparse  # noqa: F401
from .drawn import DRAWN, Drawing
from .instances import TYPES, Build, Proof, instances, number, usable
from .random_instances import random_instances

WHOLE = (1 << 63) - 1
ROOMS = ("stepwell.dialects", "stepwell.passes.graph", "stepwell.conversions")
ACTIVATIONS = ("celu", "elu", "hard_sigmoid", "hard_swish", "log_sigmoid", "mish", "selu", "silu")
ACTIVATIONS += ("softplus", "softsign")
Rule = type[RewritePattern] | IdentityRule


def rules() -> dict[str, Rule]:
    """All patterns of the dialects, passes and conversions, by their names."""
    found: dict[str, Rule] = {
        f"{module.removeprefix('stepwell.')}.{name}": rule
        for (module, name), rule in all_rules().items()
        if isinstance(rule, IdentityRule)
    }
    for room in ROOMS:
        for module in _modules(room):
            for kind in vars(importlib.import_module(module)).values():
                if not isinstance(kind, type) or not issubclass(kind, RewritePattern):
                    continue
                # They are made of rules, each of which says it.
                if kind in (RuleTable, IdentityRule):
                    continue
                if kind.__module__ == module and not kind.__name__.startswith("_"):
                    found[f"{module.removeprefix('stepwell.')}.{kind.__name__}"] = kind
    return found


def _modules(room: str) -> Iterator[str]:
    package = importlib.import_module(room)
    yield room
    for info in pkgutil.walk_packages(package.__path__, room + "."):
        yield info.name


RULES = rules()
BY_NAME = {key.rpartition(".")[2]: rule for key, rule in RULES.items() if ".graph." in key}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_says_how_exact_it_is(rule: str) -> None:
    assert "exactness" in vars(RULES[rule]), f"{rule} declares no exactness"
    assert "identity" in vars(RULES[rule]), f"{rule} states no identity"


@pytest.mark.parametrize("name", legalization.TABLE)
def test_every_built_in_legalization_says_how_exact_it_is(name: str) -> None:
    assert Exactness.of(legalization.TABLE[name]) is not None


def test_every_pass_of_graph_says_how_exact_it_is() -> None:
    """Itself, or by the rules that it is made of."""
    for module in _modules("stepwell.passes.graph"):
        names = vars(importlib.import_module(module))
        kinds = [k for k in names.values() if isinstance(k, type) and k.__module__ == module]
        for kind in kinds:
            if not issubclass(kind, ModulePass):
                continue
            made_of_rules = any(issubclass(k, RewritePattern) for k in kinds)
            made_of_rules |= "arithmetic" in names or "legalization" in names
            made_of_rules |= any(isinstance(value, IdentityRule) for value in names.values())
            assert made_of_rules or Exactness.of(kind) is not None, kind.__name__


@pytest.mark.parametrize("dialect", [Graph, Loop, Rt], ids=lambda d: d.name)
def test_canonicalizations_are_exact(dialect: Any) -> None:
    for op in dialect.operations:
        if issubclass(op, HasCanonicalizationPatternsInterface):
            for pattern in op.get_canonicalization_patterns():
                assert Exactness.of(pattern) == Exactness.EXACT, type(pattern).__name__


def of(build: Build, *types: str) -> list[Proof]:
    """The same program of one operand for several types."""
    return [Proof(build, (kind,)) for kind in types]


def pairs(build: Build, *types: str) -> list[Proof]:
    """The same program of two operands for several types."""
    return [Proof(build, (kind, kind)) for kind in types]


def in_rows(build: Build, moves: bool = False) -> list[Proof]:
    """A program on four columns."""
    return [
        Proof(lambda b, x: build(b, b.reshape(x, [-1, 4])), (kind,), moves)
        for kind in ("f16", "i8")
    ]


def moved(build: Build) -> list[Proof]:
    """A program that only moves elements, on four columns."""
    return in_rows(build, moves=True)


BOUNDS = (-np.inf, -3.0, -0.1, -0.0, 0.0, 0.1, 6.0, np.inf)


def clips(b: sw.Builder, x: Any) -> list[Any]:
    bounds = [(a, c) for a in BOUNDS for c in BOUNDS if a <= c]
    return [b.clip(b.clip(x, *inner), *outer) for inner in bounds[::5] for outer in bounds[::3]]


def casts(b: sw.Builder, x: Any) -> list[Any]:
    between = ("i16", "i32", "i64", "ui16", "ui32", "bf16", "f32", "f64")
    targets = ("i1", "i8", "ui8", "i16", "i32", "ui32", "i64", "f16", "bf16", "f32")
    return [b.cast(b.cast(x, wide), target) for wide in between for target in targets]


PROOFS: dict[str, list[Proof]] = {
    "CastWiderAndBack": [
        *(
            Proof(lambda b, x, k=k, w=w: b.cast(b.cast(x, w), k), (k,))
            for k, w in [("f16", "f32"), ("f16", "f64"), ("i8", "f16"), ("i8", "bf16")]
        ),
        *(
            Proof(lambda b, x, k=k, w=w: b.cast(b.cast(x, w), k), (k,))
            for k, w in [("i8", "i16"), ("ui8", "bf16"), ("ui32", "f64"), ("i32", "f64")]
        ),
    ],
    "BitcastToSame": [
        Proof(lambda b, x, k=k: b.bitcast(x, k), (k,)) for k in ("f16", "f32", "i8", "ui8", "i1")
    ],
    "BitcastTwice": [
        Proof(lambda b, x, k=k, w=w: b.bitcast(b.bitcast(x, w), k), (own,))
        for own, w, k in (
            ("f16", "i16", "f16"),
            ("f32", "i32", "f32"),
            ("i8", "ui8", "i1"),
            ("i1", "ui8", "i8"),
        )
    ],
    "TransposeNothing": moved(lambda b, x: b.transpose(x, [0, 1])),
    "TransposeTwice": moved(lambda b, x: b.transpose(b.transpose(x, [1, 0]), [1, 0])),
    "ReshapeNothing": moved(lambda b, x: b.reshape(x, [-1, 4])),
    "ReshapeTwice": moved(lambda b, x: b.reshape(b.reshape(x, [-1, 2, 2]), [2, -1])),
    "BroadcastNothing": moved(lambda b, x: b.broadcast_to(x, [-1, 4])),
    "SliceNothing": moved(lambda b, x: b.slice(x, [0, 0], [WHOLE, 4])),
    "PadNothing": moved(lambda b, x: b.pad(x, [0, 0], [0, 0])),
    "PadSameKnown": moved(lambda b, x: b.pad_same(x, extents=[3], strides=[2], value=3)),
    "PadTwice": moved(lambda b, x: b.pad(b.pad(x, [1, 0], [0, 2], 3), [0, 1], [2, 1], 3)),
    "PoolNothing": [
        *moved(lambda b, x: b.pool(b.reshape(x, [-1, 1, 4]), "max", [1], [1])),
        *in_rows(lambda b, x: b.pool(b.reshape(x, [-1, 1, 4]), "prod", [1], [1])),
    ],
    "ConcatOne": moved(lambda b, x: b.concat([x], axis=0)),
    "CompositeIsItsBody": [
        *(Proof(lambda b, x, name=name: getattr(b, name)(x)) for name in ACTIVATIONS),
        *pairs(lambda b, x, slope: b.prelu(x, slope), "f16", "i8", "ui8"),
        Proof(lambda b, x: product(b, x, 0.3), ("i8",)),
        Proof(lambda b, x: product(b, x, 0.001), ("i8",)),
        Proof(lambda b, x: b.layer_norm(b.reshape(x, [-1, 4])), ("f16",)),
        Proof(lambda b, x: b.rms_norm(b.reshape(x, [-1, 4])), ("f16",)),
    ],
    "ClipTwice": of(clips, "f16"),
    "CastOfWiderCast": of(casts, "f16", "i8", "ui8", "i1", "ui32", "i32"),
    "TransposeOfOnes": moved(lambda b, x: b.transpose(b.reshape(x, [-1, 1, 4]), [1, 0, 2])),
    "SliceTwice": moved(
        lambda b, x: b.slice(b.slice(x, [0, 3], [WHOLE, -1], [1, -1]), [0, 1], [WHOLE, 4], [1, 2])
    ),
    "SliceOfConcat": moved(
        lambda b, x: b.slice(b.concat([x, b.neg(x)], axis=1), [0, 5], [WHOLE, 7])
    ),
    "GatherOfAll": moved(lambda b, x: b.gather(x, np.arange(4), axis=1)),
    "ConcatOfSlices": moved(
        lambda b, x: b.concat(
            [b.slice(x, [0, 1], [WHOLE, 2]), b.slice(x, [0, 2], [WHOLE, 4])], axis=1
        )
    ),
    "ConcatOfConcat": moved(lambda b, x: b.concat([b.concat([x, b.neg(x)], axis=1), x], axis=1)),
    "OperandBroadcastsItself": [
        Proof(
            lambda b, x, y: (
                b.broadcast_to(b.slice(b.reshape(x, [256, -1]), [0, 0], [1, WHOLE]), [256, -1])
                + b.reshape(y, [256, -1])
            ),
            ("i8", "i8"),
        )
    ],
    "LargestOfLargest": [
        *in_rows(lambda b, x: b.reduce(b.reduce(x, "max", axes=[1]), "max", axes=[0])),
        *in_rows(lambda b, x: b.reduce(b.reduce(b.relu(x), "min", axes=[1]), "min", axes=[0])),
    ],
    "LastOperandBroadcastsItself": [
        Proof(
            lambda b, x, y: (
                b.reshape(y, [256, -1])
                - b.broadcast_to(b.slice(b.reshape(x, [256, -1]), [0, 0], [1, WHOLE]), [256, -1])
            ),
            ("i8", "i8"),
        )
    ],
    "ReduceNothing": [
        *of(lambda b, x: b.reduce(x, "sum", axes=[]), "f16", "i8"),
        *of(lambda b, x: b.reduce(x, "mean", axes=[]), "f16", "i8"),
        *of(lambda b, x: b.reduce(x, "max", axes=[]), "f16", "i8"),
    ],
    "CastToSame": of(lambda b, x: b.cast(x, str(x.dtype)), "f16", "i8"),
    "WhereSame": pairs(lambda b, x, y: b.where(b.less(x, y), x, x), "f16", "i8"),
    "WhereKnown": [
        *pairs(lambda b, x, y: b.where(b.constant(np.array(True)), x, y), "f16", "i8"),
        *pairs(lambda b, x, y: b.where(b.constant(np.array([False])), x, y), "f16", "i8"),
    ],
    "ReduceOfOnes": [
        *in_rows(lambda b, x: b.reduce(b.reshape(x, [-1, 1, 4]), "max", axes=[1])),
        *in_rows(lambda b, x: b.reduce(b.reshape(x, [-1, 1, 4]), "prod", axes=[1])),
        Proof(lambda b, x: b.reduce(b.reshape(x, [-1, 1, 4]), "sum", axes=[1]), ("i8",)),
    ],
    "ClipIsRelu": [
        *of(lambda b, x: b.clip(x, 0.0, None), "f16"),
        *of(lambda b, x: b.clip(x, 0.0, np.inf), "f16"),
        *of(lambda b, x: b.clip(x, 0, None), "i8"),
    ],
    "ReshapeToSizes": moved(lambda b, x: b.reshape(b.reshape(x, [4, -1]), [0, -1])),
    "CanonicalProperties": [
        *moved(lambda b, x: b.concat([x, x], axis=-1)),
        *in_rows(lambda b, x: b.reduce(b.reshape(x, [-1, 2, 2]), "max", axes=[-1, 1])),
    ],
    "QuantizeWhatWasQuantized": [
        Proof(lambda b, x, s=s, z=z: quantized(b, b.dequantize(x, *steps(b, x, s, z)), s, z), (k,))
        for k, z in (("i8", -3), ("ui8", 130))
        for s in (2.0**-40, 0.1, 0.3, 41.0, 2.0**40)
    ],
    "QuantizeWhatWasCut": [
        Proof(lambda b, x, f=f, s=s: quantized(b, f(b, b.cast(x, "f32")), s, -3), ("f16",))
        for s in (0.1, 0.3, 2.0)
        for f in (
            lambda b, x: b.relu(x),
            lambda b, x: b.clip(x, -0.25, 1.75),
            lambda b, x: b.clip(x, None, 6.0),
        )
    ],
    "MoveOfDequantized": [
        Proof(lambda b, x, f=f: f(b, b.reshape(x, [-1, 4]), *steps(b, x, 0.3, -3)), ("i8",))
        for f in (
            lambda b, x, s, z: b.reshape(b.dequantize(x, s, z), [4, -1]),
            lambda b, x, s, z: b.transpose(b.dequantize(x, s, z), [1, 0]),
            lambda b, x, s, z: b.slice(b.dequantize(x, s, z), [0, 3], [2**63 - 1, 0], [1, -2]),
            lambda b, x, s, z: b.pool(b.dequantize(b.reshape(x, [-1, 1, 4]), s, z), "max", [2]),
            lambda b, x, s, z: b.reduce(b.dequantize(x, s, z), "min", axes=[1]),
        )
    ],
    "PadOfDequantized": [
        Proof(
            lambda b, x: b.pad(
                b.dequantize(b.reshape(x, [-1, 4]), *steps(b, x, 0.3, -3)), [0, 1], [2, 0]
            ),
            ("i8",),
        )
    ],
    "FirstFactorIsNarrow": [
        Proof(
            lambda b, x, z=z: b.dense(
                b.cast(b.reshape(x, [-1, 4]), "i16") - np.int16(z), FILTERS.astype(np.int16)
            ),
            ("i8",),
        )
        for z in (0,)
    ],
    "SecondFactorIsNarrow": [
        Proof(
            lambda b, x, z=z: b.dense(
                b.cast(b.reshape(x, [-1, 4]), "i16") - np.int16(z), FILTERS.astype(np.int16)
            ),
            ("i8",),
        )
        for z in (0, -3)
    ],
    "ProductOfShifted": [
        Proof(
            lambda b, x: b.dense(
                b.cast(b.reshape(x, [-1, 4]), "i16") - np.int16(-3), FILTERS.astype(np.int16)
            ),
            ("i8",),
        )
    ],
    "AggregateByStoredValues": [
        Proof(lambda b, x: aggregated(b, b.reshape(x, [4, -1])), ("f32",)),
    ],
    "CheckBelowNumber": [
        Proof(
            lambda b, x: b.check_indices(
                b.cast(b.clip(x, 0, 3), "i64"), np.zeros((2, 4), np.float32), axis=-1
            ),
            ("i8",),
        )
    ],
    "RowsWithEntries": [
        Proof(lambda b, x: rows_with_entries(b, b.reshape(x, [4, -1])), ("f32",)),
    ],
    "ChosenTwice": [
        Proof(lambda b, x: chosen_twice(b, b.reshape(x, [4, -1])), ("f32",)),
    ],
    "ZeroWithoutEntries": [
        Proof(lambda b, x: zero_without_entries(b, b.reshape(x, [4, -1])), ("f32",)),
    ],
    "ReduceColumns": [
        Proof(lambda b, x: reduced_columns(b, b.reshape(x, [4, -1])), ("f32",)),
    ],
}

FILTERS = np.array([[1, -2, 3, -4], [127, -128, 5, 6], [0, 0, 0, 1]], np.int8)


def steps(b: sw.Builder, q: Any, scale: float, zero: int) -> tuple[Any, Any]:
    return b.constant(np.float32(scale)), number(b, q, zero)


def quantized(b: sw.Builder, x: Any, scale: float, zero: int) -> Any:
    kind = np.uint8 if zero > 127 else np.int8
    return b.quantize(x, np.float32(scale), np.asarray(zero, kind))


def product(b: sw.Builder, x: Any, scale: float) -> Any:
    one, none = np.float32(1), np.int8(0)
    q = b.reshape(x, [-1, 4])
    return b.quantized_dense(q, np.float32(scale), np.int8(-3), FILTERS, one, none, one, np.int8(7))


MATRIX = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0.1, 3, 0, -1]], np.float32)


def aggregated(b: sw.Builder, x: Any) -> Any:
    a = b.constant(sp.csr_array(MATRIX))
    return b.aggregate(a, x, b.entries(a), "sum")


def reduced_columns(b: sw.Builder, x: Any) -> Any:
    a = b.constant(sp.csr_array(MATRIX))
    return b.reduce_entries(a, b.at_entries(a, x, axis=1), "mean")


def with_entries(b: sw.Builder) -> tuple[Any, Any]:
    """A matrix of ones, and which of its rows have entries."""
    a, _ = b.csr_from_edges(np.array([0, 3, 0, 2]), np.array([1, 1, 2, 0]), (4, 4))
    return a, b.less(np.zeros((), np.float32), b.reshape(b.degree(a), [-1, 1]))


def rows_with_entries(b: sw.Builder, x: Any) -> Any:
    a, some = with_entries(b)
    return b.at_entries(a, b.where(some, x, 2 - x), axis=0)


def zero_without_entries(b: sw.Builder, x: Any) -> Any:
    a, some = with_entries(b)
    return b.where(some, b.aggregate(a, x, kind="max"), 0.0)


def chosen_twice(b: sw.Builder, x: Any) -> Any:
    _, some = with_entries(b)
    return b.where(some, b.where(some, x, 2 - x), 3 - x)


def positive(b: sw.Builder, x: Any) -> Any:
    """Whether the sum of the numbers in x is above 0, which only a call tells."""
    return b.greater(b.reduce(b.cast(x, "f32"), "sum", axes=[0], keepdims=False), 0.0)


def chosen(b: sw.Builder, x: Any, pred: Any, more: Any) -> Any:
    return b.cond(pred, b.max, lambda v, w: b.neg(v), x, more)


def captured_in_vain(b: sw.Builder, x: Any) -> Any:
    made = chosen(b, x, positive(b, x), x + x)
    op = made.ssa.owner
    for body in op.bodies:
        body.insert_arg(x.ssa.type, len(body.args))
    op.operands = [*op.operands, x.ssa]
    return made


def doubled(b: sw.Builder, x: Any, count: Any, holds: bool | None = None) -> Any:
    test = None if holds is None else lambda _: b.constant(np.array(holds))
    return b.loop(count, lambda i, v: v + v, x, condition=test)


PROOFS |= {
    "CaptureOfConstant": of(
        lambda b, x: chosen(b, x, positive(b, x), number(b, x, 2)), "f16", "i8"
    ),
    "UnusedCapture": of(captured_in_vain, "f16", "i8"),
    "KnownBranch": [
        *of(lambda b, x: chosen(b, x, b.constant(np.array(True)), x + x), "f16", "i8"),
        *of(lambda b, x: chosen(b, x, b.constant(np.array(False)), x + x), "f16", "i8"),
    ],
    "UnusedResult": of(
        lambda b, x: b.cond(positive(b, x), lambda v: (v + v, v), lambda v: (v, v + v), x)[0],
        "f16",
        "i8",
    ),
    "KnownCount": [
        *of(lambda b, x: doubled(b, x, b.constant(np.array(3))), "f16", "i8"),
        *of(lambda b, x: doubled(b, x, b.constant(np.array(-3))), "f16", "i8"),
    ],
    "KnownCondition": [
        *of(lambda b, x: doubled(b, x, 3, True), "f16", "i8"),
        *of(lambda b, x: doubled(b, x, 3, False), "f16", "i8"),
    ],
    "KnownIterations": [
        *of(lambda b, x: doubled(b, x, 0), "f16", "i8"),
        *of(lambda b, x: doubled(b, x, 1), "f16", "i8"),
    ],
    "UnchangedCarry": of(
        lambda b, x: b.loop(3, lambda i, v, w: (b.max(v + v, w), w), x, b.neg(x))[0], "f16", "i8"
    ),
    "UnusedInLoop": of(
        lambda b, x: b.loop(3, lambda i, v, w: (v + v, v), x, b.neg(x))[0], "f16", "i8"
    ),
}


def some_floats() -> np.ndarray:
    """Special values of f16, powers of two and their neighbours, and neighbours of ties."""
    powers = 2.0 ** np.arange(-24, 16, 3, dtype=np.float64)
    found = np.concatenate([[0, np.inf, 65504, 6.1e-5, 1 / 3, 41, 1e-3], powers, powers * 1.5])
    near = found.astype(np.float16)
    with np.errstate(over="ignore"):
        near = np.concatenate([near, np.nextafter(near, np.float16(np.inf))])
    near = np.concatenate([near, np.nextafter(near, np.float16(0)), [np.nan]]).astype(np.float16)
    return np.unique(np.concatenate([near, -near]).view(np.uint16)).view(np.float16)


def all_values(kind: str) -> np.ndarray:
    """All values of a type of 16 bits or less, some of a wider one."""
    if kind in ("f16", "f32"):
        halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        return halves.astype(TYPES[kind])
    if kind == "i1":
        return np.array([False, True] * 2)
    if kind in ("i8", "ui8"):
        return np.arange(256, dtype=np.uint8).view(TYPES[kind])
    limits = np.iinfo(TYPES[kind])
    near = np.arange(-64, 64, dtype=np.int64)
    wide = [limits.min + near, limits.max + near, near, (1 << 31) + near, 3_000_000_000 + near]
    wide = np.concatenate(wide)
    return wide[(wide >= limits.min) & (wide <= limits.max)][:256].astype(TYPES[kind])


def inputs_of(proof: Proof) -> list[np.ndarray]:
    if len(proof.operands) == 1:
        return [all_values(proof.operands[0])]
    values = some_floats() if proof.operands[0] == "f16" else all_values(proof.operands[0])
    return [array.reshape(-1) for array in np.meshgrid(values, values)]


IN_PASSES = {
    "power_by_squaring": "graph-legalize",
    "WithSelfLoops": "graph-raise-messages{min-width=1}",
    **dict.fromkeys(
        ("ElementwiseBeforeGather", "ProductBeforeGather"), "graph-compute-before-gather"
    ),
}
"""Rules that are used with others, or on what others leave, and their passes."""


def applied(rule: Rule, module: sw.Module) -> tuple[sw.Module, bool]:
    """A module after one use of a rule wherever it matches, and whether it did."""
    copy = module.clone()
    ctx = make_context(copy.weights)
    name = getattr(rule, "__name__", "")
    if name in IN_PASSES:
        run_passes(ctx, copy.op, IN_PASSES[name])
        return copy, copy.text() != module.text()
    given = {"ctx": ctx, "weights": copy.weights, "late": False}
    given["facts"] = Shapes(copy.main, copy.weights)
    pattern: RewritePattern
    if isinstance(rule, IdentityRule):
        pattern = usable(rule, copy)
    else:
        fields = dataclasses.fields(rule) if dataclasses.is_dataclass(rule) else ()
        pattern = rule(*(given[field.name] for field in fields if field.init))
    changed = PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(copy.op)
    copy.verify()
    return copy, changed


def bits(value: Any) -> list[np.ndarray]:
    """The bits of results; all NaN are one."""
    found: list[np.ndarray] = []
    for array in results(value):
        data = np.ascontiguousarray(array)
        nan = np.isnan(data)
        if nan.any():
            data = np.where(nan, np.array(np.nan, data.dtype), data)
        found.append(data.view(np.uint8))
    return found


def module_of(proofs: Sequence[Proof], every: int = 1) -> tuple[sw.Module, list[np.ndarray]]:
    """One module of the programs, and its inputs; only `every` nth result of more than that."""
    b, inputs = sw.Builder(), list[np.ndarray]()
    for proof in proofs:
        given = list[Any]()
        for array, kind in zip(inputs_of(proof), proof.operands, strict=True):
            given.append(b.input(f"x{len(inputs)}", array.shape, kind))
            inputs.append(array)
        values = proof.values(b, given)
        for value in values[::every] if len(values) > every else values:
            b.output(value)
    return b.module(), inputs


def _stated() -> dict[str, IdentityRule]:
    """The rules of `graph` that are written as identities."""
    return {name: rule for name, rule in BY_NAME.items() if isinstance(rule, IdentityRule)}


WRITTEN = [
    name
    for name, rule in _stated().items()
    if rule.exactness == Exactness.EXACT and name not in PROOFS
]
"""The exact rules that are applied to what their identity says."""
EXACT = [*PROOFS, *WRITTEN]


@functools.cache
def proofs_of(rule: str) -> list[Proof]:
    """The programs of a rule: its own, or those of its identity."""
    own = (PROOFS | INEXACT).get(rule)
    types = ("f16", "i8", "ui8", "i1") if rule in WRITTEN else ("f32",)
    return list(instances(_stated()[rule], types)) if own is None else own


MOST = 13
"""The most programs of a rule that quick tests take."""


def some(rule: str, all_tests: bool) -> list[Proof]:
    """The programs of a rule, or as many of them as quick tests take."""
    proofs = proofs_of(rule)
    assert proofs, f"{rule} has no program"
    # An odd step, as there may be one for each of two or four types in turn.
    return proofs if all_tests else proofs[:: -(-len(proofs) // MOST) | 1]


@pytest.mark.parametrize("rule", EXACT)
def test_an_exact_rule_keeps_all_bits(rule: str, all_tests: bool) -> None:
    for place, proof in enumerate(some(rule, all_tests)):
        module, inputs = module_of([proof])
        after, changed = applied(BY_NAME[rule], module)
        assert changed, f"{rule} does not apply to its program {place}"
        both = (bits(m.run_reference(*inputs)) for m in (module, after))
        for want, have in zip(*both, strict=True):
            np.testing.assert_array_equal(have, want, f"program {place}")


MOVES = {rule for rule, proofs in PROOFS.items() if all(proof.moves for proof in proofs)}
"""Rules of programs that compute nothing: what machine code moves has the bits that it had."""

MANY = 13
"""One of so many results of a program that has a great many is compiled with quick tests."""

OF_TYPES = ("CastOfWiderCast",)
"""Rules about types: others are compiled with the first type of each program in quick tests."""


def compiled_quickly(rule: str) -> list[Proof]:
    proofs = proofs_of(rule)
    first = {proof.build: proof for proof in reversed(proofs)}
    return proofs if rule in OF_TYPES else [p for p in proofs if first[p.build] is p]


COMPOSITES = {"CompositeIsItsBody"}
"""A rule that test_composites.py compiles."""


@pytest.mark.parametrize("rule", cases(EXACT, [r for r in EXACT if r not in MOVES | COMPOSITES]))
def test_an_exact_rule_keeps_all_bits_of_machine_code(rule: str, all_tests: bool) -> None:
    proofs = proofs_of(rule) if all_tests else compiled_quickly(rule)
    module, inputs = module_of(proofs, every=1 if all_tests else MANY)
    after, _ = applied(BY_NAME[rule], module)
    programs = (sw.compile(m, opt_level=0, threads=1) for m in (module, after))
    both = (bits(program(*inputs)) for program in programs)
    for place, (want, have) in enumerate(zip(*both, strict=True)):
        np.testing.assert_array_equal(have, want, f"output {place}")


def corner(b: sw.Builder, x: Any, rows: int, columns: int) -> Any:
    """A matrix of the first elements of a tensor."""
    return b.slice(b.reshape(x, [-1, 4]), [0, 0], [rows, columns])


def in_matrix(build: Build) -> list[Proof]:
    """A program on rows of 4."""
    return [Proof(build, ("f32",), shape=(-1, 4))]


def on_blocks(build: Build) -> list[Proof]:
    """A program on blocks of 4 x 4."""
    return [Proof(lambda b, x: build(b, b.reshape(x, [-1, 4, 4])), ("f32",))]


W8 = floats(8, 4)
WEIGHTED = sp.csr_array(MATRIX)


def on_entries(b: sw.Builder, x: Any) -> tuple[Any, Any]:
    """A matrix of ones, and rows of x at the columns of its entries."""
    a, _ = with_entries(b)
    return a, b.at_entries(a, x, axis=1)


def weighted_columns(b: sw.Builder, x: Any) -> Any:
    a, sent = on_entries(b, x)
    return b.reduce_entries(a, sent * b.slice(sent, [0, 0], [WHOLE, 1]), "sum")


def count(b: sw.Builder, a: Any) -> Any:
    return b.clip(b.reshape(b.degree(a), [-1, 1]), 1.0)


def mean_of_entries(b: sw.Builder, x: Any) -> Any:
    a, sent = on_entries(b, x)
    return b.reduce_entries(a, b.neg(sent), "sum") / count(b, a)


def mean_of_messages(b: sw.Builder, x: Any) -> Any:
    a, _ = with_entries(b)
    weights = b.slice(b.at_entries(a, x, axis=0), [0, 0], [WHOLE, 1])
    weighted = b.aggregate(a, x, b.reshape(weights, [-1]), "sum") / count(b, a)
    return [weighted, b.aggregate(a, x, kind="sum") / count(b, a)]


def softmax_of_scores(b: sw.Builder, x: Any, more: float | None = None) -> Any:
    a, scores = on_entries(b, x)
    largest = b.at_entries(a, b.reduce_entries(a, scores, "max"), axis=0)
    shares = b.exp(scores - largest)
    total = b.reduce_entries(a, shares, "sum")
    return shares / b.at_entries(a, total if more is None else total + more, axis=0)


def sum_by_softmax(b: sw.Builder, x: Any, shape: list[int] | None = None) -> Any:
    a, scores = on_entries(b, x)
    shares = b.edge_softmax(a, scores)
    return b.aggregate(a, x, shares if shape is None else b.reshape(shares, shape), "sum")


INEXACT: dict[str, list[Proof]] = {
    "PowerIsRoot": of(lambda b, x: b.pow(b.exp(x), 0.5), "f32"),
    "ReluOfNonnegative": of(lambda b, x: b.relu(b.exp(x)), "f32"),
    "LogOfSoftmax": on_blocks(lambda b, x: b.log(b.softmax(x, axis=1))),
    "MatmulOfTransposed": on_blocks(
        lambda b, x: b.matmul(x, b.transpose(corner(b, x, 3, 4), [1, 0]))
    ),
    "DenseOfTransposed": on_blocks(
        lambda b, x: b.dense(x, b.transpose(corner(b, x, 4, 3), [1, 0]))
    ),
    "TransposeOfDense": in_matrix(lambda b, x: b.transpose(b.dense(W8, x), [1, 0])),
    "ProductOfScaledRows": [
        *in_matrix(lambda b, x: b.dense(x * b.reduce(x, "max", [1], True), W8)),
        *in_matrix(lambda b, x: b.dense(x * 3.0, W8, W8[:, 0])),
        *in_matrix(lambda b, x: b.matmul(x * -0.3, W8.T.copy())),
    ],
    "BiasIsAnOperand": [
        *in_matrix(lambda b, x: b.dense(x, W8) + W8[:, 0]),
        *in_matrix(lambda b, x: W8[:1, 0] + b.dense(x, W8[:1])),
        *on_blocks(lambda b, x: b.conv(x, W8[:, :, None]) + W8[:, :1]),
    ],
    "BiasesAreOne": [
        *in_matrix(lambda b, x: b.dense(x, W8, W8[:, 0]) + W8[None, :, 1]),
        *on_blocks(lambda b, x: b.conv(x, W8[:, :, None], W8[:, 0]) + W8[:, 1:2]),
    ],
    "ScaleOfRows": in_matrix(lambda b, x: b.spmm(WEIGHTED, corner(b, x, 4, 4)) * W8[:3, :1]),
    "ScaleOfColumns": in_matrix(lambda b, x: b.spmm(WEIGHTED, corner(b, x, 4, 4) * W8[:4, :1])),
    "WeightedColumns": in_matrix(lambda b, x: weighted_columns(b, corner(b, x, 4, 3))),
    "MeanOfEntries": in_matrix(lambda b, x: mean_of_entries(b, corner(b, x, 4, 3))),
    "MeanOfMessages": in_matrix(lambda b, x: mean_of_messages(b, corner(b, x, 4, 3))),
    "SoftmaxOfScores": in_matrix(lambda b, x: softmax_of_scores(b, corner(b, x, 4, 3))),
    "SoftmaxOfScoresWithEpsilon": in_matrix(
        lambda b, x: softmax_of_scores(b, corner(b, x, 4, 3), 1e-16)
    ),
    "SumBySoftmax": in_matrix(lambda b, x: sum_by_softmax(b, corner(b, x, 4, 3))),
    "SumByReshapedSoftmax": in_matrix(lambda b, x: sum_by_softmax(b, corner(b, x, 4, 1), [-1])),
    "ReduceTwice": on_blocks(lambda b, x: b.reduce(b.reduce(x, "mean", [1]), "mean", [1])),
    "SumOfOnes": on_blocks(lambda b, x: b.reduce(b.reshape(x, [-1, 4, 1]), "sum", [2])),
    "SumOfWindowOfOne": on_blocks(lambda b, x: b.pool(x, "sum", [1], [1])),
}
"""Programs for rules that round, or that need operands of certain shapes and signs."""
ROUNDING = [
    name
    for name, rule in _stated().items()
    if rule.exactness != Exactness.EXACT and name not in INEXACT and name not in DRAWN
]


@pytest.mark.parametrize("rule", [*INEXACT, *ROUNDING])
def test_both_sides_are_equal_but_for_what_the_rule_says(rule: str, all_tests: bool) -> None:
    """But for roundings, and for values that are not special: finite, and far from 0."""
    sizes = np.exp2(np.linspace(-3, 3, 512))
    x = np.random.default_rng(0).permutation(np.concatenate([sizes, -sizes])).astype(np.float32)
    for place, proof in enumerate(some(rule, all_tests)):
        b, given = sw.Builder(), [np.roll(x, n) for n in range(len(proof.operands))]
        given = [array.reshape(proof.shape) for array in given]
        inputs = [b.input(f"x{n}", array.shape) for n, array in enumerate(given)]
        for value in proof.values(b, inputs):
            b.output(value)
        module = b.module()
        after, changed = applied(BY_NAME[rule], module)
        assert changed, f"{rule} does not apply to its program {place}"
        for want, have in zip(
            *(results(m.run_reference(*given)) for m in (module, after)), strict=True
        ):
            defined = np.isfinite(want)
            assert np.any(defined)
            # A few roundings of the largest operand.
            scale = max(1.0, float(np.max(np.abs(want[defined]))))
            np.testing.assert_allclose(
                have[defined],
                want[defined],
                rtol=2e-6,
                atol=1e-6 * scale,
                err_msg=f"program {place}",
            )


SHAPES: tuple[tuple[int | str, ...], ...] = (("n", 4), (4,), (1, 4), (3, 1), ())
"""Shapes that are broadcast to one of 3 rows."""


@pytest.mark.parametrize("rule", WRITTEN)
def test_an_exact_rule_holds_for_shapes_that_are_broadcast(rule: str) -> None:
    random, applications = np.random.default_rng(0), 0
    for proof in {proof.build: proof for proof in proofs_of(rule)}.values():
        for shapes in itertools.product(SHAPES, repeat=len(proof.operands)):
            b = sw.Builder()
            pairs = zip(shapes, proof.operands, strict=True)
            given = [b.input(f"x{n}", shape, kind) for n, (shape, kind) in enumerate(pairs)]
            for value in proof.values(b, given):
                b.output(value)
            module = b.module()
            sizes = [[3 if n == "n" else n for n in shape] for shape in shapes]
            inputs = [
                random.choice(all_values(kind), size)
                for size, kind in zip(sizes, proof.operands, strict=True)
            ]
            after, changed = applied(BY_NAME[rule], module)
            applications += changed
            both = (bits(m.run_reference(*inputs)) for m in (module, after))
            for want, have in zip(*both, strict=True):
                np.testing.assert_array_equal(have, want, f"shapes {shapes}")
    assert applications


def test_every_exact_rule_of_graph_is_shown_exact() -> None:
    exact = {name for name, kind in BY_NAME.items() if Exactness.of(kind) == Exactness.EXACT}
    assert exact == set(EXACT)


ANY = {name: rule for (_, name), rule in all_rules().items()}
"""All rules, those of loops, of the run time and of tables among them."""


def test_every_rule_has_random_programs() -> None:
    assert {name for name in ANY if name not in DRAWN} <= _stated().keys()
    assert DRAWN.keys() <= ANY.keys()


@pytest.mark.parametrize("rule", _stated())
def test_a_rule_holds_in_random_programs(rule: str, all_tests: bool) -> None:
    """For shapes, attributes and operands that its text leaves open, and special values."""
    one = _stated()[rule]
    found = random_instances(one, 600 if all_tests else 60)
    few = 1 if rule in EXACT else 2  # other tests have the values of exact ones
    programs = list(itertools.islice(found, 40 if all_tests else few))
    assert programs or rule in DRAWN, f"{rule} applies to no random program"
    for module, inputs in programs:
        _holds(one, module, inputs)


@pytest.mark.parametrize("rule", DRAWN)
def test_a_rule_holds_in_programs_that_are_drawn(rule: str, all_tests: bool) -> None:
    """For shapes, element types, attributes and operands, and special values where it is exact."""
    one, applications = ANY[rule], 0
    for attempt in range(120 if all_tests else 12):
        drawing = Drawing(Choices(f"{rule} {attempt}"), Exactness.of(one) == Exactness.EXACT)
        DRAWN[rule](drawing)
        applications += _holds(one, drawing.module(), drawing.inputs)
        if applications == 3 and not all_tests:
            break
    assert applications, f"{rule} applies to no program"


def _holds(rule: Any, module: sw.Module, inputs: list[Any]) -> bool:
    """Compare a module before and after the use of a rule; returns whether that applies."""
    after, changed = applied(rule, module)
    want, have = (_outcome(m, inputs) for m in (module, after) if changed) if changed else ("", "")
    if isinstance(want, str):
        assert have == want
    elif Exactness.of(rule) == Exactness.EXACT:
        for before, now in zip(bits(want), bits(have), strict=True):
            np.testing.assert_array_equal(now, before, module.text())
    else:
        for before, now in zip(want, have, strict=True):
            _assert_near(now, before)
    return changed


def _outcome(module: sw.Module, inputs: list[np.ndarray]) -> Any:
    """The results of a program, as an error says it where there are none."""
    try:
        if is_on_buffers(module.program):
            return results(interpreted(module.op, lowered(module))(*inputs))
        found = results(module.run_reference(*inputs))
        return [value if isinstance(value, np.ndarray) else value.toarray() for value in found]
    except sw.InputError as error:
        return str(error)


def _assert_near(have: np.ndarray, want: np.ndarray) -> None:
    """Equal but for a few roundings of the largest element, where both are finite."""
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(have, want)
        return
    both = np.isfinite(want) & np.isfinite(have)
    few = 16 * float(np.finfo(want.dtype).eps)
    scale = float(np.max(np.abs(want[both]), initial=1.0))
    np.testing.assert_allclose(have[both], want[both], rtol=few, atol=few * scale)
