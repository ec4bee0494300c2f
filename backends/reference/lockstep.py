"""Loops whose iterations run together: operations on arrays of their values.

This is what makes it practical to interpret the nests of real models. It has the results of a run
iteration by iteration, including its errors: where two iterations of a loop access the same element
and one of them writes it, where an access is out of bounds, or where an operation is not known
here, `run` undoes what it did, and the iterations run one by one.

Loops of `scf` do not say that their iterations are independent. The accesses show it: a loop in
which they are not runs in order in each iteration of the loops around it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.interpreter import Interpreter
from xdsl.ir import Operation, SSAValue

from ...core.ir.walks import operations_in
from ...dialects.loop.ops import StoreOp
from .lanes import Conflict
from .listeners import JointListener
from .lockstep_core import TERMINATORS, LockstepRun, UnsuitableError
from .lockstep_loop import LOOP_RULES
from .lockstep_scf import STRUCTURED_RULES, VIEWS, stored_to
from .memory import watchers_of
from .numbers import MEANINGS

_RULES = {**LOOP_RULES, **STRUCTURED_RULES}


class Lockstep:
    """Runs loops of a module, which must not change between runs."""

    def __init__(self) -> None:
        self._one_by_one: set[Operation] = set()
        """The loops whose iterations cannot run together."""
        self._serial: set[Operation] = set()
        """Those of them that can run in order in all iterations of the loops around them."""

    def run(self, interpreter: Interpreter, op: Operation) -> bool:
        """Run all iterations of a loop together, if nothing speaks against it.

        Returns:
            False if they have to run one by one; then no buffer has changed.
        """
        if op in self._one_by_one:
            return False
        if not all(isinstance(one, JointListener) for one in watchers_of(interpreter)):
            return False
        if is_known(op) and run(interpreter, op, self._serial):
            return True
        self._one_by_one.add(op)
        return False


def run(interpreter: Interpreter, op: Operation, serial: set[Operation]) -> bool:
    """Run all iterations of a loop together.

    Args:
        interpreter: has the values from outside of the loop.
        op: the loop.
        serial: loops of `scf` whose iterations depend on others; more are found.

    Returns:
        False if they have to run one by one; then no buffer has changed.
    """
    stores, listeners = _stores(op), watchers_of(interpreter)

    def attempt(*notified: Interpreter.Listener) -> LockstepRun:
        return LockstepRun(interpreter, op, _RULES, stores, serial, notified)

    while op not in serial:
        tried = attempt()
        before = [(buffer, buffer.copy()) for buffer in tried.stored]
        try:
            tried.check_apart()
            tried.run()
            if listeners:
                # They are not notified of what is undone.
                _undo(before)
                attempt(*listeners).run()
            return True
        except Conflict as conflict:
            dependent = tried.open[conflict.level]
        except (UnsuitableError, ArithmeticError, IndexError, TypeError, ValueError):
            dependent = None
        _undo(before)
        if not isinstance(dependent, scf.ForOp):
            return False
        serial.add(dependent)
    return False


def _undo(before: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Restore the elements of buffers."""
    for buffer, elements in before:
        buffer[...] = elements


def is_known(op: Operation) -> bool:
    """Whether all operations in a loop are known here."""
    return all(
        type(one) in _RULES or isinstance(one, TERMINATORS) or one.name in MEANINGS
        for one in operations_in(op)
    )


def _stores(op: Operation) -> list[SSAValue]:
    """The buffers that a loop writes to, each as a whole."""
    found: dict[SSAValue, None] = {}
    for one in operations_in(op):
        buffer = one.buffer if isinstance(one, StoreOp) else stored_to(one)
        if buffer is None:
            continue
        while isinstance(buffer.owner, VIEWS):
            buffer = buffer.owner.operands[0]
        found[buffer] = None
    return list(found)
