"""What checks a compilation: the program itself after each pass, or first a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..backends.reference.interpreter import run
from ..core.errors import CompileError, InputError, InternalError, MiscompilationError
from ..core.ir.context import Change
from ..core.ir.module import Module
from ..driver.compilation import Compilation, Observer
from .checking import Checker
from .full_size import LocatingFullSize
from .inspection import inspected
from .reproducer import Reproducing
from .smaller import Smaller, is_large, made_up, operations, smaller

_MOST = 1 << 33
"""More operations than this are too many for NumPy."""


@dataclass(frozen=True)
class LargeProgram:
    """A program that takes too long to be interpreted after each pass.

    `small` is the same program with smaller sizes, `samples` are inputs for the large one.
    """

    small: Smaller
    samples: Sequence[Sequence[Any]]

    @staticmethod
    def of(module: Module, inputs: Sequence[object] | None) -> LargeProgram | None:
        """The program with a smaller one; None if it is not large, or there is no smaller one."""
        if not is_large(module, made_up(module) if inputs is None else [list(inputs)]):
            return None
        small = smaller(module)
        if small is None:
            return None

        def runs(arrays: Sequence[Any]) -> bool:
            try:
                if operations(module, arrays) <= _MOST:
                    run(module, arrays)
            except InputError:
                return False
            return True

        samples = made_up(module, runs, _MOST) if inputs is None else [list(inputs)]
        return LargeProgram(small, samples)


def checker_of(
    compilation: Compilation, inputs: Sequence[object] | None, max_ulp: float | None
) -> Observer:
    """What checks a compilation; of a large program, a smaller one has been checked before.

    Args:
        compilation: the compilation that is about to begin.
        inputs: see `Checker`, also for the next one.
        max_ulp: see there.

    Raises:
        InputError: if the inputs do not fit.
        MiscompilationError: if a pass changes a result of the smaller program.
        InternalError: if a pass crashes on it.
    """
    large = LargeProgram.of(compilation.module, inputs)
    if large is None:
        return Checker(compilation.module, inputs, max_ulp)
    changes = _checked(compilation, large.small, max_ulp)
    return LocatingFullSize(compilation.module, large.samples, max_ulp, changes)


def _checked(compilation: Compilation, small: Smaller, max_ulp: float | None) -> tuple[Change, ...]:
    """Compile the smaller program, and check each pass."""
    checker = Checker(small.module, None, max_ulp)
    observers = (checker, Reproducing())
    try:
        replace(compilation.of_module(small.module), observers=observers).executable(inspected)
    except MiscompilationError as error:
        error.args = (f"{error}; {small}",)
        raise
    except CompileError as error:
        # Otherwise that of the program itself follows, unless it depends on sizes; the user's rules
        # may expect those of the program.
        if isinstance(error, InternalError) and not compilation.request.legalize:
            raise
    return tuple(checker.changes)
