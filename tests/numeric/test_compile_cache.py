"""Programs that were compiled before are taken from the cache, and are as if compiled now."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import stepwell as sw
from stepwell.api import cached
from stepwell.backends.llvm.jit import CompiledModule, LinkedObject
from stepwell.caching import sources
from stepwell.caching.folder import Folder
from stepwell.core.pipelines.decisions import Decision
from stepwell.core.target import named
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.runtime import objects
from stepwell.runtime.artefacts import reading
from stepwell.tools.main import main

from ..harness import floats, same
from .test_interface import (
    Calls,
    computed_sizes,
    outcome,
    registered_functions,
    sizes_that_agree,
)

X, W = floats(4, 8), floats(16, 8)


def network(weights: np.ndarray = W) -> sw.Module:
    """A layer, whose weights are packed."""
    b = sw.Builder()
    b.output(b.relu(b.dense(b.input("x", (4, 8)), weights, name="layer"), name="act"), name="y")
    return b.module()


def small(number: float = 2.0) -> sw.Module:
    """A module that is compiled at once."""
    b = sw.Builder()
    b.output(b.mul(b.input("x", (4, 8)), number))
    return b.module()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty cache, for a compiler whose files do not change."""
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    stamp = sources.Stamp("state", 0)
    monkeypatch.setattr(cached, "sources_digest", lambda *_: ("sources", stamp))
    monkeypatch.setattr(cached, "stamp", lambda: stamp)
    return Folder(tmp_path / "cache")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[..., sw.Executable]:
    """`compile`, for a program that has to be in the cache."""

    def compile(*args: Any, **options: Any) -> sw.Executable:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Compilation, "of", None)
            return sw.compile(*args, **options)

    return compile


def programs(folder: Folder) -> list[Path]:
    return sorted(folder.path.glob("*.program")) if folder.path.exists() else []


@pytest.mark.parametrize("made", [sizes_that_agree, computed_sizes, registered_functions])
def test_a_known_program_gives_the_same_results_and_errors(
    made: Callable[[], Calls], folder: Folder, known: Callable[..., sw.Executable]
) -> None:
    module, calls = made()
    exe = sw.compile(module, threads=1, opt_level=0)
    assert (len(programs(folder)), folder.uses()) == (1, 0)
    again = known(module, threads=1, opt_level=0)
    assert (len(programs(folder)), folder.uses()) == (1, 1)
    outcomes = [outcome(exe, inputs) for inputs in calls]
    assert [outcome(again, inputs) for inputs in calls] == outcomes
    assert (again.inputs, again.outputs) == (exe.inputs, exe.outputs)
    assert type(again) is type(exe)


def test_a_known_program_knows_what_a_compiled_one_does(
    folder: Folder, known: Callable[..., sw.Executable], tmp_path: Path, all_tests: bool
) -> None:
    module = network()
    module.decisions = (Decision("model", "was imported", "it was asked for", stage="graph"),)
    exe = sw.compile(module, threads=2, rounding="free")
    again = known(module, threads=2, rounding="free")
    # The module is not that of the program any more.
    module.op.attributes.clear()
    module.main.sym_name = StringAttr("other")
    assert repr(again) == repr(exe)
    assert again.decisions == exe.decisions
    assert again.explain("json") == exe.explain("json")
    assert (again.stages, again.changes) == (exe.stages, exe.changes)
    for stage in ("graph", "scheduled", "llvm-ir") if all_tests else ("llvm-ir",):
        assert again.ir(stage) == exe.ir(stage)
    assert list(again.weights("optimized")) == list(exe.weights("optimized"))
    np.testing.assert_array_equal(again.run_at("fused", X), exe.run_at("fused", X))
    assert str(again.why("act")) == str(exe.why("act"))
    assert [row.name for row in again.profile(X, repeat=2).kernels] == [
        row.name for row in exe.profile(X, repeat=2).kernels
    ]
    exe.save(tmp_path / "a.stepwell")
    again.save(tmp_path / "b.stepwell")
    assert (tmp_path / "a.stepwell").read_bytes() == (tmp_path / "b.stepwell").read_bytes()
    for twin in (copy.copy(again), pickle.loads(pickle.dumps(again))):
        np.testing.assert_array_equal(twin(X), exe(X))
    with pytest.raises(sw.CompileError, match="was not loaded from a file"):
        again.verify()


def test_a_known_program_takes_new_weights(
    folder: Folder, known: Callable[..., sw.Executable], monkeypatch: pytest.MonkeyPatch
) -> None:
    exe = sw.compile(network(), threads=1)
    again = known(network(), threads=1)
    new = {name: 2 * exe.weights("graph")[name] for name in exe.weights("graph")}
    code = again._loaded.program.keep
    exe.update(new)
    again.update(new)
    np.testing.assert_array_equal(again(X), exe(X))
    # The packed constants are replaced, and the machine code stays.
    assert again._loaded.program.keep is code
    assert (again(X) == 2 * known(network(), threads=1)(X)).all()


def test_a_changed_weight_is_another_program(folder: Folder) -> None:
    first, second = sw.compile(small()), sw.compile(small(2.5))
    assert (len(programs(folder)), folder.uses()) == (2, 0)
    assert (first(X) != second(X)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"check": True},
        {"hooks": [sw.PassHook()]},
        {"verify_each": True},
        {"legalize": {}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_observes_passes_compiles(options: dict[str, Any], folder: Folder) -> None:
    sw.compile(small(), **options)
    assert programs(folder) == []


def test_arguments_are_refused_as_without_a_cache(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"target": "z80"}, "target: unknown name"),
        ({"threads": 0}, "wrong threads"),
        ({"opt_level": 7}, "unknown opt_level"),
        ({"rounding": "up"}, "unknown rounding"),
        ({"pipeline": "graph-cse"}, "stops short"),
        ({"records": "/nowhere"}, "no such file"),
        ({"hooks": [1]}, "not a hook"),
        ({"max_ulp": 1.0}, "max_ulp without check"),
    ]
    for options, fact in wrong:
        with pytest.raises(sw.StepwellError, match=fact):
            sw.compile(small(), **options)
    with pytest.raises(sw.CompileError, match="not a module"):
        sw.compile(small().op)
    assert programs(folder) == []
    monkeypatch.setenv("STEPWELL_CACHE_MB", "much")
    with pytest.raises(sw.StepwellError, match="STEPWELL_CACHE_MB: wrong size"):
        sw.compile(small())


def test_other_targets_are_known_by_themselves(
    folder: Folder, known: Callable[..., sw.Executable]
) -> None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("named targets of x86-64 run on it")
    target = named("x86-64")
    same(sw.compile(small(), target)(X), known(small(), target)(X))
    sw.compile(small(), "x86-64")
    assert len(programs(folder)) == 2


def place() -> cached.CachePlace:
    request = Request(network(), threads=1)
    found = cached.place_of(request)
    assert found is not None
    return found


def test_damage_is_not_used(folder: Folder, known: Callable[..., sw.Executable]) -> None:
    """Bits that matter to nobody may differ: those of the padding between members."""
    expected = sw.compile(network(), threads=1, records=False)(X)
    (path,) = programs(folder)
    whole = path.read_bytes()
    used = 0
    for at in np.random.default_rng(0).integers(0, len(whole), 150):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(at) % 8)]) + whole[at + 1 :])
        if (found := place().program()) is not None:
            used += 1
            np.testing.assert_array_equal(found(X), expected)
    assert used < 15
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert place().program() is None
    path.write_bytes(whole[::-1])
    np.testing.assert_array_equal(sw.compile(network(), threads=1, records=False)(X), expected)
    assert path.read_bytes() == whole
    np.testing.assert_array_equal(known(network(), threads=1, records=False)(X), expected)


SPOILT: list[Callable[[Folder, pytest.MonkeyPatch], object]] = [
    lambda folder, patch: folder.path.chmod(0o777),
    lambda folder, patch: patch.setattr(os, "geteuid", lambda: os.getuid() + 1),
    lambda folder, patch: patch.setattr(reading, "ABI", 0),
    lambda folder, patch: patch.setenv("STEPWELL_CACHE", str(programs(folder)[0] / "below")),
]


def test_a_cache_that_cannot_be_used_costs_time_only(folder: Folder) -> None:
    expected = sw.compile(network(), threads=1, records=False)(X)
    for spoil in SPOILT:
        with pytest.MonkeyPatch.context() as patch:
            spoil(folder, patch)
            request = Request(network(), threads=1)
            found = cached.place_of(request)
            assert found is None or found.program() is None
            if spoil is SPOILT[0]:
                exe = sw.compile(network(), threads=1, records=False)
                np.testing.assert_array_equal(exe(X), expected)
            folder.path.chmod(0o700)
    assert place().program() is not None


def test_a_cache_that_is_read_only_is_used(
    folder: Folder, known: Callable[..., sw.Executable], monkeypatch: pytest.MonkeyPatch
) -> None:
    sw.compile(small())

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for method in ("count_use", "keep"):
        monkeypatch.setattr(Folder, method, refused)
    np.testing.assert_array_equal(known(small())(X), 2 * X)
    np.testing.assert_array_equal(sw.compile(small(3.0))(X), 3 * X)


def test_a_full_disk_costs_time_only(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cached.ArtefactWriter, "_write", full)
    np.testing.assert_array_equal(sw.compile(small())(X), 2 * X)
    assert [path.name for path in folder.path.iterdir()] == []


def test_what_changed_meanwhile_is_not_kept(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "stamp", lambda: sources.Stamp("other", 0))
    sw.compile(small())
    assert programs(folder) == []
    monkeypatch.setattr(cached, "sources_digest", lambda *_: None)
    sw.compile(small())
    assert programs(folder) == []


def test_where_images_cannot_be_mapped_object_files_are_linked(
    folder: Folder, known: Callable[..., sw.Executable], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("backends.llvm.images.can_be_mapped", "runtime.artefacts.reading.can_be_mapped"):
        monkeypatch.setattr(f"stepwell.{place}", lambda: False)
    monkeypatch.setattr("stepwell.runtime.artefacts.writing._CODE", ("no system",))
    exe = sw.compile(network(), threads=2)
    again = known(network(), threads=2)
    assert type(exe._loaded.program.keep) is CompiledModule
    assert type(again._loaded.program.keep) is LinkedObject
    np.testing.assert_array_equal(again(X), exe(X))
    assert list(folder.path.glob("*.kernel")) == []


def test_objects_of_another_layout_are_called_by_python(
    folder: Folder, known: Callable[..., sw.Executable]
) -> None:
    sw.compile(small())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "are_known", lambda: False)
        np.testing.assert_array_equal(known(small())(X), 2 * X)
        sw.compile(small(3.0))
    np.testing.assert_array_equal(known(small(3.0))(X), 3 * X)


HIT = """
import sys
import numpy as np
import stepwell as sw
from stepwell.caching import sources
sources._CLOCKS_DIFFER_BY = -(10**18)
module = sw.from_mlir(sys.argv[1])
exe = sw.compile(module)
print(exe(np.load(sys.argv[2])).sum())
print(*sorted({"llvmlite.binding", "stepwell.driver.compilation"} & set(sys.modules)))
"""


def test_another_process_finds_it_without_llvm_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_tests: bool
) -> None:
    """This process fills the cache; one that has another folder loads both."""
    small().save(tmp_path / "network.mlir")
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "_CLOCKS_DIFFER_BY", -(10**18))
    expected = sw.compile(sw.from_mlir(tmp_path / "network.mlir"))(X).sum()
    arguments = [str(tmp_path / "network.mlir"), str(tmp_path / "x.npy")]
    command = [sys.executable, "-W", "error", "-c", HIT, *arguments]

    def found(cache: str) -> list[str]:
        environment = {**os.environ, "STEPWELL_CACHE": str(tmp_path / cache)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.splitlines()

    assert found("cache") == [str(expected), ""]
    if all_tests:
        assert found("other") == [str(expected), "llvmlite.binding stepwell.driver.compilation"]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints."""

    def run(*args: str) -> str:
        with pytest.raises(SystemExit) as stop:
            main([*args])
        printed = capsys.readouterr()
        return printed.err if stop.value.code else printed.out

    return run


def test_a_command_shows_and_clears_it(
    folder: Folder, said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said("cache") == f"{folder.path}\nempty\n"
    for _ in range(2):
        sw.compile(small())
    shown = said("cache")
    assert re.fullmatch(
        r".*\n1 program, \d kernels?\n[\d.]+ KiB of at most 4 GiB\nused 1 time\n", shown
    )
    cleared = said("cache", "--clear")
    assert (
        cleared == f"{folder.path}\n0 programs, 0 kernels\n0 bytes of at most 4 GiB\nused 0 times\n"
    )
    assert list(folder.path.iterdir()) == []
    folder.path.chmod(0o777)
    match = "is not used: others may write to it, expected a folder that only you write to"
    assert match in said("cache")
    monkeypatch.setenv("STEPWELL_CACHE", "off")
    assert said("cache") == "off; STEPWELL_CACHE names a folder for it, or is off\n"
