"""Errors of operators in ulps, beside those of NumPy, PyTorch and onnxruntime on the same inputs.

An error is the distance of a result from the exact one in units in the last place: of the exact
result, or for a sum of the sum of its magnitudes, or for a normalisation of the largest result of
its row. A unit below the smallest normal number is the smallest denormal one. Each cell is the
largest error, then the mean one. `inf` is an infinity, NaN or number where the exact result,
rounded, is none; `worse` marks a case whose largest error exceeds that of the worst peer by more
than 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import accuracy_inputs as data
import numpy as np
import peers
from accuracy_cases import CASES, Case
from accuracy_exact import EXTENDED
from harness import Row, Table
from ml_dtypes import bfloat16, finfo
from models import built
from peers import OURS, installed, onnx_runtime
from scipy.sparse import csr_array

import stepwell as sw

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


@dataclass(frozen=True)
class Error:
    """The errors of the elements of a result, in ulps."""

    largest: float
    mean: float

    def __str__(self) -> str:
        return f"{_short(self.largest)}, {_short(self.mean)}"


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 100 else f"{number:.1e}"


def is_worse(errors: Mapping[str, Error]) -> bool:
    """Whether our largest error is more than that of the worst peer, beyond what is chance."""
    peers = [error.largest for name, error in errors.items() if name != OURS]
    return bool(peers) and errors[OURS].largest > max(peers) * 1.05


def ulp_of(unit: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The unit in the last place of numbers, as if `dtype` had no largest number."""
    if dtype.kind in "iu":
        return np.ones((), EXTENDED)
    limits = finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(unit), unit, 1))[1] - 1
    return np.ldexp(EXTENDED.type(1), np.maximum(exponent, limits.minexp) - limits.nmant)


def error_of(result: np.ndarray, exact: np.ndarray, unit: np.ndarray) -> Error:
    dtype, wide = result.dtype, result.astype(EXTENDED)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype).astype(EXTENDED)
        error = abs(wide - exact.astype(EXTENDED)) / ulp_of(unit, dtype)
    alike = (wide == rounded) | (np.isnan(wide) & np.isnan(rounded))
    finite = np.isfinite(wide) & np.isfinite(rounded)
    error = np.where(finite, error, np.where(alike, 0, np.inf))
    return Error(float(error.max()), float(error[np.isfinite(error)].mean()))


def module_of(case: Case, kind: str) -> sw.Module:
    arrays = case.inputs(DTYPES[kind])
    if isinstance(name := case.program, str):
        return built(lambda b, *x: getattr(b, name)(*x), *arrays)
    if case.program is not None:
        return built(case.program, *arrays)
    assert case.node is not None
    return sw.from_onnx(case.node.model(dense(arrays)))


def dense(arrays: data.Arrays) -> list[np.ndarray]:
    """The inputs of a node of ONNX, which has no sparse ones."""
    return [array for array in arrays if isinstance(array, np.ndarray)]


def in_numpy(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    try:
        return case.formula(*arrays)
    except TypeError:
        return None


def in_torch(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    try:
        found = peers.in_torch(case.torch, arrays, 1)
        result = found["torch"]() if found else None
    except (NotImplementedError, RuntimeError):
        # torch has no kernel for this element type: its cell stays empty.
        return None
    if result is None or str(result.dtype) != "torch.bfloat16":
        return result
    return result.float().numpy().astype(bfloat16)


def in_onnxruntime(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    """The result of onnxruntime, where it is installed and has the operator for the type."""
    if case.node is None or not installed("onnxruntime") or arrays[0].dtype == bfloat16:
        return None
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented

    try:
        return onnx_runtime(case.node.model(dense(arrays)), dense(arrays), 1)()
    except (Fail, InvalidGraph, NotImplemented):
        return None


PEERS: dict[str, Callable[[Case, data.Arrays], np.ndarray | None]] = {
    "numpy": in_numpy,
    "torch": in_torch,
    "onnxruntime": in_onnxruntime,
}


def measure(case: Case, kind: str) -> dict[str, Error]:
    arrays = case.inputs(DTYPES[kind])
    extended = tuple(map(_extended, arrays))
    with np.errstate(all="ignore"):
        exact, unit = case.formula(*extended), case.unit(case.formula, extended)
        exe = sw.compile(module_of(case, kind), threads=1, target=case.target)
        found = {OURS: np.asarray(exe(*arrays))}
        for peer, call in PEERS.items():
            result = call(case, arrays)
            if result is not None:
                found[peer] = np.asarray(result)
    return {who: error_of(y.reshape(exact.shape), exact, unit) for who, y in found.items()}


def _extended(array: np.ndarray | csr_array) -> np.ndarray | csr_array:
    if array.dtype not in DTYPES.values():
        return array
    if isinstance(array, np.ndarray):
        return array.astype(EXTENDED)
    # The matrix's own `astype` would add entries that have one place.
    entries = (array.data.astype(EXTENDED), array.indices, array.indptr)
    return csr_array(entries, shape=array.shape)


def errors_of(name: str, case: Case) -> Iterator[Row]:
    for kind in case.types:
        errors = measure(case, kind)
        cells = {who: str(errors.get(who, "")) for who in (OURS, *PEERS)}
        yield {"type": kind, **cells} | ({"": "worse"} if is_worse(errors) else {})


WITHOUT_A_CASE = {
    "one operation of IEEE 754 for an element, half an ulp": (
        "add cast dequantize div fma leaky_relu mul sqrt sub"
    ),
    "a few of them": "hard_sigmoid hard_swish prelu softsign",
    "a part of `softmax`, which has a case": "small_exp",
    "an element of an operand, its sign, or its whole part": (
        "abs bitcast broadcast_to ceil clip combine concat constant dropout dynamic_broadcast "
        "dynamic_reshape dynamic_slice exchange floor fmod gather gather_elements gather_nd max "
        "min neg pad pad_same relu reshape round sign slice sort top_k transpose where"
    ),
    "integers and truth values, or numbers made of their bits": (
        "arange arg_reduce bitwise_and bitwise_not bitwise_or bitwise_xor dim equal greater "
        "greater_equal less less_equal logical_and logical_not logical_or logical_xor nonzero "
        "one_hot random_uniform searchsorted shift_left shift_right suppress_boxes unique"
    ),
    "entries of matrices": (
        "assemble at_entries check check_indices entries missing_self_loops slice_rows sort_edges "
        "sort_edges_with_loops with_entries"
    ),
    "other operators": "call_dps call_packed if loop yield",
}
"""Operators without an approximation or a sum, by what their results are."""
TABLES = [Table("operator", CASES, errors_of)]
