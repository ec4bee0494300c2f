"""Attributes of the loop dialect: kinds of loops, combiners, memory spaces."""

from __future__ import annotations

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition

from ...core.choices import Choice


class LoopKind(Choice):
    """What may be done with the iterations of a `loop.for`.

    `parallel`: they are independent. `tiles`: independent, and distributed over threads.
    `alternating_tiles`: the same, and each execution of the loop runs them in the opposite order of
    the one before, so that it begins with what caches still hold.
    `threads`: independent, and each is a thread of a device; of a perfect nest, each combination.
    `serial`: they keep their order. `unroll`: independent, and emitted one after another.
    `reduction`: they accumulate by combiners, and are independent otherwise.
    """

    PARALLEL = "parallel"
    TILES = "tiles"
    ALTERNATING_TILES = "alternating_tiles"
    THREADS = "threads"
    SERIAL = "serial"
    UNROLL = "unroll"
    REDUCTION = "reduction"

    @property
    def is_distributed(self) -> bool:
        """Whether the iterations are distributed over threads: none is in one of another loop."""
        return self in (LoopKind.TILES, LoopKind.ALTERNATING_TILES, LoopKind.THREADS)

    @property
    def keeps_order(self) -> bool:
        """Whether an iteration begins after the one before it has ended."""
        return self is LoopKind.SERIAL

    @property
    def is_scheduled(self) -> bool:
        """Whether a schedule has made a parallel loop one of this kind."""
        return self is LoopKind.UNROLL or self.is_distributed

    @property
    def of_parts(self) -> LoopKind:
        """The kind of a loop over a part of the iterations, inside of a loop of this kind."""
        return LoopKind.PARALLEL if self.is_distributed else self


class Combine(Choice):
    """How two partial results of a reduction are combined; `custom` is unknown and never split.

    `max` and `min` of a NaN are NaN. `maxnum` of a NaN and a number is the number, which most
    machines compute faster. A reduction by `maxnum` starts from a number, and so always carries
    one: the maximum of it and of every element that is not NaN. If it starts from NaN, its result
    is undefined.
    """

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MAXNUM = "maxnum"
    MIN = "min"
    CUSTOM = "custom"


class Space(Choice):
    """The memory of a `loop.local` that is not private to a thread.

    `shared`: the memory that a group of threads has in common, such as that of a GPU.
    """

    SHARED = "shared"


@irdl_attr_definition
class LoopKindAttr(EnumAttribute[LoopKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a `loop.for`, such as ``#loop<kind tiles>``."""

    name = "loop.kind"


@irdl_attr_definition
class CombineAttr(EnumAttribute[Combine], SpacedOpaqueSyntaxAttribute):
    """The combining operation of a reduction, such as ``#loop<combine add>``."""

    name = "loop.combine"


@irdl_attr_definition
class SpaceAttr(EnumAttribute[Space], SpacedOpaqueSyntaxAttribute):
    """The memory space in the type of a local buffer: ``memref<16xf32, #loop<space shared>>``."""

    name = "loop.space"
