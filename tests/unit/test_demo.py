"""`stepwell demo` and the scripts that train its weights."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import stepwell as sw
from stepwell.tools import demo, timing

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("make", "right"), [(demo.karate, 31), (demo.digits, 468)])
def test_models_are_as_good_as_their_training_said(make: object, right: int) -> None:
    case = make()  # type: ignore[operator]
    assert case.right(case.numpy()) == right
    assert case.right(case.module.run_reference(*case.inputs)) == right


def test_demo_prints_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "ROUND_SECONDS", 0.0)
    console = Console(file=io.StringIO(), width=120)
    demo.demonstrate(console, tmp_path / "models")
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for text in ("31 of 32 (96.9%)", "468 of 500 (93.6%)", "3 kernels", "stepwell explain"):
        assert text in printed
    for name in ("karate", "digits"):
        sw.from_mlir(tmp_path / "models" / f"{name}.mlir").verify()


@pytest.mark.parametrize("name", ["karate_gcn", "digits_mlp"])
def test_training_gives_the_weights_that_ship(name: str, tmp_path: Path) -> None:
    script = ROOT / "examples" / f"train_{name.partition('_')[0]}.py"
    output = tmp_path / "weights.npz"
    subprocess.run([sys.executable, script, "--output", output], check=True, capture_output=True)
    with np.load(output) as made, np.load(demo.DATA / f"{name}.npz") as shipped:
        assert made.files == shipped.files
        for key in shipped.files:
            # Thousands of steps: another order of summation in a BLAS adds up.
            np.testing.assert_allclose(made[key], shipped[key], rtol=1e-3, atol=1e-3)
