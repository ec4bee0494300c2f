"""An operator of constants is folded to what machine code computes from the same operands.

On special values: zeros of both signs, infinities, NaN, denormal numbers, numbers beyond the
bounds of other types, and integers at the ends of their type. Results are equal bit for bit but
for the functions that `docs/numerics.md` lists, which NumPy approximates in another way.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)
from onnx.numpy_helper import from_array
from xdsl.dialects.builtin import TensorType, f32
from xdsl.irdl import RangeConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.core.dtype_names import is_real
from stepwell.core.dtypes import ELEMENT_TYPES, dtype_of
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp
from stepwell.dialects.graph.ops import CastOp, SmallExpOp

from ..harness import results

ELEMENTWISE = {
    op.name.partition(".")[2]: op
    for op in Graph.operations
    if issubclass(op, GraphOp) and op.FUSION == FusionKind.ELEMENTWISE
}
APPROXIMATE = frozenset(
    [
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1"),
        *("gelu", "log", "log1p", "pow", "rsqrt", "sigmoid", "sin", "sinh", "tan", "tanh"),
        *("celu", "elu", "log_sigmoid", "mish", "selu", "silu", "small_exp", "softplus"),
    ]
)
LOSES_DIGITS = frozenset(["gelu"])
"""Functions whose factors nearly cancel somewhere: few digits, and the sign of 0, agree there."""
FLOATS = [0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2.5, -2.5, 3, 7, -7, 100, -100, 255, 256, -129, 32768]
FLOATS += [np.nan, np.inf, -np.inf, 65504, -65504, 6e-8, -6e-8, 2.0**-24]
WIDE_FLOATS = [1e-40, -1e-40, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e18]
WIDE_FLOATS += [-5e9, 3e38]
USUAL = frozenset(["f16", "f32", "f64", "i1", "i8", "i64", "ui8", "ui64"])
"""Element types of operators other than casts where slow tests are left out."""
INTEGERS = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, -1, -2, -3, -7]


def dtype(kind: str) -> np.dtype:
    return dtype_of(ELEMENT_TYPES[kind])


def special(own: np.dtype) -> np.ndarray:
    """The special values of an element type."""
    with np.errstate(all="ignore"):
        if is_real(own):
            return np.array(FLOATS + WIDE_FLOATS * (own.itemsize > 2)).astype(own)
        if own.kind not in "iu":
            return np.arange(4).astype(np.int8).astype(own)
    limits = np.iinfo(own)
    found = [*INTEGERS, limits.min, limits.min + 1, limits.max - 1, limits.max]
    return np.array(sorted({n for n in found if limits.min <= n <= limits.max}), own)


def all_of(kinds: Sequence[str]) -> list[np.ndarray]:
    """Special values for operands of some types, in all combinations."""
    values = [special(dtype(kind)) for kind in kinds]
    places = np.meshgrid(*(np.arange(len(v)) for v in values), indexing="ij")
    return [own[place.ravel()] for own, place in zip(values, places, strict=True)]


def compare(want: np.ndarray, got: np.ndarray, approximate: bool, loses_digits: bool) -> None:
    assert got.dtype == want.dtype
    if want.dtype.kind in "iub" or "int" in want.dtype.name:
        np.testing.assert_array_equal(got.astype(np.int64), want.astype(np.int64))
        return
    precise = {2: 4e-3, 4: 4e-7}.get(want.dtype.itemsize, 4e-16) if approximate else 0
    absolute = 1e-6 if loses_digits else 0
    w, g = want.astype(np.float64), got.astype(np.float64)
    np.testing.assert_allclose(g, w, rtol=precise, atol=absolute)
    if not loses_digits:
        number = ~np.isnan(w)
        np.testing.assert_array_equal(np.signbit(g)[number], np.signbit(w)[number])


def admits(constraint: RangeConstraint, kind: str) -> bool:
    try:
        constraint.verify((TensorType(ELEMENT_TYPES[kind], [2]),), VerificationContext())
    except VerifyException:
        return False
    return True


Calls = Iterator[tuple[tuple[str, ...], dict[str, Any]]]


def calls(operator: type[GraphOp], given: Collection[str]) -> Calls:
    """The element types of operands, among those given, each with arguments of the constructor."""
    operands = [
        [kind for kind in ELEMENT_TYPES if admits(one.constr, kind)]
        for _, one in operator.get_irdl_definition().operands
    ]
    taken = inspect.signature(operator.__init__).parameters
    others: list[dict[str, Any]] = [{}]
    if "target" in taken:
        others = [{"target": kind} for kind in ELEMENT_TYPES.values()]
    if "minimum" in taken:
        others = [{"minimum": -1.0, "maximum": 7.0}]
    if "approximate" in taken:
        others = [{"approximate": "none"}, {"approximate": "tanh"}]
    if "axis" in taken:
        others = [{"axis": 0}]
    if "kind" in taken:
        others = [{"kind": kind} for kind in ("sum", "mean", "max", "min", "prod")]
    own = {tuple(k if k in kinds else kinds[0] for kinds in operands) for k in given}
    for form in sorted(own):
        yield from ((form, other) for other in others)


def programs(
    operator: type[GraphOp], kinds: Collection[str]
) -> tuple[sw.Module, sw.Module, list[np.ndarray]]:
    """A program with an operator of arguments, the same with one of constants, the arguments."""
    of_arguments, of_constants, arrays = sw.Builder(), sw.Builder(), list[np.ndarray]()
    names = [name for name, _ in operator.get_irdl_definition().operands]
    for form, others in calls(operator, kinds):
        if operator is CastOp and f32 not in (ELEMENT_TYPES[form[0]], others["target"]):
            continue  # ONNX's Cast, below, is between other types.
        own = all_of(form)
        if operator is SmallExpOp:
            own = [np.minimum(a, a.dtype.type(64)) for a in own]
        constants = {name: of_constants.constant(a) for name, a in zip(names, own, strict=True)}
        try:
            of_constants.output(of_constants.apply(operator, **constants, **others))
        except sw.InputError:
            continue
        places = range(len(arrays), len(arrays) + len(own))
        arguments = {
            name: of_arguments.input(f"x{place}", a.shape, kind)
            for name, place, a, kind in zip(names, places, own, form, strict=True)
        }
        of_arguments.output(of_arguments.apply(operator, **arguments, **others))
        arrays += own
    return of_arguments.module(), of_constants.module(), arrays


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if n != "batch_norm"])
def test_folded_as_compiled(name: str, all_tests: bool) -> None:
    operator = ELEMENTWISE[name]
    kinds = ELEMENT_TYPES if all_tests or operator is CastOp else USUAL
    module, constant, arrays = programs(operator, kinds)
    ctx = make_context(constant.weights)
    run_passes(ctx, constant.op, "graph-fold-constant{max-growth=1000000}")
    left = {op.name for op in constant.main.body.block.ops}
    assert left == {"graph.constant", "func.return"}
    folded = results(constant.run_reference())
    compiled = results(sw.compile(module, threads=1, opt_level=0, rounding="kept")(*arrays))
    assert len(folded) == len(compiled) > 0
    for want, got in zip(folded, compiled, strict=True):
        # NumPy has no fused multiply-add: that of f32 and f64 is rounded twice.
        is_rounded = name in APPROXIMATE or (name == "fma" and want.dtype.itemsize > 2)
        compare(want, got, is_rounded, name in LOSES_DIGITS)


NUMBERS = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
REALS, WHOLE, TRUTH = NUMBERS[:3], NUMBERS[3:], ("i1",)
OF_ONE = {
    **dict.fromkeys(["Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "IsNaN"], REALS),
    **dict.fromkeys(["Exp", "Log", "Sin", "Cos"], REALS),
    **dict.fromkeys(["Abs", "Sign"], NUMBERS),
    **dict.fromkeys(["ReduceSum", "ReduceProd"], ("f16", "f64", "i8", "i64", "ui32")),
    "Neg": NUMBERS[:7],
    "Not": TRUTH,
    "BitwiseNot": WHOLE,
}
OF_TWO = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"], NUMBERS),
    **dict.fromkeys(["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"], NUMBERS),
    **dict.fromkeys(["And", "Or", "Xor"], TRUTH),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod"], WHOLE),
}
TARGETS = (*NUMBERS, "bf16", "i1")
USUAL_OF_NODES = ("bf16", "f16", "f32", "i1", "i8", "i64", "ui8")
APPROXIMATE_NODES = frozenset(["Exp", "Log", "Sin", "Cos", "Pow"])


def nodes(operator: str, kinds: Collection[str]) -> Iterator[tuple[NodeProto, list[np.ndarray]]]:
    """Nodes with an operator, without results, and the arrays of their operands."""
    if operator == "Cast":
        for source in TARGETS:
            for target in kinds if source in (*kinds, "f64") else ("i32",):
                kind = np_dtype_to_tensor_dtype(dtype(target))
                yield make_node("Cast", [], [], to=kind), all_of([source])
    elif operator.startswith("Reduce"):
        for kind in OF_ONE[operator]:
            x = np.stack([special(dtype(kind))] * 2, axis=1)
            yield make_node(operator, [], [], keepdims=0), [x, np.array([1])]
    elif operator == "Range":
        for kind in ("f32", "f64", "i32", "i64"):
            ends = np.array([[3], [17.5], [0.1 if kind[0] == "f" else 3]]).astype(dtype(kind))
            yield make_node("Range", [], []), list(ends.reshape(3))
    else:
        count = 1 if operator in OF_ONE else 2
        for kind in sorted(set((OF_ONE | OF_TWO)[operator]) & set(kinds)):
            yield make_node(operator, [], []), all_of([kind] * count)
            if operator == "Mod":
                yield make_node("Mod", [], [], fmod=1), all_of([kind] * count)


COMPILED_NODES = ("Cast", "Mod", "Div", "Pow", "Exp", "Range")
"""Others are compared with the reference in quick tests, which compile their operators above."""


@pytest.mark.parametrize("operator", ["Cast", "Range", *OF_ONE, *OF_TWO])
def test_computed_at_import_as_compiled(operator: str, all_tests: bool) -> None:
    made, inputs, arrays = list[NodeProto](), list[Any](), list[np.ndarray]()
    for node, own in nodes(operator, TARGETS if all_tests else USUAL_OF_NODES):
        names = [f"x{place}" for place in range(len(arrays), len(arrays) + len(own))]
        node.input.extend(names)
        node.output.append(f"y{len(made)}")
        made.append(node)
        arrays += own
        inputs += [
            make_tensor_value_info(name, np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in zip(names, own, strict=True)
        ]
    weights = [from_array(np.asarray(a), i.name) for a, i in zip(arrays, inputs, strict=True)]
    module, known = imported(made, inputs, []), imported(made, [], weights)
    computed = {op.name for op in known.main.body.block.ops}
    assert computed == {"graph.constant", "func.return"}
    folded = results(known.run_reference())
    is_compiled = all_tests or operator in COMPILED_NODES
    options: dict[str, Any] = {"threads": 1, "opt_level": 0, "rounding": "kept"}
    run = sw.compile(module, **options) if is_compiled else module.run_reference
    compiled = results(run(*arrays))
    assert len(compiled) == len(made)
    for want, got in zip(folded, compiled, strict=True):
        compare(np.asarray(want), np.asarray(got), operator in APPROXIMATE_NODES, False)


def imported(made: Sequence[NodeProto], inputs: Sequence[Any], weights: Sequence[Any]) -> sw.Module:
    """A program with some nodes."""
    outputs = [make_tensor_value_info(node.output[0], 0, None) for node in made]
    graph = make_graph(made, "g", inputs, outputs, weights)
    return sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 24)]))
