"""How a group of operators becomes one kernel: `NestPlan`, its loops, and why there may be none."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.algebra.dims import Dim, Shape
from ..interfaces import GraphOp, Indices

MOST_OPERATORS = 100
"""A kernel is built by recursion from its results, and a longer one gains nothing."""


@dataclass(eq=False)
class PlannedLoop:
    """A loop of a planned nest, by its identity."""

    extent: Dim | AffineExpr | None
    name: str
    parallel: bool = False

    @property
    def iterations(self) -> int | None:
        """The number of iterations, if it is known."""
        if isinstance(self.extent, AffineConstantExpr):
            return self.extent.value
        return self.extent.value if isinstance(self.extent, Dim) and self.extent.is_static else None

    @property
    def runs_once(self) -> bool:
        """Whether the loop has one iteration."""
        return self.iterations == 1


Loops = tuple[PlannedLoop, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a group cannot be one kernel, and the value that has to be computed before it."""

    value: SSAValue
    why: str


@dataclass
class ResultNest:
    """The nest that computes some results of a group."""

    results: list[int]
    """The numbers of the results; several only where they are numbers for the same rows."""
    source: SSAValue
    """The value whose indices are looped over: the first result, or the source of its reshape."""
    reshapes: list[SSAValue | None]
    """For each of them a reshape that it is made of, index by index: what is reshaped is looped
    over, so that a reduction over one of its rows runs once for the row. Or the result itself, if
    it has a constant around what is looped over, which other nests store."""
    order: list[int] | None = None
    """The dimensions in the order of their loops, where a reduction needs another one."""
    reordered: bool = False
    """Whether loops that run more than once have another order than the dimensions."""
    entries: tuple[int, SSAValue] | None = None
    """A dimension that visits the stored entries of a matrix, row by row."""

    def index(self, variables: Indices, shape: Shape) -> Indices:
        """The index of a result, by the variables of the loops over its dimensions.

        Several results may be made of one value. Operators read it at 0 along a dimension of
        size 1, and so does the nest, or it would be computed for each of them.
        """
        if len(self.results) == 1:
            return variables
        zero, one = AffineExpr.constant(0), Dim.of(1)
        return tuple(zero if n == one else expr for expr, n in zip(variables, shape, strict=True))


@dataclass
class NestPlan:
    """How a group becomes one kernel, or why it cannot."""

    nests: list[ResultNest] = field(default_factory=list)
    staged: dict[SSAValue, int] = field(default_factory=dict)
    """Values kept in a local buffer, with the number of loops the buffer is filled under."""
    in_result: SSAValue | None = None
    """The one of them that is kept in the only result instead, whose elements replace its own: each
    of its rows is computed before that of the result."""
    hoisted: set[SSAValue] = field(default_factory=set)
    """Those of them that are staged in front of a loop, which would compute them again."""
    repeated: set[SSAValue] = field(default_factory=set)
    """Values that are computed more often than they have elements."""
    writer: GraphOp | None = None
    """The operator in whose own loops everything is computed, instead of `nests`."""
    followers: dict[SSAValue, list[int]] = field(default_factory=dict)
    """For each result of the writer the results of the group that its elements give."""
    refusal: Refusal | None = None
