"""A model inside the compiler: an MLIR module and the store of its weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..boundary.labels import labelled
from ..boundary.specs import ValueSpec
from ..display import displayed
from ..errors import CompileError, StepwellError, explain, first_line
from ..files.writing import is_device, written

if TYPE_CHECKING:
    from xdsl.dialects import func
    from xdsl.dialects.builtin import ModuleOp

    from ..pipelines.decisions import Decision
    from .public_function import Program
    from .weights import WeightStore


@dataclass(frozen=True)
class Unread:
    """A model that was imported before, and whose IR nobody has looked at yet.

    Args:
        digest: the digest of the module in the compile cache.
        name: the name of the program.
        inputs: its inputs, in order.
        outputs: its results, in order.
        make: imports the model.
    """

    digest: str
    name: str
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[ValueSpec, ...]
    make: Callable[[], Module]


_READING = RLock()
"""Held while a model is imported because somebody looks at its IR."""


class Module:
    """An MLIR module (xDSL's `ModuleOp`) with its weights.

    That of a file which was imported before may be made when somebody first looks at it.

    Args:
        op: the module; its public function is the program.
        weights: the arrays that the IR names.
    """

    def __init__(self, op: ModuleOp, weights: WeightStore | None = None) -> None:
        from .weights import WeightStore

        self._unread: Unread | None = None
        self._made: Module | None = None
        self.op = op
        self.weights = weights if weights is not None else WeightStore()
        self.decisions = ()

    @cached_property
    def op(self) -> ModuleOp:
        """The module in xDSL."""
        return self._read.op

    @cached_property
    def weights(self) -> WeightStore:
        """The arrays that the IR names."""
        return self._read.weights

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """Those that were taken where it was made, which are no part of its text."""
        return self._read.decisions

    @property
    def _read(self) -> Module:
        with _READING:
            if self._made is None:
                assert self._unread is not None
                self._made = self._unread.make()
                # It holds the contents of files, of which the weights are copies now.
                self._unread = None
            return self._made

    @property
    def name(self) -> str:
        """The name of the program.

        Raises:
            CompileError: if there is not one public function.
        """
        return self.program.sym_name.data if (known := unread_of(self)) is None else known.name

    @property
    def main(self) -> func.FuncOp:
        """The public function of a module before stage `llvm`.

        Raises:
            CompileError: if there is none, or more than one.
        """
        from .public_function import main_of

        return main_of(self.op)

    @property
    def program(self) -> Program:
        """The public function of the module, at any stage.

        Raises:
            CompileError: if there is none, or more than one.
        """
        from .public_function import program_of

        return program_of(self.op)

    @property
    def inputs(self) -> list[ValueSpec]:
        """The inputs of the program, in order."""
        if (known := unread_of(self)) is not None:
            return list(known.inputs)
        from .public_function import specs_of

        return specs_of(self.program)[0]

    @property
    def outputs(self) -> list[ValueSpec]:
        """The results of the program, in order."""
        if (known := unread_of(self)) is not None:
            return list(known.outputs)
        from .public_function import specs_of

        return specs_of(self.program)[1]

    def text(self, *, locations: bool = False) -> str:
        """The IR as MLIR text, which states its version."""
        from .printing import module_text

        return module_text(self.op, locations=locations, versioned=True)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return displayed(self)

    def clone(self) -> Module:
        """A deep copy of the IR; the arrays are shared."""
        if (known := unread_of(self)) is not None:
            return made_when_read(known)
        from ..building.creation import copied

        copy = Module(copied(self.op), self.weights.copy())
        copy.decisions = self.decisions
        return copy

    def verify(self) -> None:
        """Verify the module.

        Raises:
            CompileError: with the first fact that does not hold.
        """
        from xdsl.utils.exceptions import VerifyException

        from .dominance import verify_module

        try:
            verify_module(self.op)
        except VerifyException as error:
            raise CompileError(first_line(error)) from error

    def verify_order(self) -> None:
        """Check dominance, which the verification between passes leaves out.

        Raises:
            CompileError: naming the first operation that uses a value too early.
        """
        from xdsl.utils.exceptions import VerifyException

        from .dominance import verify_dominance

        try:
            verify_dominance(self.op)
        except VerifyException as error:
            raise CompileError(first_line(error)) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `model.mlir`, and `model.safetensors` beside it where there are weights.

        To a pipe or a device, such as `/dev/stdout`, only the text is written.

        Raises:
            StepwellError: if the folder cannot be written, and older files are then unharmed; if
                the path is that of the weights.
        """
        try:
            alone = is_device(path) or not len(self.weights)
            beside = path if alone else Path(path).with_suffix(".safetensors")
            if not alone and beside == Path(path):
                fact = f"cannot write {path}: weights are written to this file"
                raise StepwellError(explain("save", fact, expected="another ending"))
            text = self.text(locations=True).encode()
            # The text takes its place last: what can fail has been done by then.
            with written(path) as file:
                file.write(text)
                file.flush()
                if not alone:
                    self.weights.save(beside)
        except OSError as error:
            fact = f"cannot write {path}: {error.strerror}"
            raise StepwellError(explain("save", fact)) from error

    def run(self, *inputs: object) -> Any:
        """Run the module operation by operation, at any stage up to `llvm`.

        Every access to memory is checked, and uninitialised memory holds NaN.

        Returns one array, or a tuple of them where the program has several results.

        Raises:
            CompileError: if the module makes an invalid access.
            InputError: if the arguments do not fit `inputs`.
        """
        from ..registry import interpreter

        return interpreter()(self, inputs)

    def run_reference(self, *inputs: object) -> Any:
        """Run a module at stages up to `scheduled` on NumPy and SciPy, operator by operator.

        Returns one array, or a tuple of them where the program has several results.
        """
        from ..registry import backend

        results = backend("reference")(self, inputs)
        assert isinstance(results, tuple)
        results = tuple(labelled(self.outputs, results))
        return results[0] if len(results) == 1 else results


def made_when_read(unread: Unread) -> Module:
    """A module whose IR is made when somebody looks at it."""
    module = Module.__new__(Module)
    module._unread, module._made = unread, None
    return module


def unread_of(module: Module) -> Unread | None:
    """The model that a module stands for while nobody has looked at its IR; else None."""
    seen = {"op", "weights", "decisions"} & module.__dict__.keys()
    return None if seen else module._unread
