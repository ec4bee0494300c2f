"""`Loaded`: machine code with what calls of it need beside their arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.llvm.boundary.plan import ARGUMENTS, LARGEST_ARENA, CallPlan
from ..core.algebra.multiples import misfit
from ..core.boundary import arguments
from ..core.boundary.specs import ValueSpec
from ..core.errors import InputError, StepwellError, explain
from ..dialects.rt.abi import ARENA_TOO_SMALL, WORDS, Word
from . import results
from .frames import Claim, Frame, Frames, no_memory
from .functions import take_error
from .interface import Interface
from .plan import ExecutablePlan, frame_size, is_passed

if TYPE_CHECKING:
    from .device import ProgramDevice

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
"""The type of the entry of a program: it takes a frame and returns a status."""


@dataclass(frozen=True)
class Program:
    """The code of a program, its interface, and the tables of its context.

    Entry n of `constants` is the array of constant n, and that of `functions` what code in slot n
    calls. `entry` is the address of a function that takes a frame and calls the public function,
    `keep` the owner of that code. `device` runs the kernels that this code launches, if it does.
    """

    interface: Interface
    constants: tuple[np.ndarray, ...]
    functions: tuple[Any, ...]
    entry: int
    keep: Any
    device: ProgramDevice | None = None


class Loaded:
    """A program with the tables of its context and the frames of its calls.

    Args:
        program: the program.
        plan: describes it to the compiled call boundary; None where only Python calls it.
        claim: claims a frame, for frames that compiled code claims as well.
    """

    def __init__(
        self, program: Program, plan: ExecutablePlan | None = None, claim: Claim | None = None
    ) -> None:
        self.program, self.plan = program, plan
        self.signature = program.interface.signature
        self._constants = _table(arguments.address(a) for a in program.constants)
        self._functions = _table(
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in program.functions
        )
        self._entry = ENTRY_TYPE(program.entry)
        device = program.device
        self._placed = None if device is None else device.place(program.constants)
        tables = map(ctypes.addressof, (self._constants, self._functions))
        self.frames = Frames(frame_size(self.signature), *tables)
        if plan is not None and claim is not None:
            self.frames.claim = claim
            plan.words[CallPlan.FRAMES] = self.frames.head

    def sizes(self, checked: Sequence[np.ndarray | arguments.Csr]) -> dict[str, int]:
        """The sizes of the symbols in a call.

        Raises:
            InputError: if two dimensions of one name differ.
        """
        sizes = arguments.sizes(self.signature.arguments, checked)
        self._check_equal(sizes)
        return sizes

    def _check_equal(self, sizes: Mapping[str, int]) -> None:
        for left, right in self.signature.equal:
            expected, got = left.evaluate(sizes), right.evaluate(sizes)
            if expected == got:
                continue
            fact = f"dimensions {left} and {right} must agree"
            if (words := misfit(left, right)) is not None:
                fact, expected, size = words
                got = size.evaluate(sizes)
            raise InputError(explain("call", fact, expected=expected, got=got))

    def check_arena(self, sizes: Mapping[str, int]) -> None:
        """Refuse sizes for which address arithmetic in compiled code would overflow."""
        size = self.signature.arena.evaluate(sizes)
        if size > LARGEST_ARENA:
            raise no_memory(f"an arena of {size} bytes")

    def run(
        self,
        checked: Sequence[np.ndarray | arguments.Csr],
        targets: Sequence[np.ndarray],
        sizes: Mapping[str, int],
    ) -> Sequence[np.ndarray]:
        """Run the program; returns the results, in `targets` where callers could allocate them."""
        reported = np.zeros(self.signature.reported, np.int64)
        words: list[int] = []
        for spec, value in zip(self.signature.inputs, checked, strict=True):
            words += _words(spec, value)
        for spec, value in zip(self.signature.outputs, targets, strict=True):
            words += _words(spec, value)
        if reported.size:
            words.append(arguments.address(reported))
        frame = self.frames.take()
        try:
            frame.words[ARGUMENTS : ARGUMENTS + len(words)] = words
            status = self._enter(frame, checked, targets)
            while status == ARENA_TOO_SMALL:
                frame.grow(frame.words[Word.DETAILS])
                status = self._enter(frame, checked, targets)
            if status:
                self.fail(status, frame)
            if not reported.size:
                return targets
            return results.exact(self.signature, targets, sizes, reported, frame.arena)
        finally:
            frame.give_back()

    def _enter(
        self,
        frame: Frame,
        checked: Sequence[np.ndarray | arguments.Csr],
        targets: Sequence[np.ndarray],
    ) -> int:
        """Call compiled code with a frame; returns its status."""
        entry, device = partial(self._entry, frame.address), self.program.device
        if device is None:
            return entry()
        from .device import CallMemory

        arena = frame.words[Word.ARENA], frame.words[Word.ARENA_BYTES]
        given, results = map(_spans, (checked, targets))
        return device.call(entry, self._placed, CallMemory(arena, given, results))

    def fail(self, status: int, frame: Frame) -> None:
        """Raise the error of a call that ended with a status."""
        raised = take_error()
        if raised is not None:
            raise raised
        failures = self.program.interface.failures
        if not 0 < status <= len(failures):
            raise StepwellError(explain("call", "unknown status", got=status))
        raise InputError(failures[status - 1].explain(frame.words[Word.DETAILS : WORDS]))


def _table(addresses: Iterable[int]) -> Any:
    values = list(addresses)
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _spans(values: Iterable[np.ndarray | arguments.Csr]) -> list[tuple[int, int]]:
    """The addresses of arrays, and their bytes."""
    arrays = [array for value in values for array in arguments.parts(value)]
    return [(arguments.address(array), array.nbytes) for array in arrays]


def _words(spec: ValueSpec, value: np.ndarray | arguments.Csr) -> list[int]:
    """The argument words of a buffer: its address, then its symbolic sizes."""
    passed = is_passed(spec)
    if isinstance(value, arguments.Csr):
        entries = len(value.values)
        return [
            arguments.address(value.indptr),
            *([len(value.indptr)] if passed[0] else []),
            arguments.address(value.indices),
            entries,
            arguments.address(value.values),
            entries,
            *([value.shape[1]] if passed[1] else []),
        ]
    sizes = [size for size, is_word in zip(value.shape, passed, strict=True) if is_word]
    return [arguments.address(value), *sizes]
