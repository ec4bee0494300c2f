"""Models exported for other processors, and run: under emulation, or as WebAssembly."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw

from ..harness import cases, close, floats, package, same, tool
from .c_programs import Build, compiled_c, results
from .exported_models import cnn, gcn, graph, mlp
from .test_exported_calls import BEGINNING, CASES, messages
from .test_exported_memory import BEGINNING as OF_ROWS
from .test_exported_memory import MESSAGE, TURNS, rows

WASI = Path(__file__).with_name("wasi")
ZIG = (sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi")


def emulated(processor: str, *options: str) -> Build:
    """GNU's cross compiler, and the user mode of QEMU."""
    compiler = [f"{processor}-linux-gnu-gcc", "-static"]
    return Build(compiler, [f"qemu-{processor}-static", *options])


BUILDS = {
    "aarch64": emulated("aarch64"),
    "rv64gcv": emulated("riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"),
    "wasm32": Build(ZIG, [sys.executable, str(WASI / "run.py")]),
    "wasm32 in Node": Build(ZIG, ["node", "--no-warnings", str(WASI / "run.cjs")]),
}
"""How programs for a target are made and run."""
DEBIAN = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "riscv64-linux-gnu-gcc": "gcc-riscv64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
    "qemu-riscv64-static": "qemu-user-static",
    "node": "nodejs",
}


TARGETS = [
    # The first use of a linker for WebAssembly compiles its C library.
    pytest.param(name, marks=pytest.mark.slow if "wasm32" in name else ())
    for name in BUILDS
]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """A target, skipped where a tool is missing."""
    build = BUILDS[request.param]
    for name in (build.compiler[0], build.runner[0]):
        if name in DEBIAN:
            tool(name, DEBIAN[name])
    packages = {"wasm32": ("ziglang", "wasmtime"), "wasm32 in Node": ("ziglang",)}
    for name in packages.get(request.param, ()):
        package(name)
    return request.param


MODELS: dict[str, tuple[Callable[[], sw.Module], Callable[[], list[Any]]]] = {
    "mlp": (mlp, lambda: [floats(5, 37)]),
    "gcn": (gcn, lambda: [graph(), floats(20, 13)]),
    "cnn": (cnn, lambda: [floats(1, 3, 12, 12)]),
    "rows": (rows, lambda: [floats(4, 50)]),
}


USUAL = {("gcn", "aarch64"), ("cnn", "rv64gcv")}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(*pair, marks=() if pair in USUAL else pytest.mark.slow, id="-".join(pair))
        for pair in itertools.product(MODELS, BUILDS)
    ],
    indirect=["target"],
)
def test_results_are_those_of_this_machine(name: str, target: str, tmp_path: Path) -> None:
    build, make = MODELS[name]
    module, inputs = build(), make()
    expected = sw.compile(module, threads=1)(*inputs)
    folder = sw.export(module, tmp_path, name=name, target=target.split()[0]).folder
    (found,) = results(folder, module, inputs, [expected], BUILDS[target])
    # Sums of up to 37 products, in another order.
    close(found, expected, 1e-5, 1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("target", cases(list(BUILDS), ["aarch64"]), indirect=True)
def test_errors_are_those_of_this_machine(target: str, tmp_path: Path) -> None:
    folder = sw.export(gcn(), tmp_path, name="gcn", target=target.split()[0]).folder
    program = compiled_c(folder, BEGINNING + messages(), build=BUILDS[target])
    found = BUILDS[target].run(program).splitlines()
    # No size on wasm32 is as large as a quarter of its addresses.
    largest = str(2**30 - 1 if target.startswith("wasm32") else 2**47)
    assert found[: len(CASES)] == [text.replace(str(2**47), largest) for text in CASES.values()]


def gathered() -> sw.Module:
    b = sw.Builder("rows")
    x, places = b.input("x", ("n", 3), "f32"), b.input("places", ("k",), "i64")
    b.output(b.relu(b.gather(x, places)), name="y")
    return b.module()


@pytest.mark.parametrize("target", cases(list(BUILDS), ["aarch64"]), indirect=True)
def test_wide_indices_on_a_narrow_machine(target: str, tmp_path: Path) -> None:
    """What is left of 2^32 + 1 in 32 bits is a valid index."""
    module, x = gathered(), floats(4, 3)
    folder = sw.export(module, tmp_path, target=target.split()[0]).folder
    expected = np.maximum(x[[1, -1]], 0)
    inputs = [x, np.array([1, -1])]
    (found,) = results(folder, module, inputs, [expected], BUILDS[target])
    same(found, expected)
    inputs = [x, np.array([1, 2**32 + 1])]
    with pytest.raises(AssertionError, match=r"expected -4 to 3, got 4294967297"):
        results(folder, module, inputs, [expected], BUILDS[target])


@pytest.mark.parametrize("target", cases(["aarch64", "rv64gcv"], ["rv64gcv"]), indirect=True)
def test_threads_elsewhere(target: str, tmp_path: Path) -> None:
    b = sw.Builder("wide")
    b.output(b.relu(b.dense(b.input("x", (64, 128), "f32"), floats(128, 128))), name="y")
    module, x = b.module(), floats(64, 128)
    folder = sw.export(module, tmp_path, target=target, threads=2).folder
    assert "pthread_create" in (folder / "wide.o").read_bytes().decode("latin-1")
    expected = sw.compile(module, threads=1)(x)
    (found,) = results(folder, module, [x], [expected], BUILDS[target], "-pthread")
    close(found, expected, 1e-5, 1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("target", cases(["aarch64", "rv64gcv"], ["rv64gcv"]), indirect=True)
def test_kernels_without_memory_elsewhere(target: str, tmp_path: Path) -> None:
    folder = sw.export(rows(), tmp_path, target=target, threads=2).folder
    program = compiled_c(folder, OF_ROWS + TURNS, "-pthread", build=BUILDS[target])
    assert BUILDS[target].run(program).splitlines() == ["1", MESSAGE, "0"]


def test_threads_are_refused_without_them(tmp_path: Path) -> None:
    with pytest.raises(sw.CompileError, match=r"no threads on a target with addresses of 32 bits"):
        sw.export(mlp(), tmp_path, target="wasm32", threads=2)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["wasm32 in Node"], indirect=True)
@pytest.mark.parametrize("weights", ["linked", "file"])
def test_javascript_calls_the_module(target: str, weights: Any, tmp_path: Path) -> None:
    """The example prints the first result for zeros."""
    zeros = [np.zeros((2, 37), np.float32)]
    values = {"mlp": (mlp("batch"), zeros)}
    if weights == "linked":
        stored = np.zeros(2, np.float32), np.zeros(2, np.int32), np.array([0, 2, 2], np.int32)
        entries = csr_array(stored, shape=(2, 2))
        values["gcn"] = gcn(), [entries, np.zeros((2, 13), np.float32)]
    for name, (module, inputs) in values.items():
        folder = tmp_path / name
        sw.export(module, folder, name=name, target="wasm32", weights=weights)
        printed = Build((), ["node", "--no-warnings"]).run(folder / "example.mjs")
        expected = sw.compile(module, threads=1)(*inputs).flat[0]
        assert float(printed.partition(" = ")[2]) == pytest.approx(expected, rel=1e-5, abs=1e-6)
