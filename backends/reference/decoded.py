"""Accesses and loops of the loop dialect, decoded once for all their runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Region, SSAValue

from ...dialects.loop.attrs import Combine, LoopKind
from ...dialects.loop.ops import ForOp, LoadOp, StoreOp, block_shape, element_type
from .affine import Evaluator, evaluator


@dataclass(frozen=True)
class Loop:
    """The operands and attributes of a loop."""

    op: ForOp
    body: Region
    in_order: bool
    inits: tuple[SSAValue, ...]
    bound: Evaluator
    bounds: tuple[SSAValue, ...]
    matrix: tuple[SSAValue, ...] | None

    @staticmethod
    def of(op: ForOp) -> Loop:
        in_order = op.kind.data in (LoopKind.SERIAL, LoopKind.REDUCTION)
        matrix, bound = tuple(op.matrix) if op.over_entries else None, evaluator(op.bound.data)
        return Loop(op, op.body, in_order, tuple(op.inits), bound, tuple(op.bounds), matrix)


@dataclass(frozen=True)
class DecodedAccess:
    """The attributes of a load or a store.

    `lanes` are the lane indices along each axis; `limited` are the axes along which only the first
    lanes are valid.
    """

    op: LoadOp | StoreOp
    scalar: bool
    shape: tuple[int, ...]
    element_type: Attribute
    place: Evaluator
    dims: int
    lanes: list[np.ndarray]
    limited: tuple[int, ...]
    accumulates: Combine | None

    @staticmethod
    def of(
        op: LoadOp | StoreOp, kind: Attribute, accumulates: Combine | None = None
    ) -> DecodedAccess:
        shape, dims = block_shape(kind), len(op.indices)
        lanes = list(np.ogrid[tuple(slice(0, n) for n in shape)]) if shape else []
        scalar, limited = not isinstance(kind, VectorType), op.limited.get_values()
        place, element = evaluator(op.map.data), element_type(kind)
        return DecodedAccess(op, scalar, shape, element, place, dims, lanes, limited, accumulates)
