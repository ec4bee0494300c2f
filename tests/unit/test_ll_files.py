"""The files of LLVM IR: modules by themselves, which fit together and with what Python makes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from stepwell.backends.llvm import thread_limit, thread_pool
from stepwell.backends.llvm.boundary import code
from stepwell.backends.llvm.jit import assembly
from stepwell.backends.llvm.library import code as library
from stepwell.backends.llvm.library import features
from stepwell.backends.llvm.library.weights import Weights
from stepwell.backends.llvm.linking import FRAMES, Definitions, linked
from stepwell.backends.llvm.machine import machine
from stepwell.core import processor
from stepwell.core.target import host, named
from stepwell.core.threads import MOST_THREADS
from stepwell.runtime import objects

MACHINE = machine(host(), jit=True)
ROOT = Path(__file__).resolve().parents[2]
LLVM = Path(thread_pool.__file__).parent
FILES = sorted(LLVM.rglob("*.ll"))
POOL = [LLVM / "thread_pool.ll"]


def pool_definitions(triple: str) -> Definitions:
    made = Definitions()
    thread_pool.define(made, triple)
    return made


GROUPS: dict[str, tuple[Sequence[Path], Definitions]] = {
    "boundary": (code._FILES, code._definitions(objects.layout())),
    **{
        f"pool on {system}": (
            [*thread_pool.files(triple), thread_limit.FILE],
            pool_definitions(triple),
        )
        for system, triple in (("linux", "x86_64-linux"), ("elsewhere", "aarch64-darwin"))
    },
    "library": (
        [*library._FILES, FRAMES, features.FILE, library._MAPPING],
        library.definitions_for(host(), Weights(()), False, False),
    ),
    "library whose kernels take memory": (
        [
            *(*library._FILES, FRAMES, library._LOCALS, library._TILES),
            *thread_pool.files("x86_64-linux"),
        ],
        library.definitions_for(named("x86-64"), Weights(()), True, True),
    ),
}


def engine_of(module: Any) -> Any:
    engine = llvm.create_mcjit_compiler(module, machine(host(), jit=True))
    engine.finalize_object()
    return engine


def parsed(file: Path) -> Any:
    module = llvm.parse_assembly(file.read_text())
    module.verify()
    return module


def test_each_thread_has_a_ticket() -> None:
    tickets = parsed(POOL[0]).get_global_variable("tickets").global_value_type
    assert str(tickets) == f"[{MOST_THREADS} x [8 x i64]]"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_is_a_module(file: Path) -> None:
    module = parsed(file)
    assert any(not function.is_declaration for function in module.functions)
    assert file.read_text().startswith(";;; "), "it says what it is"


def test_no_other_ir_is_text() -> None:
    """What is put together from text in Python is read by no tool before it runs."""
    rooms = ("backends", "conversions", "core", "dialects", "runtime")
    written = [
        path.name
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"^(define|declare) .*@", path.read_text(), re.MULTILINE)
    ]
    assert not written


def test_each_is_used() -> None:
    assert {file for files, _ in GROUPS.values() for file in files} == set(FILES)


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_declared_is_defined_with_the_same_type(group: str) -> None:
    files, definitions = GROUPS[group]
    modules = [llvm.parse_assembly(str(definitions.module)), *map(parsed, files)]
    defined = {f.name: f for m in modules for f in m.functions if not f.is_declaration}
    declared = [f for m in modules for f in m.functions if f.is_declaration]
    for function in declared:
        if function.name in defined:
            expected = defined[function.name].global_value_type
            assert str(function.global_value_type) == str(expected), function.name
    needed = {f.name for f in declared} | set(library._REDIRECTED.values())
    unused = {f.name for f in modules[0].functions} - needed
    assert not unused, "what Python makes is declared somewhere"


@pytest.mark.parametrize("group", [g for g in GROUPS if g != "pool on elsewhere"])
def test_what_is_left_is_in_the_process(group: str) -> None:
    files, definitions = GROUPS[group]
    module = linked(files, definitions, (), MACHINE)
    for function in module.functions:
        name = function.name
        if function.is_declaration and not name.startswith(("llvm.", "PyArray_")):
            assert hasattr(ctypes.pythonapi, name) or hasattr(ctypes.CDLL(None), name), name


def test_only_what_is_exported_is_seen() -> None:
    module = linked(*GROUPS["boundary"], ("stepwell_call",), MACHINE)
    seen = [
        f.name
        for f in module.functions
        if not f.is_declaration and f.linkage == llvm.Linkage.external
    ]
    assert seen == ["stepwell_call"]


def test_definitions_are_what_they_say(tmp_path: Path) -> None:
    made = Definitions()
    made.number("thirty", 30, 32)
    made.table("places", ["here", "there", "offset"], {"offset": "found"})
    made.place("further", 16)
    made.field("third", 16)
    (tmp_path / "empty.ll").write_text("")
    names = [*(function.name for function in made.module.functions), "places"]
    module = linked([tmp_path / "empty.ll"], made, names, MACHINE)
    assert module.triple == host().triple
    engine = engine_of(module)

    def call(name: str, kind: Any, *values: int) -> int:
        function = ctypes.CFUNCTYPE(kind, *[ctypes.c_void_p] * len(values))
        return function(engine.get_function_address(name))(*values)

    words = (ctypes.c_int64 * 3)(5, 6, 7)
    at = ctypes.addressof(words)
    ctypes.c_int64.from_address(engine.get_global_value_address("places") + 16).value = 8
    assert call("found", ctypes.c_void_p, at) == 6
    assert call("thirty", ctypes.c_int32) == 30
    ctypes.c_int64.from_address(engine.get_global_value_address("places") + 8).value = 1 << 40
    assert call("here", ctypes.c_void_p) is None
    assert call("there", ctypes.c_void_p) == 1 << 40
    assert call("further", ctypes.c_void_p, at) == at + 16
    assert call("third", ctypes.c_int64, at) == 7


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("x86-64-v3", "pause"), ("neoverse-n1", "hint|yield"), ("rv64gcv", "ret")],
)
def test_a_pause_is_an_instruction_of_the_processor(target: str, instruction: str) -> None:
    text = str(pool_definitions(named(target).triple).module).replace("alwaysinline", "noinline")
    assert re.search(rf"^pause:.*?\b({instruction})\b", assembly(text, named(target)), re.M | re.S)


@pytest.mark.skipif(processor.architecture() != "x86_64", reason="not a processor of x86-64")
def test_features_are_those_that_the_system_reports() -> None:
    """Also that no target of x86-64 needs a feature without a bit."""
    words = (ctypes.c_uint32 * len(features._WORDS))()
    module = linked([features.FILE], Definitions(), ["read_features"], MACHINE)
    engine = engine_of(module)
    address = engine.get_function_address("read_features")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(words))
    found = {
        name: bool(word & 1 << bit)
        for word, names in zip(words, features._WORDS, strict=True)
        for bit, name in names.items()
    }
    here = processor._features_here()
    assert found == {name: processor._plain(name) in here for name in found}
    assert {name for needs in processor.NEEDS.values() for name in needs} <= found.keys()
