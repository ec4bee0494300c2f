"""Exported models in C: a driver that calls one on arrays from a file, and how it is run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stepwell as sw
from stepwell.backends.c.interface import c_type, identifiers
from stepwell.core.dtype_names import dtype_named

from ..harness import needs_tool

COMPILER = shutil.which("cc")
needs_compiler = needs_tool("cc", "gcc")
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unused-function")


@dataclass(frozen=True)
class Build:
    """How C is compiled and run for a target."""

    compiler: Sequence[str]
    runner: Sequence[str] = ()

    def executable(self, source: Path, *arguments: str) -> Path:
        """Compile a file of C, and return the path of the program."""
        made = source.with_suffix(".exe")
        command = [*self.compiler, *WARNINGS, "-o", str(made), str(source), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made

    def run(self, program: Path, *arguments: str) -> str:
        """What a program prints."""
        command = [*self.runner, str(program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=program.parent, timeout=60
        )
        assert done.returncode == 0, (done.returncode, done.stderr)
        return done.stdout


HERE = Build([COMPILER or "cc"])


def compiled_c(folder: Path, text: str, *arguments: str, build: Build = HERE) -> Path:
    """A program in C that is linked with the exported model in a folder."""
    (source := folder / "driver.c").write_text(text)
    (code,) = folder.glob("*.o")
    return build.executable(source, f"-I{folder}", str(code), "-lm", *arguments)


def results(
    folder: Path,
    module: sw.Module,
    inputs: Sequence[Any],
    expected: Sequence[np.ndarray],
    build: Build = HERE,
    *arguments: str,
) -> list[np.ndarray]:
    """The results of an exported model on arrays, with the dtypes and shapes of those expected."""
    text = driver(next(folder.glob("*.h")).stem, module, inputs, expected)
    program = compiled_c(folder, text, *arguments, build=build)
    data = b"".join(part.tobytes() for value in inputs for part in parts(value))
    (folder / "inputs.bin").write_bytes(data)
    build.run(program)
    raw = (folder / "outputs.bin").read_bytes()
    found, start = [], 0
    for array in expected:
        part = np.frombuffer(raw[start : start + array.nbytes], array.dtype)
        found.append(part.reshape(array.shape))
        start += array.nbytes
    assert start == len(raw)
    return found


def parts(value: Any) -> list[np.ndarray]:
    """The arrays of an input."""
    if hasattr(value, "indptr"):
        return [value.indptr, value.indices, value.data]
    return [np.ascontiguousarray(value)]


def driver(
    prefix: str, module: sw.Module, inputs: Sequence[Any], expected: Sequence[np.ndarray]
) -> str:
    """A program in C that reads `inputs.bin`, calls the model twice and writes `outputs.bin`."""
    lines: list[str] = []
    names = identifiers(spec.name for spec in module.inputs)
    for name, spec, value in zip(names, module.inputs, inputs, strict=True):
        place = f"inputs.{name}"
        arrays = parts(value)
        if len(arrays) == 3:
            lines += [f"{place}.entries = {len(value.data)};"]
            fields = [f"{place}.{part}" for part in ("indptr", "indices", "values")]
        else:
            symbolic = any(isinstance(size, str) for size in spec.shape)
            fields = [f"{place}.data" if symbolic else place]
        if len(arrays) == 3 or fields[0].endswith(".data"):
            lines += [f"{place}.shape[{axis}] = {size};" for axis, size in enumerate(value.shape)]
        lines += [f"{f} = get(in, {a.nbytes});" for f, a in zip(fields, arrays, strict=True)]
    lines.append(f"check({prefix}_shapes(&inputs, &outputs));")
    ends: list[str] = []
    names = identifiers(spec.name for spec in module.outputs)
    for name, spec, array in zip(names, module.outputs, expected, strict=True):
        place, symbolic = f"outputs.{name}", any(isinstance(s, str) for s in spec.shape)
        field = f"{place}.data" if symbolic else place
        lines.append(f"{field} = malloc({max(1, array.nbytes)});")
        ends += [f"fwrite({field}, 1, {array.nbytes}, out);"]
        if symbolic:
            same = [f"{place}.shape[{axis}] == {size}" for axis, size in enumerate(array.shape)]
            ends.append(f"if (!({' && '.join(same) or 1})) return 2;")
        assert dtype_named(spec.dtype) == array.dtype
        assert c_type(spec.dtype)
    created = f"{prefix}_create(NULL)"
    body = "\n  ".join(lines)
    return f"""\
#include <stdio.h>
#include <stdlib.h>
#include "{prefix}.h"

static void *get(FILE *in, size_t bytes) {{
  void *memory = malloc(bytes + 1);
  if (fread(memory, 1, bytes, in) != bytes) exit(3);
  return memory;
}}

static void check(int32_t code) {{
  if (!code) return;
  fprintf(stderr, "%s\\n", {prefix}_last_error());
  exit(1);
}}

int main(void) {{
  FILE *in = fopen("inputs.bin", "rb");
  {prefix} *program = {created};
  check(!in || !program);
  {prefix}_inputs inputs = {{0}};
  {prefix}_outputs outputs = {{0}};
  {body}
  check({prefix}_run(program, &inputs, &outputs));
  check({prefix}_run(program, &inputs, &outputs));
  FILE *out = fopen("outputs.bin", "wb");
  {chr(10).join(ends)}
  fclose(out);
  {prefix}_destroy(program);
  return 0;
}}
"""
