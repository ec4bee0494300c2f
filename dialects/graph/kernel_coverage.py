"""Whether a kernel stores every element of its results in a call, proved from its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from ...core.dims import Dim, Shape, size_of_argument, size_of_result
from ...core.symbols import find_symbol
from ...core.typed import memref_type
from ..loop.coverage import Coverage, is_covered
from ..loop.inside import Inside
from ..loop.ops import KernelOp, LoadOp, PrefetchOp
from .kernel_bounds import known_of_call
from .ops_call import CallDpsOp
from .shape_facts import text

_UNNAMED = Dim.symbol("_")


@dataclass(frozen=True)
class Uncovered:
    """A result of a kernel that is not proved to be stored as a whole."""

    number: int
    result: SSAValue
    shape: str
    stored: str
    """What is known to be stored."""
    width: int | None
    """How many elements of each row are stored, where rows are padded."""

    @property
    def facts(self) -> tuple[str, str, str]:
        """The fact, what is expected, and what was found instead, for a message."""
        fact = f'not all elements of "{self.result.name_hint or "y"}" are proved to be stored'
        return fact, f"stores that cover {self.shape}", self.stored


def uncovered(
    kernel: KernelOp, operands: Sequence[SSAValue], sizes: Mapping[str, Dim]
) -> Iterator[Uncovered]:
    """The results of a kernel that are not proved to be stored as a whole.

    Args:
        kernel: the kernel.
        operands: the operands of a call of it.
        sizes: the sizes of the operands (``x0.1``) and of the results (``y0.1``), in symbols that
            are equal where sizes are.
    """
    known = known_of_call(kernel, operands)
    if known is None:
        # The conversion of the call refuses it.
        return
    known = known.with_sizes(sizes)
    for number, output in enumerate(kernel.outputs):
        if not is_covered(kernel, known, output):
            coverage = Coverage(kernel, known, output)
            boxes = [_text(coverage.places(box)) for box in coverage.boxes()]
            none = "nothing" if coverage.is_empty else "none with a known place"
            stored = " and ".join(boxes) or none
            shape = text([dim or _UNNAMED for dim in coverage.shape()])
            widths = (n for n in coverage.widths() if is_covered(kernel, known, output, n))
            yield Uncovered(number, output, shape, stored, max(widths, default=None))


def is_read_beyond(
    result: SSAValue, width: int, sizes_of: Callable[[CallDpsOp], Mapping[str, Dim]]
) -> bool:
    """Whether more than the first elements of rows of a result may be used.

    Rows that other kernels gather are aligned by elements that nothing reads or writes
    (`loop-align-rows`).

    Args:
        result: the result of a call.
        width: how many elements of each row are known to be stored.
        sizes_of: the sizes of a call, as for `uncovered`.
    """
    for use in result.uses:
        call = use.operation
        kernel = find_symbol(call, call.callee) if isinstance(call, CallDpsOp) else None
        if not isinstance(call, CallDpsOp) or not isinstance(kernel, KernelOp):
            return True
        known = known_of_call(kernel, call.arguments)
        if known is None:
            return True
        inside = Inside(known.with_sizes(sizes_of(call)))
        buffer = kernel.body.block.args[call.places[use.index]]
        last = memref_type(buffer).get_num_dims() - 1
        for reader in (use.operation for use in buffer.uses):
            harmless = isinstance(reader, memref.DimOp | PrefetchOp)
            within = isinstance(reader, LoadOp) and inside.is_below(reader, last, width)
            if not harmless and not within:
                return True
    return False


def sizes_by_name(operands: Sequence[Shape], results: Sequence[Shape]) -> dict[str, Dim]:
    """The sizes of operands and results by the names that their kernel has for them."""
    pairs = ((size_of_argument, operands), (size_of_result, results))
    return {
        name(number, axis): dim
        for name, shapes in pairs
        for number, shape in enumerate(shapes)
        for axis, dim in enumerate(shape)
    }


def _text(box: Sequence[tuple[Dim | None, Dim | None]]) -> str:
    """A box as messages print it: ``[0:4, 1:?]``."""
    ends = (text([dim or _UNNAMED for dim in pair])[1:-1].replace(", ", ":") for pair in box)
    return f"[{', '.join(ends)}]"
