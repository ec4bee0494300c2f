"""Panels: what one iteration of a reduction reads of an input, in the threads of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import normalized, polynomial
from ....core.algebra.expressions import Variable, variables
from ....core.algebra.polynomials import Polynomial
from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ....dialects.loop.attrs import Space, SpaceAttr
from ....dialects.loop.loops import enclosing, extent_of, is_made_in
from ....dialects.loop.ops import ForOp, LoadOp, LocalOp
from ....dialects.loop.proofs.levels import VECTOR_BYTES


@dataclass(frozen=True)
class Panel:
    """The part of an input that one iteration of a reduction reads.

    Attributes:
        load: the load.
        steps: for each dimension of the input, by how much each loop around the load moves it.
        sizes: the elements of the panel in each dimension.
    """

    load: LoadOp
    steps: Sequence[Mapping[SSAValue, int]]
    sizes: Sequence[int]

    @property
    def kept(self) -> list[int]:
        """The dimensions of the panel, which has several elements along them."""
        return [dim for dim, size in enumerate(self.sizes) if size > 1]


def panels_of(nest: Sequence[ForOp], target: ForOp, written: set[SSAValue]) -> list[Panel]:
    """The panels of inputs of which several of the loops around a reduction read the same."""
    found: list[Panel] = []
    for load in target.walk():
        if not isinstance(load, LoadOp) or load.buffer in written or load.limits:
            continue
        if isinstance(load.result.type, VectorType) or isinstance(load.buffer.owner, LocalOp):
            continue
        panel = _panel(load, target, nest[0])
        if panel is None or not panel.kept:
            continue
        moving = {variable for steps in panel.steps for variable in steps}
        if any(loop.variable not in moving for loop in nest):
            found.append(panel)
    return found


def _panel(load: LoadOp, target: ForOp, outermost: ForOp) -> Panel | None:
    """The panel of a load; None where its place is no sum of multiples of the loops around it."""
    around = list(enclosing(load))
    inside = around[: around.index(outermost) + 1]
    own = {loop.variable: extent_of(loop) for loop in inside if loop is not target}
    outside = [i for i in load.indices if i not in own and i is not target.variable]
    if any(is_made_in(index, outermost) for index in outside):
        return None
    steps, sizes = list[dict[SSAValue, int]](), list[int]()
    for expr in load.map.data.results:
        moved: dict[SSAValue, int] = {}
        size = 1
        for monomial, factor in polynomial(expr).terms:
            indices = [
                load.indices[found.position]
                for atom in monomial
                for found in variables(Polynomial.atom(atom))
            ]
            if not any(index in own for index in indices):
                continue
            if not all(isinstance(atom, Variable) for atom in monomial) or factor < 0:
                return None
            if len(monomial) > 1:
                return None
            extent = own[indices[0]]
            if extent is None:
                return None
            moved[indices[0]] = moved.get(indices[0], 0) + factor
            size += factor * (extent - 1)
        steps.append(moved)
        sizes.append(size)
    return Panel(load, steps, sizes)


def copy_type(panel: Panel) -> MemRefType:
    """The type of a copy of a panel."""
    element, shape = panel.load.result.type, [panel.sizes[dim] for dim in panel.kept]
    if len(shape) > 1:
        shape[-1] = _pitch(shape[-1], element)
    return MemRefType(element, shape, memory_space=SpaceAttr(Space.SHARED))


def _pitch(size: int, element: Attribute) -> int:
    """The elements from a row of a panel to the next one, so that a column is in as many banks.

    Rows of whole vectors stay aligned to these: their number is odd then.
    """
    lanes = VECTOR_BYTES // byte_size(element)
    return size | 1 if size % lanes else (size // lanes | 1) * lanes


def lanes_of(panel: Panel) -> int:
    """How many elements of a panel a thread copies: those of a vector, if all of them are aligned
    in an input that begins at one."""
    load, dim = panel.load, len(panel.sizes) - 1
    kind, zero = memref_type(load.buffer), AffineExpr.constant(0)
    lanes = VECTOR_BYTES // byte_size(kind.element_type)
    rows = kind.get_shape()[dim] if dim else 0
    moving = panel.steps[dim]
    dims = [
        zero if index in moving else AffineExpr.dimension(n) for n, index in enumerate(load.indices)
    ]
    first = normalized(load.map.data.results[dim], dims)
    starts = (factor for _, factor in polynomial(first).terms)
    aligned = all(n % lanes == 0 for n in (panel.sizes[dim], rows, *starts))
    return lanes if aligned and rows != DYNAMIC_INDEX and panel.kept[-1] == dim else 1
