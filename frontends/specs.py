"""Arguments and results of a program under construction, from users' specifications."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    StringAttr,
    TensorType,
)

from ..core.boundary.arrays import is_integer
from ..core.boundary.specs import SparseSpec, TensorSpec
from ..core.ir.public_function import DIMS, argument_attrs
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..dialects.sparse_tensor import csr
from .arrays import element_type_named
from .diagnostics import input_error


def argument_of(
    name: str, spec: TensorSpec | SparseSpec, symbols: str
) -> tuple[TensorType, DictionaryAttr]:
    """The type and the attributes of an argument of the program.

    Args:
        name: its name.
        spec: its specification.
        symbols: what the symbols of sizes without a name begin with; see `symbols_of`.
    """
    subject = f'input "{name}"'
    dims = tuple(_size(subject, size, f"{symbols}.{i}") for i, size in enumerate(spec.shape))
    sizes = [DYNAMIC_INDEX if isinstance(d, str) else d for d in dims]
    element = element_type_named(subject, spec.dtype)
    if isinstance(spec, TensorSpec):
        return TensorType(element, sizes), argument_attrs(name, dims)
    if len(dims) != 2:
        raise input_error(subject, "a CSR matrix has two dimensions", got=spec.shape)
    entries = _size(subject, spec.nnz, f"{symbols}.nnz")
    if spec.indptr_dtype not in ("i32", "i64"):
        raise input_error(subject, "unknown indptr_dtype", "i32 or i64", repr(spec.indptr_dtype))
    kind = TensorType(element, sizes, csr(int(spec.indptr_dtype[1:])))
    return kind, argument_attrs(name, dims, entries)


def result_type(subject: str, spec: TensorSpec) -> TensorType:
    """The type of a specified result of a call."""
    sizes: list[int] = []
    for size in spec.shape:
        if isinstance(size, str):
            sizes.append(DYNAMIC_INDEX)
        elif is_integer(size) and 0 <= size < 2**62:
            sizes.append(int(size))
        else:
            raise input_error(subject, "bad size of a result", "a count or a symbol", repr(size))
    return TensorType(element_type_named(subject, spec.dtype), sizes)


def name_result_sizes(function: func.FuncOp) -> None:
    """Name the sizes of the results of the program after those of its arguments."""
    shapes, named_results = SymbolicShapes(function), []
    returned = function.body.block.last_op
    results = cast(ArrayAttr[DictionaryAttr], function.res_attrs)
    for value, attrs in zip(returned.operands if returned else (), results, strict=True):
        dims = [d if d.is_static or d.symbols[0][0] == "_" else str(d) for d in shapes.shape(value)]
        names = ArrayAttr([StringAttr(d if isinstance(d, str) else "") for d in dims])
        symbolic = any(isinstance(d, str) for d in dims)
        extra = {DIMS: names} if symbolic else {}
        named_results.append(DictionaryAttr({**attrs.data, **extra}))
    function.res_attrs = ArrayAttr(named_results)


def symbols_of(name: str, taken: Collection[str]) -> str:
    """What the symbols of sizes of an argument begin with that have no name.

    A dot follows, which symbols of users do not have.

    Args:
        name: the name of the argument.
        taken: what those of other arguments begin with.
    """
    found = re.sub(r"[^\w.]", "_", name, flags=re.ASCII)
    if not re.match(r"[A-Za-z_]", found):
        found = f"_{found}"
    while found in taken:
        found += "_"
    return found


def _size(subject: str, size: object, unnamed: str) -> int | str:
    """A size, or its symbol; `unnamed` is the symbol for None."""
    if size is None:
        return unnamed
    if isinstance(size, str) and re.fullmatch(r"[A-Za-z]\w*", size):
        return size
    if is_integer(size) and 0 <= size < 2**62:
        return int(size)
    raise input_error(subject, "bad size", "a count, a symbol or None", repr(size))


def identifier(name: str) -> str | None:
    """The name as a name hint of a value; None if it is not of words of ASCII between dots.

    Of a hint xDSL takes off a number at the end, ``_7``, which may not be all of it.
    """
    return name if re.fullmatch(r"(?!_\d+$)[A-Za-z_][\w.]*", name, re.ASCII) else None
