"""What users export beside modules and files: functions and methods, with arrays as examples."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ImportModelError, InputError, explain
from .failures import quiet
from .library import library

_EXPECTED = "a torch.nn.Module, a function, an ExportedProgram or the path of a .pt2 file"


def as_source(source: Any) -> Any:
    """What can be exported: functions become modules, and others stay.

    Raises:
        InputError: if it is no model, with a way to one.
    """
    torch = library()
    if isinstance(source, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise _wrong("a TorchScript program", _TRACED)
    kinds = torch.nn.Module, torch.export.ExportedProgram, str, os.PathLike
    if isinstance(source, kinds):
        return source
    if isinstance(source, type):
        raise _wrong(f"the class {source.__name__}", "give an instance of it")
    if isinstance(source, Mapping):
        got = f"{type(source).__name__}, perhaps the weights of a module"
        raise _wrong(got, "give the module, after load_state_dict")
    if not callable(source):
        raise _wrong(type(source).__name__, None)
    return _as_module(source)


_ONNX = "sw.from_onnx reads it"
_TRACED = "give the torch.nn.Module that it was made of"
_WEIGHTS = "make the module in Python, load_state_dict(torch.load(path)), and give the module"


def refuse_other_files(path: Path) -> None:
    """Refuse the path of a file that holds no exported program, by the names in its archive.

    Raises:
        ImportModelError: if there is no such file, or it is of another kind.
    """
    if not path.is_file():
        raise ImportModelError(explain("from_torch", f"no such file: {path}"))
    if path.suffix == ".onnx":
        raise ImportModelError(explain("from_torch", f"{path} is no model of torch", hint=_ONNX))
    names: list[str] = []
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    found = {name.rpartition("/")[2] for name in names}
    fact = None
    if "constants.pkl" in found:
        fact, hint = "a TorchScript program", _TRACED
    elif "data.pkl" in found and not any("export" in name for name in found):
        fact, hint = "weights, or a pickled module", _WEIGHTS
    if fact is not None:
        text = explain(
            "from_torch", f"{path} holds {fact}", expected="an exported program", hint=hint
        )
        raise ImportModelError(text)


def _wrong(got: str, hint: str | None) -> InputError:
    text = explain("from_torch", "wrong model", expected=_EXPECTED, got=got, hint=hint)
    return InputError(text)


def _as_module(function: Callable[..., Any]) -> Any:
    """A module that calls a function, with the parameters of the function.

    Its weights are those of modules that the function refers to, by their names there: `net.lin`
    of ``lambda x: net(x)``. A method of a module has the weights of the module.
    """
    torch = library()
    module = torch.nn.Module().eval()
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        for name in ("_parameters", "_buffers", "_modules", "training"):
            module.__dict__[name] = getattr(owner, name)
    else:
        parts = _referred(function).items()
        module._modules |= {name: part for name, part in parts if isinstance(part, torch.nn.Module)}

    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with contextlib.suppress(ValueError):  # Python does not know the parameters of `torch.sin`
        forward.__dict__["__signature__"] = inspect.signature(function)
    module.forward = forward
    return module


def _referred(function: Any) -> Mapping[str, Any]:
    """The objects that a function refers to, by their names in it."""
    if isinstance(function, functools.partial):
        arguments = {f"arg{number}": arg for number, arg in enumerate(function.args)}
        inner = {"func": function.func, **_referred(function.func)}
        return {**inner, **arguments, **function.keywords}
    if inspect.isfunction(function):
        found = inspect.getclosurevars(function)
        return {**found.globals, **found.nonlocals}
    owner = getattr(function, "__self__", function)
    return getattr(owner, "__dict__", {})


def as_tensors(values: Any) -> Any:
    """Example arguments with tensors in the place of arrays of NumPy and matrices of SciPy.

    Raises:
        InputError: if torch has no tensors of the elements of an array.
    """
    with quiet():
        return library().utils._pytree.tree_map(_as_tensor, values)


def _as_tensor(value: Any) -> Any:
    torch = library()
    try:
        if hasattr(value, "tocsr"):
            csr = value.tocsr()
            parts = (torch.tensor(part) for part in (csr.indptr, csr.indices, csr.data))
            return torch.sparse_csr_tensor(*parts, csr.shape, check_invariants=False)
        if isinstance(value, np.ndarray):
            return torch.tensor(value)
    except TypeError as error:
        fact = f"an example is an array of {value.dtype}"
        expected = "elements that torch has"
        raise InputError(explain("from_torch", fact, expected=expected)) from error
    return value.item() if isinstance(value, np.generic) else value
