"""What callers see of a program: its inputs and outputs as arrays, with their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..algebra.dims import Dim, Shape
from .arguments import Argument, IndexDtypes
from .specs import ValueSpec


@dataclass(frozen=True)
class Signature:
    """The inputs and results of a program, and the origin of its symbolic dimensions.

    `input_shapes` and `output_shapes` are over symbols; `entries` the numbers of stored entries
    of inputs, None for dense ones. `computed` are symbols in `output_shapes` that a call computes,
    with their upper bounds, or None. `equal` are pairs of dimensions that must agree at run time.
    `index_dtypes` are the integer types of CSR inputs. `arena` is at least the number of bytes of
    memory for intermediate values whose sizes have upper bounds.
    """

    inputs: tuple[ValueSpec, ...]
    outputs: tuple[ValueSpec, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    entries: tuple[Dim | None, ...]
    computed: Mapping[str, Dim | None]
    equal: tuple[tuple[Dim, Dim], ...]
    index_dtypes: tuple[IndexDtypes | None, ...]
    arena: Dim

    @cached_property
    def largest_shapes(self) -> tuple[Shape, ...]:
        """The shapes of results with upper bounds in place of computed sizes that have one."""
        bounds = {name: bound for name, bound in self.computed.items() if bound is not None}
        return tuple(tuple(dim.at_most(bounds) for dim in shape) for shape in self.output_shapes)

    @cached_property
    def in_arena(self) -> tuple[bool, ...]:
        """For each result, whether it has a size without an upper bound, and is in the arena."""
        return tuple(
            any(name in self.computed for dim in shape for name in dim.symbols)
            for shape in self.largest_shapes
        )

    @property
    def reported(self) -> int:
        """How many numbers a call stores in its last buffer; without any, there is none."""
        return len(self.computed) + sum(self.in_arena)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """What the inputs demand."""
        facts = (self.inputs, self.input_shapes, self.entries, self.index_dtypes)
        return tuple(map(Argument, *facts))
