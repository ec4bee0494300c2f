"""Errors of operators in ulps, beside those of NumPy, PyTorch and onnxruntime on the same inputs.

    python benchmarks/accuracy.py                # everything
    python benchmarks/accuracy.py --only softmax # some cases

An error is the distance of a result from the exact one in units in the last place: of the exact
result, or for a sum of the sum of its magnitudes, or for a normalisation of the largest result of
its row. A unit below the smallest normal number is the smallest denormal one. Each cell is the
largest error, then the mean one. `inf` is an infinity, NaN or number where the exact result,
rounded, is none; `worse` marks a case whose largest error exceeds that of the worst peer by more
than 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import accuracy_inputs as data
import numpy as np
import typer
from accuracy_cases import CASES, Case
from accuracy_exact import EXTENDED
from ml_dtypes import bfloat16, finfo
from peers import OURS, installed, one_node, torch_csr
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.sparse import csr_array

import stepwell as sw

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
PEERS = ("numpy", "torch", "onnxruntime")


@dataclass(frozen=True)
class Error:
    """The errors of the elements of a result, in ulps."""

    largest: float
    mean: float

    def __str__(self) -> str:
        return f"{_short(self.largest)}, {_short(self.mean)}"


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 100 else f"{number:.1e}"


@dataclass(frozen=True)
class Row:
    """A case for an element type, and the errors of those that compute it."""

    name: str
    kind: str
    errors: Mapping[str, Error]

    @property
    def is_worse(self) -> bool:
        """Whether the largest error is more than that of the worst peer, beyond what is chance."""
        peers = [error.largest for name, error in self.errors.items() if name != OURS]
        return bool(peers) and self.errors[OURS].largest > max(peers) * 1.05


def ulp_of(unit: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The unit in the last place of numbers, as if `dtype` had no largest number."""
    if dtype.kind in "iu":
        return np.ones((), EXTENDED)
    limits = finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(unit), unit, 1))[1] - 1
    return np.ldexp(EXTENDED.type(1), np.maximum(exponent, limits.minexp) - limits.nmant)


def error_of(result: np.ndarray, exact: np.ndarray, unit: np.ndarray) -> Error:
    """The errors of a result."""
    dtype, wide = result.dtype, result.astype(EXTENDED)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype).astype(EXTENDED)
        error = abs(wide - exact.astype(EXTENDED)) / ulp_of(unit, dtype)
    alike = (wide == rounded) | (np.isnan(wide) & np.isnan(rounded))
    finite = np.isfinite(wide) & np.isfinite(rounded)
    error = np.where(finite, error, np.where(alike, 0, np.inf))
    return Error(float(error.max()), float(error[np.isfinite(error)].mean()))


def module_of(case: Case, kind: str) -> sw.Module:
    """The program of a case."""
    arrays = case.inputs(DTYPES[kind])
    if case.program is None:
        return sw.from_onnx(_model(case, arrays))
    b, values = sw.Builder("main"), list[Any]()
    for number, array in enumerate(arrays):
        element = _element(array.dtype)
        spec = (
            sw.SparseSpec(array.shape, element, nnz=array.nnz)
            if isinstance(array, csr_array)
            else sw.TensorSpec(array.shape, element)
        )
        values.append(b.input(f"x{number}", spec))
    b.output(case.program(b, *values), name="y")
    return b.module()


def _element(dtype: np.dtype) -> str:
    names = {dtype: kind for kind, dtype in DTYPES.items()}
    prefix = {"u": "ui", "i": "i"}.get(dtype.kind, "")
    return names.get(dtype) or f"{prefix}{dtype.itemsize * 8}"


def _model(case: Case, arrays: data.Arrays) -> Any:
    assert case.node is not None
    dense = [array for array in arrays if isinstance(array, np.ndarray)]
    node = case.node
    return one_node(node.kind, dense, node.constants, node.attributes, opset=node.opset)


def in_numpy(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    """The result of NumPy; None if it has no such operation for the element type."""
    try:
        return case.formula(*arrays)
    except TypeError:
        return None


def in_torch(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    """The result of PyTorch, where it is installed and has the operator for the type."""
    if case.torch is None or not installed("torch"):
        return None
    import torch

    try:
        with torch.inference_mode():
            result = case.torch(torch, *(_tensor(torch, array) for array in arrays))
    except (NotImplementedError, RuntimeError):
        # torch has no kernel for this element type: its cell stays empty.
        return None
    if result.dtype == torch.bfloat16:
        return result.contiguous().view(torch.int16).numpy().view(bfloat16)
    return result.numpy()


def _tensor(torch: Any, array: np.ndarray | csr_array) -> Any:
    if isinstance(array, csr_array):
        return torch_csr(array)
    if array.dtype == bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def in_onnxruntime(case: Case, arrays: data.Arrays) -> np.ndarray | None:
    """The result of onnxruntime, where it is installed and has the operator for the type."""
    if case.node is None or not installed("onnxruntime") or arrays[0].dtype == bfloat16:
        return None
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    model = _model(case, arrays).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    except (Fail, InvalidGraph, NotImplemented):
        return None
    names = [spec.name for spec in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


IN_PEERS: dict[str, Callable[[Case, data.Arrays], np.ndarray | None]] = dict(
    zip(PEERS, (in_numpy, in_torch, in_onnxruntime), strict=True)
)


def measure(name: str, case: Case, kind: str) -> Row:
    """The errors of a case for an element type, ours and those of the peers."""
    arrays = case.inputs(DTYPES[kind])
    extended = tuple(map(_extended, arrays))
    with np.errstate(all="ignore"):
        exact, unit = case.formula(*extended), case.unit(case.formula, extended)
        found = {OURS: np.asarray(sw.compile(module_of(case, kind), threads=1)(*arrays))}
        for peer, call in IN_PEERS.items():
            result = call(case, arrays)
            if result is not None:
                found[peer] = np.asarray(result)
    errors = {who: error_of(y.reshape(exact.shape), exact, unit) for who, y in found.items()}
    return Row(name, kind, errors)


def _extended(array: np.ndarray | csr_array) -> np.ndarray | csr_array:
    if array.dtype not in DTYPES.values():
        return array
    if isinstance(array, np.ndarray):
        return array.astype(EXTENDED)
    # The matrix's own `astype` would add entries that have one place.
    entries = (array.data.astype(EXTENDED), array.indices, array.indptr)
    return csr_array(entries, shape=array.shape)


def table(rows: list[Row]) -> Table:
    """The errors of all cases."""
    made = Table("operator", "type", OURS, *PEERS, "", title="largest and mean error in ulps")
    for row in rows:
        cells = [str(row.errors.get(who, "")) for who in (OURS, *PEERS)]
        made.add_row(row.name, row.kind, *cells, "worse" if row.is_worse else "")
    return made


def main(
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
    markdown: Annotated[bool, typer.Option(help="print a table of Markdown")] = False,
) -> None:
    """Print the table."""
    chosen = [
        (name, case, kind)
        for name, case in CASES.items()
        for kind in case.types
        if only in name and (not markdown or kind)
    ]
    console = Console(width=140)
    rows = [measure(*case) for case in track(chosen, console=console, transient=True)]
    if not markdown:
        console.print(table(rows))
        return
    print(f"| operator | type | {' | '.join((OURS, *PEERS))} |\n|{'---|' * (3 + len(PEERS))}")
    for row in rows:
        cells = [str(row.errors.get(who, "")) for who in (OURS, *PEERS)]
        print(f"| {' | '.join((row.name, row.kind, *cells))} |")


if __name__ == "__main__":
    typer.run(main)
