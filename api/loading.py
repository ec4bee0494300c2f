"""`load`: run a program that was saved, without compiling it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core import processor
from ..core.errors import CompileError, TargetError, without_compiler
from ..driver.request import Request
from ..runtime.artefacts import container
from ..runtime.artefacts.reading import Artefact
from ..runtime.executable import Executable, executable
from ..runtime.staircase import Origin
from ..runtime.vectorcall import offer

if TYPE_CHECKING:
    from ..diagnosis.inspection import Inspection
    from ..driver.compilation import Compilation


def load(
    path: str | os.PathLike[str], *, recompile: bool = False, emulated: bool = False
) -> Executable:
    """Load a program that `Executable.save` wrote.

    Its weights are mapped into memory, and shared by the processes that load the file. A loaded
    program is trusted like any other: the file has machine code, and the digests in it find damage,
    not malice. See `docs/artefacts.md`.

    Args:
        path: the file. It must not be written to while a process uses it; `save` replaces it.
        recompile: whether to compile the program anew, for this machine, of the IR in the file.
        emulated: whether the emulator runs the kernels of a GPU, whichever the machine has.

    Raises:
        CompileError: if the program calls a registered function that is not found.
        DeviceError: if the driver does not take the kernels of the program.
        ImportModelError: if the file cannot be read, is damaged, or of another version.
        TargetError: if this machine can run none of the code in the file.
        StepwellError: if the system does not allow the process to run it.
    """
    artefact = Artefact(container.mapped(path), emulated)
    return _recompiled(artefact) if recompile else _loaded(artefact)


def restored(data: bytes) -> Executable:
    """The program that was pickled as these bytes.

    Raises:
        ImportModelError: if they are damaged.
        TargetError: if this machine can run none of the code in them.
    """
    return _loaded(Artefact(container.in_memory(data)))


def recompiled(data: bytes) -> Executable:
    """The program that was pickled as these bytes, compiled anew for this machine.

    Raises:
        ImportModelError: if they are damaged.
    """
    return _recompiled(Artefact(container.in_memory(data)))


def fitted(data: bytes) -> Executable:
    """The program that was pickled as these bytes, for this machine.

    It is compiled anew if this machine can run none of its code; or, if it was compiled for "host"
    elsewhere, if vectors are wider here and the compiler is installed.

    Raises:
        ImportModelError: if they are damaged.
    """
    artefact = Artefact(container.in_memory(data))
    try:
        exe = _loaded(artefact)
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


def _loaded(artefact: Artefact) -> Executable:
    """The program of an artefact.

    It is called by compiled code if the artefact has that for the layout of objects here.

    Raises:
        ImportModelError: if the artefact is damaged.
        TargetError: if this machine cannot run the program.
    """
    shipped, program = artefact.boundary(), artefact.program()
    code = None if shipped is None else offer(Executable, *shipped)
    make = partial(_inspection, artefact)
    origin = Origin(make, artefact.decisions, artefact.stages, restored, artefact)
    return executable(program, code, origin)


def _recompiled(artefact: Artefact) -> Executable:
    """The program of an artefact, compiled anew for this machine of the IR in it."""
    compilation = _compilation(artefact)
    from ..core.target import device_named, host
    from ..diagnosis.inspection import inspected

    here, was = host(), compilation.target
    if (device := was.device) is not None:
        is_any = was.name == "cuda" and not device.emulated
        device = device_named(was.name) if is_any else device
        here = replace(here, name=was.name, device=device)
    return compilation.on(here).executable(inspected, restored)[0]


def _inspection(artefact: Artefact) -> Inspection:
    """The stages of the program of an artefact, compiled anew of its IR."""
    compilation = _compilation(artefact)
    from ..diagnosis.inspection import inspected

    return inspected(compilation.known() if artefact.chosen["renewable"] else compilation)


def _compilation(artefact: Artefact) -> Compilation:
    """The compilation from the IR of an artefact, for the target that it was saved for."""
    try:
        from ..core.ir.weights import WeightStore
        from ..driver.compilation import Compilation
        from ..frontends.mlir import from_mlir
    except ModuleNotFoundError as error:
        raise without_compiler("load", error) from error

    text, weights, recipe = artefact.source()
    store = WeightStore().with_arrays(weights)
    return Compilation(Request.of_recipe(from_mlir(text, store, trusted=True), recipe))
