"""The arrays that a call writes: new ones, or those that the caller passes as `out`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..backends.llvm.boundary.plan import LARGE_RESULT, LINE
from ..core.boundary.arrays import array_of_tensor, is_tensor, plain_array, refuse_mask
from ..core.boundary.labels import is_of_texts
from ..core.boundary.signature import Signature
from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain
from .frames import no_memory


def given(specs: Sequence[ValueSpec], out: object) -> Sequence[object]:
    """The caller's array for each result; None for a new one.

    Raises:
        InputError: if `out` is a tuple of another length, or not a tuple for several results.
    """
    if out is None:
        return [None] * len(specs)
    if isinstance(out, tuple) and len(out) == len(specs):
        return out
    if len(specs) == 1 and not isinstance(out, tuple):
        return [out]
    names = ", ".join(spec.name for spec in specs)
    expected = f"a tuple of {len(specs)} ({names})"
    got = len(out) if isinstance(out, tuple) else type(out).__name__
    raise InputError(explain("call", "wrong out", expected=expected, got=got))


def array(
    spec: ValueSpec, shape: Sequence[int], out: object, resizable: bool = False
) -> np.ndarray:
    """The array for a result: a new one, or a view of the given one, unless that takes strings.

    Args:
        resizable: whether a new one gets another size: see `exact`.

    Raises:
        InputError: if the given array has another dtype or shape, is read-only, or is not
            contiguous and aligned.
        StepwellError: if there is not enough memory.
    """
    if out is None:
        return new(spec, shape, resizable)
    out = _in_memory(out)
    if not isinstance(out, np.ndarray):
        raise _wrong(spec, "not an array", "numpy.ndarray", type(out).__name__)
    refuse_mask(f'output "{spec.name}"', out)
    out = plain_array(out)
    if out.dtype != dtype_named(spec.dtype) and not is_of_texts(spec, out):
        expected = f"{dtype_named(spec.dtype)}{', or object for strings' if spec.labels else ''}"
        raise _wrong(spec, "wrong dtype", expected, out.dtype)
    if list(out.shape) != list(shape):
        raise _wrong(spec, "wrong shape", list(shape), list(out.shape))
    for flag, fact in (
        (out.flags.writeable, "read-only"),
        (out.flags.c_contiguous, "not contiguous"),
        (out.flags.aligned, "not aligned"),
    ):
        if not flag:
            raise InputError(explain(f'output "{spec.name}"', fact))
    return new(spec, shape, resizable) if is_of_texts(spec, out) else out


def _in_memory(out: object) -> object:
    """An array in the memory of a tensor of torch or of another exporter of DLPack.

    What has no memory that NumPy can show stays, and is refused.
    """
    if isinstance(out, np.ndarray):
        return out
    out = array_of_tensor(out)
    if is_tensor(out) or not hasattr(out, "__dlpack__"):
        return out
    try:
        return np.from_dlpack(cast(Any, out))
    except (RuntimeError, BufferError, TypeError, ValueError):
        return out


def refuse_where_computed(signature: Signature, given: Sequence[object]) -> None:
    """Refuse arrays for results whose sizes the program computes.

    Raises:
        InputError: naming the first such result.
    """
    triples = zip(signature.outputs, signature.output_shapes, given, strict=True)
    for spec, shape, out in triples if signature.computed else ():
        if out is not None and any(name in signature.computed for d in shape for name in d.symbols):
            raise _wrong(spec, "its size is known only after the call", "None", "an array")


def begun(signature: Signature, sizes: Mapping[str, int]) -> list[list[int]]:
    """The shapes of the arrays that are passed for results, from the sizes of inputs.

    That of a result in the arena is empty.
    """
    return [
        [0 if in_arena else dim.evaluate(sizes) for dim in shape]
        for shape, in_arena in zip(signature.largest_shapes, signature.in_arena, strict=True)
    ]


def exact(
    signature: Signature,
    arrays: Sequence[np.ndarray],
    sizes: Mapping[str, int],
    reported: np.ndarray,
    arena: np.ndarray,
) -> list[np.ndarray]:
    """The results of a call, of the sizes that it computed.

    Arrays that were made for upper bounds are given their sizes, and the rest of their memory is
    freed. What has no upper bound is copied from the arena.

    Args:
        signature: the inputs and results of the program.
        arrays: an array for each result.
        sizes: the sizes of the inputs.
        reported: the sizes that the call computed, and after them where results begin.
        arena: the arena of the call.

    Raises:
        StepwellError: if there is not enough memory.
    """
    count = len(signature.computed)
    known = {**sizes, **dict(zip(signature.computed, reported[:count].tolist(), strict=True))}
    offsets = iter(reported[count:].tolist())
    found: list[np.ndarray] = []
    for array, spec, dims, in_arena in zip(
        arrays, signature.outputs, signature.output_shapes, signature.in_arena, strict=True
    ):
        shape = tuple(dim.evaluate(known) for dim in dims)
        if in_arena:
            array, start = new(spec, shape, False), next(offsets)
            array.reshape(-1).view(np.uint8)[:] = arena[start : start + array.nbytes]
        elif array.shape != shape:
            array.resize(shape, refcheck=False)
        found.append(array)
    return found


def new(spec: ValueSpec, shape: Sequence[int], resizable: bool) -> np.ndarray:
    """A new array for a result; a large one begins at a line of the cache, unless it is resized.

    Raises:
        InputError: if a size that follows from those of the arguments is negative.
        StepwellError: if there is not enough memory.
    """
    if any(size < 0 for size in shape):
        raise _wrong(spec, "a size is negative", "0 or more", list(shape))
    dtype = dtype_named(spec.dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        if resizable or size < LARGE_RESULT:
            return np.empty(shape, dtype)
        raw = np.empty(size + LINE, np.uint8)
    except (MemoryError, ValueError) as error:
        raise no_memory(f'result "{spec.name}" of shape {list(shape)}') from error
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def targets(
    specs: Sequence[ValueSpec], arrays: Sequence[np.ndarray], read: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The memory to write each result to: its array, or a temporary if the array is also read.

    Raises:
        InputError: if two results overlap.
    """
    for number, one in enumerate(arrays):
        for spec, other in zip(specs[:number], arrays, strict=False):
            if np.may_share_memory(one, other):
                fact = f'overlaps output "{spec.name}"'
                raise InputError(explain(f'output "{specs[number].name}"', fact))
    return [
        np.empty_like(one) if any(np.may_share_memory(one, other) for other in read) else one
        for one in arrays
    ]


def _wrong(spec: ValueSpec, fact: str, expected: object, got: object) -> InputError:
    return InputError(explain(f'output "{spec.name}"', fact, expected=expected, got=got))
