"""The environment states the processor that a process runs on (`STEPWELL_HOST`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core import processor

OLDEST, OLDER = "x86-64", "x86-64-v3"

pytestmark = pytest.mark.skipif(processor.architecture() != "x86_64", reason="needs an x86-64")


def under(stated: str, script: str, *args: str | Path, **environment: str) -> str:
    """What a script prints, or the last line of its error, where the environment states a
    processor."""
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"STEPWELL_HOST": stated} | environment,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def program() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (5, 40))
    b.output(b.exp(x @ np.ones((40, 33), np.float32)), name="y")
    return b.module()


DETECTED = [
    *((OLDEST, 128), (OLDER, 256)),
    pytest.param("znver3", 256, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("stated", "bits"), DETECTED)
def test_detection(stated: str, bits: int) -> None:
    script = """if True:
        from stepwell.core import processor
        from stepwell.core.instructions import SCALE
        from stepwell.core.target import host
        print(host().cpu, host().vector_bits, processor.vector_bits(), host().has(SCALE))
        print(processor.missing(["sse2"]), processor.missing(["avx512f"]))"""
    if processor.missing(list(processor.NEEDS[stated])):
        pytest.skip(f"needs a processor that can be {stated}")
    assert under(stated, script) == f"{stated} {bits} {bits} False\n[] ['avx512f']"


def test_programs_are_for_this_processor(tmp_path: Path) -> None:
    """By default; one for a newer processor is refused, whether it is compiled or loaded."""
    if processor.missing(list(processor.NEEDS[OLDER])):
        pytest.skip(f"needs a processor with the features of {OLDER}")
    program().save(tmp_path / "m.mlir")
    sw.compile(program(), target=OLDER).save(tmp_path / "m.stepwell")
    script = """if True:
        import sys
        import numpy as np
        import stepwell as sw
        module, x = sw.from_mlir(sys.argv[1]), np.zeros((5, 40), np.float32)
        for newer in (lambda: sw.compile(module, target="x86-64-v3"), lambda: sw.load(sys.argv[2])):
            try:
                newer()(x)
            except sw.StepwellError as error:
                print(error)
        print(sw.compile(module).ir("asm"))"""
    printed = under(OLDEST, script, tmp_path / "m.mlir", tmp_path / "m.stepwell")
    compiled, loaded, assembly = printed.split("\n", 2)
    assert f"{OLDER}: cannot run here, expected cx16, got {OLDEST}" in compiled
    assert "avx2" in loaded
    assert "xmm" in assembly
    assert "ymm" not in assembly


def test_caches_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_tests: bool) -> None:
    """This process fills the cache. A hit loads no LLVM."""
    script = """if True:
        import sys, stepwell as sw
        sw.compile(sw.from_mlir(sys.argv[1]), opt_level=0)
        print("llvmlite" not in sys.modules)"""
    program().save(tmp_path / "m.mlir")
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    sw.compile(sw.from_mlir(tmp_path / "m.mlir"), opt_level=0)

    def hit(stated: str) -> str:
        return under(stated, script, tmp_path / "m.mlir")

    here = os.environ.get("STEPWELL_HOST", "")
    assert [hit(stated) for stated in (OLDEST, OLDEST)] == ["False", "True"]
    assert not all_tests or hit(here) == "True"


def test_unknown_processor() -> None:
    error = under("z80", "from stepwell.core.target import host; host()")
    assert "STEPWELL_HOST: unknown processor, expected x86-64, x86-64-v2, " in error
    assert error.endswith("got 'z80'")


def test_newer_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_HOST", OLDER)
    monkeypatch.setattr(processor, "_features_here", lambda: processor.features() - {"avx2"})
    expected = "STEPWELL_HOST: this machine cannot behave as x86-64-v3, as it lacks .*avx2"
    with pytest.raises(sw.StepwellError, match=expected):
        processor.stated_host.__wrapped__()
