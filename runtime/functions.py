"""How compiled programs call the functions that are registered by name."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType

from ..core.errors import StepwellError, explain
from ..core.functions import registered
from ..core.module import numpy_dtype
from ..dialects import rt

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
_raised = threading.local()


def callback(op: rt.CallPackedOp) -> Any:
    """The function that an operation calls, as compiled code calls it.

    It is given, for each buffer, the address and all sizes, and returns 1 where the function
    raised; the error is then kept for `take_error`.
    """
    name = op.callee.data
    function = registered(name)
    kinds = [cast(MemRefType, value.type) for value in (*op.inputs, *op.outputs)]
    dtypes = [numpy_dtype(kind) for kind in op.element_types]
    ranks = [kind.get_num_dims() for kind in kinds]
    inputs = len(op.inputs)

    def call(words: Any) -> int:
        arrays: list[np.ndarray] = []
        position = 0
        try:
            for dtype, rank in zip(dtypes, ranks, strict=True):
                shape = tuple(words[position + 1 + axis] for axis in range(rank))
                arrays.append(_view(words[position], dtype, shape))
                position += 1 + rank
            for array in arrays[:inputs]:
                array.flags.writeable = False
            function(*arrays)
        except BaseException as error:  # Compiled code stands between here and the caller.
            _raised.error = _wrapped(name, error)
            return 1
        return 0

    return _CALLBACK(call)


def _view(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    raw = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, cast(Any, raw))


def _wrapped(name: str, error: BaseException) -> BaseException:
    if not isinstance(error, Exception):
        return error
    text = f"{type(error).__name__}: {error}"
    result = StepwellError(explain(f'function "{name}"', f"raised {text}"))
    result.__cause__ = error
    return result


def take_error() -> BaseException | None:
    """The error that a registered function raised in this thread, once."""
    error = getattr(_raised, "error", None)
    _raised.error = None
    return error
