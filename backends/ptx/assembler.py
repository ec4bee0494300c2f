"""`assemble`: machine code of a PTX module by NVIDIA's assembler, and the resources it takes."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import InputError, StepwellError, explain, shortened

_TEXT, _CODE = "input.ptx", "output.cubin"
_KERNEL = re.compile(r"Compiling entry function '(\S+)' for '\w+'")
_COUNTED = {
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spilled_bytes": re.compile(r"(\d+) bytes spill stores"),
    "reloaded_bytes": re.compile(r"(\d+) bytes spill loads"),
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
}
_UNKNOWN = "is not defined for option 'gpu-name'"
_SAID = re.compile(r"ptxas (?:input\.ptx, (line \d+); )?(warning|error|fatal) *: (.*)")


@dataclass(frozen=True)
class Resources:
    """What a kernel takes of a device, by thread and by block.

    Attributes:
        kernel: its name.
        registers: the registers of a thread, of 32 bits each.
        stack_bytes: the local memory of a thread: arrays with computed indices, and spills.
        spilled_bytes: the bytes that a thread stores because registers do not suffice.
        reloaded_bytes: the bytes that it loads again.
        shared_bytes: the shared memory of a block, without what a launch adds.
    """

    kernel: str
    registers: int = 0
    stack_bytes: int = 0
    spilled_bytes: int = 0
    reloaded_bytes: int = 0
    shared_bytes: int = 0

    def __str__(self) -> str:
        spills = f"{self.spilled_bytes} bytes spilled"
        memory = f"{self.stack_bytes} bytes of stack, {self.shared_bytes} of shared memory"
        return f"{self.kernel}: {self.registers} registers, {spills}, {memory}"


@dataclass(frozen=True)
class Assembly:
    """The machine code of a PTX module (see `stepwell.assemble`).

    Attributes:
        processor: the processor that it is for, such as "sm_90".
        kernels: the resources of each kernel.
        messages: the warnings of the assembler.
        code: the code, a file of ELF ("cubin").
    """

    processor: str
    kernels: tuple[Resources, ...]
    messages: tuple[str, ...]
    code: bytes

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.kernels, *self.messages)))


def assemble(ptx: str, processor: str) -> Assembly:
    """Assemble a PTX module with NVIDIA's `ptxas`, which needs neither a GPU nor a driver.

    It is that of the package `nvidia-cuda-nvcc` (``pip install 'stepwell[cuda]'``), or a program of
    this name on the path.

    Args:
        ptx: the text of the module, from anywhere.
        processor: the processor to make code for: that of the text, or a later one.

    Returns:
        The machine code, and the registers, spills and memory of each kernel.

    Raises:
        InputError: if `ptxas` refuses the text, or does not know the processor.
        StepwellError: if there is no `ptxas`.
    """
    program = assembler()
    if program is None:
        fact, hint = "ptxas is not installed", "pip install 'stepwell[cuda]'"
        raise StepwellError(explain("assemble", fact, hint=hint))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, _TEXT).write_text(ptx, encoding="utf-8")
        command = [program, "--verbose", "--gpu-name", processor, "--output-file", _CODE, _TEXT]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        except OSError as error:
            raise StepwellError(explain("assemble", f"{program} cannot be run: {error}")) from error
        said = [found.groups() for found in map(_SAID.match, done.stderr.splitlines()) if found]
        if done.returncode:
            where, _, fact = said[0] if said else (None, "", done.stderr.strip() or "it failed")
            if _UNKNOWN in fact:
                expected = _known_to(program)
                fact = "it does not know this processor"
                raise InputError(explain(f"ptxas for {processor}", fact, expected=expected))
            raise InputError(explain(f"ptxas for {processor}", shortened(fact), origin=where))
        code = Path(folder, _CODE).read_bytes()
    messages = tuple(
        f"{kind}: {fact} ({where})" if where else f"{kind}: {fact}" for where, kind, fact in said
    )
    return Assembly(processor, _resources(done.stderr), messages, code)


def assembler() -> str | None:
    """The path of `ptxas`; None without any."""
    # The package is a namespace that others are part of.
    spec = importlib.util.find_spec("nvidia")
    for place in (spec and spec.submodule_search_locations) or ():
        for found in sorted(Path(place).glob("*/bin/ptxas"), reverse=True):
            return str(found)
    return shutil.which("ptxas")


def _known_to(program: str) -> str | None:
    """The processors that an assembler knows, which it lists by numbers; None where it does not."""
    command = [program, "--list-arch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    numbers = [] if done.returncode else sorted(done.stdout.split(), key=lambda n: (len(n), n))
    return ", ".join(f"sm_{number}" for number in numbers) or None


def _resources(said: str) -> tuple[Resources, ...]:
    """The resources that `ptxas` reports for each kernel."""
    parts = _KERNEL.split(said)
    return tuple(
        Resources(
            name,
            **{
                field: int(found[1])
                for field, pattern in _COUNTED.items()
                if (found := pattern.search(text))
            },
        )
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    )
