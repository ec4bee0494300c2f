"""Models as libraries for C: the results of the same program in Python, and its errors."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import stepwell as sw
from stepwell.core import processor
from stepwell.core.target import named
from stepwell.tools.main import main

from .. import harness
from ..harness import cases, close, floats, needs_package, needs_tool, same, tool
from .c_programs import HERE, WARNINGS, Build, compiled_c, driver, needs_compiler, results
from .exported_models import cnn, gcn, graph, kinds, mlp, nothing, of_kinds, windows

RISCV = ["-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"]
"""Arguments of QEMU for a processor of RISC-V with vectors."""
MODELS: dict[str, Any] = {
    "mlp": (mlp, lambda: [[floats(5, 37)]]),
    "batch": (lambda: mlp("batch"), lambda: [[floats(3, 37)], [floats(0, 37)]]),
    "gcn": (gcn, lambda: [[graph(), floats(20, 13)]]),
    "cnn": (cnn, lambda: [[floats(1, 3, 12, 12)]]),
    "windows": (windows, lambda: [[floats(1, 3, 12, 15)]]),
    "kinds": (kinds, lambda: [of_kinds()]),
    "kinds of any size": (lambda: kinds("n"), lambda: [of_kinds()]),
    "nothing": (nothing, lambda: [[]]),
}
"""Models, and the arguments of calls."""
USUAL = ["batch", "windows", "kinds of any size", "nothing"]


@needs_compiler
@pytest.mark.parametrize("name", cases(list(MODELS), USUAL))
def test_results_are_those_in_python(name: str, tmp_path: Path) -> None:
    build, make = MODELS[name]
    module = build()
    folder = sw.export(module, tmp_path, name=name.replace(" ", "_")).folder
    exe = sw.compile(module, threads=1)
    for inputs in make():
        expected = harness.results(exe(*inputs))
        same(results(folder, module, inputs, expected), expected)


def chosen(bounded: bool) -> sw.Module:
    """A result of a size that the values determine: with an upper bound, or without one."""
    b = sw.Builder("chosen")
    if bounded:
        x = b.input("x", ("n", 2), "f32")
        kept = b.greater(b.reduce(x, "sum", axes=[1], keepdims=False), 1.0)
        b.output(b.relu(b.compress(x, kept, axis=0)), name="y")
    else:
        zero, one = b.constant(np.array(0, np.int64)), b.constant(np.array(1, np.int64))
        b.output(b.range(zero, b.input("n", (), "i64"), one), name="y")
    return b.module()


@needs_compiler
@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "unbounded"])
def test_results_of_computed_sizes(bounded: bool, tmp_path: Path) -> None:
    sw.export(chosen(bounded), tmp_path, name="chosen")
    fill = (
        "float x[] = {1, 2, 0, 0, 3, 4}; inputs.x.data = x; inputs.x.shape[0] = 3;"
        "inputs.x.shape[1] = 2;"
        if bounded
        else "int64_t n = 6; inputs.n = &n;"
    )
    kind = "float" if bounded else "int64_t"
    main = f"""
#include <stdio.h>
#include "chosen.h"
int main(void) {{
  chosen *program = chosen_create(NULL);
  chosen_inputs inputs;
  chosen_outputs outputs = {{0}};
  {kind} y[6] = {{0}};
  {fill}
  int32_t code = chosen_shapes(&inputs, &outputs);
  printf("%d %d\\n", code, (int)outputs.y.room);
  outputs.y.data = y;
  outputs.y.room = 5;
  code = chosen_run(program, &inputs, &outputs);
  printf("%d %s\\n", code, chosen_last_error());
  outputs.y.room = 6;
  code = chosen_run(program, &inputs, &outputs);
  printf("%d %d %d %d\\n", code, (int)outputs.y.shape[0], (int)y[2], (int)y[3]);
  chosen_destroy(program);
  return 0;
}}
"""
    found = HERE.run(compiled_c(tmp_path, main)).splitlines()
    room = '7 output "y": too little room, expected at least 6, got 5'
    expected = ["0 6", room, "0 2 3 4"] if bounded else ["0 0", room, "0 6 2 3"]
    assert found == expected


OPENING = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mlp.h"
int main(void) {
  static char other[64];
  char *memory = aligned_alloc(64, SIZE);
  FILE *file = fopen("whole", "rb");
  if (fread(memory, 1, SIZE, file) != SIZE) return 1;
  const char *paths[] = {"whole", "short", "foreign", "nowhere", NULL};
  for (int i = 0; i < 5; i++) {
    mlp *program = mlp_open(paths[i], NULL);
    puts(program ? "good" : mlp_last_error());
    mlp_destroy(program);
  }
  mlp *made = mlp_create(memory, SIZE, NULL);
  puts(made ? "good" : mlp_last_error());
  mlp_destroy(made);
  if (!mlp_create(memory, SIZE - 1, NULL)) puts(mlp_last_error());
  if (!mlp_create(memory + 1, SIZE, NULL)) puts(mlp_last_error());
  if (!mlp_create(NULL, SIZE, NULL)) puts(mlp_last_error());
  memcpy(memory, other, 64);
  if (!mlp_create(memory, SIZE, NULL)) puts(mlp_last_error());
  return 0;
}
"""


@needs_compiler
def test_weights_in_a_file(tmp_path: Path) -> None:
    """They are mapped; a missing, shortened or foreign file is refused."""
    module, x = mlp(), floats(5, 37)
    folder = sw.export(module, tmp_path, weights="file").folder
    expected = sw.compile(module, threads=1)(x)
    weights = folder / "mlp.weights"
    text = driver("mlp", module, [x], [expected]).replace(
        "mlp_create(NULL)", 'mlp_open("mlp.weights", NULL)'
    )
    program = compiled_c(folder, text)
    (folder / "inputs.bin").write_bytes(x.tobytes())
    HERE.run(program)
    assert (folder / "outputs.bin").read_bytes() == expected.tobytes()
    data = weights.read_bytes()
    main = f"#define SIZE {len(data)}{OPENING}"
    for name, content in (("whole", data), ("short", data[:-1]), ("foreign", bytes(len(data)))):
        (folder / name).write_bytes(content)
    missing = f"weights: no file of {len(data)} bytes that can be read, got "
    assert HERE.run(compiled_c(folder, main)).splitlines() == [
        "good",
        f'{missing}"short"',
        "weights: are not those of this program",
        f'{missing}"nowhere"',
        "path: is null",
        "good",
        f"weights: wrong number of bytes, expected {len(data)}, got {len(data) - 1}",
        "weights: is not aligned to 64 bytes",
        "weights: is null",
        "weights: are not those of this program",
    ]


@needs_compiler
def test_a_pool_of_threads(tmp_path: Path) -> None:
    """Calls use it, in the child of a fork as well."""
    b = sw.Builder("wide")
    b.output(b.relu(b.dense(b.input("x", (256, 256), "f32"), floats(256, 256))), name="y")
    module, x = b.module(), floats(256, 256)
    folder = sw.export(module, tmp_path, threads=2).folder
    expected = sw.compile(module, threads=2)(x)
    text = driver("wide", module, [x], [expected])
    count = 'FILE *status = fopen("/proc/self/status", "r"); char line[99]; int threads = 0;\n'
    count += 'while (fgets(line, 99, status)) sscanf(line, "Threads: %d", &threads);\n'
    count += "if (threads != 2) return 4;\n"
    child = "pid_t child = fork(); int ended = 0;\n"
    child += "if (child) { waitpid(child, &ended, 0); return ended != 0; }\n"
    again = child + "check(wide_run(program, &inputs, &outputs));\n" + count + "FILE *out"
    text = "#define _DEFAULT_SOURCE\n" + text.replace("FILE *out", again)
    includes = "#include <sys/wait.h>\n#include <unistd.h>\n#include <stdio.h>"
    program = compiled_c(folder, text.replace("#include <stdio.h>", includes), "-pthread")
    (folder / "inputs.bin").write_bytes(x.tobytes())
    HERE.run(program)
    assert (folder / "outputs.bin").read_bytes() == expected.tobytes()


@needs_compiler
def test_the_folder_is_complete(tmp_path: Path) -> None:
    """Both libraries, the example, C++; nothing is needed but the C library."""
    folder = sw.export(gcn(), tmp_path, name="gcn").folder
    libraries = [["libgcn.a"], ["-L.", "-lgcn", "-Wl,-rpath,."], ["gcn.o"]]
    for number, library in enumerate(libraries):
        command = ["cc", *WARNINGS, "example.c", *library, "-lm", "-o", f"example{number}"]
        subprocess.run(command, cwd=folder, check=True)
        assert HERE.run(folder / f"example{number}").startswith("output[0] = ")
    missing = subprocess.run(
        ["nm", "-u", "gcn.o"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert set(missing.stdout.split()) <= {"U", "__tls_get_addr", "aligned_alloc", "free"}
    if shutil.which("c++"):
        command = ["c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "gcn.h"]
        subprocess.run(command, cwd=folder, check=True)


USER = """\
cmake_minimum_required(VERSION 3.13)
project(user C)
add_subdirectory(model)
add_executable(user model/example.c)
target_link_libraries(user mlp_shared)
"""


@needs_compiler
@needs_tool("cmake", "cmake")
@pytest.mark.parametrize(
    ("weights", "threads"), [pytest.param("linked", 1, marks=pytest.mark.slow), ("file", 2)]
)
def test_targets_for_cmake(weights: Any, threads: int, tmp_path: Path) -> None:
    """The example with the static library, and a project around it with the shared one."""
    folder = tmp_path / "model"
    module = mlp("batch")
    # Of the libraries that are there already, none is used.
    for library in sw.export(module, folder, weights=weights, threads=threads).files:
        if library.startswith("lib"):
            (folder / library).unlink()
    (tmp_path / "CMakeLists.txt").write_text(USER)
    for arguments in (["-S", ".", "-B", "built"], ["--build", "built"]):
        done = subprocess.run(
            ["cmake", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    first = sw.compile(module, threads=1)(np.zeros((2, 37), np.float32)).flat[0]
    programs = (tmp_path / "built" / name for name in ("user", "model/mlp_example"))
    for program in programs:
        printed = subprocess.run(
            [program], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        assert float(printed.removeprefix("y[0] = ")) == pytest.approx(first, rel=1e-5)
    assert (tmp_path / "built" / "model" / "libmlp.so").exists()


RUST = """
#[link(name = "gcn", kind = "static")]
#[allow(clashing_extern_declarations)]
extern "C" {}
fn main() {
    let (indptr, indices, values, x, mut y) = ([0, 1, 2], [1, 0], [1.0; 2], [1.0; 26], [0.0; 14]);
    let graph = GraphInput {
        indptr: indptr.as_ptr(), indices: indices.as_ptr(), values: values.as_ptr(),
        shape: [2, 2], entries: 2,
    };
    let features = FeaturesInput { data: x.as_ptr(), shape: [2, 13] };
    let inputs = Inputs { graph, features };
    let output = OutputOutput { data: y.as_mut_ptr(), shape: [0, 0] };
    let mut outputs = Outputs { output };
    unsafe {
        let program = gcn_create(std::ptr::null());
        gcn_shapes(&inputs, &mut outputs);
        let code = gcn_run(program, &inputs, &mut outputs);
        gcn_destroy(program);
        println!("{:?} {} {}", outputs.output.shape, code, y[0] != 0.0 && y[0] == y[7]);
    }
}
"""


@needs_tool("rustc", "rustc")
def test_declarations_for_rust(tmp_path: Path) -> None:
    folder = sw.export(gcn(), tmp_path, name="gcn").folder
    page = (folder / "README.md").read_text().partition("by hand")[2].splitlines()
    text = "\n".join(line[4:] for line in page if line.startswith("    "))
    (folder / "call.rs").write_text(text + RUST)
    command = ["rustc", "-Dwarnings", "-Adead_code", "-Anon_camel_case_types", "call.rs", "-L."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert HERE.run(folder / "call") == "[2, 7] 0 true\n"


@needs_compiler
@pytest.mark.parametrize("target", ["host", "wasm32"])
def test_names_of_a_model_are_no_code(target: str, tmp_path: Path) -> None:
    b = sw.Builder("main")
    x = b.input("x\nfail();", (2, 3), "f32")
    b.output(b.relu(x), name='y"); exit(7); puts("`${fail()}%n')
    folder = sw.export(b.module(), tmp_path, target=target).folder
    if target == "wasm32":
        text = (folder / "example.mjs").read_text()
        assert "// x_fail()_" in text
        assert "`y_)_ exit(7)_ puts(____fail()__n[0] = ${new Float32Array" in text
        return
    command = ["cc", *WARNINGS, "example.c", "model.o", "-lm", "-o", "example"]
    subprocess.run(command, cwd=folder, check=True)
    assert HERE.run(folder / "example") == "y_)_ exit(7)_ puts(____fail()__n[0] = 0\n"


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    module = mlp()
    for arguments, message in (
        ({"name": "a b"}, 'export: wrong name, expected letters, .*, got "a b"'),
        ({"name": "for"}, 'export: wrong name, .*, got "for"'),
        ({"weights": "none"}, 'export: wrong weights, expected "linked" or "file", got "none"'),
        ({"target": "z80"}, 'target: unknown name, expected .*, got "z80"'),
    ):
        with pytest.raises(sw.StepwellError, match=f"^{message}$"):
            sw.export(module, tmp_path / "folder", **arguments)
    assert not (tmp_path / "folder").exists()
    with pytest.raises(sw.CompileError, match=r"^export: not a module, expected .*, got int$"):
        sw.export(3, tmp_path)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(sw.StepwellError, match=r"^cannot write .*file: File exists$"):
        sw.export(module, tmp_path / "file")


def test_without_a_compiler_the_object_file_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exported = sw.export(mlp(), tmp_path, target="x86-64-v3")
    assert exported.files == ("CMakeLists.txt", "README.md", "example.c", "mlp.h", "mlp.o")
    assert exported.note == (
        "no compiler for x86_64-unknown-linux-gnu, so that only the object file is there: link it "
        "yourself, or install stepwell[export]"
    )
    assert "libmlp" not in (tmp_path / "README.md").read_text().partition("## C")[0]
    exported = sw.export(mlp(), tmp_path / "apple", target="apple-m1")
    assert exported.note.endswith("so that only the object file is there: link it yourself")
    assert (tmp_path / "apple" / "mlp.o").read_bytes().startswith(b"\xcf\xfa\xed\xfe")


def exported_functions(library: Path) -> list[str]:
    """The functions of a model that its shared library exports."""
    with library.open("rb") as file:
        symbols = cast("SymbolTableSection", ELFFile(file).get_section_by_name(".dynsym"))
        names = [one.name for one in symbols.iter_symbols() if one["st_shndx"] != "SHN_UNDEF"]
    return sorted(name for name in names if name.startswith("mlp_"))


@pytest.mark.slow  # zig compiles parts of the C library when it is first used
@needs_package("ziglang")
@pytest.mark.parametrize("target", ["x86-64-v3", "aarch64", "rv64gcv"])
def test_the_compiler_of_a_package(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has none, that of `ziglang` links, for other processors as well."""
    module, x = mlp(), floats(5, 37)
    with monkeypatch.context() as changed:
        changed.setattr(shutil, "which", lambda name: None)
        exported = sw.export(module, tmp_path, target=target)
    assert not exported.note
    assert {"libmlp.a", "libmlp.so"} <= set(exported.files)
    functions = ("create", "destroy", "last_error", "run", "shapes")
    assert exported_functions(tmp_path / "libmlp.so") == [f"mlp_{name}" for name in functions]
    processor = named(target).triple.partition("-")[0]
    runner = {"aarch64": ["-cpu", "max"], "riscv64": RISCV}.get(processor, [])
    emulator = f"qemu-{processor}-static"
    if runner:
        tool(emulator, "qemu-user-static")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{processor}-linux-musl", "-static"]
    build = Build(zig, [emulator, *runner] if runner else [])
    expected = sw.compile(module, threads=1)(x)
    (found,) = results(tmp_path, module, [x], [expected], build)
    # Sums of up to 37 products, in another order.
    close(found, expected, 1e-5, 1e-5 * np.abs(expected).max())


REFUSED = """\
#include <stdio.h>
#include "mlp.h"

int main(void) {
  mlp *program = %s;
  puts(program ? "made" : mlp_last_error());
  mlp_destroy(program);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("weights", "threads"),
    [
        ("file", 2),
        *(pytest.param("linked", count, marks=pytest.mark.slow) for count in (1, 2)),
        pytest.param("file", 1, marks=pytest.mark.slow),
    ],
)
def test_a_processor_that_lacks_features_is_named_them(
    weights: Literal["linked", "file"], threads: int, tmp_path: Path
) -> None:
    """Instead of an illegal instruction."""
    emulator = tool("qemu-x86_64-static", "qemu-user-static")
    if processor.architecture() != "x86_64":
        pytest.skip("needs a processor of x86-64")
    target = "x86-64-v4"
    exported = sw.export(mlp(), tmp_path, target=target, weights=weights, threads=threads)
    create = "mlp_create(NULL)" if weights == "linked" else 'mlp_open("mlp.weights", NULL)'
    program = compiled_c(exported.folder, REFUSED % create, "-static")
    lacks = "avx512f, avx512dq, avx512cd, avx512bw, avx512vl"
    for cpu, names in (
        ("Haswell", lacks),
        ("Nehalem", f"fma, movbe, avx, f16c, bmi, avx2, bmi2, {lacks}, lzcnt"),
    ):
        printed = Build([], [emulator, "-cpu", cpu]).run(program)
        fact = f"this processor lacks {names}, which code for {target} needs"
        assert printed == f"create: {fact}\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "cannot write .*out: No space left on device"),
        pytest.param(
            PermissionError(13, "Permission denied"),
            "cannot write .*out: Permission denied",
            marks=pytest.mark.slow,
        ),
        (KeyboardInterrupt(), None),
    ],
    ids=["no space", "no permission", "interrupted"],
)
def test_what_cannot_be_written_leaves_what_was_there(
    error: BaseException, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mlp.h").write_text("before")

    def fail(path: Path, text: str) -> None:
        raise error

    # The object file and the libraries are there by then.
    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(KeyboardInterrupt if message is None else sw.StepwellError, match=message):
        sw.export(mlp(), tmp_path / "out", target="x86-64")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mlp.h"]
    assert (tmp_path / "out" / "mlp.h").read_text() == "before"


@needs_compiler
def test_an_export_removes_files_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that it does not make are those of another model; what is not its own stays."""
    names = ("libmlp.a", "libmlp.so", "mlp.weights", "example.mjs", "mlp.wasm")
    for name in (*names, "notes.txt", "mlp_2.h"):
        (tmp_path / name).write_text("before")
    linked = sw.export(mlp(), tmp_path)
    mine = {"notes.txt", "mlp_2.h"}
    assert {path.name for path in tmp_path.iterdir()} == {*linked.files, *mine}
    assert (tmp_path / "libmlp.so").read_bytes().startswith(b"\x7fELF")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exported = sw.export(mlp(), tmp_path, target="x86-64-v3")
    assert exported.note
    assert {path.name for path in tmp_path.iterdir()} == {*exported.files, *mine}


@pytest.mark.parametrize("place", cases([0, 2, 6, 8, 9], [0, 6, 9]))
def test_an_exchange_of_files_happens_as_a_whole(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error undoes it; a process that is killed leaves no header beside other code."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    before = dict.fromkeys(("mlp.h", "mlp.o", "libmlp.so", "README.md"), "before")
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    replace = os.replace
    states: list[set[str]] = []

    def fail(source: Path, end: Path) -> None:
        states.append({path.name for path in tmp_path.iterdir()})
        if len(states) == place + 1:
            raise KeyboardInterrupt
        replace(source, end)

    monkeypatch.setattr(os, "replace", fail)
    # Four files are moved away, and five come.
    if place == 9:
        files = sw.export(mlp(), tmp_path, target="x86-64-v3").files
        assert {path.name for path in tmp_path.iterdir()} == set(files)
    else:
        with pytest.raises(KeyboardInterrupt):
            sw.export(mlp(), tmp_path, target="x86-64-v3")
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    assert "mlp.h" in states[0]
    assert not any("mlp.h" in state for state in states[1 : place + 1])


def test_a_linker_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("ar", "exit 0"), ("cc", "echo no space left >&2; exit 1")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    with pytest.raises(sw.CompileError, match=r"^export: cc failed: no space left$"):
        sw.export(mlp(), tmp_path / "out", target="x86-64")
    assert not list((tmp_path / "out").iterdir())


@needs_compiler
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (2, 37), "f32"), floats(3, 37)), name="y")
    b.module().save(tmp_path / "my-model.mlir")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(tmp_path / "my-model.mlir"), "-o", str(tmp_path), "--weights-in-file"])
    assert not ended.value.code
    printed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert printed == [
        *("CMakeLists.txt", "README.md", "example.c", "libmy_model.a", "libmy_model.so"),
        *("my_model.h", "my_model.o", "my_model.weights"),
    ]
    assert "my_model_open(" in (tmp_path / "my_model.h").read_text()
    assert (tmp_path / "README.md").read_text().startswith("# my_model\n")
