"""The kinds of operators: how each takes part in fusion, and whether it may be narrow."""

from __future__ import annotations

from enum import Enum


class FusionKind(Enum):
    """How an operator takes part in fusion."""

    ELEMENTWISE = "elementwise"
    """The result at an index needs each operand at that index (NumPy broadcasting included)."""
    BROADCAST = "broadcast"
    """One operand element goes to many result elements."""
    INJECTIVE = "injective"
    """Each result element is one operand element somewhere else."""
    REDUCTION = "reduction"
    """A result element combines many operand elements."""
    CONTRACTION = "contraction"
    """A sum of products that an epilogue can be fused into."""
    NEST = "nest"
    """Writes its results in loops of its own (`GraphOp.write`): what it reads is computed there,
    and elementwise operators follow where it writes each element once."""
    OPAQUE = "opaque"
    """Never fused; neither has a value at an index nor writes its results."""


class Precision(Enum):
    """Whether an operator may work on numbers of 16 bits, see `graph-to-mixed-precision`."""

    ALWAYS = "always"
    """It gains: it reads much and sums up in f32."""
    FOLLOW = "follow"
    """It loses at most one rounding: it does so if its operands are narrow already."""
    NEVER = "never"
    """Its results would be noticeably worse, or leave the range of the type."""
