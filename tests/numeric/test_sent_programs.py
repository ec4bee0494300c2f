"""Programs that are sent to other processes, which did not inherit them."""

from __future__ import annotations

import functools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import stepwell as sw

from ..harness import floats, package, same

X = floats(5, 16)
COMPILERS = "sorted({'llvmlite', 'stepwell.driver.compilation'} & {*__import__('sys').modules})"
"""What a process has imported that compiles, as an expression."""
LIMIT = 300
"""Seconds for a process to start and compute, on a busy machine."""


@functools.cache
def network() -> sw.Executable:
    b = sw.Builder()
    hidden = b.relu(b.dense(b.input("x", ("n", 16)), floats(64, 16), bias=floats(64)))
    b.output(b.softmax(b.dense(hidden, floats(8, 64)), axis=1), name="y")
    return sw.compile(b.module(), threads=2)


def test_a_process_that_was_spawned_computes_the_same() -> None:
    """It compiles nothing; errors come back with their messages."""
    exe = network()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(exe, X).result(LIMIT)
        assert pool.submit(eval, COMPILERS).result(LIMIT) == []
        with pytest.raises(sw.InputError) as sent:
            pool.submit(exe, X[:, :3]).result(LIMIT)
    same(found, exe(X))
    with pytest.raises(sw.InputError) as own:
        exe(X[:, :3])
    assert str(sent.value) == str(own.value)


def test_processes_of_joblib_compute_the_same() -> None:
    joblib = package("joblib")
    exe = network()
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(exe)(x) for x in (X, -X))
    same(found, [exe(X), exe(-X)])
