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


@pytest.mark.parametrize(("stated", "bits"), [(OLDEST, 128), (OLDER, 256), ("znver3", 256)])
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


def test_default_of_a_compilation(tmp_path: Path) -> None:
    program().save(tmp_path / "m.mlir")
    script = """if True:
        import sys
        import stepwell as sw
        print(sw.compile(sw.from_mlir(sys.argv[1])).ir("asm"))"""
    assembly = under(OLDEST, script, tmp_path / "m.mlir")
    assert "xmm" in assembly
    assert "ymm" not in assembly


def test_other_processors_are_not_this_one(tmp_path: Path) -> None:
    """A program for a newer processor is refused here, whether it is compiled or loaded."""
    if processor.missing(list(processor.NEEDS[OLDER])):
        pytest.skip(f"needs a processor with the features of {OLDER}")
    program().save(tmp_path / "m.mlir")
    sw.compile(program(), target=OLDER).save(tmp_path / "m.stepwell")
    compiled = """if True:
        import sys
        import numpy as np
        import stepwell as sw
        x = np.zeros((5, 40), np.float32)
        sw.compile(sw.from_mlir(sys.argv[1]), target="x86-64-v3")(x)"""
    expected = f"{OLDER}: cannot run here, expected cx16, got {OLDEST}"
    assert expected in under(OLDEST, compiled, tmp_path / "m.mlir")
    loaded = "import sys, stepwell; stepwell.load(sys.argv[1])"
    assert "avx2" in under(OLDEST, loaded, tmp_path / "m.stepwell")


def test_caches_differ(tmp_path: Path, all_tests: bool) -> None:
    """A hit loads no LLVM."""
    script = """if True:
        import sys, stepwell as sw
        sw.compile(sw.from_mlir(sys.argv[1]), opt_level=0)
        print("llvmlite" not in sys.modules)"""
    program().save(tmp_path / "m.mlir")
    cache = str(tmp_path / "cache")

    def hit(stated: str) -> str:
        return under(stated, script, tmp_path / "m.mlir", STEPWELL_CACHE=cache)

    assert [hit(stated) for stated in (OLDEST, "", OLDEST)] == ["False", "False", "True"]
    assert not all_tests or hit("") == "True"


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
