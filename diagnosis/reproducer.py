"""Reproducer files: the IR before a pass that fails, and everything needed to repeat the failure.

The file is MLIR text. As with `mlir-opt`, the metadata at its end says which passes are to run:

    stepwell-opt --run-reproducer FILE.mlir

Weights are stored beside it (`FILE.safetensors`), as are the inputs of a run with a wrong result
(`FILE.npz`).
"""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from ..core.errors import CompileError, ImportModelError, InternalError, StepwellError, explain
from ..core.files import writing
from ..core.files.reading import read_text
from ..core.ir.context import CompilerContext, PassHook
from ..core.ir.module import Module
from ..core.ir.parsing import MlirParser
from ..core.pipelines.pass_manager import run_steps
from ..core.pipelines.pass_text import pass_text
from ..core.registry import make_context
from ..core.target import Device, Target
from ..driver.compilation import CODE_GENERATION, Compilation, Observer
from ..driver.request import Request
from ..runtime.archives import read_archive, write_archive
from .failures import failure, is_defect

FOLDER = "STEPWELL_REPRODUCERS"
"""The environment variable that names the folder for files written automatically."""
FORMAT = "1"
_PACKAGES = ("stepwell", "xdsl", "llvmlite", "numpy")
_ANCHOR = re.compile(r"\s*builtin\.module\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True)
class Reproducer:
    """The contents of a reproducer file.

    `request` has the module, the target, and as text the passes from the failing one on. `stage` is
    the one that the module has reached ("" if passes run outside of the staircase). The module runs
    on `inputs` after each pass, None if nothing is compared; `machine_code` says whether to
    generate code at the end.
    """

    request: Request
    failure: str = ""
    stage: str = ""
    inputs: Sequence[Any] | None = None
    max_ulp: float | None = None
    machine_code: bool = False
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further notes: the action to blame, the operators in the user's table of rules."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file and those beside it; the text takes its place last.

        Raises:
            StepwellError: if the folder cannot be written; an older file is then unharmed.
        """
        target = Path(path)
        try:
            text = self.text(target.name).encode()
            with writing.written(target) as file:
                file.write(text)
                file.flush()
                module = self.request.module
                if len(module.weights):
                    module.weights.save(target.with_suffix(".safetensors"))
                if self.inputs is not None:
                    write_archive(target.with_suffix(".npz"), module.inputs, self.inputs)
        except OSError as error:
            fact = f"cannot write {target}: {error.strerror or error}"
            raise StepwellError(explain("reproducer", fact)) from error
        return target

    def text(self, name: str) -> str:
        """The text of a file of this name."""
        head = [*self.failure.splitlines()[:1], f"stepwell-opt --run-reproducer {name}"]
        mlir = {
            "pipeline": f"builtin.module({self.request.pipeline})",
            "disable_threading": True,
            "verify_each": True,
        }
        groups = {"mlir_reproducer": mlir, "stepwell_reproducer": self._entries(name)}
        body = StringIO()
        printer = Printer(stream=body)
        printer.print_string("{-#\n  external_resources: {\n")
        for number, (group, entries) in enumerate(groups.items()):
            printer.print_string(f"    {group}: {{\n")
            for place, (key, value) in enumerate(entries.items()):
                printer.print_string(f"      {key}: ")
                if isinstance(value, bool):
                    printer.print_string("true" if value else "false")
                else:
                    printer.print_string_literal(value)
                printer.print_string("\n" if place == len(entries) - 1 else ",\n")
            printer.print_string("    }\n" if number == len(groups) - 1 else "    },\n")
        printer.print_string("  }\n#-}\n")
        comments = "".join(f"// {line}\n" for line in head)
        return f"{comments}{self.request.module.text(locations=True)}\n{body.getvalue()}"

    def _entries(self, name: str) -> dict[str, str | bool]:
        entries: dict[str, str | bool] = {
            "format": FORMAT,
            "command": f"stepwell-opt --run-reproducer {name}",
            "failure": self.failure,
            "stage": self.stage,
            "machine_code": self.machine_code,
        }
        if self.inputs is not None:
            entries["inputs"] = Path(name).with_suffix(".npz").name
        if self.max_ulp is not None:
            entries["max_ulp"] = repr(float(self.max_ulp))
        entries |= self.notes
        for part in fields(Target):
            fact = getattr(self.request.target, part.name)
            if isinstance(fact, Device):
                fact = json.dumps(asdict(fact))
            if part.name != "legalize":
                entries[f"target_{part.name}"] = str(fact)
        # Made-up inputs are deterministic: they come from this seed.
        entries["seed"] = "0"
        return entries | {f"version_{n}": v for n, v in versions().items()}

    def warnings(self) -> list[str]:
        """Messages about what the file cannot contain."""
        rules = self.notes.get("legalize")
        return [f"it was made with user rules for {rules}"] if rules else []


def versions() -> dict[str, str]:
    """The versions that a result may depend on."""
    found = {name: metadata.version(name) for name in _PACKAGES}
    return found | {"python": platform.python_version()}


def from_metadata(
    module: Module, resources: Mapping[str, Mapping[str, str | bool]], path: Path
) -> Reproducer:
    """The reproducer that this metadata describes.

    Raises:
        ImportModelError: if it describes none, or one of another format.
    """
    mlir, own = resources.get("mlir_reproducer"), resources.get("stepwell_reproducer", {})
    pipeline = None if mlir is None else mlir.get("pipeline")
    if not isinstance(pipeline, str):
        hint = "the metadata at the end of the text has no mlir_reproducer"
        raise ImportModelError(explain(str(path), "is not a reproducer", hint=hint))
    if (match := _ANCHOR.fullmatch(pipeline)) is not None:
        pipeline = match[1]
    if (given := own.get("format", FORMAT)) != FORMAT:
        hint = f"it was written by stepwell {own.get('version_stepwell', '?')}"
        fact = "unknown format of a reproducer"
        raise ImportModelError(explain(str(path), fact, expected=FORMAT, got=given, hint=hint))
    try:
        target, ulp = _target(own), own.get("max_ulp")
        limit = None if ulp is None else float(ulp)
    except (KeyError, ValueError) as error:
        fact = f"damaged reproducer: {' '.join(str(error).split())}"
        raise ImportModelError(explain(str(path), fact)) from error
    inputs = own.get("inputs")
    arrays = None
    if isinstance(inputs, str):
        if Path(inputs).name != inputs:
            fact = "damaged reproducer: its inputs are not beside it"
            raise ImportModelError(explain(str(path), fact, expected="a file name", got=inputs))
        arrays = read_archive(path.parent / inputs, module.inputs, str(path))
    return Reproducer(
        Request(module, target, pipeline=pipeline),
        str(own.get("failure", "")),
        str(own.get("stage", "")),
        arrays,
        limit,
        own.get("machine_code") is True,
        {key: str(own[key]) for key in ("action", "legalize") if key in own},
    )


def load(path: str | os.PathLike[str]) -> Reproducer | None:
    """The reproducer in a file; None for other MLIR text.

    Raises:
        ImportModelError: if the file cannot be read, or is damaged.
    """
    from ..frontends.mlir import from_mlir

    module = from_mlir(os.fspath(path), trusted=True)
    text = read_text(path)
    if "mlir_reproducer" not in text:
        return None
    parser = MlirParser(make_context(), text, str(path))
    parser.parse_module()
    return from_metadata(module, parser.external_resources, Path(path))


def differing_versions(resources: Mapping[str, Mapping[str, str | bool]]) -> list[str]:
    """A message for each version that differs from the one the file was written with."""
    own = resources.get("stepwell_reproducer", {})
    known = ((name, own.get(f"version_{name}"), here) for name, here in versions().items())
    return [
        f"it was written with {name} {given}, but {here} is installed"
        for name, given, here in known
        if given not in (None, here)
    ]


def _target(own: Mapping[str, str | bool]) -> Target:
    """The machine that a file was written for; this one if it names none."""
    from ..core.target import host

    if "target_name" not in own:
        return host()
    values: dict[str, Any] = {}
    for part in fields(Target):
        added_later = part.default is not MISSING and f"target_{part.name}" not in own
        if part.name == "legalize" or added_later:
            continue
        text = str(own[f"target_{part.name}"])
        kinds = {"int": int, "bool": lambda t: t == "True", "Device | None": _device}
        kind = kinds.get(str(part.type), str)
        values[part.name] = kind(text)
    return Target(**values)


def _device(text: str) -> Device | None:
    """The device of a target that has one, from its facts as JSON."""
    return None if text == "None" else Device(**json.loads(text))


class Reproducing(Observer):
    """Leaves a reproducer when a pass or code generation crashes, or produces invalid IR."""

    def failed(
        self, error: Exception, ctx: CompilerContext, compilation: Compilation
    ) -> StepwellError | None:
        """The error with the file, and the pass that is to blame, unless code generation is."""
        blamed = internal_error(error, ctx, compilation.module, compilation.start)
        if blamed is not None or ctx.pass_name != CODE_GENERATION or not is_defect(error):
            return blamed
        if isinstance(error, InternalError) and not any(ctx.applied.values()):
            # No pass has run: LLVM refuses what the user wrote.
            return CompileError(str(error))
        before = compilation.as_run(ctx).at("llvm")
        found = replace(reproducer_at(ctx, before, [], "llvm"), machine_code=True)
        return written(error, CODE_GENERATION, found)


@contextmanager
def defects_named(ctx: CompilerContext) -> Iterator[None]:
    """Around passes: a crash becomes an error that names the pass; nothing is written."""
    try:
        yield
    except Exception as error:
        if not is_defect(error):
            raise
        raise InternalError(failure(error, ctx.pass_name).message) from error


class _Keeper(PassHook):
    """Keeps a copy of the module before the last pass."""

    before: Module

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Copy the module."""
        self.before = Module(op.clone(), ctx.weights.copy())


def internal_error(
    error: Exception, ctx: CompilerContext, source: Module, start: str = ""
) -> StepwellError | None:
    """The user-facing error for an exception that only a defect of a pass can cause.

    The passes run again from the source, each of them verified, so that the one that produced
    invalid IR is named; the module before it is written into a file of its own.

    Args:
        error: the exception.
        ctx: the context in which passes ran.
        source: the module before the first pass.
        start: the stage of the source; "" outside of the staircase.

    Returns:
        The error with the pass and the file, or None if no pass is to blame but, say, a user's
        hook.
    """
    if not is_defect(error):
        return None
    begun = [(stage, step) for stage, steps in ctx.applied.items() for step in steps]
    again = make_context(source.weights.copy(), ctx.target)
    again.legalize, again.verify = ctx.legalize, "pass"
    work, keeper, reached = source.clone(), _Keeper(), start
    again.hooks.append(keeper)
    for number, (stage, step) in enumerate(begun):
        if number and stage != begun[number - 1][0]:
            reached = begun[number - 1][0]
        try:
            run_steps(again, work.op, [step], stage)
        except Exception as caught:
            rest = [step for _, step in begun[number:]] + ctx.pending
            return written(caught, step.name, reproducer_at(again, keeper.before, rest, reached))
    return None


def reproducer_at(
    ctx: CompilerContext, before: Module, rest: Sequence[ModulePass], stage: str
) -> Reproducer:
    """The reproducer of a failure of the first of some passes."""
    notes = {"legalize": ", ".join(ctx.legalize)} if ctx.legalize else {}
    target = ctx.target
    if target is None:
        from ..core.target import host

        target = host()
    request = Request(before, target, pipeline=",".join(map(pass_text, rest)))
    return Reproducer(request, stage=stage, notes=notes)


def written(error: Exception, pass_name: str, reproducer: Reproducer) -> InternalError:
    """Write a reproducer into a new folder, and return the error that names it.

    If it cannot be written, the error says so.
    """
    found = failure(error, pass_name)
    result = InternalError(found.message)
    try:
        folder = new_folder(pass_name)
        path = replace(reproducer, failure=found.message).save(folder / "case.mlir")
        result = InternalError(f"{found.message}; reproducer: {path}")
        result.reproducer = path
    except (OSError, StepwellError) as unwritten:
        reason = getattr(unwritten, "strerror", None) or unwritten
        result = InternalError(f"{found.message}; no reproducer could be written: {reason}")
    result.pass_name = pass_name
    return result


def new_folder(pass_name: str) -> Path:
    """A new folder for a reproducer, in `FOLDER` if set, otherwise among temporary files.

    Raises:
        OSError: if it cannot be created.
    """
    parent = os.environ.get(FOLDER) or tempfile.gettempdir()
    name = re.sub(r"[^\w-]", "-", pass_name)
    return Path(tempfile.mkdtemp(prefix=f"stepwell-{name}-", dir=parent))
