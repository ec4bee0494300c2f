"""Kernels that were compiled for another program are taken from the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import stepwell as sw
from stepwell.backends.llvm import elf
from stepwell.backends.llvm.assembled import MappedProgram
from stepwell.caching import kernels
from stepwell.caching.folder import Folder
from stepwell.caching.kernels import KernelCache
from stepwell.core.target import named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.runtime import assembling

from ..harness import floats
from .test_compile_cache import folder, known, programs
from .test_interface import (
    Calls,
    computed_sizes,
    outcome,
    registered_functions,
    sizes_that_agree,
)

__all__ = ["folder", "known"]

X = floats(6, 8)
WEIGHTS = {(rows, columns): floats(rows, columns) for rows in (5, 8, 9) for columns in (8, 9)}


def layers(*widths: int, names: str = "layer") -> sw.Module:
    """Dense layers of these widths."""
    b = sw.Builder()
    y = b.input("x", (6, 8))
    for number, width in enumerate(widths):
        w = WEIGHTS[width, 8 if number == 0 else widths[number - 1]]
        y = b.relu(b.dense(y, w, name=f"{names}{number}"))
    b.output(y)
    return b.module()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many kernels of each compilation were known, and how many were made."""
    found: list[tuple[int, int]] = []
    whole = kernels.assembled

    def counting(*args: Any) -> Any:
        found.append((len(args[2]), len(args[3])))
        return whole(*args)

    monkeypatch.setattr(kernels, "assembled", counting)
    return found


def without_cache(module: sw.Module, **options: Any) -> sw.Executable:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPWELL_CACHE", "off")
        return sw.compile(module, **options)


def forget_programs(folder: Folder) -> None:
    for path in programs(folder):
        path.unlink()


def test_a_changed_layer_compiles_that_layer(
    folder: Folder, taken: list[tuple[int, int]], all_tests: bool
) -> None:
    known = layers(9, 8, names="other")
    for module in (layers(9, 5), layers(9, 8), known, layers(8, 9, 8)):
        exe, plain = sw.compile(module), without_cache(module)
        assert isinstance(exe._loaded.program.keep, MappedProgram)
        np.testing.assert_array_equal(exe(X), plain(X))
        assert exe.decisions == plain.decisions
        for stage in ("loops", "llvm") if all_tests else ("llvm",) if module is known else ():
            assert exe.ir(stage) == plain.ir(stage)
    # Names of nodes and of kernels do not count, nor does where a kernel is called.
    assert taken == [(0, 2), (1, 1), (2, 0), (2, 1)]


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("made", [sizes_that_agree, computed_sizes, registered_functions])
def test_kernels_do_the_same_in_another_program(
    made: Callable[[], Calls], threads: int, folder: Folder, taken: list[tuple[int, int]]
) -> None:
    module, calls = made()
    plain = without_cache(module, threads=threads)
    outcomes = [outcome(plain, inputs) for inputs in calls]
    for _ in range(2):
        exe = sw.compile(module, threads=threads)
        assert [outcome(exe, inputs) for inputs in calls] == outcomes
        forget_programs(folder)
    (none, count), (again, left) = taken
    assert (none, again, left) == (0, count, 0)


def test_options_that_decide_about_code_count(folder: Folder, taken: list[tuple[int, int]]) -> None:
    options: Sequence[dict[str, Any]] = [
        {"threads": 1},
        {"threads": 2},
        {"threads": 1, "target": "x86-64"},
        {"threads": 1, "target": named("x86-64-v2")},
    ]
    for chosen in options:
        sw.compile(layers(9), **chosen)
    assert taken == [(0, 1)] * len(options)


def damaged(path: Path, whole: bytes) -> list[bytes]:
    places = np.random.default_rng(0).integers(0, len(whole), 60)
    flips = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in places]
    return [*flips, b"", whole[:100], whole[:-1], whole[::-1]]


def test_damage_is_not_used(folder: Folder, taken: list[tuple[int, int]]) -> None:
    expected = sw.compile(layers(9))(X)
    (path,) = folder.path.glob("*.kernel")
    whole = path.read_bytes()
    cache = KernelCache(folder, "sources", lambda: True)
    image = cache._read(path.name)
    assert image is not None
    for content in damaged(path, whole):
        path.write_bytes(content)
        assert cache._read(path.name) in (None, image)
    forget_programs(folder)
    np.testing.assert_array_equal(sw.compile(layers(9))(X), expected)
    assert path.read_bytes() == whole
    assert taken == [(0, 1), (0, 1)]


def test_a_cache_that_cannot_be_written_costs_time_only(
    folder: Folder, taken: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(kernels, "_write", full)
    np.testing.assert_array_equal(sw.compile(layers(9))(X), without_cache(layers(9))(X))
    monkeypatch.setattr(KernelCache, "_read", lambda *_: None)
    forget_programs(folder)
    sw.compile(layers(9))
    assert list(folder.path.glob("*.kernel")) == []


def test_code_that_needs_a_linker_is_compiled_as_a_whole(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(code: bytes) -> Any:
        raise elf.LinkerError("machine code: needs a linker")

    monkeypatch.setattr(assembling, "image_of", refusing)
    exe = sw.compile(layers(9))
    assert not isinstance(exe._loaded.program.keep, MappedProgram)
    np.testing.assert_array_equal(exe(X), without_cache(layers(9))(X))
    assert len(programs(folder)) == 1
    np.testing.assert_array_equal(sw.compile(layers(9))(X), exe(X))
    assert folder.uses() == 1


def kernel_of(module: sw.Module) -> KernelOp:
    exe = without_cache(module, threads=1)
    made = sw.from_mlir(exe.ir("buffers"), exe.weights("buffers"), trusted=True)
    return next(op for op in made.op.ops if isinstance(op, KernelOp))


def test_the_name_of_a_kernel_has_all_that_it_does() -> None:
    around = ("around",)
    first, other = kernel_of(layers(9)), kernel_of(layers(8))
    name = kernels._name_of(first, around)
    assert name is not None
    assert kernels._name_of(other, around) != name
    assert kernels._name_of(first, ("elsewhere",)) != name
    renamed = first.clone()
    renamed.properties["sym_name"] = other.sym_name
    assert kernels._name_of(renamed, around) == name
    ops: list[Operation] = [op for op in first.walk() if op is not first]
    for number in range(len(ops)):
        changed = first.clone()
        op = [op for op in changed.walk() if op is not changed][number]
        op.attributes["another"] = first.sym_name
        assert kernels._name_of(changed, around) != name


def test_a_kernel_that_refers_to_others_is_left_alone() -> None:
    from xdsl.dialects.builtin import SymbolRefAttr

    kernel = kernel_of(layers(9))
    next(op for op in kernel.walk() if op is not kernel).properties["f"] = SymbolRefAttr("other")
    assert kernels._name_of(kernel, ()) is None


def test_functions_that_several_kernels_use_are_in_each() -> None:
    text = """
    llvm.func internal @helper() { llvm.return }
    llvm.func internal @own() { llvm.call @helper() : () -> () llvm.return }
    llvm.func internal @a() { llvm.call @own() : () -> () llvm.return }
    llvm.func internal @b() { llvm.call @helper() : () -> () llvm.return }
    llvm.func internal @c() { llvm.call @b() : () -> () llvm.return }
    llvm.func @main() {
      llvm.call @a() : () -> () llvm.call @b() : () -> () llvm.call @c() : () -> () llvm.return
    }
    """
    from stepwell.core.ir.parsing import MlirParser
    from stepwell.core.ir.symbols import symbol_of
    from stepwell.core.registry import make_context

    module = MlirParser(make_context(), text).parse_module()
    parts = dict(assembling._taken_out(module, ["a", "b"]))

    def symbols(module: ModuleOp) -> list[str]:
        return [symbol for op in module.ops if (symbol := symbol_of(op)) is not None]

    assert {name: symbols(part) for name, part in parts.items()} == {
        "a": ["stepwell_kernel", "own", "helper"],
        "b": ["stepwell_kernel", "helper"],
    }
    assert symbols(module) == ["helper", "a", "b", "c", "main"]
