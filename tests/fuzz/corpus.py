"""Cases that once failed: a module, its inputs and how it is compiled, as text.

A file of `corpus/` begins with comments: `// about:` says what was wrong, `// way:` gives the
arguments of `Way` and `// input:` each input, with a CSR matrix as its three arrays and its shape.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.dtype_names import dtype_named
from stepwell.core.dtypes import element_type_of
from stepwell.core.ir.module import Module
from stepwell.diagnosis.reduction import reduce

from .comparing import Way, compare
from .outcomes import DifferenceError
from .programs import Case

FOLDER = Path(__file__).with_name("corpus")


def read(path: Path) -> tuple[Case, Way]:
    """The case of a file."""
    way, inputs = Way(), list[Any]()
    for line in path.read_text().splitlines():
        if line.startswith("// way: "):
            way = Way(**json.loads(line.removeprefix("// way: ")))
        if line.startswith("// input: "):
            inputs.append(_array(json.loads(line.removeprefix("// input: "))))
    return Case(sw.from_mlir(path), inputs, way.rounding == "kept"), way


def write(path: Path, case: Case, way: Way, about: str) -> None:
    """Write a case; weights go into a file beside it."""
    case.module.save(path)
    given = {name: value for name, value in way.__dict__.items() if value != getattr(Way(), name)}
    head = [f"// about: {about}", f"// way: {json.dumps(given)}"]
    head += [f"// input: {json.dumps(_text(array))}" for array in case.inputs]
    path.write_text("\n".join([*head, case.module.text()]))


def reduced(case: Case, way: Way, seconds: float) -> Case:
    """A small case that differs in the same way, by `stepwell reduce`."""

    def differs(module: Module) -> bool:
        return difference(Case(module, case.inputs, case.special), way) is not None

    small = reduce(case.module, case.inputs, test=differs, seconds=seconds)
    return Case(small.module, case.inputs, case.special)


def difference(case: Case, way: Way) -> str | None:
    """What differs; None where nothing does."""
    try:
        compare(case, way)
    except DifferenceError as error:
        return str(error)
    return None


def _text(array: Any) -> dict[str, Any]:
    if isinstance(array, np.ndarray):
        values = array.reshape(-1)
        exact = values.astype(np.float64) if values.dtype.kind not in "iub" else values
        return {
            "dtype": str(element_type_of(array.dtype)),
            "shape": array.shape,
            "data": exact.tolist(),
        }
    parts = (array.indptr, array.indices, array.data)
    return {"shape": array.shape, "csr": [_text(part) for part in parts]}


def _array(text: dict[str, Any]) -> Any:
    if "csr" in text:
        indptr, indices, values = map(_array, text["csr"])
        return csr_array((values, indices, indptr), shape=tuple(text["shape"]))
    return np.array(text["data"]).astype(dtype_named(text["dtype"])).reshape(text["shape"])
