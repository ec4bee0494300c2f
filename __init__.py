"""Stepwell: a compiler for neural networks, graph neural networks among them, in small steps.

    import stepwell as sw

    module = sw.from_onnx("mlp.onnx")
    exe = sw.compile(module)
    y = exe(x)

Names are loaded on first use: the import is fast and loads neither onnx nor LLVM.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "stepwell: this Python has no global interpreter lock, expected a build with one, "
        f"got a free-threaded build of {sys.version_info.major}.{sys.version_info.minor}"
    )
if sys.platform == "win32":
    raise ImportError(
        "stepwell: compiled programs need POSIX threads and forks, expected Linux or macOS, "
        "got Windows, where Stepwell runs in the Windows Subsystem for Linux"
    )

__version__ = "0.2.0"
IMPORTED_NS = time.time_ns()
"""When this process began to import the package, in nanoseconds since the epoch."""

_PLACES = {
    "Assembly": "backends.ptx.assembler",
    "Builder": "frontends.builder",
    "CompileError": "core.errors",
    "DeviceError": "core.errors",
    "Emulation": "backends.ptx.counters",
    "EmulationError": "core.errors",
    "Executable": "runtime.executable",
    "ImportModelError": "core.errors",
    "InputError": "core.errors",
    "InternalError": "core.errors",
    "MiscompilationError": "core.errors",
    "Module": "core.ir.module",
    "Partition": "distributed.partition",
    "PassHook": "core.ir.context",
    "SparseSpec": "core.boundary.specs",
    "StepwellError": "core.errors",
    "Target": "core.target",
    "TargetError": "core.errors",
    "TensorSpec": "core.boundary.specs",
    "Universe": "core.universe",
    "UnsupportedError": "core.errors",
    "ValueSpec": "core.boundary.specs",
    "WeightStore": "core.ir.weights",
    "assemble": "backends.ptx.assembler",
    "bind_params": "api.binding",
    "bisect": "diagnosis.bisection",
    "compile": "api.compiler",
    "distribute": "distributed.distributing",
    "emulate": "backends.ptx.emulation",
    "export": "api.exporting",
    "from_mlir": "frontends.mlir",
    "from_onnx": "api.imported",
    "from_sklearn": "frontends.sklearn",
    "from_torch": "frontends.torch.importer",
    "kernel": "dialects.graph.nests.kernels",
    "load": "api.loading",
    "load_ipython_extension": "report.display",
    "out_of_core": "distributed.out_of_core",
    "partition": "distributed.partitioning",
    "patterns": "",
    "pipeline": "api.pipeline",
    "progress": "core.progress",
    "reduce": "diagnosis.reduction",
    "register_function": "core.boundary.functions",
    "run_passes": "api.running",
    "schedule": "tuning.kernel_schedule",
    "to_mixed_precision": "api.precision",
    "tune": "tuning.search",
}

if TYPE_CHECKING:
    from . import patterns
    from .api.binding import bind_params
    from .api.compiler import compile
    from .api.exporting import export
    from .api.imported import from_onnx
    from .api.loading import load
    from .api.pipeline import pipeline
    from .api.precision import to_mixed_precision
    from .api.running import run_passes
    from .backends.ptx.assembler import Assembly, assemble
    from .backends.ptx.counters import Emulation
    from .backends.ptx.emulation import emulate
    from .core.boundary.functions import register_function
    from .core.boundary.specs import SparseSpec, TensorSpec, ValueSpec
    from .core.errors import (
        CompileError,
        DeviceError,
        EmulationError,
        ImportModelError,
        InputError,
        InternalError,
        MiscompilationError,
        StepwellError,
        TargetError,
        UnsupportedError,
    )
    from .core.ir.context import PassHook
    from .core.ir.module import Module
    from .core.ir.weights import WeightStore
    from .core.progress import progress
    from .core.target import Target
    from .core.universe import Universe
    from .diagnosis.bisection import bisect
    from .diagnosis.reduction import reduce
    from .dialects.graph.nests.kernels import kernel
    from .distributed.distributing import distribute
    from .distributed.out_of_core import out_of_core
    from .distributed.partition import Partition
    from .distributed.partitioning import partition
    from .frontends.builder import Builder
    from .frontends.mlir import from_mlir
    from .frontends.sklearn import from_sklearn
    from .frontends.torch.importer import from_torch
    from .runtime.executable import Executable
    from .tuning.kernel_schedule import schedule
    from .tuning.search import tune

__all__ = [
    "Assembly",
    "Builder",
    "CompileError",
    "DeviceError",
    "Emulation",
    "EmulationError",
    "Executable",
    "ImportModelError",
    "InputError",
    "InternalError",
    "MiscompilationError",
    "Module",
    "Partition",
    "PassHook",
    "SparseSpec",
    "StepwellError",
    "Target",
    "TargetError",
    "TensorSpec",
    "Universe",
    "UnsupportedError",
    "ValueSpec",
    "WeightStore",
    "assemble",
    "bind_params",
    "bisect",
    "compile",
    "distribute",
    "emulate",
    "export",
    "from_mlir",
    "from_onnx",
    "from_sklearn",
    "from_torch",
    "kernel",
    "load",
    "out_of_core",
    "partition",
    "patterns",
    "pipeline",
    "progress",
    "reduce",
    "register_function",
    "run_passes",
    "schedule",
    "to_mixed_precision",
    "tune",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=sys.modules[__name__])
    place = _PLACES[name]
    try:
        module = importlib.import_module(f".{place or name}", __name__)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith(f"{__name__}."):
            raise
        from .core.errors import without_compiler

        raise without_compiler(name, error) from error
    value = getattr(module, name) if place else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
