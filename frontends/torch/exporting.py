"""Exported programs in core ATen, from modules, exported programs and ``.pt2`` files."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import InputError, explain
from .callables import refuse_other_files
from .failures import (
    Diagnosis,
    diagnosis_of_export,
    explained,
    is_constraint_violation,
    is_data_dependent,
)
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
    if is_file or isinstance(source, torch.export.ExportedProgram):
        path = Path(source) if is_file else None
        if path is not None:
            refuse_other_files(path)
        for name, given in (("args", args), ("kwargs", kwargs), ("dynamic_shapes", dynamic_shapes)):
            if given is not None:
                what = "the path of a file" if is_file else "an exported program"
                fact = f"{name} belong to a module or a function, not to {what}"
                raise InputError(explain("from_torch", fact))
        if path is not None:
            with explained(f"read {path}"):
                program = torch.export.load(path)
    else:
        program = _of_module(source, args, kwargs, dynamic_shapes)
    table = core_operators()
    with explained("decompose the program"):
        return program.run_decompositions(table)


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
        fact, got = "args are example inputs", type(args).__name__
        hint = "their shapes and element types count"
        raise InputError(explain("from_torch", fact, expected="a tuple", got=got, hint=hint))
    if kwargs is not None and not isinstance(kwargs, Mapping):
        fact, got = "kwargs are example inputs by name", type(kwargs).__name__
        raise InputError(explain("from_torch", fact, expected="a dictionary", got=got))
    _check_number(module, args, kwargs or {})
    given = stand_ins(tuple(args))
    keywords = None if kwargs is None else stand_ins(dict(kwargs))

    def export(shapes: Any, *, strict: bool = False) -> Any:
        with _slow_path(torch), whole_layers(), taking_matrices(module, args, kwargs):
            return torch.export.export(
                module, given, keywords, dynamic_shapes=shapes, strict=strict
            )

    def diagnose(error: Exception) -> Diagnosis:
        return diagnosis_of_export(error, module, export, dynamic_shapes)

    with explained("export the module", diagnose):
        try:
            return export(dynamic_shapes)
        except Exception as error:
            if is_data_dependent(error) or is_constraint_violation(error):
                return _analysed(lambda: export(dynamic_shapes, strict=True), error)
            raise


def _check_number(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse other than one example for each argument of the model without a default."""
    signature = inspect.signature(module.forward)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        fact = f"the examples do not fit the arguments of the model: {problem}"
        expected = ", ".join(signature.parameters) or "none"
        got = len(args) + len(kwargs)
        raise InputError(explain("from_torch", fact, expected=expected, got=got)) from problem


def _analysed(export: Callable[[], Any], first: Exception) -> Any:
    """Export by TorchDynamo (``strict=True``), in which ``int(index.max())`` is a size.

    Raises:
        Exception: the error of the first export if this one fails too.
    """
    try:
        with exportable_parts():
            return export()
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
