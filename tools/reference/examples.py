"""Examples of operations that run: from lines of IR in a docstring to arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseResourceAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ...backends.reference.machine import run_kernel
from ...core.dtypes import dtype_of
from ...core.ir.module import Module
from ...core.ir.parsing import MlirParser
from ...core.ir.typed import memref_type, tensor_type
from ...core.ir.weights import WeightStore
from ...core.registry import make_context
from ...dialects.graph.demands import IndexBound, OffsetBound, demands
from ...dialects.loop.ops import KernelOp
from ...dialects.sparse_tensor import csr, is_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

UNKNOWN = 4
"""The size of a dimension that an example leaves open, and the number of entries of a matrix."""
LARGEST = 96
"""The number of elements of all arrays of an example, up to which they are shown."""

_SIGNED = (1.0, -2.0, 0.5, 3.0, -0.5, 0.0, 2.0, -1.5)
_POSITIVE = (0.5, 2.0, 1.0, 1.5, 0.25, 3.0, 0.75)
_INTEGERS = (3, 1, 2, 0)
_TRUTHS = (True, False, True, True)
_PLACES = ((0, 1), (0, 3), (2, 0), (3, 2))
"""The entries of a sparse matrix; its second row has none."""


@dataclass(frozen=True)
class Example:
    """Inputs, and the results of the reference, or the error that it raises."""

    inputs: dict[str, Any]
    results: dict[str, Any]
    error: str = ""

    def shown(self) -> str:
        """Inputs and results as text; empty where they are too many numbers to look at."""
        arrays = self.inputs | self.results
        if sum(getattr(array, "nnz", np.size(array)) for array in arrays.values()) > LARGEST:
            return ""
        inputs = [_shown(name, array) for name, array in self.inputs.items()]
        results = [_shown(name, array) for name, array in self.results.items()]
        return "\n".join([*inputs, "", *results, self.error]).strip("\n")


@dataclass(frozen=True)
class ModuleExample(Example):
    """A module, with inputs and results."""

    module: Module = field(kw_only=True)


def parsed(text: str) -> tuple[Operation, ...]:
    """The operations of an example, whose operands may be defined nowhere.

    One that needs what is around it, a function or a region, is not verified.

    Raises:
        ParseError: if it is malformed.
        VerifyException: if it is invalid.
    """
    parser = MlirParser(make_context(WeightStore()), text.replace("#csr", str(csr())))
    found = list[Operation]()
    while (op := parser.parse_optional_operation()) is not None:
        found.append(op)
    for name, places in parser.forward_ssa_references.items():
        for value in places.values():
            # Verifiers ask what defines a value, which this one does not know.
            (defined,) = Block(arg_types=[value.type]).args
            value.replace_all_uses_with(defined)
            defined.name_hint = name
    for op in found:
        if not (_names_symbol(op) or op.has_trait(IsTerminator)):
            op.verify()
    return tuple(found)


def kernel_example_of(text: str) -> Example | None:
    """Run an example that is a kernel on made-up inputs; None for any other.

    Raises:
        CompileError: if it makes an invalid access.
    """
    kernel = parsed(text)[0]
    if not isinstance(kernel, KernelOp):
        return None
    arrays = dict[str, Any]()
    count = len(kernel.inputs)
    for place, argument in enumerate(kernel.body.block.args):
        kind, name = memref_type(argument), argument.name_hint or f"x{place}"
        shape = tuple(UNKNOWN if n == DYNAMIC_INDEX else n for n in kind.get_shape())
        dtype = dtype_of(kind.element_type)
        if place >= count:
            # What a kernel does not write is seen.
            arrays[name] = np.full(shape, np.nan if dtype.kind == "f" else -1, dtype)
        else:
            arrays[name] = array_named(name, shape, dtype, place)
    run_kernel(kernel, list(arrays.values()))
    items = list(arrays.items())
    return Example(dict(items[:count]), dict(items[count:]))


def example_of(text: str) -> ModuleExample | None:
    """Run an example of operators on made-up operands.

    None where it does not stand alone: it calls a function, names a weight, or is a part of a
    region.
    """
    op = parsed(text)[0]
    operands = list(dict.fromkeys(op.operands))
    tensors = all(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))
    named = any(isinstance(value, DenseResourceAttr) for value in op.properties.values())
    if not tensors or not op.results or named or _names_symbol(op):
        return None
    arrays = [_array(op, operand, place) for place, operand in enumerate(operands)]
    module = _program(op, operands)
    results = module.run_reference(*arrays)
    given = results if isinstance(results, tuple) else (results,)
    names = [spec.name for spec in module.outputs]
    inputs = dict(zip([spec.name for spec in module.inputs], arrays, strict=True))
    return ModuleExample(inputs, dict(zip(names, given, strict=True)), module=module)


def _names_symbol(op: Operation) -> bool:
    """Whether an operation calls a function, which an example lacks."""
    return "callee" in op.properties


def _program(op: Operation, operands: Sequence[SSAValue]) -> Module:
    """A module whose function takes the operands and returns the results."""
    names = [operand.name_hint or f"x{place}" for place, operand in enumerate(operands)]
    results = [result.name_hint or f"y{place}" for place, result in enumerate(op.results)]
    block = Block(arg_types=[operand.type for operand in operands])
    for operand, argument, name in zip(operands, block.args, names, strict=True):
        argument.name_hint = name
        operand.replace_all_uses_with(argument)
    block.add_op(op)
    block.add_op(func.ReturnOp(*op.results))
    function = func.FuncOp(
        "main",
        ([argument.type for argument in block.args], [result.type for result in op.results]),
        Region(block),
        arg_attrs=_named(names),
        res_attrs=_named(results),
    )
    return Module(ModuleOp([function]), WeightStore())


def _named(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({"graph.name": StringAttr(name)}) for name in names])


def _array(op: Operation, operand: SSAValue, place: int) -> Array:
    """Numbers for an operand: indices that exist, positive numbers behind the first operand."""
    kind = tensor_type(operand)
    shape = tuple(UNKNOWN if size == DYNAMIC_INDEX else size for size in kind.get_shape())
    dtype = dtype_of(kind.element_type)
    if is_sparse(kind):
        return _matrix((shape[0], shape[1]), dtype)
    limit = _limit(op, operand)
    # The operand holds offsets or row pointers.
    offsets = [bound.operand for bound in demands(op, OffsetBound)]
    if operand in [*offsets, getattr(op, "indptr", None)]:
        return np.linspace(0, limit, shape[0]).astype(dtype)
    return numbers(shape, dtype, place, limit)


def numbers(
    shape: tuple[int, ...], dtype: np.dtype[Any], place: int, limit: int = UNKNOWN
) -> np.ndarray:
    """Numbers for the operand at a place; integers are below a limit."""
    if dtype.kind == "b":
        return _cycled(_TRUTHS, shape, 0).astype(dtype)
    if dtype.kind in "iu":
        return (_cycled(_INTEGERS, shape, place) % limit).astype(dtype)
    return _cycled(_POSITIVE if place else _SIGNED, shape, 0).astype(dtype)


def array_named(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], place: int) -> np.ndarray:
    """Numbers for the operand with a name: row pointers, or any."""
    if name == "indptr":
        return np.cumsum(_cycled((0, 5, 1, 0, 2), shape, 0)).astype(dtype)
    return numbers(shape, dtype, place)


def _limit(op: Operation, operand: SSAValue) -> int:
    """The size that indices in an operand are below."""
    for bound in (*demands(op, IndexBound), *demands(op, OffsetBound)):
        if bound.operand is operand:
            size = tensor_type(bound.into).get_shape()[bound.dimension]
            return UNKNOWN if size == DYNAMIC_INDEX else size
    return UNKNOWN


def _matrix(shape: tuple[int, int], dtype: np.dtype[Any]) -> csr_array:
    from scipy.sparse import coo_array

    rows, columns = zip(*_PLACES, strict=True)
    values = np.array(_POSITIVE[: len(_PLACES)]).astype(dtype)
    return coo_array((values, (rows, columns)), shape=shape).tocsr()


def _cycled(numbers: Sequence[Any], shape: tuple[int, ...], start: int) -> np.ndarray:
    count = int(np.prod(shape, dtype=int))
    chosen = itertools.islice(itertools.cycle(numbers), start, start + count)
    return np.array(list(chosen)).reshape(shape)


def _shown(name: str, array: Any) -> str:
    if hasattr(array, "tocoo"):
        stored = array.tocoo()
        places = zip(stored.row.tolist(), stored.col.tolist(), stored.data.tolist(), strict=True)
        text = ", ".join(f"({row}, {column}): {value:g}" for row, column, value in places)
        return f"{name} = {{{text}}}"
    start = f"{name} = "
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        values = values.astype(np.float32)
    text = np.array2string(values, precision=4, separator=", ", suppress_small=True)
    return start + text.replace("\n", "\n" + " " * len(start))
