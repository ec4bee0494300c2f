"""What is wrong with an argument is said in the same words, whoever runs the program.

Compiled code, calls through Python, the interpreter of a lower stage and the reference are given
the same arguments, of which one or two are wrong in some way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

import stepwell as sw
from stepwell.core.boundary.indices import RULES, CsrFault, explained
from stepwell.runtime.executable import Executable

ROWS = 4
X = np.arange(3 * ROWS, dtype=np.float32).reshape(ROWS, 3)
INDPTR, INDICES = np.array([0, 2, 2, 3, 5]), np.array([0, 3, 1, 2, 2])
VALUES = np.array([1, 2, 3, 4, 5], np.float32)


@cache
def program(rows: int | str, columns: int | str, nnz: int | None) -> tuple[sw.Module, Executable]:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((rows, columns), "f32", nnz))
    b.output(b.spmm(a, b.input("x", (columns, 3), "f32")), name="y")
    module = b.module()
    return module, sw.compile(module, threads=1)


PROGRAMS = [("n", "n", None), ("n", "m", None), (ROWS, ROWS, None), (ROWS, "m", 5)]


def said(call: Callable[[], Any]) -> str:
    try:
        call()
    except sw.StepwellError as error:
        return f"{type(error).__name__}: {error}"
    return "fine"


def agreed(which: tuple[Any, ...], inputs: Sequence[Any]) -> str:
    """What all ways say of some arguments."""
    module, exe = program(*which)
    ways = {
        "compiled": lambda: exe(*inputs),
        "Python": lambda: Executable.__call__(exe, *inputs),
        "interpreted": lambda: exe.run_at("buffers", *inputs),
        "reference": lambda: module.run_reference(*inputs),
    }
    told = {way: said(call) for way, call in ways.items()}
    assert len(set(told.values())) == 1, told
    return told["compiled"]


DENSE: dict[str, Callable[[], Any]] = {
    "right": lambda: X,
    "columns first": lambda: np.asfortranarray(X),
    "of floats with 64 bits": lambda: X.astype("f8"),
    "of other bytes first": lambda: X.astype(">f4"),
    "one row less": lambda: X[1:],
    "one column less": lambda: X[:, 1:],
    "without rows": lambda: X[:0],
    "a vector": lambda: X[0],
    "a number": lambda: 3.0,
    "a list": X.tolist,
    "a text": lambda: "text",
    "nothing": lambda: None,
    "masked": lambda: np.ma.masked_array(X),
    "sparse": lambda: csr_array(X),
    "objects": lambda: X.astype(object),
}

PARTS: dict[str, Callable[[], tuple[np.ndarray, ...]]] = {
    "right": lambda: (INDPTR, INDICES, VALUES),
    "narrow": lambda: (INDPTR.astype("i4"), INDICES.astype("i4"), VALUES),
    "strided": lambda: (INDPTR, np.repeat(INDICES, 2)[::2], np.repeat(VALUES, 2)[::2]),
    "unsigned": lambda: (INDPTR.astype("u8"), INDICES.astype("u1"), VALUES),
    "beyond 64 bits": lambda: (INDPTR, np.array([0, 2**63, 1, 2, 2], "u8"), VALUES),
    "floats for indices": lambda: (INDPTR, INDICES.astype("f8"), VALUES),
    "doubles": lambda: (INDPTR, INDICES, VALUES.astype("f8")),
    "a matrix of values": lambda: (INDPTR, INDICES, VALUES[:, None]),
    "a number for indptr": lambda: (np.array(0), INDICES, VALUES),
    "no indptr": lambda: (INDPTR[:0], INDICES, VALUES),
    "a value less": lambda: (INDPTR, INDICES, VALUES[1:]),
    "a column more": lambda: (INDPTR.astype("i4"), np.arange(6, dtype="i4") % 4, VALUES),
    "an entry less": lambda: (INDPTR, INDICES[1:], VALUES[1:]),
    "a row less": lambda: (INDPTR[:-1], INDICES[:3], VALUES[:3]),
    "no entries": lambda: (0 * INDPTR, INDICES[:0], VALUES[:0]),
    "not from 0": lambda: (INDPTR + 1, INDICES, VALUES),
    "decreasing": lambda: (np.array([0, 3, 2, 3, 5]), INDICES, VALUES),
    "too far": lambda: (np.array([0, 2, 2, 3, 6]), INDICES, VALUES),
    "negative column": lambda: (INDPTR, INDICES - 1, VALUES),
    "column too large": lambda: (INDPTR, INDICES + 1, VALUES),
    "all of it": lambda: (INDPTR[::-1] + 1, INDICES + 9, VALUES),
}


def matrix(parts: tuple[np.ndarray, ...]) -> Any:
    """A CSR matrix with these arrays, whatever they hold."""
    made = csr_array((ROWS, ROWS), dtype=np.float32)
    made.indptr, made.indices, made.data = parts
    return made


FORMS: dict[str, Callable[[tuple[np.ndarray, ...]], Any]] = {
    "three arrays": lambda parts: parts,
    "a matrix": matrix,
    "two arrays": lambda parts: parts[:2],
    "a list": list,
    "dense": lambda parts: X,
    "by coordinates": lambda parts: coo_array((VALUES, (INDICES, INDICES)), shape=(ROWS, ROWS)),
    "by columns": lambda parts: csc_array(np.eye(ROWS, dtype=np.float32)),
    "wide": lambda parts: csr_matrix(np.ones((ROWS, ROWS + 1), np.float32)),
    "nothing": lambda parts: None,
}


@settings(
    max_examples=settings().max_examples * 120 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(PROGRAMS),
    st.sampled_from([*["three arrays", "a matrix"] * 4, *FORMS]),
    st.sampled_from(sorted(PARTS)),
    st.sampled_from([*["right"] * 6, *DENSE]),
    st.sampled_from([*[2] * 12, 0, 1, 3]),
)
def test_all_ways_say_the_same(
    which: tuple[Any, ...], form: str, parts: str, dense: str, count: int
) -> None:
    inputs = [FORMS[form](PARTS[parts]()), DENSE[dense](), X]
    agreed(which, inputs[:count])


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("form", ["three arrays", "a matrix"])
def test_each_kind_of_arrays(form: str, parts: str) -> None:
    told = agreed(("n", "n", None), [FORMS[form](PARTS[parts]()), X])
    right = ("right", "narrow", "strided", "unsigned", "no entries")
    assert (told == "fine") == (parts in right)


@pytest.mark.parametrize("dense", DENSE)
def test_each_kind_of_dense_argument(dense: str) -> None:
    told = agreed(("n", "n", None), [(INDPTR, INDICES, VALUES), DENSE[dense]()])
    assert (told == "fine") == (dense in ("right", "columns first"))


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ("not from 0", CsrFault.START),
        ("decreasing", CsrFault.ORDER),
        ("too far", CsrFault.END),
        ("column too large", CsrFault.INDEX),
        ("all of it", CsrFault.START),
    ],
)
def test_the_first_rule_that_does_not_hold_is_told(parts: str, fault: CsrFault) -> None:
    (rule,) = [rule for rule in RULES if rule.fault is fault]
    told = agreed(("n", "n", None), [PARTS[parts](), X])
    assert told.startswith(f'InputError: input "a": {rule.text.partition("{")[0]}')


def test_each_fault_has_one_rule() -> None:
    assert [rule.fault for rule in RULES] == list(CsrFault)
    assert explained(CsrFault.ORDER, 3, 7) == "indptr decreases after row 3, got 7"


@cache
def gathered() -> tuple[sw.Module, Executable]:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", (2, "k"), "i64")
    b.output(b.gather(x, i, axis=0, name="pick"), name="y")
    return b.module(), sw.compile(b.module(), threads=1)


@pytest.mark.parametrize("rows", [0, 1, ROWS])
@pytest.mark.parametrize("wrong", [-5, -1, 0, 3, 4, 2**40])
@pytest.mark.parametrize("place", [0, 5])
def test_all_ways_say_the_same_of_indices(rows: int, wrong: int, place: int) -> None:
    module, exe = gathered()
    indices = np.full((2, 3), rows - 1)
    indices.flat[place] = wrong
    ways = (exe, module.run_reference, partial(exe.run_at, "loops"))
    told = {said(partial(way, X[:rows], indices)) for way in ways}
    (text,) = told
    assert (text == "fine") == (-rows <= wrong < rows)
    assert text == "fine" or text.startswith('InputError: node "pick": index ')
