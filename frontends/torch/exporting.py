"""Exported programs in core ATen, from modules, exported programs and ``.pt2`` files."""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MethodType
from typing import Any

from ...core.errors import ImportModelError, InputError, explain
from .library import library
from .recurrent import whole_layers
from .replacements import exportable_parts
from .sparse import stand_ins, taking_matrices

KEPT = (
    *("linear.default", "matmul.default", "scaled_dot_product_attention.default"),
    *("index_add.default", "index_copy.default", "index_select.default", "instance_norm.default"),
    "one_hot.default",
    *("max_pool1d.default", "max_pool2d.default", "max_pool3d.default"),
    *("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default"),
    *("celu.default", "elu.default", "hardsigmoid.default", "hardswish.default"),
    *("hardtanh.default", "leaky_relu.default", "log_sigmoid.default", "mish.default"),
    *("relu6.default", "selu.default", "silu.default", "softplus.default", "softshrink.default"),
    *("hardshrink.default", "threshold.default", "logsumexp.default", "addmm.default"),
    *("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"),
    *("upsample_linear1d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec"),
    *("_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec"),
    *(
        f"{name}{n}d.vec"
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for n in (1, 2, 3)
    ),
    *("isinf.default", "isfinite.default", "tril.default", "triu.default", "rsub.Scalar"),
    *(
        "segment_reduce.default",
        "square.default",
        "stack.default",
        "std.correction",
        "cumprod.default",
    ),
)
"""Operators of ATen that stay whole, because the IR has them or composes them better."""


_SIZES = "give sizes that follow from values as arguments, such as num_nodes, size or batch_size"


def exported(
    source: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> Any:
    """The program of a model in core ATen and the operators that stay whole.

    Raises:
        InputError: if the arguments do not fit the source, or a module is in training mode.
        ImportModelError: if a file cannot be read, or torch cannot export the module.
    """
    torch = library()
    is_file = isinstance(source, (str, os.PathLike))
    program: Any = source
    if isinstance(source, torch.nn.Module):
        program = _of_module(source, args, kwargs, dynamic_shapes)
    elif is_file or isinstance(source, torch.export.ExportedProgram):
        for name, given in (("args", args), ("kwargs", kwargs), ("dynamic_shapes", dynamic_shapes)):
            if given is not None:
                what = "the path of a file" if is_file else "an exported program"
                fact = f"{name} belong to a module, not to {what}"
                raise InputError(explain("from_torch", fact))
        if is_file:
            path = Path(source)
            if not path.is_file():
                raise ImportModelError(explain("from_torch", f"no such file: {path}"))
            with _quiet(), _explained(f"read {path}"):
                program = torch.export.load(path)
    else:
        raise _wrong_model(source)
    table = core_operators()
    with _quiet(), _explained("decompose the program"):
        return program.run_decompositions(table)


def _wrong_model(source: Any) -> InputError:
    """The error for what is no model, with a way to one."""
    module, name = library().nn.Module, getattr(source, "__name__", type(source).__name__)
    got, hint = type(source).__name__, None
    if isinstance(source, type):
        got, hint = f"the class {name}", "give an instance of it"
    elif isinstance(source, MethodType) and isinstance(source.__self__, module):
        got, hint = f"the method {name} of a module", "give the module itself"
    elif isinstance(source, Mapping):
        got += ", perhaps the weights of a module"
        hint = "give the module, after load_state_dict"
    elif callable(source):
        got, hint = f"the function {name}", "make it the forward of a torch.nn.Module"
    expected = "a torch.nn.Module, an ExportedProgram or the path of a .pt2 file"
    return InputError(explain("from_torch", "wrong model", expected=expected, got=got, hint=hint))


def core_operators() -> Any:
    """The table of torch that decomposes operators, without those that stay whole."""
    torch = library()
    table = torch.export.default_decompositions()
    for name in KEPT:
        operator = _operator(torch, name)
        if operator is not None:
            table.pop(operator, None)
    return table


def _operator(torch: Any, name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload, None)


def _of_module(
    module: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> Any:
    torch = library()
    training = next((name for name, part in module.named_modules() if part.training), None)
    if training is not None:
        part = f'module "{training}" is' if training else "the model is"
        raise InputError(
            explain("from_torch", f"{part} in training mode", hint="call model.eval() first")
        )
    if not isinstance(args, (tuple, list)):
        fact, got = "args are example inputs of the module", type(args).__name__
        raise InputError(explain("from_torch", fact, expected="a tuple", got=got))
    if kwargs is not None and not isinstance(kwargs, Mapping):
        fact, got = "kwargs are example inputs by name", type(kwargs).__name__
        raise InputError(explain("from_torch", fact, expected="a dictionary", got=got))
    given = stand_ins(tuple(args))
    keywords = None if kwargs is None else stand_ins(dict(kwargs))

    def export(*, strict: bool) -> Any:
        with _quiet():
            return torch.export.export(
                module, given, keywords, dynamic_shapes=dynamic_shapes, strict=strict
            )

    matrices = taking_matrices(module, args, kwargs)
    with _slow_path(torch), whole_layers(), matrices, _explained("export the module"):
        try:
            return export(strict=False)
        except _data_dependent() as error:
            return _analysed(export, error)


def _data_dependent() -> type[Exception]:
    """The error of an export that fails where Python needs the value of an element."""
    symbols = importlib.import_module("torch.fx.experimental.symbolic_shapes")
    return symbols.GuardOnDataDependentSymNode


def _analysed(export: Callable[..., Any], first: Exception) -> Any:
    """Export by TorchDynamo (``strict=True``), in which ``int(index.max())`` is a size.

    Raises:
        Exception: the error of the first export if this one fails too.
    """
    try:
        with exportable_parts():
            return export(strict=True)
    except Exception as error:  # of torch or of the model; the first one says what to change
        raise first from error


@contextlib.contextmanager
def _slow_path(torch: Any) -> Iterator[None]:
    """Attention as single operators, not as one that is specialised to inference with torch."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings that concern torch alone, and graphs that it prints where it fails."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    """Errors of torch in one line; the whole of it is the cause."""
    try:
        yield
    except Exception as error:  # torch raises errors of many classes, and so does the model
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        fact = lines[0] if lines else type(error).__name__
        if fact.endswith(":"):
            fact = " ".join(lines[:2])
        hint = _SIZES if isinstance(error, _data_dependent()) else _suggestion(lines)
        text = explain("from_torch", f"torch cannot {what}: {fact}", hint=hint)
        raise ImportModelError(text) from error


def _suggestion(lines: Sequence[str]) -> str | None:
    """What torch suggests in an error: the fixes of a `Dim`, or its first hint."""
    start = next((i for i, line in enumerate(lines) if line.startswith("Suggested fix")), None)
    # They are definitions, such as n = Dim('n', min=4).
    fixes = (
        []
        if start is None
        else list(itertools.takewhile(re.compile(r"\w+ = ").match, lines[start + 1 :]))
    )
    hint = next((line for line in lines if line.startswith("Hint: ")), None)
    if not fixes and hint is None:
        return None
    return f"torch suggests {', '.join(fixes) if fixes else (hint or '').removeprefix('Hint: ')}"
