"""Operators that write their results in loops of their own write all elements, in random forms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.algebra.dims import Dim
from stepwell.core.dtypes import dtype_of
from stepwell.core.errors import UnsupportedError
from stepwell.core.ir.typed import memref_type, returned, tensor_type
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.sparse_tensor import is_sparse

from ...fuzz.choices import Choices
from ...fuzz.operators import DERIVED, Pattern, Refusal, made, patterns_of

WRITERS = {op.name: op for op in DERIVED if op.FUSION is FusionKind.NEST}
Types = Sequence[Sequence[TensorType] | None]


def forms(operator: type[GraphOp], count: int) -> Iterator[tuple[func.FuncOp, func.FuncOp]]:
    """Functions of an operator on operands of known sizes, and the same where some are unknown."""
    patterns = patterns_of(operator)
    for number in range(40 * count):
        choices = Choices(f"{operator.name} {number}")
        pattern = patterns[number % len(patterns)]
        size = choices.among(2, 3, 4)
        sizes = [choices.among(size, size, size, 5) for _ in range(4)]
        known, unknown = (types_of(pattern, sizes, choices, among) for among in (0, 0.5))
        found = [function_of(operator, types, str(number)) for types in (known, unknown)]
        if found[0] is not None:
            yield found[0], found[1] or found[0]
            count -= 1
        if not count:
            return


def types_of(pattern: Pattern, sizes: Sequence[int], choices: Choices, unknown: float) -> Types:
    """The types of operands, of whose sizes some are unknown."""

    def size(axis: int) -> int:
        return DYNAMIC_INDEX if choices.chance(unknown) else sizes[axis]

    return [
        None if form is None else [kind.type(list(map(size, range(kind.rank)))) for kind in form]
        for form in pattern
    ]


def function_of(operator: type[GraphOp], types: Types, seed: str) -> func.FuncOp | None:
    """A function of an operator with operands of some types, None where it refuses them."""
    block = Block(arg_types=[kind for form in types for kind in form or ()])
    left = iter(block.args)
    values = [None if form is None else [next(left) for _ in form] for form in types]
    found = made(operator, values, Choices(seed), [2])
    if isinstance(found, Refusal):
        return None
    op, _ = found
    block.add_ops([op, func.ReturnOp(*op.results)])
    kinds = [value.type for value in block.args], [value.type for value in op.results]
    return func.FuncOp("main", kinds, Region(block))


def kernels_of(*functions: func.FuncOp) -> Iterator[KernelOp]:
    """The kernels of functions, but of those whose sizes do not follow from their arguments."""
    for function in functions:
        module = ModuleOp([function.clone()])
        try:
            run_passes(make_context(), module, "graph-fuse-ops,convert-graph-to-loop")
        except UnsupportedError as error:
            assert "a size does not follow from the sizes of the arguments" in str(error)  # noqa: PT017
        else:
            yield from (op for op in module.ops if isinstance(op, KernelOp))


def operands(kernel: KernelOp, form: func.FuncOp) -> Iterator[np.ndarray | int]:
    """The inputs of a kernel: an entry in each row of a matrix, and 0 for all integers."""
    left, rng = list(kernel.inputs), np.random.default_rng(7)

    def array(*shape: int) -> np.ndarray:
        dtype = dtype_of(memref_type(left.pop(0)).element_type)
        return np.array(rng.standard_normal(shape) * (dtype.kind not in "iu"), dtype)

    for kind in (tensor_type(arg) for arg in form.args):
        shape = kind.get_shape()
        if not is_sparse(kind):
            yield array(*shape)
            continue
        indptr = array(shape[0] + 1)
        yield indptr + np.arange(len(indptr), dtype=indptr.dtype)
        yield from (array(shape[0]), array(shape[0]))
        if left and isinstance(left[0].type, IndexType):
            left.pop(0)
            yield shape[1]


def written(kernel: KernelOp, form: func.FuncOp, before: int) -> list[bytes]:
    """The elements that the results of a kernel have, in memory that was full of a byte."""
    shapes, outputs = SymbolicShapes(form), dict[SSAValue, np.ndarray]()
    for value, output in zip(returned(form), kernel.outputs, strict=True):
        dtype = dtype_of(memref_type(output).element_type)
        shape = [shapes.at_most(dim).value for dim in shapes.shape(value)]
        count = math.prod(shape) * dtype.itemsize
        outputs[value] = np.full(count, before, np.uint8).view(dtype).reshape(shape)
    run_kernel(kernel, [*operands(kernel, form), *outputs.values()])
    ends = {name: int(outputs[size.value]) for name, size in shapes.computed.items()}
    firsts = (next(iter(shapes.shape(value)), Dim.of(0)).name for value in outputs)
    return [
        array[: ends[name]].tobytes() if name in ends else array.tobytes()
        for name, array in zip(firsts, outputs.values(), strict=True)
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_all_elements_are_written(name: str, all_tests: bool) -> None:
    # The sort of boxes takes long where it is interpreted.
    takes_long, seen = name == "graph.suppress_boxes", False
    few = 1 if takes_long else 4
    for known, unknown in forms(WRITERS[name], 4 * few if all_tests else few):
        for kernel in kernels_of(*([] if takes_long and not all_tests else [known]), unknown):
            first = written(kernel, known, 0x55)
            assert first == written(kernel, known, 0xAA), str(kernel)
            seen |= any(first)
    assert seen
