"""The two ways into a program, compiled and in Python: the same answers, errors and references."""

from __future__ import annotations

import gc
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

import stepwell as sw
from stepwell.core.algebra.dims import Dim
from stepwell.driver import compilation
from stepwell.frontends import gnn
from stepwell.runtime import objects, vectorcall
from stepwell.runtime.executable import Executable, executable

from ..harness import floats

if not objects.are_known():
    pytest.skip("objects are not laid out as in CPython with a GIL", allow_module_level=True)


def dense() -> sw.Module:
    """x of [n, 3] and z of [n, m]; two results of other sizes."""
    b = sw.Builder("main")
    x, z = b.input("x", ("n", 3), "f32"), b.input("z", ("n", "m"), "f32")
    b.output(b.relu(x), name="r")
    b.output(b.concat([x, z], axis=1), name="c")
    return b.module()


def one() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 3), "f32") + b.input("z", ("n", 3), "f32"), name="y")
    return b.module()


def subtracted() -> sw.Module:
    """Inputs whose names are no names of Python, and that of a method's first parameter."""
    b = sw.Builder("main")
    b.output(b.input("x.1", ("n", 3), "f32") - b.input("self", ("n", 3), "f32"), name="y")
    return b.module()


def sparse(rows: int | str = "n", columns: int | str = "n") -> sw.Module:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((rows, columns), "f32"))
    b.output(b.spmm(a, b.input("x", (columns, 3), "f32")), name="y")
    return b.module()


DENSE, ONE, SPARSE, SUBTRACTED = (
    sw.compile(make(), threads=1) for make in (dense, one, sparse, subtracted)
)
X = np.arange(12, dtype=np.float32).reshape(4, 3)
EYE = csr_array(np.eye(4, dtype=np.float32))


def slowly(exe: sw.Executable, *inputs: object, **options: object) -> Any:
    """The call as compiled code leaves it to Python."""
    return Executable.__call__(exe, *inputs, **options)


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    try:
        result = call()
    except sw.StepwellError as error:
        return f"{type(error).__name__}: {error}", ()
    return "fine", result if isinstance(result, tuple) else (result,)


def agree(exe: sw.Executable, *inputs: object) -> str:
    """Compare both ways; how the call ended."""
    fast, got = outcome(lambda: exe(*inputs))
    slow, wanted = outcome(lambda: slowly(exe, *inputs))
    assert fast == slow
    for a, b in zip(got, wanted, strict=True):
        assert (type(a), a.dtype, a.shape) == (np.ndarray, b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
    return fast


def goes_through_python(call: Callable[[], object]) -> bool:
    """Whether a call ends up in `Executable.__call__`."""
    seen: list[object] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        seen.append(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Executable.__call__.__code__ in seen


# Arrays.


def unaligned(x: np.ndarray) -> np.ndarray:
    result = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


def frozen(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": np.copy,
    "columns first": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "backwards": lambda x: x[::-1] if x.ndim else x,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim and len(x) else x,
    "read-only": frozen,
    "unaligned": unaligned,
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unpickled": lambda x: pickle.loads(pickle.dumps(x)),
    "described": lambda x: x.astype(np.dtype(x.dtype, metadata={"unit": "m"})),
    "subclass": lambda x: x.view(np.recarray),
    "masked": np.ma.masked_array,
    "buffer": lambda x: memoryview(np.ascontiguousarray(x)),
    "list": np.ndarray.tolist,
}
DTYPES = ("f4", "f8", "f2", "i4", "u4", "?", "c8")


SHAPES = [(2, 3), (4, 3), (1, 3), (0, 3), (3,), (), (2, 3, 1)]
RARELY = st.integers(0, 9).map(lambda n: n == 0)


@st.composite
def pairs(draw: st.DrawFn) -> list[Any]:
    """Two arrays that mostly go together, in any layout."""
    common = draw(st.sampled_from([(2, 3), (4, 3), (1, 3)]))
    result = []
    for _ in range(2):
        shape = draw(st.sampled_from(SHAPES)) if draw(RARELY) else common
        dtype = draw(st.sampled_from(DTYPES)) if draw(RARELY) else "f4"
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        result.append(LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](values))
    return result


@settings(
    max_examples=settings().max_examples * 150 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(pairs())
def test_both_ways_say_the_same(inputs: list[Any]) -> None:
    agree(DENSE, *inputs)
    agree(ONE, *inputs)


def test_plain_arrays_do_not_go_through_python() -> None:
    DENSE(X, X)  # The first call does.
    for layout in ("plain", "read-only", "unpickled", "described"):
        x = LAYOUTS[layout](X)
        assert not goes_through_python(lambda x=x: DENSE(x, X)), layout
    for layout in ("columns first", "unaligned", "subclass", "buffer"):
        x = LAYOUTS[layout](X)
        assert goes_through_python(lambda x=x: DENSE(x, X)), layout
    assert goes_through_python(lambda: DENSE(X, X[:, :0]))


def test_calls_of_the_wrong_form() -> None:
    for inputs in ((), (X,), (X, X, X), (X,) * 10**5):
        assert agree(DENSE, *inputs).startswith("InputError: call: wrong number of inputs")
    with pytest.raises(sw.InputError, match='unknown input, expected x, z, got "into"'):
        DENSE(X, X, into=X)
    assert [r.shape for r in DENSE.__call__(X, X, out=None)] == [(4, 3), (4, 6)]


def test_inputs_by_name() -> None:
    wanted = X - 1
    for call in (SUBTRACTED, lambda *inputs, **named: slowly(SUBTRACTED, *inputs, **named)):
        one, y = np.ones_like(X), np.empty_like(X)
        np.testing.assert_array_equal(call(**{"x.1": X, "self": one}), wanted)
        np.testing.assert_array_equal(call(**{"self": one, "x.1": X}), wanted)
        np.testing.assert_array_equal(call(X, self=one), wanted)
        np.testing.assert_array_equal(call({"self": one, "x.1": X}), wanted)
        assert call({"self": one, "x.1": X}, out=y) is y
        assert call(X, self=one, out=y) is y
        np.testing.assert_array_equal(y, wanted)


def test_results_by_name() -> None:
    found = DENSE.call_named(X, X)
    assert list(found) == [spec.name for spec in DENSE.outputs]
    for made, expected in zip(found.values(), DENSE(X, X), strict=True):
        np.testing.assert_array_equal(made, expected)
    one, y = np.ones_like(X), np.empty_like(X)
    (only,) = SUBTRACTED.call_named(**{"x.1": X, "self": one}, out=y).values()
    assert only is y


@pytest.mark.parametrize(
    ("inputs", "named", "message"),
    [
        ((), {"x.1": X, "z": X}, 'call: unknown input, expected x.1, self, got "z"'),
        ((X, X), {"z": X}, 'call: unknown input, expected x.1, self, got "z"'),
        ((X,), {"x.1": X}, 'call: input "x.1" is given by position and by name'),
        ((X, X, X), {"self": X}, 'call: input "self" is given by position and by name'),
        ((), {"self": X}, 'call: input "x.1" is missing, got self'),
        ((), {"x.1": X}, 'call: input "self" is missing, got x.1'),
        ((), {"x.1": X, "self": X[:, :2]}, 'input "self": wrong shape, expected [n, 3]'),
        (({"x.1": X, "z": X},), {}, 'call: unknown input, expected x.1, self, got "z"'),
        (({"x.1": X},), {}, 'call: input "self" is missing, got x.1'),
        (({3: X},), {}, 'call: unknown input, expected x.1, self, got "3"'),
        (({},), {}, 'call: input "x.1" is missing, got none'),
        (({"x.1": X},), {"self": X}, 'input "x.1": not an array, expected numpy.ndarray, got dict'),
    ],
)
def test_names_that_do_not_fit(
    inputs: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    for call in (SUBTRACTED, lambda *inputs, **named: slowly(SUBTRACTED, *inputs, **named)):
        with pytest.raises(sw.InputError, match=re.escape(message)):
            call(*inputs, **named)


def test_sizes_of_results_are_polynomials() -> None:
    b = sw.Builder("main")
    x, z = b.input("x", ("n", 3), "f32"), b.input("z", ("m", 3), "f32")
    b.output(b.concat([x, z, x], axis=0))
    b.output(b.reshape(b.matmul(x, b.transpose(z, [1, 0])), [-1]))
    exe = sw.compile(b.module(), threads=1)
    assert agree(exe, X, X[:3]) == "fine"
    assert [y.shape for y in exe(X, X[:3])] == [(11, 3), (12,)]
    assert not goes_through_python(lambda: exe(X, X[:3]))


def test_sizes_of_results_are_quotients() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", "m"), "f32")
    halves = b.pool(x, "sum", window=[2, 2], strides=[2, 2])
    b.output(b.reshape(halves, [-1]))
    b.output(b.pool(halves, "max", window=[1, 2], strides=[3, 2]))
    exe = sw.compile(b.module(), threads=1)
    for n, m in ((13, 11), (2, 4), (3, 9)):
        image = np.zeros((n, m), np.float32)
        assert agree(exe, image) == "fine"
        assert not goes_through_python(lambda image=image: exe(image))
        shapes = [((n // 2) * (m // 2),), ((n // 2 + 2) // 3, m // 4)]
        assert [y.shape for y in exe(image)] == shapes


def test_sizes_that_have_to_agree() -> None:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 3), "f32") + b.input("z", ("m", 3), "f32"))
    exe = sw.compile(b.module(), threads=1)
    assert agree(exe, X, X) == "fine"
    assert not goes_through_python(lambda: exe(X, X))
    assert "dimensions n and m must agree" in agree(exe, X, X[:3])


def test_sizes_that_overflow() -> None:
    b = sw.Builder("main")
    x, z = b.input("x", ("n", 0), "f32"), b.input("z", (0, "m"), "f32")
    b.output(b.matmul(x, z), name="y")
    exe = sw.compile(b.module(), threads=1)
    message = agree(exe, np.zeros((2**40, 0), np.float32), np.zeros((0, 2**40), np.float32))
    assert message.startswith('StepwellError: call: not enough memory for result "y"')


def test_results_without_memory() -> None:
    b = sw.Builder("main")
    x, z = b.input("x", ("n", 1), "f32"), b.input("z", (1, "m"), "f32")
    b.output(b.matmul(x, z), name="y")
    exe = sw.compile(b.module(), threads=1)
    x = np.zeros((1 << 22, 1), np.float32)
    message = agree(exe, x, np.zeros((1, 1 << 22), np.float32))
    assert message.startswith('StepwellError: call: not enough memory for result "y"')
    # The error that the array itself raised is gone.
    assert exe(x[:2], x[:3].T).shape == (2, 3)


def test_a_large_result_begins_at_a_line() -> None:
    b = sw.Builder("main")
    b.output(b.neg(b.input("x", ("n", 3), "f32")), name="y")
    exe = sw.compile(b.module(), threads=1)
    x, small = np.ones((1 << 19, 3), np.float32), np.ones((5, 3), np.float32)
    assert exe(small).base is None
    assert not goes_through_python(lambda: exe(x))
    kinds = (np.dtype(np.uint8), x.dtype)
    counts = list(map(sys.getrefcount, kinds))
    tracemalloc.start()
    for call in (exe, lambda x: Executable.__call__(exe, x)):
        for _ in range(20):
            y = call(x)
            assert y.ctypes.data % 64 == 0
            assert y.flags.carray
            assert (y == -1).all()
            assert y.base.nbytes == x.nbytes + 64
            del y
    assert tracemalloc.get_traced_memory()[0] < x.nbytes
    tracemalloc.stop()
    changes = [sys.getrefcount(kind) - n for kind, n in zip(kinds, counts, strict=True)]
    assert max(map(abs, changes)) < 10


def chosen() -> sw.Module:
    """Where x is not 0, with sizes that the program computes beside those of inputs."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 3), "f32")
    rows, columns, count = b.nonzero(x)
    b.output(b.relu(x), name="all")
    b.output(rows, name="rows")
    b.output(b.transpose(b.gather(x, columns, axis=1), permutation=[1, 0]) + 1, name="wide")
    b.output(count, name="count")
    return b.module()


def test_sizes_that_are_computed() -> None:
    exe = sw.compile(chosen(), threads=1)
    inputs = [X, np.zeros((1, 3), np.float32), np.ones((50, 3), np.float32), np.eye(3, dtype="f4")]
    for x in inputs:
        assert agree(exe, x) == "fine"
        assert not goes_through_python(lambda x=x: exe(x))
        _, rows, wide, count = exe(x)
        assert rows.shape == (count,)
        assert wide.shape == (count, len(x))
        assert (rows.base, rows.nbytes, rows.flags.c_contiguous) == (None, 8 * count, True)
        assert rows.flags.owndata
        rows.resize((3,), refcheck=False)
    given = np.zeros((), np.int64)
    assert exe(X, out=(None, None, None, given))[3] is given
    assert goes_through_python(lambda: exe(X, out=(None, None, None, given)))
    assert goes_through_python(lambda: exe(X[:0]))
    assert growth_of(lambda: exe(inputs[1])) < CALLS * SMALLEST


CALLS = 1_000
SMALLEST = 32
"""Bytes of the smallest object."""


def growth_of(call: Callable[[], object]) -> int:
    """How much memory some calls leak."""
    call()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(CALLS):
        call()
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return growth


def test_a_size_without_an_upper_bound() -> None:
    b = sw.Builder("main")
    n = b.input("n", (), "i64")
    b.output(b.reduce(b.cumulative(b.range(0, n), kind="sum", axis=0), "max", axes=[0]))
    exe = sw.compile(b.module(), threads=1)
    for size in (1, 10, 5000):
        assert agree(exe, np.array(size)) == "fine"
    assert not goes_through_python(lambda: exe(np.array(5000)))
    assert goes_through_python(lambda: exe(np.array(100_000)))


def test_results_of_sizes_without_an_upper_bound() -> None:
    b = sw.Builder("main")
    n, x = b.input("n", (), "i64"), b.input("x", ("k",), "f32")
    b.output(b.range(0, n), name="all")
    b.output(b.relu(x), name="fixed")
    b.output(b.broadcast_to(b.reshape(b.range(0, n, 2), [-1, 1]), [-1, 3]), name="wide")
    b.output(b.compress(x, b.greater(x, 5.0)), name="some")
    b.output(b.range(0, b.reduce(b.cast(x, "i64"), "sum", [0]), bound=1000), name="bounded")
    exe = sw.compile(b.module(), threads=1)
    x, large = np.arange(12, dtype=np.float32), np.array(700_000)
    for size in (0, 1, 10, 5000):
        assert agree(exe, np.array(size), x) == "fine"
        assert not goes_through_python(lambda size=size: exe(np.array(size), x))
    assert goes_through_python(lambda: exe(large, x))  # with more memory than before
    y = exe(large, x)[0]
    assert y.base is not None
    assert (y.ctypes.data % 64, y.nbytes) == (0, 5_600_000)
    three = np.array(3)
    assert exe(three, x)[2].tolist() == [[0] * 3, [2] * 3]
    assert "a size is out of range, expected 0 to 1000, got 1206" in agree(exe, three, x + 95)
    gc.collect()
    counts = sys.getrefcount(None), sys.getrefcount(np.dtype(np.int64))
    for values in (x, x + 95):
        assert growth_of(lambda v=values: outcome(lambda: exe(three, v))) < CALLS * SMALLEST
    assert abs(sys.getrefcount(None) - counts[0]) < 100
    assert abs(sys.getrefcount(np.dtype(np.int64)) - counts[1]) < 100


def test_scalars_and_booleans() -> None:
    b = sw.Builder("main")
    x = b.input("x", (), "f64")
    b.output(b.neg(x))
    b.output(b.where(b.input("c", (2,), "i1"), x, b.neg(x)))
    exe = sw.compile(b.module(), threads=1)
    given = np.array(3.0), np.array([True, False])
    assert agree(exe, *given) == "fine"
    assert not goes_through_python(lambda: exe(*given))


def test_sixteen_bits() -> None:
    b = sw.Builder("main")
    b.output(b.neg(b.input("x", ("n",), "bf16")))
    exe = sw.compile(b.module(), threads=1)
    x = np.arange(5).astype("bfloat16")
    assert agree(exe, x) == "fine"
    assert not goes_through_python(lambda: exe(x))
    assert agree(exe, x.astype(np.float16)).endswith("expected bfloat16, got float16")


def test_a_program_of_constants() -> None:
    b = sw.Builder("main")
    b.output(b.constant(X))
    exe = sw.compile(b.module(), threads=1)
    assert agree(exe) == "fine"
    assert not goes_through_python(exe)


# Sparse matrices.


class Graph:
    """What has `to_csr`, as graphs have."""

    def __init__(self, result: object) -> None:
        self.result = result
        self.asked = 0

    def to_csr(self, dtype: str) -> object:
        assert dtype == "f32"
        self.asked += 1
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class Matrix(csr_array):
    """A subclass."""


def parts(**change: Any) -> tuple[Any, Any, Any]:
    given = {"indptr": EYE.indptr, "indices": EYE.indices, "values": EYE.data, **change}
    return given["indptr"], given["indices"], given["values"]


def changed(**change: Any) -> csr_array:
    matrix = EYE.copy()
    for name, value in change.items():
        setattr(matrix, name, value)
    return matrix


PLAIN_MATRICES: dict[str, Any] = {
    "array": EYE,
    "matrix": csr_matrix(EYE),
    "tuple": parts(),
    "graph": gnn.Graph.from_scipy(EYE),
    "other graph": Graph(EYE),
}
OTHER_MATRICES: dict[str, Any] = {
    "coordinates": coo_array(EYE),
    "subclass": Matrix(EYE),
    "graph of a subclass": Graph(Matrix(EYE)),
    "graph of nothing": Graph(None),
    "dense": X,
    "nothing": None,
    "list": list(parts()),
    "pair": parts()[:2],
    "doubles": EYE.astype(np.float64),
    "wide": changed(indptr=EYE.indptr.astype(np.int64)),
    "strided": changed(indices=np.repeat(EYE.indices, 2)[::2]),
    "without entries": csr_array((4, 4), dtype=np.float32),
    "short": changed(indptr=EYE.indptr[:-1]),
    "few values": changed(data=EYE.data[:-1]),
    "values of lists": changed(data=EYE.data.tolist()),
    "not square": csr_array(np.ones((4, 5), np.float32)),
    "other size": csr_array(np.ones((3, 3), np.float32)),
    "shape of texts": changed(_shape=("4", "4")),
    "one-dimensional": changed(_shape=(4,)),
    "bad index": changed(indices=EYE.indices + 1),
    "bad indptr": parts(indptr=EYE.indptr[::-1].copy()),
    "tuple of a list": parts(values=[1.0] * 4),
}


@pytest.mark.parametrize("kind", PLAIN_MATRICES)
def test_plain_matrices(kind: str) -> None:
    matrix = PLAIN_MATRICES[kind]
    assert agree(SPARSE, matrix, X) == "fine"
    assert not goes_through_python(lambda: SPARSE(matrix, X))
    np.testing.assert_array_equal(SPARSE(matrix, X), X)


@pytest.mark.parametrize("kind", OTHER_MATRICES)
def test_other_matrices(kind: str) -> None:
    matrix = OTHER_MATRICES[kind]
    agree(SPARSE, matrix, X)


@pytest.mark.parametrize(("rows", "columns"), [("n", 4), (4, "m"), (4, 4), ("n", "m")])
def test_matrices_of_other_sizes(rows: int | str, columns: int | str) -> None:
    exe = sw.compile(sparse(rows, columns), threads=1)
    for matrix in (EYE, parts(), csr_array(np.ones((3, 4), np.float32))):
        agree(exe, matrix, X)
    assert agree(exe, EYE, X) == "fine"
    assert not goes_through_python(lambda: exe(EYE, X))


def test_row_pointers_of_64_bits_beside_columns_of_32() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", indptr_dtype="i64"))
    b.output(b.spmm(a, b.input("x", ("n", 3), "f32")), name="y")
    exe = sw.compile(b.module(), threads=1)
    wide = EYE.indptr.astype(np.int64)
    for matrix in (changed(indptr=wide), parts(indptr=wide), Graph(changed(indptr=wide))):
        assert agree(exe, matrix, X) == "fine"
        assert not goes_through_python(lambda m=matrix: exe(m, X))
        np.testing.assert_array_equal(exe(matrix, X), X)
    # Others are converted.
    for kind in ("array", "coordinates"):
        matrix = {**PLAIN_MATRICES, **OTHER_MATRICES}[kind]
        assert agree(exe, matrix, X) == "fine"
        np.testing.assert_array_equal(exe(matrix, X), X)
    # A result may not overlap the pointers, of which each has eight bytes.
    memory = np.zeros(12, np.int64)
    memory[:5] = wide
    given = changed(indptr=memory[:5])
    exe(given, X, out=memory[4:10].view(np.float32).reshape(4, 3))
    np.testing.assert_array_equal(memory[4:10].view(np.float32).reshape(4, 3), X)
    assert "out of range" in agree(exe, changed(indptr=wide, indices=EYE.indices + 1), X)
    assert "indptr" in agree(exe, changed(indptr=wide + (1 << 40)), X)


def test_a_number_of_entries_that_is_known() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((4, 4), "f32", nnz=4))
    b.output(b.spmm(a, b.input("x", (4, 3), "f32")))
    exe = sw.compile(b.module(), threads=1)
    assert agree(exe, EYE, X) == "fine"
    assert not goes_through_python(lambda: exe(EYE, X))
    message = agree(exe, csr_array(np.ones((4, 4), np.float32)), X)
    assert message.endswith("wrong number of stored entries, expected 4, got 16")


def test_errors_of_graphs_are_passed_on() -> None:
    SPARSE(EYE, X)  # from the first call without an error on, calls are compiled
    for error in (KeyboardInterrupt(), RuntimeError("broken"), MemoryError()):
        graph = Graph(error)
        with pytest.raises(type(error)) as raised:
            SPARSE(graph, X)
        assert raised.value is error
        # An interrupt ends the call at once.
        assert graph.asked == (2 if isinstance(error, Exception) else 1)


# Results that the caller gives.


def test_out_is_written_and_returned() -> None:
    y = np.full((4, 3), 9, np.float32)
    assert ONE(X, X, out=y) is y
    np.testing.assert_array_equal(y, X + X)
    assert not goes_through_python(lambda: ONE(X, X, out=y))
    assert ONE(X, X, out=(y,)) is y
    assert ONE(X, X, out=None) is not y
    r, c = np.empty((4, 3), np.float32), np.empty((4, 6), np.float32)
    got = DENSE(X, X, out=(r, c))
    assert got[0] is r
    assert got[1] is c
    np.testing.assert_array_equal(c, np.hstack([X, X]))
    assert not goes_through_python(lambda: DENSE(X, X, out=(r, c)))
    got = DENSE(X, X, out=(None, c))
    assert got[0] is not r
    assert got[1] is c


def test_out_may_be_an_argument() -> None:
    for call in (ONE, lambda *inputs, out: slowly(ONE, *inputs, out=out)):
        x, z = X.copy(), X + 1
        assert call(x, z, out=z) is z
        np.testing.assert_array_equal(z, X + X + 1)
        both = np.arange(15, dtype=np.float32).reshape(5, 3)
        wanted = both[:4] + both[:4]
        call(both[:4], both[:4], out=both[1:])
        np.testing.assert_array_equal(both[1:], wanted)
    x = X.copy()
    SPARSE(EYE * 2, x, out=x)
    np.testing.assert_array_equal(x, 2 * X)
    values = np.ones(9, np.float32)
    full = csr_array((values, np.tile(np.arange(3), 3), [0, 3, 6, 9]), shape=(3, 3))
    full.indices, full.indptr = full.indices.astype(np.int32), full.indptr.astype(np.int32)
    SPARSE(full, X[:3], out=full.data.reshape(3, 3))
    np.testing.assert_array_equal(full.data.reshape(3, 3), np.ones((3, 3)) @ X[:3])
    both = np.arange(12, dtype=np.float32).reshape(4, 3)
    wanted = [both[1:].sum(0)] * 3
    full.data = np.ones(9, np.float32)
    SPARSE(full, both[1:], out=both[:3])
    np.testing.assert_array_equal(both[:3], wanted)


BAD_OUTS: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (X.tolist, "not an array, expected numpy.ndarray, got list"),
    "dtype": (lambda: X.astype("f8"), "wrong dtype, expected float32, got float64"),
    "bytes": (lambda: X.astype(">f4"), "wrong dtype, expected float32, got >f4"),
    "shape": (X[:3].copy, r"wrong shape, expected \[4, 3\], got \[3, 3\]"),
    "rank": (X[0].copy, r"wrong shape, expected \[4, 3\], got \[3\]"),
    "transposed": (lambda: np.asfortranarray(X), "not contiguous"),
    "strided": (lambda: np.repeat(X, 2, axis=0)[::2], "not contiguous"),
    "frozen": (lambda: frozen(X), "read-only"),
    "unaligned": (lambda: unaligned(X), "not aligned"),
}


@pytest.mark.parametrize("kind", BAD_OUTS)
def test_out_that_does_not_fit(kind: str) -> None:
    make, message = BAD_OUTS[kind]
    c = np.zeros((4, 6), np.float32)
    with pytest.raises(sw.InputError, match=f'output "y": {message}'):
        ONE(X, X, out=make())
    with pytest.raises(sw.InputError, match=f'output "r": {message}'):
        DENSE(X, X, out=(make(), c))
    assert not c.any()


def test_out_of_the_wrong_form() -> None:
    c = np.zeros((4, 6), np.float32)
    with pytest.raises(sw.InputError, match=r"expected a tuple of 2 \(r, c\), got ndarray"):
        DENSE(X, X, out=c)
    with pytest.raises(sw.InputError, match=r"wrong out, expected a tuple of 2 \(r, c\), got 1"):
        DENSE(X, X, out=(c,))
    with pytest.raises(sw.InputError, match=r"wrong out, expected a tuple of 1 \(y\), got 0"):
        ONE(X, X, out=())
    whole = np.zeros(24 + 6, np.float32)
    r, c = whole[:12].reshape(4, 3), whole[6:].reshape(4, 6)
    with pytest.raises(sw.InputError, match='output "c": overlaps output "r"'):
        DENSE(X, X, out=(r, c))


def test_a_subclass_as_out() -> None:
    y = np.zeros((4, 3), np.float32).view(np.recarray)
    assert ONE(X, X, out=y) is y
    np.testing.assert_array_equal(np.asarray(y), X + X)


# References and memory.


def fails() -> sw.Executable:
    b = sw.Builder("main")
    x = b.input("x", ("n", 3), "f32")
    b.output(b.gather(x, b.input("i", ("m",), "i64"), axis=0))
    return sw.compile(b.module(), threads=1)


def test_nothing_leaks(all_tests: bool) -> None:
    gather = fails()
    y, pair = X.copy(), (np.empty((4, 3), np.float32), np.empty((4, 6), np.float32))
    bad, tuple_of_parts, graph = np.array([7]), parts(), gnn.Graph.from_scipy(EYE)
    wrong = changed(indices=EYE.indices + 1)
    watched = (
        X,
        EYE,
        EYE.indptr,
        EYE.data,
        vars(EYE)["_shape"],
        y,
        pair,
        *pair,
        bad,
        tuple_of_parts,
        graph,
    )
    watched += (X.dtype, None, wrong, wrong.indices, "out", np.ndarray, *tuple_of_parts)

    def work() -> None:
        ONE(X, X)
        ONE(X, X, out=y)
        ONE(y, X, out=y)
        DENSE(X, X)
        DENSE(X, X, out=pair)
        DENSE(X, X, out=(None, pair[1]))
        for matrix in (EYE, tuple_of_parts, graph):
            SPARSE(matrix, X)
        SPARSE(EYE, X, out=y)
        for call in (
            lambda: ONE(X, X[:2]),
            lambda: ONE(X, None),
            lambda: ONE(X, X, out=X[:2]),
            lambda: DENSE(X, X, out=(pair[0], None, None)),
            lambda: DENSE(X, X, out=(pair[0], X)),
            lambda: SPARSE(EYE, X[:2]),
            lambda: SPARSE(wrong, X),
            lambda: SPARSE(Graph(wrong), X),
            lambda: SPARSE(Graph(None), X),
            lambda: gather(X, bad),
        ):
            with pytest.raises(sw.InputError):
                call()

    tracemalloc.start()
    for _ in range(20):
        work()
    gc.collect()
    counts = [sys.getrefcount(each) for each in watched]
    # What is lost is lost each time; other threads, such as that of a runner of tests, come by.
    times = CALLS if all_tests else CALLS // 4
    for _ in range(3):
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            work()
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
        if growth < times * SMALLEST:
            break
    tracemalloc.stop()
    changes = [sys.getrefcount(each) - count for each, count in zip(watched, counts, strict=True)]
    assert max(map(abs, changes)) < 20, changes
    assert growth < times * SMALLEST


def test_executables_are_freed() -> None:
    def make() -> None:
        b = sw.Builder("main")
        b.output(b.relu(b.input("x", (2,), "f32")))
        exe = sw.compile(b.module(), threads=1)
        exe(np.zeros(2, np.float32))
        alive.append(exe._loaded.frames)

    alive: list[Any] = []
    make()
    last = weakref.ref(alive.pop())
    gc.collect()
    assert last() is None


def test_frames_are_as_many_as_calls_at_once() -> None:
    exe = sw.compile(one(), threads=1)
    for _ in range(100):
        exe(X, X)
        slowly(exe, X, X)
    assert len(exe._loaded.frames._known) == 1


def test_the_arena_grows_with_the_sizes() -> None:
    rng = np.random.default_rng(0)
    b = sw.Builder("main")
    h = b.softmax(b.dense(b.input("x", ("n", 8), "f32"), rng.standard_normal((40, 8), np.float32)))
    b.output(b.dense(h, rng.standard_normal((5, 40), np.float32)))
    module = b.module()
    exe = sw.compile(module, threads=1, opt_level=0)
    for n in (3, 1, 100, 7, 2000):
        x = rng.standard_normal((n, 8), np.float32)
        np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-4, atol=1e-5)
    assert not goes_through_python(lambda: exe(x[:50]))
    (frame,) = exe._loaded.frames._known.values()
    assert frame.arena.nbytes
    # What no call uses is freed, and allocated again by the next one.
    exe._loaded.frames.trim()
    assert not frame.arena.nbytes
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-4, atol=1e-5)
    assert frame.arena.nbytes
    assert len(exe._loaded.frames._known) == 1


# Threads and processes.


def test_others_run_during_a_call() -> None:
    b = sw.Builder("main")
    size = 300
    x = b.input("x", (size, size), "f32")
    b.output(b.matmul(b.matmul(x, x), x))
    exe = sw.compile(b.module(), threads=1, opt_level=0)
    x = np.ones((size, size), np.float32)
    exe(x)
    ends: list[float] = []

    def call() -> None:
        for _ in range(4):
            ends.append(time.perf_counter())
            exe(x)
            ends.append(time.perf_counter())

    caller = threading.Thread(target=call)
    stamps: list[float] = []
    caller.start()
    while caller.is_alive():
        stamps.append(time.perf_counter())
    spans = list(zip(ends[::2], ends[1::2], strict=True))
    inside = [
        sum(begin + 0.2 * (end - begin) < stamp < end - 0.2 * (end - begin) for stamp in stamps)
        for begin, end in spans
    ]
    assert any(inside), (spans, len(stamps))


def test_many_threads_call_at_once() -> None:
    """Each caller gets its own results, of its own size, on either way."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        try:
            for _ in range(400):
                x = rng.standard_normal((rng.integers(1, 9), 3), np.float32)
                layout = np.asfortranarray if rng.random() < 0.1 else np.asarray
                np.testing.assert_array_equal(ONE(layout(x), x), x + x)
                with pytest.raises(sw.InputError):
                    ONE(x, X[0])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of two threads, which processes need not compile."""
    b = sw.Builder("main")
    b.output(b.softmax(b.dense(b.input("x", ("n", 64), "f32"), floats(64, 64))))
    path = tmp_path_factory.mktemp("program") / "m.stepwell"
    sw.compile(b.module(), threads=2).save(path)
    return path


def in_a_process(saved: Path, body: str) -> subprocess.CompletedProcess[str]:
    start = """
    import os, sys, threading
    import numpy as np
    import stepwell as sw
    exe = sw.load(sys.argv[1])
    x = np.ones((200, 64), np.float32)
    wanted = exe(x)
    """
    script = textwrap.dedent(start) + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, saved],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_process_ends_while_threads_call(saved: Path) -> None:
    done = in_a_process(
        saved,
        """
    def forever():
        while True:
            exe(x)
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(50):
        assert (exe(x) == wanted).all()
    print("end")
    """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_fork_while_threads_call(saved: Path) -> None:
    done = in_a_process(
        saved,
        """
    stop = []
    def work():
        while not stop:
            exe(x)
            exe(np.asfortranarray(x))
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        child = os.fork()
        if not child:
            fine = all((exe(v) == wanted).all() for v in (x, np.asfortranarray(x)) for _ in "ab")
            os._exit(not fine)
        assert os.waitpid(child, 0)[1] == 0
    stop.append(1)
    for thread in threads:
        thread.join()
    """,
    )
    assert done.returncode == 0, done.stderr


def test_an_executable_outlives_its_module_at_exit(saved: Path) -> None:
    """A call from a destructor when the interpreter takes modules apart."""
    done = in_a_process(
        saved,
        """
    class Last:
        def __del__(self, exe=exe, x=x):
            print(exe(x).shape)
    last = Last()
    """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(200, 64)\n", "")


# Where objects are not known.


def test_other_interpreters_go_through_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "boundary", lambda base: None)
    made = [sw.compile(make(), threads=1) for make in (dense, one, sparse)]
    assert [type(exe) for exe in made] == [Executable] * 3
    for result, wanted in zip(made[0](X, X), DENSE(X, X), strict=True):
        np.testing.assert_array_equal(result, wanted)
    y = np.empty((4, 3), np.float32)
    assert made[1](X, X, out=y) is y
    for matrix in PLAIN_MATRICES.values():
        np.testing.assert_array_equal(made[2](matrix, X), X)
    with pytest.raises(sw.InputError, match="column index out of range"):
        made[2](OTHER_MATRICES["bad index"], X)
    assert len(made[2]._loaded.frames._known) == 1


def test_numbers_that_no_plan_can_have() -> None:
    signature = replace(ONE._loaded.signature, arena=Dim.symbol("n") * 2**61 * 4)
    interface = replace(ONE._loaded.program.interface, signature=signature)
    program = replace(ONE._loaded.program, interface=interface)
    made = executable(program, vectorcall.boundary(Executable))
    assert type(made) is Executable
    with pytest.raises(sw.StepwellError, match=f"an arena of {2**65} bytes"):
        made(X, X)


@pytest.mark.parametrize(
    "change", ["_KIND", "_RANK", "_SHAPE", "_DATA", "_DESCR", "_FLAGS", "_TYPE", "_ABI"]
)
def test_other_layouts_are_noticed(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, change, getattr(objects, change) + 8)
    assert not objects.are_known.__wrapped__()


def test_the_type_of_executables() -> None:
    assert isinstance(ONE, sw.Executable)
    assert type(ONE) is vectorcall.fast_type(Executable)
    assert type(ONE).__qualname__ == "Executable"
    assert callable(ONE)
    with pytest.raises(TypeError):
        type("Mine", (type(ONE),), {})
    with pytest.raises(TypeError, match="does not support vectorcall"):
        object.__new__(type(ONE))(X, X)
