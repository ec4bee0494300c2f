"""The compiler and linker that make libraries of an object file: the system's, or ziglang's."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import CompileError, explain, first_line
from ...core.target import Target
from .interface import CInterface

_ZIG = "ziglang"
_ON_THIS_MACHINE = ("cc", "gcc", "clang")


def link(interface: CInterface, folder: Path) -> str:
    """Make libraries of the object file in a folder; returns why there are none, and what to do.

    Raises:
        CompileError: if the archiver or the linker fails.
    """
    target, prefix = interface.target, interface.prefix
    tools = toolchain_for(target)
    if tools is None:
        fact = f"no compiler for {target.triple}, so that only the object file is there"
        install = "" if _zig_target(target) is None else ", or install stepwell[export]"
        return f"{fact}: link it yourself{install}"
    code = folder / f"{prefix}.o"
    tools.archive(folder / f"lib{prefix}.a", code)
    if interface.is_wasm:
        # A module whose functions its host calls, `aligned_alloc` among them.
        names = [*interface.functions, "aligned_alloc", "free"]
        exports = [f"-Wl,--export={name}" for name in names]
        output = ["-o", folder / f"{prefix}.wasm"]
        tools.link(["-mexec-model=reactor", "-O2", code, *exports, *output, "-lm"])
        return ""
    # The threads of the pool run code of the library until the process ends.
    threads = ["-pthread", "-Wl,-z,nodelete"] if interface.pooled else []
    output = ["-o", folder / f"lib{prefix}.so"]
    tools.link(["-shared", "-Wl,-z,defs", code, *output, "-lm", *threads])
    return ""


@dataclass(frozen=True)
class Toolchain:
    """Commands for a target, each with its first arguments."""

    compiler: tuple[str, ...]
    archiver: tuple[str, ...]

    def archive(self, library: Path, object_file: Path) -> None:
        """Make a static library.

        Raises:
            CompileError: if the archiver fails.
        """
        _run([*self.archiver, "rcs", str(library), str(object_file)])

    def link(self, arguments: Sequence[str | Path]) -> None:
        """Link.

        Raises:
            CompileError: if the linker fails.
        """
        _run([*self.compiler, *map(str, arguments)])


def toolchain_for(target: Target) -> Toolchain | None:
    """The tools for a target; None without any.

    They are the system's compiler for this machine, GNU's cross compiler for another one, or the
    compiler of the `ziglang` package.
    """
    processor, _, rest = target.triple.partition("-")
    if "linux" in rest:
        own = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
        here = processor == own and sys.platform == "linux"
        gnu = f"{processor}-linux-gnu"
        compilers = [*(_ON_THIS_MACHINE if here else ()), f"{gnu}-gcc"]
        archivers = [*(("ar",) if here else ()), f"{gnu}-ar"]
        compiler, archiver = (_first(names) for names in (compilers, archivers))
        if compiler and archiver:
            return Toolchain((compiler,), (archiver,))
    name = _zig_target(target)
    if name is None or importlib.util.find_spec(_ZIG) is None:
        return None
    zig = (sys.executable, "-m", _ZIG)
    return Toolchain((*zig, "cc", "-target", name), (*zig, "ar"))


def _first(names: Sequence[str]) -> str | None:
    return next((found for name in names if (found := shutil.which(name))), None)


def _zig_target(target: Target) -> str | None:
    """How zig calls a target; None for one whose libraries are made in another way."""
    processor, _, rest = target.triple.partition("-")
    if processor.startswith("wasm"):
        return f"{processor}-wasi"
    return f"{processor}-linux-gnu" if "linux" in rest else None


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(explain("export", f"cannot run {command[0]}: {error}")) from error
    if done.returncode:
        text = first_line(RuntimeError(done.stderr or f"status {done.returncode}"))
        raise CompileError(explain("export", f"{Path(command[0]).name} failed: {text}"))
