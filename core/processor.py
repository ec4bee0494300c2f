"""What a processor must have to run code for a target, and whether this one does, without LLVM.

The environment can state an older processor (`STEPWELL_HOST=x86-64-v3`): then nothing in the
process uses, or finds, what that one lacks.
"""

from __future__ import annotations

import functools
import importlib
import os
import platform
import re
from collections.abc import Mapping, Sequence

from .errors import TargetError, explain

VARIABLE = "STEPWELL_HOST"

_V1 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
"""The features that every x86-64 has; no target lists them."""
_V2 = ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_BYTES = ("avx512bitalg", "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq", "gfni")
_PRODUCTS = ("avx512bf16", "avx512ifma", "avx512vnni")
_ZEN4 = (*_V4, *_BYTES, *_PRODUCTS, "sse4a")
NEEDS: Mapping[str, Sequence[str]] = {
    "x86-64": (),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "haswell": _V3,
    "skylake-avx512": _V4,
    "sapphirerapids": (*_V4, *_BYTES, *_PRODUCTS, "avx512fp16", "avxvnni"),
    "znver3": (*_V3, "sse4a"),
    "znver4": _ZEN4,
    "znver5": (*_ZEN4, "avxvnni"),
}
"""The features of families and of processors, by LLVM's names.

Those of processors are the ones that code generation uses by itself: not such as for encryption.
"""

_LINUX = {"sse3": "pni", "bmi": "bmi1", "lzcnt": "abm", "pclmul": "pclmulqdq", "sha": "shani"}
"""Features to which Linux gives another name, not counting punctuation."""
_NUMPY = {"fma3": "fma", "sse3": "pni"}
"""Features of Linux to which NumPy gives another name."""


@functools.cache
def stated_host() -> str | None:
    """The processor that the environment states for this one, by its name in `NEEDS`; None for
    this one as it is.

    Raises:
        TargetError: if it is not known, or has features that this one lacks.
    """
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return None
    if name not in NEEDS:
        known = ", ".join(NEEDS)
        raise TargetError(explain(VARIABLE, "unknown processor", expected=known, got=repr(name)))
    here = _features_here() if architecture() == "x86_64" else frozenset()
    lacking = [feature for feature in (*_V1, *NEEDS[name]) if _plain(feature) not in here]
    if lacking:
        fact = f"this machine cannot behave as {name}, as it lacks {', '.join(lacking)}"
        raise TargetError(explain(VARIABLE, fact))
    return name


def missing(needs: list[str]) -> list[str]:
    """The features out of these that this processor lacks."""
    return [name for name in needs if _plain(name) not in features()]


def architecture() -> str:
    """The architecture of this machine, as triples name it."""
    name = platform.machine().lower()
    return {"amd64": "x86_64"}.get(name, name)


@functools.cache
def features() -> frozenset[str]:
    """The features of this processor, by the names that Linux has for them, without punctuation.

    Raises:
        TargetError: if the environment states a processor that this one cannot be.
    """
    name = stated_host()
    if name is None:
        return _features_here()
    return _features_here() & set(map(_plain, (*_V1, *NEEDS[name])))


@functools.cache
def _features_here() -> frozenset[str]:
    """The features of the processor itself.

    An emulator may show the features of the machine that it runs on: what NumPy has not found is
    left out.
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            line = next((one for one in file if one.startswith(("flags", "Features"))), "")
    except OSError:
        line = ""
    found = {re.sub(r"[._-]", "", name) for name in line.partition(":")[2].lower().split()}
    module = importlib.import_module("numpy._core._multiarray_umath")
    for name, present in module.__cpu_features__.items():
        plain = re.sub(r"[._-]", "", name.lower())
        if not present:
            found.discard(_NUMPY.get(plain, plain))
    return frozenset(found)


def vector_bits() -> int:
    """The width of the vectors of this processor in bits, as `core.target.host` has it."""
    if not missing(["avx512f", "avx512vl"]):
        return 512
    return 128 if missing(["avx2", "fma"]) else 256


def _plain(name: str) -> str:
    """The name of a feature of LLVM in `features`."""
    plain = re.sub(r"[._-]", "", name)
    return _LINUX.get(plain, plain)


_NAMING = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
    *("isa", "uarch"),
)
"""The lines of Linux that say what a processor is, for all architectures."""


@functools.cache
def identity() -> tuple[object, ...] | None:
    """What this processor is: equal for two processors of one model with the same features, and
    stated alike by the environment.

    None where the operating system does not say it in a file.

    Raises:
        TargetError: if the environment states a processor that this one cannot be.
    """
    found: list[str] = []
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                if line.partition("\t")[0].partition(":")[0].strip() in _NAMING:
                    found.append(line)
    except OSError:
        return None
    if not found:
        return None
    # An emulator may show the lines of the machine that it runs on.
    module = importlib.import_module("numpy._core._multiarray_umath")
    seen = tuple(sorted(module.__cpu_features__.items()))
    return (*found, platform.release(), architecture(), seen, stated_host())
