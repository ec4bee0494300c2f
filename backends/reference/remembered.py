"""Results of functions that need not be computed again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from ...core.building.creation import copied
from ...core.ir.walks import is_same, operations_in
from ...dialects.loop.ops import KernelOp
from ...dialects.rt import ops as rt

CALLS = (rt.CallOp, func.CallOp, llvm.CallOp)
"""Operations that call functions and kernels."""

Key = tuple[Any, ...]
"""What identifies a call of a function: its arguments."""


class Remembered:
    """What functions wrote, for calls of equal functions with equal arguments.

    Most passes leave most functions as they are; these need not be interpreted after each pass. Of
    a function that has changed, only the last form is known. Functions that call others, have
    results, or take anything but arrays and numbers are not remembered.
    """

    def __init__(self) -> None:
        self._forms: dict[str, Operation] = {}
        """A copy of the last form of each function, by name."""
        self._known: dict[Operation, bool] = {}
        """Of the functions that were called, whether they are like that form."""
        self._written: dict[tuple[str, Key], list[tuple[int, np.ndarray]]] = {}

    def begin(self) -> None:
        """Begin a run: compare functions with their last forms, a pass may have changed them."""
        self._known.clear()

    def replay(self, callee: Operation, arguments: Sequence[Any]) -> bool:
        """Write what a call wrote in another run, if it is known from there: see `Replayed`."""
        return False

    def recall(self, callee: Operation, arguments: Sequence[Any]) -> Key | None:
        """Write what an equal call wrote.

        Returns:
            What to give to `keep` after the call, None if there is nothing left to do. Empty if
            the call cannot be remembered.
        """
        key = self._key(callee, arguments)
        found = self._written.get((name_of(callee), key)) if key else None
        if found is None:
            return key
        for place, array in found:
            arguments[place][...] = array
        return None

    def keep(self, callee: Operation, arguments: Sequence[Any], key: Key) -> None:
        """Remember what a call wrote."""
        if key:
            after = [_digest(argument) for argument in arguments]
            changed = (
                n for n, (one, other) in enumerate(zip(key, after, strict=True)) if one != other
            )
            self._written[name_of(callee), key] = [(n, arguments[n].copy()) for n in changed]

    def _key(self, callee: Operation, arguments: Sequence[Any]) -> Key:
        if not isinstance(callee, KernelOp | func.FuncOp):
            return ()
        if not all(isinstance(argument, np.ndarray | int) for argument in arguments):
            return ()
        if callee not in self._known:
            self._known[callee] = self._is_alone(callee)
        if not self._known[callee]:
            return ()
        # Also of results: a call may leave some of their elements as they were.
        return tuple(map(_digest, arguments))

    def _is_alone(self, callee: KernelOp | func.FuncOp) -> bool:
        """Whether a function calls no other one. If it has changed, forget its last form."""
        name = name_of(callee)
        if name not in self._forms or not is_same(self._forms[name], callee):
            self._forms[name] = copied(callee)
            self._written = {k: w for k, w in self._written.items() if k[0] != name}
        returns = len(callee.function_type.outputs) if isinstance(callee, func.FuncOp) else 0
        attributes = (attr for op in operations_in(callee) for attr in op.properties.values())
        return not returns and not any(isinstance(attr, SymbolRefAttr) for attr in attributes)


def name_of(callee: Operation) -> str:
    """The name of a function or a kernel."""
    symbol = callee.properties["sym_name"]
    assert isinstance(symbol, StringAttr)
    return symbol.data


def _digest(argument: np.ndarray | int) -> Any:
    if isinstance(argument, int):
        return argument
    data = np.ascontiguousarray(argument).reshape(-1).view(np.uint8)
    return argument.shape, argument.dtype.str, hashlib.blake2b(data.data, digest_size=16).digest()
