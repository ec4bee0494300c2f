"""The interface of a program: what a call of its machine code needs to know, as plain data.

`Interface.to_dict` returns it as values of JSON, `Interface.from_dict` reads them again. A size is
a number, or the text of a dimension: ``"2*n*n+64"``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..core.algebra.dims import Dim, Shape
from ..core.boundary.arguments import IndexDtypes
from ..core.boundary.signature import Signature
from ..core.boundary.specs import ValueSpec
from ..dialects.rt.statuses import CallFailure
from .functions import Callee, Operand


@dataclass(frozen=True)
class Interface:
    """The inputs and results of a program, and what the tables of its context hold.

    Entry n of `constants` is the name of the weight that constant n is, or was packed from; entry n
    of `functions` is for slot n; entry n of `failures` says what status n + 1 means.
    """

    signature: Signature
    constants: tuple[str, ...]
    functions: tuple[Callee, ...]
    failures: tuple[CallFailure, ...]
    packing: str = ""
    """How constants are made of weights, as text (`dialects.program.constants_in`); empty where
    that is not known."""

    def to_dict(self) -> dict[str, Any]:
        """The interface as values of JSON."""
        signature = self.signature
        facts = signature.input_shapes, signature.entries, signature.index_dtypes
        return {
            "inputs": [
                {
                    **asdict(spec),
                    "dims": list(map(_size, shape)),
                    "entries": _bound(entries),
                    **_names(dtypes),
                }
                for spec, shape, entries, dtypes in zip(signature.inputs, *facts, strict=True)
            ],
            "outputs": [
                {**asdict(spec), "dims": list(map(_size, shape))}
                for spec, shape in zip(signature.outputs, signature.output_shapes, strict=True)
            ],
            "computed": [[name, _bound(bound)] for name, bound in signature.computed.items()],
            "equal": [[_size(left), _size(right)] for left, right in signature.equal],
            "arena": _size(signature.arena),
            "constants": list(self.constants),
            "functions": [asdict(callee) for callee in self.functions],
            "failures": [asdict(failure) for failure in self.failures],
            "packing": self.packing,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Interface:
        """The interface that `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: if it is none.
        """
        inputs, outputs = data["inputs"], data["outputs"]
        signature = Signature(
            inputs=tuple(map(spec_from, inputs)),
            outputs=tuple(map(spec_from, outputs)),
            input_shapes=tuple(_shape(entry["dims"]) for entry in inputs),
            output_shapes=tuple(_shape(entry["dims"]) for entry in outputs),
            entries=tuple(_read_bound(entry["entries"]) for entry in inputs),
            computed={name: _read_bound(bound) for name, bound in data["computed"]},
            equal=tuple((_dim(left), _dim(right)) for left, right in data["equal"]),
            index_dtypes=tuple(map(_index_dtypes, inputs)),
            arena=_dim(data["arena"]),
        )
        return Interface(
            signature,
            tuple(data["constants"]),
            tuple(map(_callee, data["functions"])),
            tuple(map(_failure, data["failures"])),
            str(data["packing"]),
        )


def _size(dim: Dim) -> int | str:
    number = dim.number
    return str(dim) if number is None else number


def _dim(size: int | str) -> Dim:
    return Dim.of(size) if isinstance(size, int) else Dim.parse(size)


def _bound(dim: Dim | None) -> int | str | None:
    return None if dim is None else _size(dim)


def _read_bound(size: int | str | None) -> Dim | None:
    return None if size is None else _dim(size)


def _shape(sizes: Sequence[Any]) -> Shape:
    return tuple(map(_dim, sizes))


def _names(dtypes: IndexDtypes | None) -> dict[str, str | None]:
    if dtypes is None:
        return {"index_dtype": None}
    return {"index_dtype": dtypes.indices.name, "indptr_dtype": dtypes.indptr.name}


def _index_dtypes(entry: Mapping[str, Any]) -> IndexDtypes | None:
    columns = entry["index_dtype"]
    if columns is None:
        return None
    # Files of ABI 1 have one dtype for both.
    return IndexDtypes(np.dtype(entry.get("indptr_dtype", columns)), np.dtype(columns))


def spec_from(entry: Mapping[str, Any]) -> ValueSpec:
    """The input or result of which the fields are these, as values of JSON."""
    shape = tuple(entry["shape"])
    # Files of Stepwell 0.1 or older have no paths, and neither examples nor labels.
    keys = [tuple(key) if isinstance(key, list) else key for key in entry.get("path", ())]
    labels = tuple(entry.get("labels", ()))
    named = entry["name"], shape, entry["dtype"], entry["format"], entry["nnz"]
    return ValueSpec(*named, tuple(keys), entry.get("of_example", False), labels)


def _callee(entry: Mapping[str, Any]) -> Callee:
    inputs, outputs = (tuple(map(_operand, entry[key])) for key in ("inputs", "outputs"))
    return Callee(entry["name"], inputs, outputs)


def _operand(entry: Mapping[str, Any]) -> Operand:
    indices = entry["indices"]
    pair = None if indices is None else (indices[0], indices[1])
    return Operand(entry["dtype"], tuple(entry["shape"]), pair)


def _failure(entry: Mapping[str, Any]) -> CallFailure:
    return CallFailure(entry["kind"], entry["subject"], entry["details"], tuple(entry["loops"]))
