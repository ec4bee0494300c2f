"""Products of integers by instructions: the same numbers, on every machine and at every stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stepwell as sw
from stepwell.core import processor
from stepwell.core.target import Target, host, named

from ...harness import as_reference, same

WIDE = not processor.missing(["avx512f", "avx512vl", "avx512bw"])
PAIRS = "x86-64-v3"
needs_pairs = pytest.mark.skipif(
    processor.architecture() != "x86_64" or bool(processor.missing(["avx2", "fma"])),
    reason="needs x86-64 with AVX2",
)


def targets() -> list[Target]:
    """Machines whose code this one runs, with and without the instructions."""
    if processor.architecture() != "x86_64":
        return [host()]
    names = ["x86-64", "x86-64-v3", "x86-64-v4"] if WIDE else ["x86-64", "x86-64-v3"]
    fit = [named(name) for name in names if not processor.missing(list(processor.NEEDS[name]))]
    if not processor.missing(["avxvnni"]):
        fit.append(replace(named(PAIRS), name="quads", features="+avxvnni"))
    return [*fit, host()]


def dense(rows: int | str, k: int, columns: int, x: str, w: str) -> tuple[sw.Module, np.ndarray]:
    """A product, and its input; both with the extremes of their types in them."""
    random = np.random.default_rng(k)
    dtypes = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16}
    factors = []
    for name, shape in ((x, (13 if rows == "n" else int(rows), k)), (w, (columns, k))):
        limits = np.iinfo(dtypes[name])
        factor = random.integers(limits.min, limits.max + 1, shape).astype(dtypes[name])
        factor[: shape[0] // 2 + 1] = random.choice([limits.min, limits.max], (1, k))
        factors.append(factor)
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (rows, k), x), factors[1]), name="y")
    return b.module(), factors[0]


SHAPES = [
    (1, 64, 16),
    (1, 66, 7),
    (3, 8, 5),
    (12, 64, 48),
    (13, 36, 33),
    (7, 31, 20),
    ("n", 52, 40),
]
TYPES = [("ui8", "i8"), ("i8", "i8"), ("i8", "ui8"), ("ui8", "ui8"), ("i16", "i16")]


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.parametrize(("x", "w"), TYPES)
def test_products_are_exact(x: str, w: str, target: Target, all_tests: bool) -> None:
    """Quick tests compile every third shape, of which each has a third of the types and targets."""
    first = TYPES.index((x, w)) + targets().index(target)
    for rows, k, columns in SHAPES if all_tests else SHAPES[first % 3 :: 3]:
        module, array = dense(rows, k, columns, x, w)
        as_reference(module, array, rtol=0, target=target, threads=1)


@needs_pairs
@pytest.mark.parametrize("x", ["i8", "ui8", "i16"])
def test_pairs_are_combined(x: str) -> None:
    module, _ = dense(64, 128, 64, x, "i8")
    exe = sw.compile(module, target=PAIRS, threads=1)
    assert "tensorize(k1, vpmaddwd)" in exe.ir("scheduled")
    assert "by vpmaddwd" in str(exe.explain())
    code = exe.ir("asm")
    assert "vpmaddwd" in code
    assert "vpmulld" not in code


@pytest.mark.parametrize(
    ("x", "w", "used"),
    [("ui8", "i8", "vpdpbusd"), ("i8", "ui8", "vpdpbusd"), ("i8", "i8", "vpmaddwd")],
)
@pytest.mark.parametrize("name", ["quads", "znver4"])
def test_fours_are_combined(name: str, x: str, w: str, used: str) -> None:
    """One factor has a sign and the other has none."""
    quads = replace(named("x86-64-v3"), name="quads", features="+avxvnni")
    module, _ = dense(8, 64, 32, x, w)
    target = quads if name == "quads" else named(name)
    assert f"tensorize(k1, {used})" in str(sw.schedule(module, "fused_dense", target=target))


def test_what_is_not_combined() -> None:
    """An odd number of steps."""
    module, _ = dense(4, 31, 32, "i8", "i8")
    assert "tensorize" not in sw.compile(module, target=PAIRS, threads=1).ir("scheduled")


@pytest.mark.parametrize("stage", ["scheduled", "loops", "llvm"])
@pytest.mark.parametrize("rows", [5, "n"])
def test_stages_compute_the_same(rows: int | str, stage: str) -> None:
    module, x = dense(rows, 16, 24, "ui8", "i8")
    exe = sw.compile(module, target=host(), threads=1)
    same(exe.run_at(stage, x), exe(x))


def test_a_trace_is_replayed() -> None:
    module, x = dense(8, 64, 32, "ui8", "i8")
    steps = (
        "split(j, 16, tail=mask); split(k, 2, tail=peel); pack(1, j0, k0, j1, k1); "
        "vectorize(i, j1); tensorize(k1, vpmaddwd)"
    )
    exe = as_reference(module, x, rtol=0, schedule={"fused_dense": steps}, threads=1)
    assert steps in exe.ir("scheduled")
