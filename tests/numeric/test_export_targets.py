"""Libraries for C with code for several targets, of which a program takes the best one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import stepwell as sw
from stepwell.api import exporting
from stepwell.core import processor
from stepwell.tools.main import main

from .. import harness
from ..harness import cases, close, floats, needs_tool, same, tool
from .c_programs import Build, compiled_c, needs_compiler, results
from .exported_models import cnn, gcn, graph, kinds, mlp, nothing, of_kinds, windows

pytestmark = pytest.mark.skipif(
    processor.architecture() != "x86_64", reason="needs a processor of x86-64"
)
TARGETS = ("x86-64-v2", "x86-64-v4", "x86-64-v3")
MODELS: dict[str, Any] = {
    "mlp": (mlp, lambda: [floats(5, 37)]),
    "batch": (lambda: mlp("batch"), lambda: [floats(3, 37)]),
    "gcn": (gcn, lambda: [graph(), floats(20, 13)]),
    "cnn": (cnn, lambda: [floats(1, 3, 12, 12)]),
    "windows": (windows, lambda: [floats(1, 3, 12, 15)]),
    "kinds": (lambda: kinds("n"), of_kinds),
    "nothing": (nothing, list),
}


def best_here(names: tuple[str, ...] = TARGETS) -> str:
    """The one of some targets that makes the most of this processor."""
    fit = [name for name in names if not processor.missing(list(processor.NEEDS[name]))]
    return max(fit, key=lambda name: len(processor.NEEDS[name]))


@needs_compiler
@pytest.mark.parametrize("name", cases(list(MODELS), ["gcn", "nothing"]))
def test_results_are_those_of_the_code_for_one(name: str, tmp_path: Path) -> None:
    build, make = MODELS[name]
    module, inputs = build(), make()
    folder = sw.export(module, tmp_path, name="model", target=TARGETS).folder
    exe = sw.compile(module, threads=1, target=best_here())
    expected = harness.results(exe(*inputs))
    same(results(folder, module, inputs, expected), expected)


NAMES = """\
#include <stdio.h>
#include "mlp.h"

int main(void) {
  mlp *program = %s;
  puts(program ? mlp_target(program) : mlp_last_error());
  if (program && *mlp_last_error()) puts(mlp_last_error());
  if (mlp_target(NULL)) puts("a target of no program");
  mlp_destroy(program);
  return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize(
    ("weights", "threads"),
    [("linked", 2), pytest.param("file", 1, marks=pytest.mark.slow)],
)
def test_a_program_takes_the_best_code(
    weights: Literal["linked", "file"], threads: int, tmp_path: Path
) -> None:
    """Where none fits, the message names what even the least of the targets needs."""
    emulator = tool("qemu-x86_64-static", "qemu-user-static")
    module, x = mlp(), floats(5, 37)
    folder = sw.export(module, tmp_path, target=TARGETS, weights=weights, threads=threads).folder
    create = "mlp_create(NULL)" if weights == "linked" else 'mlp_open("mlp.weights", NULL)'
    program = compiled_c(folder, NAMES % create, "-static")
    assert Build([]).run(program) == f"{best_here()}\n"
    lacks = "cx16, sse4.1, sse4.2, popcnt"
    refused = f"create: this processor lacks {lacks}, which code for x86-64-v2 needs"
    for cpu, printed in (
        ("Haswell", "x86-64-v3"),
        ("Nehalem", "x86-64-v2"),
        ("Conroe", refused),
    ):
        assert Build([], [emulator, "-cpu", cpu]).run(program) == f"{printed}\n"
    if weights == "file":
        return
    expected = sw.compile(module, threads=1)(x)
    build = Build(["cc"], [emulator, "-cpu", "Nehalem"])
    (found,) = results(folder, module, [x], [expected], build, "-static")
    # Sums of up to 37 products, in another order.
    close(found, expected, 1e-5, 1e-5 * np.abs(expected).max())


WRONG = """\
#include <stdio.h>
#include "rows.h"

int main(void) {
  float x[8] = {0}, y[6];
  int64_t i[3] = {0, 9, 1};
  rows *program = rows_create(NULL);
  rows_inputs inputs = {x, i};
  rows_outputs outputs = {y};
  if (rows_run(program, &inputs, &outputs)) puts(rows_last_error());
  rows_destroy(program);
  return 0;
}
"""


@needs_compiler
def test_failures_of_each_target_have_their_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statuses are numbers of the code for one target, whose failures may be others."""
    emulator = tool("qemu-x86_64-static", "qemu-user-static")
    whole = exporting._compiled

    def compiled(request: Any) -> Any:
        """A program for v3 that has other failures."""
        made = whole(request)
        if made.target.name != "x86-64-v3":
            return made
        interface = made.found.interface
        other = tuple(
            replace(f, kind="check", subject="other", details=0) for f in interface.failures
        )
        interface = replace(interface, failures=(*other, *other))
        return replace(made, found=replace(made.found, interface=interface))

    b = sw.Builder("rows")
    x, i = b.input("x", (4, 2), "f32"), b.input("i", (3,), "i64")
    b.output(b.gather(x, i), name="y")
    monkeypatch.setattr(exporting, "_compiled", compiled)
    folder = sw.export(b.module(), tmp_path, target=["x86-64-v2", "x86-64-v3"]).folder
    program = compiled_c(folder, WRONG, "-static")
    for cpu, message in (
        ("Haswell", "other"),
        ("Nehalem", "expected -4 to 3, got 9"),
    ):
        assert message in Build([], [emulator, "-cpu", cpu]).run(program)


def test_constants_of_the_same_layout_are_stored_once(tmp_path: Path) -> None:
    """Those of two targets are packed for vectors of one width."""
    sizes = {}
    for targets in (["x86-64-v3"], ["x86-64-v3", "haswell"]):
        folder = tmp_path / "-".join(targets)
        sw.export(mlp(), folder, target=targets, weights="file")
        sizes[tuple(targets)] = (folder / "mlp.weights").stat().st_size
    assert sizes["x86-64-v3", "haswell"] == sizes["x86-64-v3",]


@pytest.mark.slow  # the files for CMake are those of libraries for one target
@needs_compiler
@needs_tool("cmake", "cmake")
def test_a_project_of_cmake(tmp_path: Path) -> None:
    module = mlp("batch")
    folder = sw.export(module, tmp_path, target=TARGETS).folder
    (folder / "example.c").write_text(NAMES % "mlp_create(NULL)")
    for arguments in (["-S", ".", "-B", "built"], ["--build", "built"]):
        done = subprocess.run(
            ["cmake", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert Build([]).run(folder / "built" / "mlp_example") == f"{best_here()}\n"


def test_targets_that_cannot_be_chosen_between(tmp_path: Path) -> None:
    for targets, message in (
        ([], "export: no targets, expected one or more names"),
        (
            ["x86-64-v3", "aarch64"],
            "export: .* chooses by the features of x86-64, expected x86-64, got aarch64",
        ),
        (["x86-64-v3", "z80"], 'target: unknown name, expected .*, got "z80"'),
        (3, 'target: unknown name, expected .*, got "3"'),
    ):
        with pytest.raises(sw.TargetError, match=f"^{message}$"):
            sw.export(mlp(), tmp_path / "folder", target=targets)
    assert not (tmp_path / "folder").exists()


def test_the_command(tmp_path: Path) -> None:
    mlp().save(tmp_path / "mlp.mlir")
    chosen = ["--for", "x86-64-v2", "--for", "x86-64-v3", "--for", "x86-64-v2"]
    with pytest.raises(SystemExit) as ended:
        main(["export", str(tmp_path / "mlp.mlir"), "-o", str(tmp_path), *chosen])
    assert not ended.value.code
    page = (tmp_path / "README.md").read_text()
    assert "for x86-64-v3 and x86-64-v2 (x86_64-" in page
    assert "`mlp_target` names" in page
