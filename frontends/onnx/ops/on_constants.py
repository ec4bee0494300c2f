"""Operators evaluated at import if their operands are constants or shapes.

They turn the shape arithmetic of exporters (Shape, Gather, Unsqueeze, Concat before a Reshape) into
a target shape. Symbolic dimensions are `Dim`s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.nodes import LARGEST_CONSTANT
from ...importing.values import Value, as_dims, combine, differ, from_dims
from ..nodes import Node
from ..registry import Evaluation, evaluates

Answer = Dim | bool | None


def _operands(node: Node) -> list[np.ndarray]:
    return [node.contents(i) for i, value in enumerate(node.inputs) if value is not None]


def _same_types(node: Node, first: int = 0) -> None:
    """Check that all operands from `first` on have the same element type."""
    types = list(dict.fromkeys(value.dtype.name for value in node.inputs[first:] if value))
    if len(types) > 1:
        raise node.broken("element types differ", types[0], types[1])


def _fits(*shape: int) -> bool:
    """Whether a result of this shape may be computed here."""
    return math.prod(shape) <= LARGEST_CONSTANT


# Arithmetic


def _same(a: Dim, b: Dim) -> bool | None:
    different = differ(a, b)
    return None if different is None else not different


def _larger(a: Dim, b: Dim) -> bool | None:
    """Whether a > b for all sizes of the symbols, which are nonnegative; None if that depends."""
    difference = a - b
    if difference.is_static:
        return difference.value > 0
    constant = difference.evaluate(dict.fromkeys(difference.symbols, 0))
    signs = {coefficient > 0 for _, coefficient in difference.terms}
    if signs == {True} and constant > 0:
        return True
    return False if signs == {False} else None


_ON_DIMS: dict[str, Callable[[Dim, Dim], Answer]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": lambda a, b: {True: a, False: b, None: None}[_larger(a, b)],
    "Min": lambda a, b: {True: b, False: a, None: None}[_larger(a, b)],
    "Equal": _same,
    "Greater": _larger,
    "Less": lambda a, b: _larger(b, a),
    "GreaterOrEqual": lambda a, b: _negated(_larger(b, a)),
    "LessOrEqual": lambda a, b: _negated(_larger(a, b)),
}


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _binary(dims: Callable[[Dim, Dim], Answer]) -> Evaluation:
    def evaluate(node: Node) -> np.ndarray | None:
        operands = _operands(node)
        _same_types(node)
        if all(operand.dtype != object for operand in operands):
            return None
        result: np.ndarray | None = operands[0]
        for operand in operands[1:]:
            result = None if result is None else combine(dims, result, operand)
        return result

    return evaluate


for _operator, _rule in _ON_DIMS.items():
    evaluates(_operator, since=7)(_binary(_rule))


@evaluates("Div", since=7)
def div(node: Node) -> np.ndarray | Value | None:
    def quotient(a: Dim, b: Dim) -> Dim | None:
        if (exact := a.exact_div(b)) is not None:
            return exact
        if not b.is_static or b.value < 1 or any(factor < 0 for _, factor in a.terms):
            return None
        # Windows make such sizes; others are computed by the program.
        rounded = a.floordiv(b.value)
        return None if node.holder(rounded) is None else rounded

    return _binary(quotient)(node)


_ON_NUMBERS = (
    *("Pow", "Mod", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
    *("Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Sin", "Cos"),
    *("Reciprocal", "Not", "IsNaN", "Trilu"),
)

for _operator in _ON_NUMBERS:
    # The operators of the conversion are computed by their references.
    evaluates(_operator, since=1)(lambda node: None)


@evaluates("Where", since=9)
def where(node: Node) -> np.ndarray | None:
    condition, x, y = _operands(node)
    _same_types(node, first=1)
    if not _fits(*np.broadcast_shapes(condition.shape, x.shape, y.shape)):
        return None
    if object not in (x.dtype, y.dtype):
        return np.asarray(np.where(condition, x, y))
    a, b = as_dims(x), as_dims(y)
    return None if a is None or b is None else np.asarray(np.where(condition, a, b))


@evaluates("Range", since=11)
def range_(node: Node) -> None:
    _same_types(node)
    start, limit, step = (a.reshape(()) for a in _operands(node))
    if object in (start.dtype, limit.dtype, step.dtype):
        return
    if step == 0:
        raise node.broken("delta is 0")
    count = (float(limit) - float(start)) / float(step)
    if not math.isfinite(count) or count > LARGEST_CONSTANT:
        raise node.unsupported(f"a range of {count:.3g} numbers is too long")


@evaluates("Cast", since=6)
def cast(node: Node) -> Value | None:
    return _cast(node, node.attr_dtype("to"))


@evaluates("CastLike", since=15)
def cast_like(node: Node) -> Value | None:
    return _cast(node, node.input(1).dtype)


def _cast(node: Node, dtype: np.dtype) -> Value | None:
    x = node.contents(0)
    if x.dtype != object or dtype not in (np.int64, np.int32):
        return None
    node.ignore("saturate", "round_mode")
    return node.known(x, dtype)


# Reductions


def _reduction(dims: Callable[[Dim, Dim], Dim]) -> Evaluation:
    def evaluate(node: Node) -> np.ndarray | None:
        x = node.contents(0)
        if x.dtype != object:
            return None
        keepdims = bool(node.attr_int("keepdims", 1))
        given = node.attr_ints("axes")
        nothing = bool(node.attr_int("noop_with_empty_axes"))
        if len(node.inputs) > 1 and node.optional(1) is not None:
            given = node.integers(1)
        if not given and nothing:
            return x
        node.axes(given or [], x.ndim)
        if x.ndim != 1 or not x.size:
            return None
        total = x[0]
        for dim in x[1:]:
            total = dims(total, dim)
        return from_dims([total], (1,) if keepdims else ())

    return evaluate


evaluates("ReduceProd", since=1)(_reduction(lambda a, b: a * b))
evaluates("ReduceSum", since=1)(_reduction(lambda a, b: a + b))


# Moves


@evaluates("Gather", since=1)
def gather(node: Node) -> np.ndarray | None:
    x, indices = _operands(node)
    axis = node.axis(node.attr_int("axis"), x.ndim)
    if indices.dtype == object:
        return None
    if indices.size and not (-x.shape[axis] <= indices.min() <= indices.max() < x.shape[axis]):
        raise node.broken("an index is out of range", f"< {x.shape[axis]}", int(indices.max()))
    if not _fits(indices.size, *x.shape[:axis], *x.shape[axis + 1 :]):
        return None
    return np.asarray(np.take(x, indices, axis=axis))


@evaluates("Concat", since=4)
def concat(node: Node) -> np.ndarray | None:
    axis = node.attr_int("axis")
    parts = _operands(node)
    _same_types(node)
    if not _fits(sum(part.size for part in parts)):
        return None
    if any(part.dtype == object for part in parts):
        dims = [as_dims(part) for part in parts]
        known = [part for part in dims if part is not None]
        return np.concatenate(known, axis=axis) if len(known) == len(dims) else None
    return np.concatenate(parts, axis=axis)


@evaluates("Unsqueeze", since=1)
def unsqueeze_attribute(node: Node) -> np.ndarray | None:
    return _unsqueezed(node, node.attr_ints("axes") or [])


@evaluates("Unsqueeze", since=13)
def unsqueeze(node: Node) -> np.ndarray | None:
    return _unsqueezed(node, node.integers(1))


def _unsqueezed(node: Node, axes: Sequence[int]) -> np.ndarray:
    x = node.contents(0)
    return np.expand_dims(x, tuple(node.axes(axes, x.ndim + len(axes))))


@evaluates("Squeeze", since=1)
def squeeze_attribute(node: Node) -> np.ndarray | None:
    return _squeezed(node, node.attr_ints("axes"))


@evaluates("Squeeze", since=13)
def squeeze(node: Node) -> np.ndarray | None:
    return _squeezed(node, None if node.optional(1) is None else node.integers(1))


def _squeezed(node: Node, axes: Sequence[int] | None) -> np.ndarray:
    x = node.contents(0)
    return np.squeeze(x, None if axes is None else tuple(node.axes(axes, x.ndim)))


@evaluates("Reshape", since=5)
def reshape(node: Node) -> np.ndarray | None:
    x, target = node.contents(0), node.integers(1)
    if not node.attr_int("allowzero"):
        if any(n == 0 and i >= x.ndim for i, n in enumerate(target)):
            raise node.broken("0 copies a dimension that does not exist", got=target)
        target = [x.shape[i] if n == 0 else n for i, n in enumerate(target)]
    if any(n < -1 for n in target):
        raise node.broken("negative dimension in the target", got=target)
    return x.reshape(target)


@evaluates("Transpose", since=1)
def transpose(node: Node) -> np.ndarray | None:
    order = node.attr_ints("perm")
    return np.transpose(node.contents(0), order)


@evaluates("Expand", since=8)
def expand(node: Node) -> np.ndarray | None:
    x, dims = node.contents(0), node.contents(1)
    if dims.dtype == object:
        return None
    target = node.integers(1)
    if any(n < 0 for n in target):
        raise node.broken("negative dimension", got=target)
    shape = np.broadcast_shapes(x.shape, tuple(target))
    if not _fits(*shape) or math.prod(shape) > max(x.size, 1 << 16):
        return None
    return np.ascontiguousarray(np.broadcast_to(x, shape))


@evaluates("Tile", since=6)
def tile(node: Node) -> np.ndarray | None:
    x, repeats = node.contents(0), node.integers(1)
    if len(repeats) != x.ndim or any(r < 0 for r in repeats):
        raise node.broken("repeats do not fit", f"{x.ndim} counts", repeats)
    return np.tile(x, repeats) if _fits(x.size, *repeats) else None


@evaluates("Slice", since=1)
def slice_attributes(node: Node) -> np.ndarray | None:
    starts, ends = node.attr_ints("starts") or [], node.attr_ints("ends") or []
    return _sliced(node, starts, ends, node.attr_ints("axes"), None)


@evaluates("Slice", since=10)
def slice_(node: Node) -> np.ndarray | None:
    if any(value is not None and value.is_symbolic for value in node.inputs[1:]):
        return None
    axes = None if node.optional(3) is None else node.integers(3)
    steps = None if node.optional(4) is None else node.integers(4)
    return _sliced(node, node.integers(1), node.integers(2), axes, steps)


def _sliced(
    node: Node,
    starts: Sequence[int],
    ends: Sequence[int],
    given: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> np.ndarray:
    x = node.contents(0)
    axes = node.axes(range(len(starts)) if given is None else given, x.ndim)
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.broken("starts, ends, axes and steps do not fit together")
    parts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = slice(*_bounds(x.shape[axis], start, end, step))
    return x[tuple(parts)]


def _bounds(size: int, start: int, end: int, step: int) -> tuple[int, int | None, int]:
    begin, stop, step = slice(start, end, step).indices(size)
    return begin, None if stop < 0 else stop, step
