"""Whether a kernel stores every element of its results in a call, proved from its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from ...core.dims import Dim, Shape, size_of_argument, size_of_result
from ...core.symbols import find_symbol
from ...core.typed import memref_type
from ..loop.counted import is_counted
from ..loop.coverage import Coverage, is_covered
from ..loop.inside import Inside
from ..loop.known import Known
from ..loop.ops import KernelOp, LoadOp, PrefetchOp
from .interfaces import GraphOp, declared_shape, tensor_type, unknown_sizes
from .kernel_bounds import same_sizes
from .kernel_sizes import known_of_call
from .ops_call import CallDpsOp
from .shape_facts import ShapeFacts, text
from .shapes import SymbolicShapes

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


def uncovered_of_call(
    kernel: KernelOp,
    operands: Sequence[SSAValue],
    sizes: Mapping[str, Dim],
    counts: Mapping[SSAValue, SSAValue] | None = None,
) -> Iterator[Uncovered]:
    """The results of a kernel that is called that are not proved to be stored as a whole.

    Args:
        kernel: the kernel.
        operands: the operands of a call of it.
        sizes: the sizes of the operands (``x0.1``) and of the results (``y0.1``), in symbols that
            are equal where sizes are.
        counts: see `uncovered`.
    """
    known = known_of_call(kernel, [tensor_type(value) for value in operands])
    # The conversion of the call refuses one that does not fit.
    yield from () if known is None else uncovered(kernel, known.with_sizes(sizes), counts)


def uncovered(
    kernel: KernelOp, known: Known, counts: Mapping[SSAValue, SSAValue] | None = None
) -> Iterator[Uncovered]:
    """The results of a kernel that are not proved to be stored as a whole.

    Args:
        kernel: the kernel.
        known: what is known of its arguments.
        counts: for outputs the output that holds how many elements they have along the first
            dimension, where the kernel computes it.
    """
    for number, output in enumerate(kernel.outputs):
        count = None if counts is None else counts.get(output)
        if count is not None and is_counted(known, output, count):
            continue
        if not is_covered(known, output):
            coverage = Coverage(known, output)
            boxes = [_text(coverage.places(box)) for box in coverage.boxes()]
            none = "nothing" if coverage.is_empty else "none with a known place"
            stored = " and ".join(boxes) or none
            sizes = [dim or _UNNAMED for dim in coverage.shape()]
            shape = text(sizes if count is None else [_UNNAMED, *sizes[1:]])
            widths = (n for n in coverage.widths() if is_covered(known, output, n))
            yield Uncovered(number, output, shape, stored, max(widths, default=None))


def counts_in(
    shapes: SymbolicShapes, outputs: Mapping[SSAValue, SSAValue]
) -> dict[SSAValue, SSAValue]:
    """For outputs of a kernel the output that holds their first size, where there is one.

    Args:
        shapes: the shapes of the function around the results.
        outputs: the outputs of the kernel, by the results that they are.
    """
    found: dict[SSAValue, SSAValue] = {}
    for result, output in outputs.items():
        for first in shapes.shape(result)[:1]:
            size = shapes.computed.get(first.name or "")
            if size is not None and size.value in outputs:
                found[output] = outputs[size.value]
    return found


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
        known = known_of_call(kernel, [tensor_type(value) for value in call.arguments])
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


def sizes_of_operator(op: GraphOp) -> dict[str, Dim]:
    """The sizes of the operands and results of an operator, from its shape rule alone."""
    fresh, equal = unknown_sizes(), list[tuple[Dim, Dim]]()
    shapes = {value: declared_shape(value, fresh) for value in dict.fromkeys(op.operands)}
    operands = [shapes[value] for value in op.operands]
    facts = ShapeFacts(op, fresh, record=lambda a, b: equal.append((a, b)))
    results = op.infer_shapes(operands, facts)
    for result, shape in zip(op.results, results, strict=True):
        declared = zip(shape, tensor_type(result).get_shape(), strict=True)
        equal += [(size, Dim.of(number)) for size, number in declared if number >= 0]
    same = same_sizes(equal)
    return {name: dim.substitute(same) for name, dim in sizes_by_name(operands, results).items()}


def _text(box: Sequence[tuple[Dim | None, Dim | None]]) -> str:
    """A box as messages print it: ``[0:4, 1:?]``."""
    ends = (text([dim or _UNNAMED for dim in pair])[1:-1].replace(", ", ":") for pair in box)
    return f"[{', '.join(ends)}]"
