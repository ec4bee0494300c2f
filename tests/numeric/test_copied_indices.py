"""`copy_indices`: what another thread writes to indices during a call does not end the process."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw

from ..harness import cases

Apart = Callable[[Callable[[], object]], str]
SIZE, FAR = 1 << 18, 1 << 30


def product() -> sw.Module:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32"))
    b.output(b.spmm(a, b.input("x", ("m", 3), "f32")), name="y")
    return b.module()


def rows() -> sw.Module:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", ("m",), "i64")
    b.output(b.gather(x, i, axis=0), name="y")
    return b.module()


def matrix() -> csr_array:
    """One entry in each row, all of them in the first column."""
    parts = (np.ones(SIZE, np.float32), np.zeros(SIZE, np.int32), np.arange(SIZE + 1))
    return csr_array(parts, shape=(SIZE, 4))


X = np.arange(12, dtype=np.float32).reshape(4, 3)


def raced(seconds: float, module: sw.Module, inputs: tuple[Any, ...], written: np.ndarray) -> None:
    """Call a program while another thread writes one integer that is far out of range."""
    exe = sw.compile(module, threads=1, copy_indices=True)
    wanted, right, end = exe(*inputs), int(written[-2]), threading.Event()

    def write() -> None:
        while not end.is_set():
            written[-2] = FAR
            written[-2] = right

    writer = threading.Thread(target=write)
    writer.start()
    until, answers = time.monotonic() + seconds, 0
    while time.monotonic() < until or not answers:
        # The check sees one number or the other; what it saw is what is used.
        with contextlib.suppress(sw.InputError):
            np.testing.assert_array_equal(exe(*inputs), wanted)
            answers += 1
    end.set()
    writer.join()


@pytest.fixture
def seconds(all_tests: bool) -> float:
    return 1.0 if all_tests else 0.2


def test_an_index_of_a_matrix_that_another_thread_writes(apart: Apart, seconds: float) -> None:
    a = matrix()
    assert apart(lambda: raced(seconds, product(), (a, X), a.indices)) == "works"


def test_a_row_pointer_that_another_thread_writes(apart: Apart, seconds: float) -> None:
    a = matrix()
    assert apart(lambda: raced(seconds, product(), (a, X), a.indptr)) == "works"


def test_an_index_of_a_gather_that_another_thread_writes(apart: Apart, seconds: float) -> None:
    i = np.zeros(SIZE, np.int64)
    assert apart(lambda: raced(seconds, rows(), (X, i), i)) == "works"


WAYS = list(itertools.product(("buffers", "llvm", None), (0, 3)))
QUICK = [way for way in WAYS if way[0] is None or way[1] == 3]


@pytest.mark.parametrize("way", cases(WAYS, QUICK), ids=str)
def test_the_results_are_the_same(way: tuple[str | None, int]) -> None:
    stage, level = way
    a = csr_array(np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 4]], np.float32))
    exe = sw.compile(product(), threads=1, opt_level=level, copy_indices=True)
    call = exe if stage is None else lambda *inputs: exe.run_at(stage, *inputs)
    np.testing.assert_allclose(call(a, X), a @ X)
    np.testing.assert_allclose(call(a[:0], X), (a @ X)[:0])
    a.indices[1] = 4
    message = 'input "a": column index out of range at entry 1, got 4'
    with pytest.raises(sw.InputError, match=re.escape(message)):
        call(a, X)


def test_a_pipeline_says_itself_whether_indices_are_copied() -> None:
    with pytest.raises(sw.CompileError, match="the pipeline determines whether indices are"):
        sw.compile(rows(), pipeline={}, copy_indices=True)
