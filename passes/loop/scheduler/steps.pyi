"""The primitives as methods of a schedule; `make public` writes this file."""

import inspect
from collections.abc import Sequence
from typing import Any

from ....dialects.loop.handles import Parts
from ...primitive import Primitive

class StepMethods:
    """Each primitive as a method, which returns handles to the loops that it makes."""

    def _take(self, step: Primitive, given: inspect.BoundArguments) -> Any:
        """Take a step with these arguments; return its handles."""

    def balance(self, loop: str, entries: str, factor: int, weight: int = 1) -> Parts:
        """Cut the loop over the rows of a sparse matrix into parts of about the same cost."""

    def bind(self, *loops: str, level: str = "threads") -> None:
        """Make each iteration of perfectly nested loops a thread of a device, or a block of threads."""

    def cascade(self, loop: str, factor: int) -> None:
        """Accumulate chunks of `factor` iterations of a reduction on their own, and add up the chunks."""

    def compute_at(self, nest: str, loop: str) -> None:
        """Move the nest that fills a local buffer into the loop that reads it."""

    def count_entries(self, loop: str) -> None:
        """Make a loop over the entries of a row one over their number."""

    def distribute(self, loop: str, after: str) -> Sequence[str]:
        """Cut the body of a loop after one of its nests, and run a loop over each of the two parts."""

    def drop_unit_loops(self) -> None:
        """Replace a loop that runs once by its body, and drop one that never runs."""

    def enclose(self, loop: str = "one") -> None:
        """Put the body of a kernel into a loop of one iteration, which may be bound to a thread."""

    def fuse(self, outer: str, inner: str) -> str:
        """Replace two perfectly nested loops by one, called `outer_inner`."""

    def hoist(self, loop: str) -> None:
        """Hoist loop invariants out of a loop."""

    def merge(self, first: str, second: str) -> None:
        """Run two reductions, or two parallel loops, over the same range as one loop."""

    def own(self, loop: str, parts: int, chunk: int = 1) -> tuple[str, str]:
        """Divide the places that a serial loop writes to into parts, which are computed independently."""

    def pack(self, argument: int, *loops: str) -> None:
        """Give a constant argument one dimension for each of the loops that read it."""

    def pad(self, loop: str, multiple: int) -> None:
        """Round the row length of the local buffer that a loop fills up to a multiple of some elements."""

    def prefetch(self, argument: int, loop: str, ahead: int = 0) -> None:
        """Prefetch the rows of an argument that a reduction reads."""

    def prefetch_entries(self, argument: int, loop: str, ahead: int) -> None:
        """Prefetch what later entries of a matrix read of an argument at their columns."""

    def privatise(self, loop: str, parts: int, chunk: int = 1) -> tuple[str, str]:
        """Divide the iterations of a serial loop into parts that accumulate into copies of their own."""

    def reorder(self, *loops: str) -> None:
        """Nest perfectly nested loops in this order."""

    def share_rows(self, loop: str, threads: int) -> None:
        """Run the body of a loop on the threads of a block, so that an iteration is a block."""

    def sink(self, loop: str) -> None:
        """Make a loop perfectly nested: statements before the inner loop move into it."""

    def split(
        self, loop: str, factor: int, tail: str = "peel", cases: int = 0, alone: int = 0
    ) -> Parts:
        """Cut a loop into one over chunks of `factor` iterations and one inside of a chunk."""

    def split_border(self, loop: str, before: int, after: int) -> Sequence[str]:
        """Split off the first and the last iterations of a loop."""

    def stage(self, argument: int, loop: str) -> None:
        """Copy the part of an argument that one iteration of a loop reads repeatedly."""

    def stage_columns(self, loop: str, size: int) -> Sequence[str]:
        """Run the serial loop in each iteration of a loop on columns of local buffers."""

    def stage_panels(self, loop: str, part: int = 0, ahead: int = 0) -> None:
        """Run a reduction of the threads of a block together, in panels that they copy for each other."""

    def stage_terms(self, loop: str) -> str:
        """Compute the scalars that a reduction over blocks combines in a loop of their own before it."""

    def tensorize(self, loop: str, instruction: str) -> None:
        """Compute a short reduction by an instruction of the processor."""

    def tiles(self, loop: str, order: str = "any") -> None:
        """Turn the iterations of a loop into tiles that threads execute."""

    def unroll(self, loop: str, factor: int | None = None) -> None:
        """Give a reduction `factor` accumulators, or unroll another loop completely."""

    def vectorize(self, *loops: str) -> None:
        """Turn loops into axes of blocks, all those of a nest at once, the lanes last."""
