"""The code of stages on workers: that which they are sent, or compiled for their processor."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core import processor
from stepwell.core.target import host, named
from stepwell.distributed.tasks import StageCode

from .parts import weights


def module() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.matmul(b.input("x", ("n", 7)), b.constant(weights(7, 5), "w"))), name="y")
    return b.module()


def assert_right(exe: sw.Executable) -> None:
    x = weights(9, 7, seed=1)
    np.testing.assert_allclose(exe(x), np.maximum(x @ weights(7, 5), 0), rtol=1e-5, atol=1e-5)


def code_of(program: bytes) -> StageCode:
    return StageCode(program, (), (), (), frozenset(), False)


def pickled(exe: sw.Executable) -> bytes:
    return exe.__reduce__()[1][0]


def is_compiled_anew(code: StageCode) -> bool:
    assert code.exe is code.exe
    return code.exe._artefact is None


x86 = pytest.mark.skipif(processor.architecture() != "x86_64", reason="needs x86-64")


@x86
def test_code_that_the_processor_lacks(tmp_path: Path) -> None:
    """Either of Intel's or of AMD's."""
    targets = ("sapphirerapids", "znver4")
    target = next(one for one in targets if processor.missing(list(processor.NEEDS[one])))
    sw.compile(module(), threads=1).save(tmp_path / "stage.stepwell", targets=[target])
    with pytest.raises(sw.TargetError, match="this processor lacks"):
        sw.load(tmp_path / "stage.stepwell")
    code = code_of((tmp_path / "stage.stepwell").read_bytes())
    assert is_compiled_anew(code)
    assert_right(code.exe)


@x86
def test_code_of_a_host_with_narrow_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled anew where vectors are wider, if that is possible."""
    narrow = replace(named("x86-64"), name="host")
    data = pickled(sw.compile(module(), target=narrow, threads=1))
    assert is_compiled_anew(code_of(data)) == (host().vector_bits > 128)
    assert_right(code_of(data).exe)

    def missing(*_: object) -> Any:
        raise sw.CompileError("load: needs the package xdsl, which is not installed")

    loading = importlib.import_module("stepwell.api.loading")
    monkeypatch.setattr(loading, "recompiled", missing)
    kept = loading.fitted(data)
    assert kept._artefact is not None
    assert_right(kept)


def test_narrow_vectors_of_this_host() -> None:
    """They are what somebody wants, who has changed the target."""
    assert processor.vector_bits() == host().vector_bits
    narrow = replace(host(), vector_bits=128, vector_registers=16)
    code = code_of(pickled(sw.compile(module(), target=narrow, threads=1)))
    assert not is_compiled_anew(code)
    assert_right(code.exe)


@pytest.mark.parametrize("target", ["host", "x86-64-v2"])
def test_code_that_fits(target: str) -> None:
    """Nor is it compiled anew if the target was named, so that results are the same everywhere."""
    if target != "host" and processor.architecture() != "x86_64":
        pytest.skip("needs x86-64")
    code = code_of(pickled(sw.compile(module(), target=target, threads=1)))
    assert not is_compiled_anew(code)
    assert_right(code.exe)
