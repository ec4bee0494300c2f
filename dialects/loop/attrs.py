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
    `blocks`: independent, and each is a block of threads of a device. The nests of kind `threads`
    in it run one after the other, each on the threads of the block; see `proofs/levels.py`.
    `serial`: they keep their order. `unroll`: independent, and emitted one after another.
    `async`: they are one copy of 16 bytes to shared memory, from one load to one store; a thread of
    a device does not wait for it before the next time that it waits for the other threads.
    `reduction`: they accumulate by combiners, and are independent otherwise.
    """

    PARALLEL = "parallel"
    TILES = "tiles"
    ALTERNATING_TILES = "alternating_tiles"
    THREADS = "threads"
    BLOCKS = "blocks"
    SERIAL = "serial"
    UNROLL = "unroll"
    ASYNC = "async"
    REDUCTION = "reduction"

    @property
    def is_distributed(self) -> bool:
        """Whether the iterations are distributed over threads: none is in one of another loop."""
        return self in (LoopKind.TILES, LoopKind.ALTERNATING_TILES) or self.is_on_device

    @property
    def is_on_device(self) -> bool:
        """Whether the iterations are threads of a device, or blocks of them."""
        return self in (LoopKind.THREADS, LoopKind.BLOCKS)

    @property
    def keeps_order(self) -> bool:
        """Whether an iteration begins after the one before it has ended."""
        return self is LoopKind.SERIAL

    @property
    def is_scheduled(self) -> bool:
        """Whether a schedule has made a parallel loop one of this kind."""
        return self in (LoopKind.UNROLL, LoopKind.ASYNC) or self.is_distributed

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
    """The memory of a `loop.local` that several nests of the threads of a block access.

    `shared`: the memory that the threads of a block have in common. `threads`: each thread of the
    block has a part of its own, such as registers: the loops of threads around each access are its
    first indices.
    """

    SHARED = "shared"
    THREADS = "threads"


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
