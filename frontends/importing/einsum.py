"""Einstein's summation convention, as in `numpy.einsum`: matrix products, transposes and sums."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.algebra.dims import Dim, product
from .nodes import ModelNode
from .selection import checked_sizes, sliced, whole
from .shapes import places_of, reshaped, transposed, unsqueezed
from .values import Value

_SUBSCRIPTS = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


@dataclass(frozen=True)
class _Labelled:
    """A tensor, with a label for each dimension: a letter, or the number of one of an ellipsis."""

    value: Value
    labels: tuple[str, ...]

    def size(self, label: str) -> Dim:
        return self.value.shape[self.labels.index(label)]


def einsum(node: ModelNode, equation: str, operands: Sequence[Value]) -> Value:
    """The sum of products of elements over all labels that the result does not have.

    Raises:
        ImportModelError: if the equation cannot be read, or does not fit the operands.
    """
    text = "".join(equation.split())
    terms, arrow, output = text.partition("->")
    subscripts = terms.split(",")
    if len(subscripts) != len(operands):
        raise node.broken("the equation does not fit", f"{len(operands)} operands", equation)
    for part in (*subscripts, output):
        if _SUBSCRIPTS.fullmatch(part) is None:
            raise node.broken("the equation cannot be read", 'such as "ij,jk->ik"', equation)
    pairs = zip(subscripts, operands, strict=True)
    labels = [_labels(node, part, x.rank, equation) for part, x in pairs]
    wanted = _wanted(node, output if arrow else None, labels, equation)
    factors = [
        _reduced(node, _diagonal(node, _Labelled(x, own)), {*wanted, *_others(labels, n)})
        for n, (x, own) in enumerate(zip(operands, labels, strict=True))
    ]
    result = factors[0]
    for n, term in enumerate(factors[1:], 1):
        later = {label for own in labels[n + 1 :] for label in own}
        result = _product(node, result, term, {*wanted, *later})
    result = _reduced(node, result, set(wanted))
    return transposed(node, result.value, [result.labels.index(label) for label in wanted])


def _labels(node: ModelNode, part: str, rank: int, equation: str) -> tuple[str, ...]:
    """The labels of an operand; dimensions of an ellipsis are numbered from the last one on."""
    before, dots, after = part.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise node.broken("the equation does not fit", f"{rank} dimensions for {part}", equation)
    return (*before, *(str(n) for n in reversed(range(count))), *after)


def _wanted(
    node: ModelNode, output: str | None, labels: Sequence[tuple[str, ...]], equation: str
) -> tuple[str, ...]:
    """The labels of the result; without an arrow, those that occur once, sorted."""
    used = [label for own in labels for label in own]
    ellipsis = sorted({label for label in used if label.isdigit()}, key=int, reverse=True)
    if output is None:
        return (*ellipsis, *sorted(n for n in set(used) if n.isalpha() and used.count(n) == 1))
    before, dots, after = output.partition("...")
    wanted = (*before, *(ellipsis if dots else ()), *after)
    unknown = [label for label in wanted if label not in used]
    if unknown or len(set(wanted)) < len(wanted):
        raise node.broken("the result of the equation is wrong", "labels of operands", equation)
    return wanted


def _others(labels: Sequence[tuple[str, ...]], number: int) -> set[str]:
    """The labels of all operands but one."""
    return {label for n, own in enumerate(labels) if n != number for label in own}


def _diagonal(node: ModelNode, x: _Labelled) -> _Labelled:
    """The elements at equal places of dimensions of the same label, which become one."""
    for label in dict.fromkeys(x.labels):
        while x.labels.count(label) > 1:
            x = _joined(node, x, label)
    return x


def _joined(node: ModelNode, x: _Labelled, label: str) -> _Labelled:
    """The last two dimensions of a label as one: each (n + 1)th element of the n * n."""
    axes = [axis for axis, own in enumerate(x.labels) if own == label][-2:]
    size, other = (x.value.shape[axis] for axis in axes)
    rest = [axis for axis in range(x.value.rank) if axis not in axes]
    names = (*(x.labels[axis] for axis in rest), label)
    if not (size.is_static and other.is_static):
        places = checked_sizes(node, places_of(node, size), size, other, f"dimensions {label}")
        found = node.gather_nd(transposed(node, x.value, [*axes, *rest]), [places, places])
        return _Labelled(transposed(node, found, [*range(1, found.rank), 0]), names)
    if size != other:
        raise node.broken(f"dimensions {label} differ", size, other)
    moved = transposed(node, x.value, [*rest, *axes])
    flat = reshaped(node, moved, [*moved.shape[:-2], size * size])
    parts = whole(flat)
    parts[-1] = (0, size.value**2, size.value + 1)
    return _Labelled(sliced(node, flat, parts), names)


def _reduced(node: ModelNode, x: _Labelled, kept: set[str]) -> _Labelled:
    """The sums over dimensions whose labels are not kept."""
    axes = [axis for axis, label in enumerate(x.labels) if label not in kept]
    if not axes:
        return x
    total = node.reduce(x.value, kind="sum", axes=axes, keepdims=False)
    return _Labelled(total, tuple(label for label in x.labels if label in kept))


def _product(node: ModelNode, a: _Labelled, b: _Labelled, kept: set[str]) -> _Labelled:
    """The product of two tensors, summed over common dimensions whose labels are not kept."""
    common = [n for n in a.labels if n in b.labels]
    for label in common:
        sizes = a.size(label), b.size(label)
        known = all(size.is_static for size in sizes)
        if known and sizes[0] != sizes[1] and Dim.of(1) not in sizes:
            raise node.broken(f"dimensions {label} of the equation differ", *sizes)
    # A dimension of size 1 is broadcast, which a matrix product does for none but the first ones.
    summed = [n for n in common if n not in kept and a.size(n) == b.size(n)]
    if not summed:
        return _reduced(node, _elementwise(node, a, b), kept)
    batch = [n for n in common if n not in summed]
    left = [n for n in a.labels if n not in common]
    right = [n for n in b.labels if n not in common]
    x = _grouped(node, a, [batch, left, summed])
    y = _grouped(node, b, [batch, summed, right])
    found = node.matmul(x, y)
    sizes = [*found.shape[:-2], *(a.size(n) for n in left), *(b.size(n) for n in right)]
    return _reduced(node, _Labelled(reshaped(node, found, sizes), (*batch, *left, *right)), kept)


def _elementwise(node: ModelNode, a: _Labelled, b: _Labelled) -> _Labelled:
    labels = (*a.labels, *(label for label in b.labels if label not in a.labels))
    factors: list[Value] = []
    for x in (a, b):
        own = [label for label in labels if label in x.labels]
        ordered = transposed(node, x.value, [x.labels.index(label) for label in own])
        missing = [axis for axis, label in enumerate(labels) if label not in x.labels]
        factors.append(unsqueezed(node, ordered, missing))
    return _Labelled(node.mul(*factors), labels)


def _grouped(node: ModelNode, x: _Labelled, groups: Sequence[Sequence[str]]) -> Value:
    """`x` with its dimensions in this order; those of the last two groups are one each."""
    order = [x.labels.index(label) for group in groups for label in group]
    moved = transposed(node, x.value, order)
    first, *others = ([x.size(label) for label in group] for group in groups)
    return reshaped(node, moved, [*first, *(product(tuple(sizes)) for sizes in others)])
