"""`load`: run a program that was saved, without compiling it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core import processor
from ..core.errors import CompileError, TargetError, explain
from ..core.pipelines.stages import check_stage
from ..driver.request import Request
from ..runtime.artefacts import container
from ..runtime.artefacts.reading import Artefact
from ..runtime.executable import Executable
from ..runtime.making import loaded_executable
from ..runtime.staircase import Deferred

if TYPE_CHECKING:
    from ..core.ir.weights import WeightStore
    from ..core.target import Target
    from ..diagnosis.inspection import Inspection
    from ..driver.compilation import Compilation
    from ..runtime.loaded import Program


def load(path: str | os.PathLike[str], *, recompile: bool = False) -> Executable:
    """Load a program that `Executable.save` wrote.

    Its weights are mapped into memory, and shared by the processes that load the file. A loaded
    program is trusted like any other: the file has machine code, and the digests in it find damage,
    not malice. See `docs/artefacts.md`.

    Args:
        path: the file. It must not be written to while a process uses it; `save` replaces it.
        recompile: whether to compile the program anew, for this machine, of the IR in the file.

    Raises:
        CompileError: if the program calls a registered function that is not found.
        ImportModelError: if the file cannot be read, is damaged, or of another version.
        TargetError: if this machine can run none of the code in the file.
        StepwellError: if the system does not allow the process to run it.
    """
    artefact = Artefact(container.mapped(path))
    if not recompile:
        return loaded_executable(artefact, Stored(artefact))
    from ..core.target import host

    stored = Stored(artefact)
    return stored.compilation(host()).executable(stored.inspection_of)


def restored(data: bytes) -> Executable:
    """The program that was pickled as these bytes.

    Raises:
        ImportModelError: if they are damaged.
        TargetError: if this machine can run none of the code in them.
    """
    artefact = Artefact(container.in_memory(data))
    return loaded_executable(artefact, Stored(artefact))


def recompiled(data: bytes) -> Executable:
    """The program that was pickled as these bytes, compiled anew for this machine.

    Raises:
        ImportModelError: if they are damaged.
    """
    from ..core.target import host

    stored = Stored(Artefact(container.in_memory(data)))
    return stored.compilation(host()).executable(stored.inspection_of)


def fitted(data: bytes) -> Executable:
    """The program that was pickled as these bytes, for this machine.

    It is compiled anew if this machine can run none of its code; or, if it was compiled for "host"
    elsewhere, if vectors are wider here and the compiler is installed.

    Raises:
        ImportModelError: if they are damaged.
    """
    artefact = Artefact(container.in_memory(data))
    stored = Stored(artefact)
    try:
        exe = loaded_executable(artefact, stored)
    except TargetError:
        return recompiled(data)
    if not _is_for_narrower(artefact.target()):
        return exe
    try:
        return recompiled(data)
    except CompileError:
        # The compiler is not installed here.
        return exe


def _is_for_narrower(target: Mapping[str, Any]) -> bool:
    """Whether a target is another host than this one, with narrower vectors."""
    if target["name"] != "host" or target["vector_bits"] >= processor.vector_bits():
        return False
    try:
        from ..core.target import host

        return host().features != target["features"]
    except ModuleNotFoundError:
        return False


class Stored(Deferred):
    """The stages of a saved program, compiled anew of its IR when they are wanted."""

    def __init__(self, artefact: Artefact) -> None:
        super().__init__(lambda: self.inspection_of(self.compilation()))
        self._artefact = artefact

    def compilation(self, target: Target | None = None) -> Compilation:
        """The compilation from the IR in the file, for the target that it was saved for, or
        another one."""
        try:
            from ..core.ir.weights import WeightStore
            from ..driver.compilation import Compilation
            from ..frontends.mlir import from_mlir
        except ModuleNotFoundError as error:
            fact = f"this needs the compiler, and {error.name} is not installed"
            raise CompileError(explain("load", fact)) from error

        text, weights, recipe = self._artefact.source()
        store = WeightStore().with_arrays(weights)
        module = from_mlir(text, store, trusted=True)
        request = Request.of_recipe(module, recipe)
        return Compilation(request if target is None else request.on(target))

    @property
    def inspection_of(self) -> Callable[[Compilation], Inspection]:
        """Makes the stages of a compilation."""
        from ..diagnosis.inspection import Inspection

        return partial(Inspection, restored=restored)

    def text(self, stage: str) -> str:
        """The text of a stage."""
        return super().text(self._known(stage))

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names."""
        return super().weights(self._known(stage))

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage."""
        return super().run(self._known(stage), inputs)

    def updated(
        self, program: Program, weights: Mapping[str, object]
    ) -> tuple[Program, Inspection]:
        """The program with new weights: packed anew, and compiled anew where that is not enough."""
        compilation = self.compilation()
        if self._artefact.chosen["renewable"]:
            compilation = compilation.known()
        return self.inspection_of(compilation).updated(program, weights)

    def restored(self) -> Callable[[bytes], Executable]:
        """The function that makes a program of a saved one."""
        return restored

    def _known(self, stage: str) -> str:
        """A stage, if the file has it, or a stage before it.

        Raises:
            CompileError: if it has only later ones.
        """
        stages = self._artefact.stages
        if check_stage(stage) not in stages:
            fact, expected = "a saved program has none before the one in its file", f'"{stages[0]}"'
            raise CompileError(explain("stage", fact, expected=expected, got=f'"{stage}"'))
        return stage
