"""Programs for a device in files and in the cache: on the emulator, and by a stand-in driver."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.api import cached
from stepwell.caching import sources
from stepwell.caching.folder import Folder
from stepwell.core import cuda
from stepwell.driver.compilation import Compilation
from stepwell.tools.main import main

from ..harness import floats, same
from .stand_in import StandIn

DEVICE = "cuda:sm_90,emulated"
X, W = floats(5, 8), floats(6, 8)


def network() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", (None, 8), "f32"), W, name="w"), name="act"), name="y")
    return b.module()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for an emulated device, in a file."""
    path = tmp_path_factory.mktemp("saved") / "m.stepwell"
    sw.compile(network(), target=DEVICE).save(path)
    return path


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for two processors of GPUs, in a file."""
    path = tmp_path_factory.mktemp("several") / "m.stepwell"
    sw.compile(network()).save(path, targets=["cuda:sm_80", "cuda:sm_90"])
    return path


def test_a_saved_program_runs_on_the_emulator(saved: Path) -> None:
    exe, loaded = sw.compile(network(), target=DEVICE), sw.load(saved)
    for rows in (5, 0, 1):
        same(loaded(X[:rows]), exe(X[:rows]))
    exe(X)
    loaded(X)
    assert [launch.json() for launch in loaded.launches] == [one.json() for one in exe.launches]
    assert (loaded.stages[0], loaded.stages[-1]) == ("optimized", "ptx")
    assert loaded.ir("ptx").count(".entry") == len(loaded.launches)
    same(loaded.run_at("loops", X), loaded(X))
    with zipfile.ZipFile(saved) as archive:
        text = archive.read("code/cuda_sm_90_emulated.ptx").decode()
    assert ".target sm_90\n" in text
    assert str(loaded.verify()).endswith("2 examples give results within 0 ulp")
    again = sw.load(saved, recompile=True)
    same(again(X), exe(X))
    assert again.launches


def test_a_saved_program_takes_new_weights_and_is_pickled(saved: Path) -> None:
    loaded = sw.load(saved)
    before = loaded(X)
    (name,) = loaded.weights("optimized")
    loaded.update({name: 2 * loaded.weights("optimized")[name]})
    np.testing.assert_allclose(loaded(X), 2 * before, rtol=1e-6)
    again = pickle.loads(pickle.dumps(loaded))
    same(again(X), loaded(X))
    assert again.launches


def test_damage_to_the_code_of_a_device_is_found(saved: Path) -> None:
    data, name = bytearray(saved.read_bytes()), "code/cuda_sm_90_emulated.ptx"
    with zipfile.ZipFile(saved) as archive:
        content = archive.read(name)
    data[data.index(content) + len(content) // 2] ^= 1
    copied = saved.with_name("damaged.stepwell")
    copied.write_bytes(data)
    with pytest.raises(sw.ImportModelError, match=f"{name} is damaged: its SHA-256"):
        sw.load(copied)


def test_loading_and_calling_import_no_compiler(saved: Path) -> None:
    np.save(saved.with_name("x.npy"), X)
    code = """
import sys
import numpy as np
import stepwell as sw
exe = sw.load(sys.argv[1])
exe(np.load(sys.argv[2]))
assert exe.launches
print(sorted({"xdsl", "llvmlite", "scipy"} & {name.partition(".")[0] for name in sys.modules}))
"""
    command = [sys.executable, "-W", "error", "-c", code, str(saved), str(saved.with_name("x.npy"))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_program_for_a_gpu_needs_one_or_the_emulator(
    several: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libno-driver.so")
    cuda.driver.cache_clear()
    says = 'expected an NVIDIA GPU; "cuda:sm_90,emulated" runs programs on an emulator; load'
    with pytest.raises(sw.TargetError, match=says):
        sw.load(several)
    loaded = sw.load(several, emulated=True)
    np.testing.assert_allclose(loaded(X), np.maximum(X @ W.T, 0), rtol=1e-5, atol=1e-6)
    assert loaded.launches
    assert loaded.verify().examples == 2


def test_commands_take_such_files(
    saved: Path, several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit):
            main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    assert ".target sm_90" in run("compile", saved, "--emit", "ptx")
    assert "2 examples give results within 0 ulp" in run("verify", saved)
    # The host that made these examples may add in another order than the device.
    verified = run("verify", several, "--emulated")
    assert re.search(r"2 examples give results within \d ulp$", verified)


@pytest.mark.parametrize(
    ("capability", "taken"), [(80, "cuda:sm_80"), (86, "cuda:sm_80"), (90, "cuda:sm_90")]
)
def test_the_best_code_for_the_device_is_taken(
    driver: StandIn, several: Path, capability: int, taken: str
) -> None:
    driver.device(capability=capability)
    loaded = sw.load(several)
    assert loaded._artefact is not None
    assert loaded._artefact.chosen["target"]["name"] == taken
    same(loaded(X), sw.compile(network(), target=DEVICE)(X))
    assert loaded.launches == ()
    assert driver.modules == 1


def test_a_device_that_is_too_old_for_a_file(driver: StandIn, several: Path) -> None:
    driver.device(capability=75)
    says = (
        r"the device is too old, expected sm_90 or later, got sm_75 \(Stand-in\); "
        r"load\(\.\.\., emulated=True\) runs this file on the emulator$"
    )
    with pytest.raises(sw.TargetError, match=says):
        sw.load(several)


def test_a_processor_runs_what_no_device_does(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libno-driver.so")
    cuda.driver.cache_clear()
    sw.load(several, emulated=True).save(tmp_path / "m.stepwell", targets=["cuda:sm_90", "host"])
    loaded = sw.load(tmp_path / "m.stepwell")
    np.testing.assert_allclose(loaded(X), np.maximum(X @ W.T, 0), rtol=1e-5, atol=1e-6)
    assert loaded.launches == ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty cache, for a compiler whose files do not change."""
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    stamp = sources.Stamp("state", 0)
    monkeypatch.setattr(cached, "sources_digest", lambda *_: ("sources", stamp))
    monkeypatch.setattr(cached, "stamp", lambda: stamp)
    return Folder(tmp_path / "cache")


def test_a_program_is_in_the_cache(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    exe = sw.compile(network(), target=DEVICE)
    sw.compile(network())
    monkeypatch.setattr(Compilation, "of", None)
    known = sw.compile(network(), target=DEVICE)
    same(known(X), exe(X))
    assert known.launches
    assert known.stages == exe.stages
    assert sw.compile(network()).launches == (), "the processor is another target"


def test_the_device_that_is_there_is_part_of_the_key(
    driver: StandIn, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe = sw.compile(network(), target="cuda")
    want = exe(X)
    with monkeypatch.context() as patch:
        patch.setattr(Compilation, "of", None)
        same(sw.compile(network(), target="cuda")(X), want)
    driver.device(capability=80)
    cuda.driver.cache_clear()
    other = sw.compile(network(), target="cuda")
    assert ".target sm_80\n" in other.ir("ptx")
    same(other(X), want)
