"""What users get wrong: every call either works as NumPy would or ends in one clear error.

Calls that could leave a buffer run in a process of their own, where a crash is seen as one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import stepwell as sw
from stepwell.frontends import gnn

LEVELS = (0, 3)
W = np.random.default_rng(0).standard_normal((7, 5), np.float32)
Apart = Callable[[Callable[[], object]], str]


class BothWays:
    """A program that is called by compiled code, then through Python: both have to end alike."""

    def __init__(self, exe: sw.Executable) -> None:
        self.exe = exe

    def __call__(self, *inputs: object) -> Any:
        fast, slow = self._end(self.exe, inputs), self._end(self._slowly, inputs)
        assert [type(part) for part in fast] == [type(part) for part in slow]
        if isinstance(fast[1], BaseException):
            assert str(fast[1]) == str(slow[1])
            raise fast[1]
        np.testing.assert_equal(fast[0], slow[0])
        return fast[0]

    def _slowly(self, *inputs: object) -> Any:
        return sw.Executable.__call__(self.exe, *inputs)

    @staticmethod
    def _end(call: Callable[..., Any], inputs: tuple[object, ...]) -> tuple[Any, Any]:
        try:
            return call(*inputs), None
        except BaseException as error:
            return None, error


def compiled(module: sw.Module, level: int = 3) -> BothWays:
    return BothWays(sw.compile(module, threads=1, opt_level=level))


@cache
def shared(program: Callable[..., sw.Module], level: int = 3, *arguments: Any) -> BothWays:
    """A program that is compiled once for all tests that call it; `arguments` build it."""
    return compiled(program(*arguments), level)


def dense() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", ("n", 5), "f32"), W)), name="y")
    return b.module()


def spmm() -> sw.Module:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32"))
    b.output(b.spmm(a, b.input("x", ("n", 3), "f32")), name="y")
    return b.module()


def rows(indices: str = "i64") -> sw.Module:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", ("m",), indices)
    b.output(b.gather(x, i, axis=0), name="y")
    return b.module()


# Dense arguments.


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), "call: wrong number of inputs, expected 1 (x), got 0"),
        ((W, W), "call: wrong number of inputs, expected 1 (x), got 2"),
        ((W.astype(np.float64),), 'input "x": wrong dtype, expected float32, got float64'),
        ((W.astype(">f4"),), 'input "x": wrong dtype, expected float32, got >f4'),
        ((W[0],), 'input "x": wrong rank, expected 2 [n, 5], got 1'),
        ((W[:, :4],), 'input "x": wrong shape, expected [n, 5], got [7, 4]'),
        ((W.tolist(),), 'input "x": not an array, expected numpy.ndarray, got list'),
        ((None,), 'input "x": not an array, expected numpy.ndarray, got NoneType'),
        ((csr_array(W),), 'input "x": a dense array is needed, expected numpy.ndarray'),
    ],
)
def test_refused_arguments(inputs: tuple[Any, ...], message: str) -> None:
    exe = shared(dense)
    with pytest.raises(sw.InputError, match=re.escape(message)):
        exe(*inputs)


def unaligned(array: np.ndarray) -> np.ndarray:
    raw = np.empty(array.nbytes + 2, np.uint8)
    odd = 1 - raw.ctypes.data % 2
    result = raw[odd : odd + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    assert not result.flags.aligned
    return result


def read_only(array: np.ndarray) -> np.ndarray:
    result = array.copy()
    result.flags.writeable = False
    return result


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "columns first": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "columns of more": lambda x: np.concatenate([x, x], axis=1)[:, :5],
    "backwards": lambda x: x[::-1, ::-1],
    "read only": read_only,
    "unaligned": unaligned,
    "empty": lambda x: x[:0],
    "one": lambda x: x[:1],
    "broadcast": lambda x: np.broadcast_to(x[0], (9, 5)),
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "subclass": lambda x: x.view(np.matrix),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_every_layout(kind: str, level: int) -> None:
    x = ARRAYS[kind](np.random.default_rng(1).standard_normal((6, 5), np.float32))
    before = x.copy()
    y = shared(dense, level)(x)
    np.testing.assert_allclose(y, np.maximum(np.asarray(x) @ W.T, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x, before)
    assert y.flags.writeable
    assert not np.shares_memory(x, y)


@pytest.mark.parametrize("level", LEVELS)
def test_nan_and_infinity(level: int) -> None:
    x = np.full((4, 5), 1, np.float32)
    x[0, 1], x[1, 2], x[2, 3] = np.nan, np.inf, -np.inf
    b = sw.Builder("main")
    v = b.input("x", ("n", 5), "f32")
    b.output(b.relu(v))
    b.output(b.softmax(v))
    b.output(b.reduce(v, "max", axes=[1]))
    module = b.module()
    with np.errstate(invalid="ignore"):
        expected = module.run_reference(x)
    for got, want in zip(compiled(module, level)(x), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_zero_sizes_everywhere() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", "k"), "f32")
    b.output(b.matmul(x, b.input("z", ("k", "m"), "f32")))
    b.output(b.reduce(x, "sum", axes=[0, 1]))
    module = b.module()
    exe = compiled(module)
    for n, k, m in ((0, 0, 0), (3, 0, 2), (0, 2, 3), (2, 3, 0)):
        inputs = np.ones((n, k), np.float32), np.ones((k, m), np.float32)
        product, total = exe(*inputs)
        np.testing.assert_array_equal(product, inputs[0] @ inputs[1])
        assert total == n * k


# Symbols.


def test_symbols_that_disagree() -> None:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 5), "f32") + b.input("z", ("n", 5), "f32"))
    exe = compiled(b.module())
    message = 'input "z": dimension "n" differs from that of "x", expected {}, got {}'
    for inputs in ((W, W[:1]), (W[:1], W)):
        with pytest.raises(sw.InputError, match=re.escape(message.format(*map(len, inputs)))):
            exe(*inputs)


def test_sizes_that_an_operator_wants_to_agree() -> None:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 5), "f32") + b.input("z", ("m", 5), "f32"))
    module = b.module()
    for exe in (compiled(module, 0), compiled(module)):
        np.testing.assert_array_equal(exe(W, W), W + W)
        with pytest.raises(sw.InputError, match="call: dimensions n and m must agree"):
            exe(W, W[:3])


def outer(contracted: int | str) -> sw.Module:
    b = sw.Builder("main")
    product = b.matmul(
        b.input("x", ("n", contracted), "f32"), b.input("z", (contracted, "m"), "f32")
    )
    b.output(b.reduce(b.softmax(product), "sum", axes=[0, 1]))
    return b.module()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n", "m"), [(2**40, 2**40), (2**32, 2**32), (2**31, 2**31)])
def test_sizes_whose_product_overflows(n: int, m: int, level: int, apart: Apart) -> None:
    exe = shared(outer, level, 0)
    inputs = np.zeros((n, 0), np.float32), np.zeros((0, m), np.float32)
    outcome = apart(lambda: exe(*inputs))
    assert re.fullmatch(
        r"StepwellError: call: not enough memory for an arena of \d+ bytes", outcome
    )


@pytest.mark.unguarded("slots are no larger than their distance")
def test_sizes_beyond_memory() -> None:
    exe = compiled(outer(1))
    x = np.zeros((10**7, 1), np.float32)
    with pytest.raises(sw.StepwellError, match="not enough memory for an arena of 8000000"):
        exe(x, x.T)
    wide = np.broadcast_to(x[:1], (2**50, 1))
    with pytest.raises(sw.InputError, match='"x": not enough memory for a contiguous copy of'):
        exe(wide, x.T)
    b = sw.Builder("main")
    b.output(b.matmul(b.input("x", ("n", 0), "f32"), b.input("z", (0, "m"), "f32")), name="y")
    message = re.escape('not enough memory for result "y" of shape [1099511627776, 1099511627776]')
    with pytest.raises(sw.StepwellError, match=message):
        compiled(b.module())(np.zeros((2**40, 0), np.float32), np.zeros((0, 2**40), np.float32))


# Sparse arguments.


def parts(**change: Any) -> tuple[Any, Any, Any]:
    """The three arrays of a 3x3 identity, with some of them changed."""
    given = {
        "indptr": np.array([0, 1, 2, 3], np.int32),
        "indices": np.array([0, 1, 2], np.int32),
        "values": np.ones(3, np.float32),
        **change,
    }
    return given["indptr"], given["indices"], given["values"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


X3 = np.arange(9, dtype=np.float32).reshape(3, 3)

BAD_CSR: dict[str, tuple[dict[str, Any], str]] = {
    "index too large": (
        {"indices": ints(0, 1, 3)},
        "column index out of range at entry 2, got 3",
    ),
    "index negative": (
        {"indices": ints(0, -1, 2)},
        "column index out of range at entry 1, got -1",
    ),
    "indptr decreases": ({"indptr": ints(0, 2, 1, 3)}, "indptr decreases after row 1, got 2"),
    "indptr leaps": (
        {"indptr": ints(0, 2**31 - 1, 2, 3)},
        "indptr decreases after row 1, got 2147483647",
    ),
    "starts late": ({"indptr": ints(1, 1, 2, 3)}, "indptr does not start at 0, got 1"),
    "ends early": (
        {"indptr": ints(0, 1, 2, 2)},
        "indptr does not end at the number of entries, expected 3, got 2",
    ),
    "ends late": (
        {"indptr": ints(0, 1, 2, 4)},
        "indptr does not end at the number of entries, expected 3, got 4",
    ),
    "no indptr": ({"indptr": ints()}, "indptr has the wrong length, expected 1 or more, got 0"),
    "scalar": ({"indptr": np.int32(3)}, "indptr has the wrong rank, expected 1, got 0"),
    "matrix": ({"indices": np.zeros((3, 1), np.int32)}, "indices has the wrong rank"),
    "fewer values": (
        {"values": np.ones(2, np.float32)},
        "indices and values differ in length, expected 2, got 3",
    ),
    "wide index": (
        {"indices": np.array([0, 1, 2**32])},
        "indices does not fit int32, expected at most 2147483647, got 4294967296",
    ),
    "wide indptr": ({"indptr": np.array([0, 1, 2, 2**32 + 3])}, "indptr does not fit int32"),
    "unsigned": (
        {"indptr": np.array([0, 1, 2, 2**63 + 3], np.uint64)},
        "indptr does not fit int32",
    ),
    "far negative": ({"indptr": np.array([0, -(2**33), 2, 3])}, "indptr does not fit int32"),
    "float": ({"indptr": np.zeros(4)}, "indptr has the wrong dtype, expected int32, got float64"),
    "bool": ({"indices": np.ones(3, bool)}, "indices has the wrong dtype, expected int32"),
    "wrong values": (
        {"values": np.ones(3)},
        "wrong dtype, expected float32, got float64",
    ),
}


@pytest.mark.parametrize("level", LEVELS)
def test_malformed_csr(level: int, apart: Apart) -> None:
    exe = shared(spmm, level)

    def call_with_each() -> None:
        for change, message in BAD_CSR.values():
            with pytest.raises(sw.InputError, match=f'^input "a": {re.escape(message)}'):
                exe(parts(**change), X3)
            np.testing.assert_array_equal(exe(parts(), X3), X3)

    assert apart(call_with_each) == "works"


def test_a_csr_matrix_changed_behind_its_back(apart: Apart) -> None:
    exe = shared(spmm)
    matrix = csr_array(np.ones((3, 3), np.float32))
    matrix.indices[5] = 77
    outcome = apart(lambda: exe(matrix, X3))
    assert outcome == 'InputError: input "a": column index out of range at entry 5, got 77'
    matrix = csr_array(np.ones((3, 3), np.float32))
    matrix.indptr = matrix.indptr[:2]
    with pytest.raises(sw.InputError, match="indptr has the wrong length, expected 4, got 2"):
        exe(matrix, X3)


@pytest.mark.parametrize("level", LEVELS)
def test_csr_that_is_unusual_but_right(level: int) -> None:
    exe = shared(spmm, level)
    unsorted = parts(indptr=ints(0, 3, 3, 3), indices=ints(2, 0, 1), values=X3[1])
    twice = parts(indptr=ints(0, 3, 3, 3), indices=ints(2, 2, 2))
    wide = parts(indptr=np.array([0, 1, 2, 3]), indices=np.array([0, 1, 2]))
    strided = parts(indices=np.repeat(ints(0, 1, 2), 2)[::2], values=np.repeat(X3[1], 2)[::2])
    backwards = parts(indices=ints(2, 1, 0)[::-1])
    nothing = parts(indptr=ints(0, 0, 0, 0), indices=ints(), values=np.zeros(0, np.float32))
    for given in (unsorted, twice, wide, strided, backwards, nothing):
        matrix = csr_array((given[2], given[1], given[0]), shape=(3, 3))
        np.testing.assert_allclose(exe(given, X3), matrix @ X3, rtol=1e-6)
    assert exe(csr_array((0, 0), dtype=np.float32), X3[:0]).shape == (0, 3)


def in_row(number: int) -> coo_array:
    """A matrix with an entry in a row that is not there: it was changed after SciPy's check."""
    matrix = coo_array(np.eye(3, dtype=np.float32))
    matrix.coords = (np.array([0, 1, number]), matrix.coords[1])
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (coo_array(np.ones(3, np.float32)), "wrong rank, expected 2 [n, n], got 1"),
        (in_row(1 << 45), "not a sparse matrix (row index out of range, expected 0 to 2)"),
        (in_row(-1), "not a sparse matrix (row index out of range, expected 0 to 2)"),
        (csr_array(np.ones((3, 3))), "wrong dtype, expected float32, got float64"),
        (np.eye(3, dtype=np.float32), "a sparse matrix is needed, expected scipy.sparse CSR"),
        (
            csr_array(np.ones((3, 4), np.float32)),
            'dimension "n" differs from that of "a", expected 3, got 4',
        ),
    ],
)
def test_what_is_no_csr_matrix_of_the_kind(matrix: object, message: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f'input "a": {message}')):
        shared(spmm)(matrix, X3)


def test_a_graph_without_edges() -> None:
    layer = gnn.GCNConv(W.T[:, :4], np.ones(4, np.float32))
    module = gnn.Sequential(layer).to_module(gnn.GraphSpec(), sw.TensorSpec((None, 5), "f32"))
    exe = compiled(module)
    for nodes in (0, 1, 6):
        graph = gnn.Graph.from_edge_index(np.zeros((2, 0), np.int64), nodes)
        x = W[:nodes]
        expected = x @ W.T[:, :4] + 1
        np.testing.assert_allclose(exe(graph, x), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(sw.InputError, match="expected 2, got 3"):
        exe(gnn.Graph.from_edge_index(np.zeros((2, 0), np.int64), 2), W[:3])


# Indices.


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_indices_out_of_range(dtype: str, level: int, apart: Apart) -> None:
    exe = shared(rows, level, dtype)
    indices = np.array([0, -3, 1], np.dtype(f"int{dtype[1:]}"))

    def call_with_each() -> None:
        for bad in (3, -4, 2**31 - 1, -(2**31)):
            indices[1] = bad
            message = f"^node .*index out of range at position 1, expected -3 to 2, got {bad}$"
            with pytest.raises(sw.InputError, match=message):
                exe(X3, indices)

    assert apart(call_with_each) == "works"
    np.testing.assert_array_equal(exe(X3, indices), X3[indices])


def test_a_constant_index_out_of_range() -> None:
    b = sw.Builder("main")
    b.output(b.gather(b.input("x", ("n", 2)), np.array([0, 2, -3]), axis=0), name="y")
    exe = sw.compile(b.module(), threads=1)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(exe(x[:3]), x[[0, 2, 0]])
    with pytest.raises(sw.InputError, match="index out of range, expected -2 to 1, got"):
        exe(x[:2])


def test_an_index_into_nothing(apart: Apart) -> None:
    exe = shared(rows)
    outcome = apart(lambda: exe(X3[:0], np.array([0])))
    assert outcome.endswith(": index into an empty dimension at position 0, got 0")
    assert exe(X3[:0], np.zeros(0, np.int64)).shape == (0, 3)


# Registered functions.


def packed(name: str, times: int = 1) -> sw.Module:
    b = sw.Builder("main")
    x = b.exp(b.input("x", ("n", 5), "f32"))
    for _ in range(times):
        x = b.call_packed(name, x, results=sw.TensorSpec(("n", 5)))
    b.output(b.neg(x), name="y")
    return b.module()


def test_a_function_that_raises() -> None:
    calls: list[int] = []

    @sw.register_function("test.raises")
    def raises(x: np.ndarray, y: np.ndarray) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("boom")
        y[...] = x

    exe = compiled(packed("test.raises")).exe
    with pytest.raises(
        sw.StepwellError, match=r"function \"test.raises\": raised KeyError: 'boom'"
    ):
        exe(W)
    np.testing.assert_allclose(exe(W), -np.exp(W), rtol=1e-5)


def test_a_function_that_writes_to_its_input() -> None:
    @sw.register_function("test.writes")
    def writes(x: np.ndarray, y: np.ndarray) -> None:
        x[...] = 0

    with pytest.raises(sw.StepwellError, match="ValueError: assignment destination is read-only"):
        compiled(packed("test.writes"))(W)


def test_a_function_that_is_interrupted() -> None:
    @sw.register_function("test.interrupted")
    def interrupted(x: np.ndarray, y: np.ndarray) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled(packed("test.interrupted"))(W)


def test_a_function_that_is_missing() -> None:
    with pytest.raises(sw.CompileError, match=r'function "test\.missing": is not registered'):
        compiled(packed("test.missing"))


def test_a_result_whose_size_nobody_knows() -> None:
    text = """
        func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
          %y = graph.call_packed "test.any"(%x) : (tensor<?xf32>) -> tensor<?xf32>
          func.return %y : tensor<?xf32>
        }
    """
    with pytest.raises(
        sw.CompileError, match=r'size "_1" is not that of an argument; name it in `dims`'
    ):
        compiled(sw.from_mlir(text))


def test_functions_of_one_name_and_several_types() -> None:
    @sw.register_function("test.copy")
    def copy(x: np.ndarray, y: np.ndarray) -> None:
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        y[...] = x

    b = sw.Builder("main")
    x = b.input("x", ("n", 5), "f32")
    wide = b.cast(b.reduce(x, "sum", axes=[1]), "f64")
    b.output(b.call_packed("test.copy", x, results=sw.TensorSpec(("n", 5))))
    b.output(b.call_packed("test.copy", wide, results=sw.TensorSpec(("n",), "f64")))
    exe = compiled(b.module())
    for x in (W, W[:0]):
        first, second = exe(x)
        np.testing.assert_array_equal(first, x)
        np.testing.assert_allclose(second, x.sum(1), rtol=1e-5, atol=1e-5)


def test_a_function_that_calls_the_program_that_calls_it() -> None:
    def twice(program: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """A function that starts the program again the first two times that it is called."""
        calls: list[int] = []

        def function(x: np.ndarray) -> np.ndarray:
            calls.append(1)
            return program(x * np.float32(0.1)) if len(calls) < 3 else x

        return function

    def simulated(x: np.ndarray) -> np.ndarray:
        return -wanted(wanted(np.exp(x)))

    @sw.register_function("test.nested")
    def nested(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = called(x)

    exe = compiled(packed("test.nested", times=2)).exe
    wanted, called = twice(simulated), twice(exe)
    np.testing.assert_allclose(exe(W), simulated(W), rtol=1e-5)


# Compiling.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "compile: wrong threads, expected 1 to 256, got 0"),
        ({"threads": -1}, "compile: wrong threads, expected 1 to 256, got -1"),
        ({"threads": "2"}, "compile: wrong threads, expected 1 to 256, got '2'"),
        ({"threads": 100_000}, "compile: wrong threads, expected 1 to 256, got 100000"),
        ({"threads": True}, "compile: wrong threads, expected 1 to 256, got True"),
        ({"opt_level": True}, "compile: unknown opt_level, expected 0, 1, 2 or 3, got True"),
        ({"opt_level": 4}, "compile: unknown opt_level, expected 0, 1, 2 or 3, got 4"),
        ({"opt_level": "3"}, "compile: unknown opt_level, expected 0, 1, 2 or 3, got '3'"),
        ({"check": 3}, "compile: wrong check, expected True, False, or inputs, got int"),
        ({"records": 3}, "tuning records: not a path, expected a path, True or False, got int"),
        ({"opt_level": []}, "compile: unknown opt_level, expected 0, 1, 2 or 3, got []"),
        ({"target": "z80"}, "target: unknown name, expected host, x86-64"),
        ({"target": None}, 'got "None"'),
        ({"target": ["host"]}, "target: unknown name"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.StepwellError, match=re.escape(message)):
        sw.compile(dense(), **options)


@pytest.mark.parametrize("module", ["m.mlir", None, 3, dense().op])
def test_what_is_no_module(module: Any) -> None:
    message = r"compile: not a module, expected stepwell.Module, got .*; from_onnx, .* read models"
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(module)


@pytest.mark.parametrize("stage", ["loop", 3, ""])
def test_unknown_stages(stage: Any) -> None:
    with pytest.raises(sw.CompileError, match="stage: unknown name, expected graph, optimized"):
        shared(dense).exe.ir(stage)


def test_a_machine_of_another_kind() -> None:
    name = "x86-64" if os.uname().machine == "aarch64" else "neoverse-n1"
    exe = sw.compile(dense(), target=name)
    with pytest.raises(sw.TargetError, match=f"{name}: cannot run here"):
        exe(np.ones((2, 5), np.float32))


def test_the_module_changes_after_it_was_compiled() -> None:
    weights = W.copy()
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", ("n", 5), "f32"), weights))
    module = b.module()
    for level in LEVELS:
        exe = compiled(module.clone(), level).exe
        before = exe(W)
        weights[...] = 7
        np.testing.assert_array_equal(exe(W), before)
    module.main.detach()
    np.testing.assert_array_equal(exe(W), before)
    assert "func.func @main" in exe.ir("graph")
    with pytest.raises(
        sw.CompileError, match="one public function is needed, expected 1, got none"
    ):
        compiled(module)


# Threads of Python.


def deep() -> sw.Module:
    """A program with several buffers in its arena."""
    square = np.random.default_rng(2).standard_normal((16, 16), np.float32)
    b = sw.Builder("main")
    x = b.input("x", ("n", 16), "f32")
    for _ in range(3):
        x = b.softmax(b.dense(b.relu(x), square))
    b.output(x)
    return b.module()


def test_compiled_in_several_threads() -> None:
    module = deep()
    x = np.random.default_rng(3).standard_normal((9, 16), np.float32)
    expected = module.run_reference(x)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: compiled(module, LEVELS[n % 2]), range(4)))
    for exe in made:
        np.testing.assert_allclose(exe(x), expected, rtol=1e-4, atol=1e-6)


def test_called_in_several_threads() -> None:
    exe = shared(deep)
    rng = np.random.default_rng(4)
    batches = [rng.standard_normal((1 + n % 40, 16), np.float32) for n in range(300)]
    expected = [exe(x) for x in batches]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(exe, batches))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_errors_in_several_threads_are_their_own() -> None:
    exe = shared(rows)

    def call(number: int) -> str:
        try:
            exe(X3, np.array([0, number]))
        except sw.InputError as error:
            return str(error).rpartition("got ")[2]
        return "fine"

    numbers = [n % 7 for n in range(400)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(call, numbers))
    assert got == ["fine" if n < 3 else str(n) for n in numbers]


def test_an_index_error_leaves_out_as_it_was() -> None:
    b = sw.Builder()
    x, at = b.input("x", (300, 1024)), b.input("at", (300, 1024), "i64")
    b.output(b.gather_elements(x, at, axis=1))
    exe = sw.compile(b.module(), threads=2)
    assert "rt.unroll" in exe.ir("llvm")
    rng = np.random.default_rng(1)
    values = rng.standard_normal((300, 1024), np.float32)
    places = rng.integers(-1024, 1024, (300, 1024))
    out = np.full_like(values, 7)
    np.testing.assert_array_equal(
        exe(values, places, out=out), np.take_along_axis(values, places, 1)
    )
    out[:], places[299, 1023] = 7, 1024
    with pytest.raises(sw.InputError, match=f"at position {300 * 1024 - 1}, "):
        exe(values, places, out=out)
    assert (out == 7).all()
