"""Random arrays, comparisons of results, and reasons to skip, for all tests."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Callable, Sequence
from typing import Any, Literal

import hypothesis
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import stepwell as sw

RNG = np.random.default_rng(0)
"""One stream of random numbers, begun anew for each test file, test and random example."""

_BEGINNING = RNG.bit_generator.state


def restart(seed: int = 0) -> None:
    """Begin the stream of random numbers anew."""
    state = np.random.default_rng(seed).bit_generator.state if seed else _BEGINNING
    RNG.bit_generator.state = state


class _Stream:
    """The stream, in the form in which hypothesis begins it anew for each example."""

    seed = staticmethod(restart)

    def getstate(self) -> Any:
        return RNG.bit_generator.state

    def setstate(self, state: Any) -> None:
        RNG.bit_generator.state = state


_STREAM = _Stream()  # hypothesis only refers to it weakly
hypothesis.register_random(_STREAM)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """The next normally distributed numbers of the stream."""
    return RNG.standard_normal(shape).astype(dtype)


def is_quick() -> bool:
    """Whether slow tests are left out: the profile of hypothesis is chosen by that."""
    return hypothesis.settings().max_examples < 100


def import_level() -> int:
    """The level at which tests of imports compile: quick ones without a schedule.

    What is imported are operators, whose schedules have tests of their own.
    """
    return 0 if is_quick() else 3


def cases(values: Sequence[Any], usual: Sequence[Any]) -> list[Any]:
    """Parameters of a test, of which those that are not `usual` are slow."""
    assert all(value in values for value in usual), "a usual value is no value"
    return [v if v in usual else pytest.param(v, marks=pytest.mark.slow) for v in values]


def results(found: Any) -> tuple[np.ndarray, ...]:
    """The results of a program of one or several."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def same(got: Any, want: Any, what: str = "") -> None:
    """Compare results bit by bit; NaNs are equal to each other."""
    for one, other in _pairs(got, want, what):
        if one.dtype.kind not in "biu":
            # Of types that are not its own, NumPy does not know which numbers are NaNs.
            one, other = one.astype(np.float64), other.astype(np.float64)
            numbers = ~np.isnan(other)
            signs = np.signbit(one[numbers]), np.signbit(other[numbers])
            np.testing.assert_array_equal(*signs, what)
        np.testing.assert_array_equal(one, other, what)


def close(
    got: Any,
    want: Any,
    rtol: float = 1e-5,
    atol: float | None = None,
    *,
    scaled: bool = False,
    what: str = "",
) -> None:
    """Compare results up to rounding: integers are equal, and dtypes and shapes always are.

    Args:
        got, want: an array, or several.
        rtol: the relative tolerance.
        atol: the absolute one, by default `rtol`.
        scaled: whether `atol` is multiplied by the largest finite number that is wanted, if that is
            above 1: for sums, whose terms may cancel.
        what: what is compared, for the message.
    """
    atol = rtol if atol is None else atol
    for one, other in _pairs(got, want, what):
        if one.dtype.kind in "biu":
            np.testing.assert_array_equal(one, other, what)
            continue
        one, other = one.astype(np.float64), other.astype(np.float64)
        scale = np.abs(other[np.isfinite(other)]).max(initial=1) if scaled else 1
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol * scale, err_msg=what)


def _pairs(got: Any, want: Any, what: str) -> list[tuple[np.ndarray, np.ndarray]]:
    pairs = []
    for have, expected in zip(results(got), results(want), strict=True):
        one, other = np.asarray(have), np.asarray(expected)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), what
        pairs.append((one, other))
    return pairs


def as_reference(
    module: sw.Module,
    *inputs: Any,
    rtol: float = 1e-5,
    atol: float | None = None,
    scaled: bool = False,
    **options: Any,
) -> sw.Executable:
    """Compare what is compiled, with `options`, with the reference; rtol=0 compares bits."""
    exe = sw.compile(module, **options)
    _comparison(rtol, atol, scaled)(exe(*inputs), module.run_reference(*inputs))
    return exe


def _comparison(rtol: float, atol: float | None, scaled: bool) -> Callable[..., None]:
    return functools.partial(close, rtol=rtol, atol=atol, scaled=scaled) if rtol else same


def onnx_results(proto: onnx.ModelProto, *inputs: Any) -> list[np.ndarray]:
    """The results of the evaluator of the onnx package, with inputs in their order."""
    names = [value.name for value in proto.graph.input]
    with np.errstate(all="ignore"):
        found = ReferenceEvaluator(proto).run(None, dict(zip(names, inputs, strict=True)))
    return [np.asarray(value) for value in found]


def as_onnx(
    proto: onnx.ModelProto,
    *inputs: Any,
    ways: Sequence[Literal["reference", "compiled"]] = ("reference",),
    rtol: float = 1e-5,
    atol: float | None = None,
    scaled: bool = False,
    **options: Any,
) -> None:
    """Compare an imported model with the evaluator of the onnx package; rtol=0 compares bits.

    Args:
        proto: the model.
        inputs: an array for each of its inputs.
        ways: whether the reference runs it, or compiled code, or both.
        rtol, atol, scaled: as `close` takes them.
        options: how it is compiled, by default at `import_level`.
    """
    want, module = onnx_results(proto, *inputs), sw.from_onnx(proto)
    compare = _comparison(rtol, atol, scaled)
    for way in ways:
        if way == "reference":
            run: Callable[..., Any] = module.run_reference
        else:
            run = sw.compile(module, **{"opt_level": import_level(), **options})
        compare(run(*inputs), want, what=way)


def needs_package(name: str, distribution: str = "") -> pytest.MarkDecorator:
    """Skip tests where a module is missing; pip installs `distribution`."""
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=_pip(name, distribution))


def package(name: str, distribution: str = "") -> Any:
    """A module, without which the test, or the file, is skipped; pip installs `distribution`."""
    return pytest.importorskip(name, reason=_pip(name, distribution))


def needs_tool(name: str, debian: str) -> pytest.MarkDecorator:
    """Skip tests where a program is missing, which is in a package of Debian."""
    return pytest.mark.skipif(shutil.which(name) is None, reason=_apt(name, debian))


def tool(name: str, debian: str) -> str:
    """The path of a program, without which the test is skipped."""
    if (path := shutil.which(name)) is None:
        pytest.skip(_apt(name, debian))
    return path


def _pip(name: str, distribution: str) -> str:
    return f"needs {name}: pip install '{distribution or name.partition('.')[0]}'"


def _apt(name: str, debian: str) -> str:
    return f"needs {name}: apt install {debian}"
