"""The test suite of the onnx package: cases that pass are listed, and stay so.

`pytest -n 0 --renew-public tests/numeric/test_onnx_suite.py` writes the list again.
"""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import stepwell as sw

from ..harness import results

LIST = Path(__file__).with_name("onnx_suite.txt")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
PARTS = 32
# That of the package for this type.
BF16_TOLERANCE = 2.0**-6

pytestmark = pytest.mark.slow


@functools.cache
def suite() -> dict[str, TestCase]:
    """All cases by their names."""
    with warnings.catch_warnings():
        # It computes what it expects with NumPy, infinities among it.
        warnings.simplefilter("ignore")
        return {
            f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)
        }


def listed() -> list[str]:
    return LIST.read_text(encoding="utf-8").split()


def contents(case: TestCase) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """The model of a case, and its operands with the results that it expects."""
    if case.model is not None:
        assert case.data_sets is not None
        return case.model, [(arrays(given), arrays(want)) for given, want in case.data_sets]
    assert case.model_dir is not None
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set*")):
        counts = (("input", model.graph.input), ("output", model.graph.output))
        given, want = (
            [
                stored(data / f"{kind}_{n}.pb", infos[n].type)
                for n in range(len(list(data.glob(f"{kind}_*.pb"))))
            ]
            for kind, infos in counts
        )
        sets.append((given, want))
    return model, sets


def arrays(values: Any) -> list[Any]:
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def stored(path: Path, type: onnx.TypeProto) -> Any:
    data = path.read_bytes()
    if type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def run(name: str) -> None:
    """Compile and run a case.

    Raises:
        StepwellError: if it is not supported.
        AssertionError: if a result is another one.
    """
    case = suite()[name]
    model, sets = contents(case)
    exe = sw.compile(sw.from_onnx(model, shapes_of(model, sets[0][0])), threads=1)
    for given, want in sets:
        found, expected = results(exe(*tensors(given))), tensors(want)
        assert len(found) == len(expected)
        for got, own in zip(found, expected, strict=True):
            assert_same(got, own, case.rtol, max(case.atol, 1e-5))


def shapes_of(model: onnx.ModelProto, given: list[Any]) -> dict[str, Any]:
    """The shapes of operands that are sequences or optional values."""
    operands = zip(model.graph.input, given, strict=False)
    return {
        info.name: None
        if x is None
        else [np.shape(part) for part in x]
        if isinstance(x, list)
        else np.shape(x)
        for info, x in operands
        if not info.type.HasField("tensor_type")
    }


def tensors(values: list[Any]) -> list[np.ndarray]:
    """The tensors of values; an optional value without an element has none."""
    lists = (x if isinstance(x, list) else [] if x is None else [x] for x in values)
    return [np.asarray(part) for parts in lists for part in parts]


def assert_same(got: Any, want: np.ndarray, rtol: float, atol: float) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if want.dtype == object:
        assert got.tolist() == want.tolist()
        return
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, BF16_TOLERANCE)
    if want.dtype.kind not in "fiub":
        got, want = (x.astype(np.float32) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def passes(name: str) -> str | None:
    """Why a case does not pass, None if it does."""
    try:
        run(name)
    except (sw.StepwellError, AssertionError, ValueError, TypeError) as error:
        return f"{name}: {' '.join(str(error).split())[:200]}"
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_what_passes_stays_so(part: int, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--renew-public"):
        renew(part)
    faults = [fault for fault in map(passes, listed()[part::PARTS]) if fault is not None]
    assert not faults, "\n".join(faults)


def renew(part: int) -> None:
    own = sorted(suite())[part::PARTS]
    others = set(listed()) - set(own) if LIST.exists() else set()
    names = sorted(others | {name for name in own if passes(name) is None})
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
