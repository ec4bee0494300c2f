"""New weights for compiled programs."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.core.pipelines import staircase as pipelines

from ..harness import close, floats

X = floats(3, 40)


def weights(seed: int = 1) -> dict[str, Any]:
    """A layer that is folded, one whose product is by a sparse matrix, and a table of indices."""
    random = np.random.default_rng(seed)
    return {
        "w": random.normal(size=(20, 40)).astype(np.float32),
        "scale": random.uniform(1, 2, (20, 1)).astype(np.float32),
        "b": random.normal(size=20).astype(np.float32),
        "a": csr_array(np.array([[0, 2, 0], [seed, 0, 0], [0, 0, 3]], np.float32)),
        "rows": np.array([2, 0, seed % 3]),
    }


def module(given: dict[str, Any]) -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 40), "f32")
    w, scale, bias, a, rows = (b.constant(value, name=name) for name, value in given.items())
    y = b.relu(b.dense(x, b.mul(w, scale), b.mul(bias, 2.0)))
    b.output(b.spmm(a, b.gather(y, rows, axis=0)), name="y")
    return b.module()


def expected(given: dict[str, Any]) -> np.ndarray:
    y = np.maximum(X @ (given["w"] * given["scale"]).T + 2 * given["b"], 0)
    return given["a"] @ y[given["rows"]]


def computed_with(got: Any, given: dict[str, Any]) -> None:
    close(got, expected(given))


@pytest.fixture(scope="module")
def exe() -> sw.Executable:
    return sw.compile(module(weights()))


def test_packed_and_folded_copies_are_made_anew_and_the_code_stays(exe: sw.Executable) -> None:
    computed_with(exe(X), weights())
    code = exe._loaded.program.keep
    other = weights(2)
    exe.update(other)
    for change in ("w", "scale", "b", "rows"):
        given = other[change].copy()
        other[change][...] = 0  # copies were taken
        computed_with(exe(X), {**other, change: given})
        other[change][...] = given
    computed_with(exe.run_at("kernels", X), other)
    assert exe._loaded.program.keep is code


def test_code_is_made_anew_where_it_depends_on_elements(exe: sw.Executable) -> None:
    other, code = weights(3), exe._loaded.program.keep
    other["b"][:] = 0.5
    exe.update(other)
    assert exe._loaded.program.keep is not code
    assert "dense<1.000000e+00>" in exe.ir("optimized")
    computed_with(exe(X), other)
    exe.update(weights(4))
    computed_with(exe(X), weights(4))


def test_passes_after_the_usual_ones_see_new_elements() -> None:
    """A pipeline that folds constants later than the usual one does."""
    pipeline = pipelines.pipeline(threads=1)
    folding = pipeline["optimized"].replace("graph-fold-constant,", "")
    pipeline |= {"optimized": folding, "fused": f"graph-fold-constant,{pipeline['fused']}"}
    exe = sw.compile(module(weights()), pipeline=pipeline)
    exe.update(weights(2))
    computed_with(exe(X), weights(2))


BAD = [
    ({}, 'update: missing weights "w", "scale", "b", "a" and 1 more'),
    ({**weights(), "v": X}, 'update: unknown weight "v", expected "w", "scale", "b", "a" and 1'),
    (3, "update: weights are not given by name, expected a mapping, such as a state_dict, got int"),
    ({**weights(), "b": X}, r'weight "b": wrong shape, expected \[20\], got \[3, 40\]'),
    ({**weights(), "b": np.zeros(20)}, 'weight "b": wrong dtype, expected float32, got float64'),
    ({**weights(), "b": [1.0] * 20}, 'weight "b": not an array, expected numpy.ndarray, got list'),
    ({**weights(), "b": weights()["a"]}, 'weight "b": not an array, .* got csr_array'),
    ({**weights(), "b": np.ma.masked_array(np.zeros(20))}, 'weight "b": elements cannot be masked'),
    ({**weights(), "a": np.eye(3)}, 'weight "a": not a sparse matrix, expected .*, got ndarray'),
    ({**weights(), "a": csr_array((4, 3), dtype=np.float32)}, r'weight "a": wrong shape, .*\[4, 3'),
    (
        {**weights(), "a": csr_array((3, 3), dtype=np.float32)},
        'weight "a": wrong number of stored entries, expected 3, got 0',
    ),
]


def test_new_indices_are_checked(exe: sw.Executable) -> None:
    exe.update(weights())
    code, bad = exe._loaded.program.keep, {**weights(), "rows": np.array([2, -4, 1])}
    exe.update(bad)
    for call in (exe, lambda x: exe.run_at("buffers", x)):
        with pytest.raises(InputError, match=r"index out of range, expected -3 to 2, got -4"):
            call(X)
    exe.update(weights())
    computed_with(exe(X), weights())
    assert exe._loaded.program.keep is code


def test_what_does_not_fit_changes_nothing(exe: sw.Executable) -> None:
    exe.update(weights())
    for given, message in BAD:
        with pytest.raises(InputError, match=f"^{message}"):
            exe.update(given)  # type: ignore[arg-type]
    computed_with(exe(X), weights())
    broken = weights(2)
    broken["rows"][0] = 7
    exe.update(broken)
    with pytest.raises(sw.StepwellError, match="index out of range, expected -3 to 2, got 7"):
        exe(X)
    exe.update(weights(3))
    computed_with(exe(X), weights(3))


def test_calls_during_updates_use_one_set_of_weights(exe: sw.Executable) -> None:
    exe.update(weights())
    every = [weights(seed) for seed in (1, 2)]
    wanted, wrong, done = [expected(given) for given in every], [], threading.Event()

    def call() -> None:
        while not done.is_set():
            got = exe(X)
            if not any(np.allclose(got, one, rtol=1e-5, atol=1e-5) for one in wanted):
                wrong.append(got)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for given in every:
            exe.update(given)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_old_weights_are_not_kept(exe: sw.Executable) -> None:
    exe(X)
    old = weakref.ref(exe._loaded)
    exe.update(weights(2))
    exe.update(weights(3))
    gc.collect()
    assert old() is None
