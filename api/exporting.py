"""`export`: a module as a library for C, with everything to call it without Python."""

from __future__ import annotations

import functools
import operator
import os
import tempfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xdsl.dialects.llvm import FuncOp

from ..core.boundary.signature import Signature
from ..core.collector import without_collector
from ..core.errors import CompileError, StepwellError, TargetError, UnsupportedError, explain
from ..core.ir.module import Module
from ..core.target import Target, named, needs_of
from ..diagnosis.reproducer import Reproducing
from ..dialects.loop.trace_text import Schedules, traces_text
from ..dialects.rt.abi import PARALLEL_TILES, SYSTEM_ALLOCATE
from ..driver.compilation import Compilation
from ..driver.request import Request
from ..runtime.lowered import Lowered, lowered

if TYPE_CHECKING:
    from ..backends.c.interface import CInterface
    from ..backends.llvm.jit import Effort
    from ..backends.llvm.library.weights import Weights


@dataclass(frozen=True)
class Exported:
    """An exported program: its folder, and the names of the files in it.

    `note` says why there are no libraries, and how to make them; it is empty if there are.
    """

    folder: Path
    files: tuple[str, ...]
    note: str = ""


def export(
    module: Module,
    folder: str | os.PathLike[str],
    name: str | None = None,
    target: str | Target | Sequence[str | Target] = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
    legalize: Mapping[str, Any] | None = None,
    records: str | Path | bool | None = None,
    rounding: str | None = None,
    weights: Literal["linked", "file"] = "linked",
    schedule: Schedules | None = None,
) -> Exported:
    """Compile a module to a library with C functions, which needs neither Python nor this package.

    The folder receives an object file that is complete, a static and a shared library, a header
    that documents the functions, an example, a ``CMakeLists.txt`` and a ``README.md``. See
    `docs/deploying.md`.

    Args:
        module: the module, from a frontend; it is not changed.
        folder: the folder for the files, which is made if there is none.
        name: what names of files and functions begin with; None for the name of the program, or
            "model" if that is "main".
        target: "host", the name of a processor (see `core.target`), or a `Target`. This machine
            need not be able to run code for it. With several of x86-64, the library has code for
            each of them, and a program takes the one that makes the most of its processor.
        threads: the maximum number of threads of a call; 1, the default without a pipeline, for a
            library without threads.
        opt_level, pipeline, legalize, records, rounding, schedule: see `compile`.
        weights: "linked" for weights in the object file, "file" for a file beside it.

    Raises:
        CompileError: if the module cannot be compiled, calls registered functions, or the linker
            fails; `name` is no identifier of C, or there is no such way for weights.
        TargetError: if a target is unknown, or several are not of x86-64.
        StepwellError: if the folder cannot be written.
    """
    if not isinstance(module, Module):
        got = type(module).__name__
        raise CompileError(explain("export", "not a module", expected="stepwell.Module", got=got))
    if weights not in ("linked", "file"):
        expected = '"linked" or "file"'
        raise CompileError(
            explain("export", "wrong weights", expected=expected, got=f'"{weights}"')
        )
    if isinstance(target, str) or not isinstance(target, Sequence):
        target = (target,)
    request = Request(
        module,
        "host",
        threads,
        opt_level,
        pipeline,
        legalize,
        records,
        rounding=rounding,
        schedule=None if schedule is None else traces_text(schedule),
    )
    return exported(request, target, Path(folder), name, weights == "linked")


def exported(
    request: Request,
    targets: Sequence[str | Target],
    folder: Path,
    name: str | None = None,
    linked_weights: bool = True,
) -> Exported:
    """Compile a request to a library for targets, instead of its own; see `export`.

    Raises:
        CompileError, TargetError, StepwellError: see `export`.
    """
    if request.threads is None and request.pipeline is None:
        request = replace(request, threads=1)
    with without_collector():
        programs = [_compiled(replace(request, target=one)) for one in _by_needs(targets)]
        return _write(*_joined(programs, name, linked_weights), folder)


def _by_needs(targets: Sequence[str | Target]) -> Sequence[Target]:
    """Targets, each once, those that need the most features first.

    Raises:
        TargetError: if there is none, one is unknown, or a program cannot choose between them.
    """
    found = list(dict.fromkeys(map(named, targets)))
    if not found:
        raise TargetError(explain("export", "no targets", expected="one or more names"))
    if len(found) == 1:
        return found
    needs = {}
    for target in found:
        features = needs_of(target) if target.triple.startswith("x86_64-") else None
        if features is None or target.triple != found[0].triple:
            fact = "a library with several targets chooses by the features of x86-64"
            raise TargetError(explain("export", fact, expected="x86-64", got=target.name))
        needs[target] = len(features)
    return sorted(found, key=needs.__getitem__, reverse=True)


@dataclass(frozen=True)
class _Program:
    """A program that was compiled for a target: what the library is made of."""

    target: Target
    found: Lowered
    text: str
    effort: Effort
    called: Set[str]
    """The functions that are declared or defined in it."""


def _compiled(request: Request) -> _Program:
    """The program of a request."""
    from ..backends.llvm import jit

    compilation = Compilation.of(request, (Reproducing(),))
    if compilation.target.device is not None:
        fact, got = "a program for a device cannot be exported", compilation.target.name
        raise UnsupportedError(explain("target", fact, expected="a processor", got=got))
    work = compilation.at("llvm")
    found = lowered(work)
    for callee in found.interface.functions:
        fact = f'calls the registered function "{callee.name}", which is one of Python'
        raise UnsupportedError(explain("export", fact))
    called = {op.sym_name.data for op in work.op.ops if isinstance(op, FuncOp)}
    text = jit.llvm_ir(work.op, compilation.target)
    return _Program(compilation.target, found, text, jit.effort_of(work.op), called)


def _signature(programs: Sequence[_Program]) -> Signature:
    """What programs for several targets take and give, with memory for any of them.

    Raises:
        CompileError: if they differ in more than their memory.
    """
    signatures = [program.found.interface.signature for program in programs]
    first = signatures[0]
    for program, other in zip(programs, signatures, strict=True):
        if replace(other, arena=first.arena) != first:
            fact = f"the program for {program.target.name} takes other buffers"
            hint = "export the targets one by one"
            raise CompileError(explain("export", fact, hint=hint))
    arenas = dict.fromkeys(signature.arena for signature in signatures)
    return replace(first, arena=functools.reduce(operator.add, arenas))


def _joined(
    programs: Sequence[_Program], name: str | None, linked_weights: bool
) -> tuple[CInterface, Weights, bytes]:
    """The interface of a library of programs, their constants, and their object file."""
    from ..backends.c.interface import CInterface, checked_prefix, identifier
    from ..backends.llvm.library.code import ProgramText, object_file
    from ..backends.llvm.library.weights import LARGEST_LINKED, Weights

    found = programs[0].found
    if name is None:
        # A function `main` is that of a program in C.
        name = "model" if found.name == "main" else identifier(found.name)
    prefix = checked_prefix(name)
    interface = CInterface(
        prefix=prefix,
        model=prefix if found.name == "main" else found.name,
        targets=tuple(program.target for program in programs),
        signature=_signature(programs),
        failures=tuple(program.found.interface.failures for program in programs),
        pooled=any(PARALLEL_TILES in program.called for program in programs),
        takes_memory=any(SYSTEM_ALLOCATE in program.called for program in programs),
        linked_weights=linked_weights,
    )
    weights = Weights([program.found.constants for program in programs])
    if linked_weights and weights.bytes > LARGEST_LINKED:
        expected = f"at most {LARGEST_LINKED} bytes"
        fact, hint = "too many weights to link", 'weights="file" writes them beside the library'
        error = explain("export", fact, expected=expected, got=weights.bytes, hint=hint)
        raise CompileError(error)
    texts = [ProgramText(program.text, program.effort) for program in programs]
    code = object_file(texts, found.name, interface, weights)
    return interface, weights, code


def _write(interface: CInterface, weights: Weights, code: bytes, folder: Path) -> Exported:
    """Write all files beside their places, then exchange them for those of an earlier export."""
    from ..backends.c.project import possible_files, texts
    from ..backends.c.toolchain import link

    prefix = interface.prefix
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export.") as name:
            begun, before = Path(name, "new"), Path(name, "old")
            begun.mkdir()
            before.mkdir()
            (begun / f"{prefix}.o").write_bytes(code)
            if not interface.linked_weights:
                (begun / f"{prefix}.weights").write_bytes(weights.block())
            note = link(interface, begun)
            made = {path.name for path in begun.iterdir()}
            for file, text in texts(interface, made).items():
                (begun / file).write_text(text)
            files = sorted(path.name for path in begun.iterdir())
            header = f"{prefix}.h"
            others = sorted({*possible_files(prefix), *files} - {header})
            _exchange(folder, begun, before, [header, *others])
    except OSError as error:
        raise StepwellError(f"cannot write {folder}: {error.strerror}") from error
    return Exported(folder, tuple(files), note)


def _exchange(folder: Path, begun: Path, before: Path, names: Sequence[str]) -> None:
    """Move files of these names from `folder` to `before`, then those in `begun` to `folder`.

    The first name, that of the header, goes first and comes last: a process that is killed
    in between leaves no header beside the code of another model. After an error, all is as before.
    """
    moved: list[tuple[Path, Path]] = []
    try:
        for start, end, order in ((folder, before, names), (begun, folder, names[::-1])):
            for name in order:
                if (start / name).is_file():
                    moved.append((start / name, end / name))
                    os.replace(*moved[-1])
    except BaseException:
        for start, end in reversed(moved):
            if end.exists() and not start.exists():
                os.replace(end, start)
        raise
