"""Machine code of kernels in the cache, which programs that differ in others have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Region

from ..backends.llvm.images import Image
from ..core.errors import StepwellError
from ..core.ir.context import CompilerContext, PassHook
from ..core.ir.module import Module
from ..core.ir.walks import operations_in
from ..core.processor import identity
from ..core.target import Target
from ..dialects.loop.ops import SCHEDULE, KernelOp
from ..dialects.program import EFFORT
from ..runtime.artefacts.container import ArtefactWriter, mapped_file
from ..runtime.assembling import assembled
from ..runtime.loaded import Program
from .facts import Facts, OpaqueError, facts_of
from .folder import Folder
from .structure import structure_digest

_LOWERED_BY = "convert-loop-to-scf"
"""The pass before which a kernel is final: no later one decides anything about it."""
_ENDING = ".kernel"
_CODE = "code"


class KernelCache(PassHook):
    """Takes kernels from the cache before they are lowered, and keeps those that are not there.

    Args:
        folder: the folder.
        sources: the digest of the compiler.
        is_current: whether this digest is still that of the files.
    """

    def __init__(self, folder: Folder, sources: str, is_current: Callable[[], bool]) -> None:
        self._folder, self._sources, self._is_current = folder, sources, is_current
        self._names: dict[str, str] = {}
        self._known: dict[str, Image] = {}
        """The images of kernels that were found, which the module only declares from then on."""

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Replace the kernels that are known by declarations."""
        if ctx.pass_name != _LOWERED_BY or ctx.target is None:
            return
        around = self._around(ctx, op)
        for kernel in [inner for inner in op.ops if isinstance(inner, KernelOp)]:
            name = _name_of(kernel, around)
            if name is None:
                continue
            symbol = kernel.sym_name.data
            image = self._read(name)
            if image is None:
                self._names[symbol] = name
            else:
                self._known[symbol] = image
                _declare(kernel)

    def code(self, module: Module, target: Target) -> Program:
        """The machine code of a module at stage `llvm`; kernels that were not found are kept.

        Raises:
            CompileError, StepwellError: see `runtime.assembling.assembled`.
        """
        program, made = assembled(module, target, self._known, list(self._names))
        with suppress(OSError):
            for symbol, image in made.items() if self._is_current() else ():
                self._folder.keep(self._names[symbol], partial(_write, image))
        return program

    def _around(self, ctx: CompilerContext, op: ModuleOp) -> Facts:
        """What decides about the code of a kernel, beside the kernel."""
        passes = tuple(map(str, (ctx.step, *ctx.pending)))
        return (
            self._sources,
            identity(),
            facts_of(ctx.target),
            passes,
            str(op.attributes.get(EFFORT)),
        )

    def _read(self, name: str) -> Image | None:
        """The image of an entry; None if there is none, or it is damaged."""
        try:
            with self._folder.read(name) as file:
                archive = mapped_file(name, file)
            return Image.from_dict(bytes(archive.part(_CODE)), archive.manifest["facts"])
        except (OSError, StepwellError, KeyError, TypeError, ValueError, AttributeError):
            return None


def _write(image: Image, file: IO[bytes]) -> None:
    writer = ArtefactWriter(file)
    writer.add(_CODE, image.data)
    writer.close({"facts": image.to_dict()})


def _name_of(kernel: KernelOp, around: Facts) -> str | None:
    """The name of the entry of a kernel; None if something in it is not known, or outside of it."""
    attributes = (attr for op in operations_in(kernel) for attr in op.properties.values())
    if any(isinstance(attr, SymbolRefAttr) for attr in attributes):
        return None
    try:
        found = structure_digest(kernel, named=False, without=("sym_name", SCHEDULE))
    except OpaqueError:
        return None
    return hashlib.sha256(repr((found, around)).encode()).hexdigest() + _ENDING


def _declare(kernel: KernelOp) -> None:
    """Replace a kernel by the declaration of the function that it becomes."""
    types = [argument.type for argument in kernel.body.block.args]
    declared = func.FuncOp.create(
        properties={
            "sym_name": kernel.sym_name,
            "function_type": FunctionType.from_lists(types, []),
            "sym_visibility": StringAttr("private"),
        },
        regions=[Region()],
        location=kernel.location,
    )
    block = kernel.parent
    assert block is not None
    block.insert_op_before(declared, kernel)
    block.erase_op(kernel)
