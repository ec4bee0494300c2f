"""What a processor must have to run code for a target, and whether this one does, without LLVM."""

from __future__ import annotations

import functools
import importlib
import platform
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.target import Target

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


def needs_of(target: Target) -> list[str] | None:
    """The features that code for a target may use; None if they are not known.

    For the machine that this runs on, they are those that Linux reports as well. For another one
    that a program was compiled for, those that any processor here is known for count too.
    """
    if target.name == "host":
        on = re.findall(r"\+([\w.-]+)", target.features)
        known = NEEDS.values() if _is_elsewhere(target) else ()
        counted = {name for names in known for name in names}
        return sorted(name for name in on if _plain(name) in features() or name in counted)
    needs = NEEDS.get(target.cpu)
    return None if needs is None else sorted(needs)


def _is_elsewhere(target: Target) -> bool:
    """Whether the host that a target describes is another machine than this one."""
    from ...core.target import host

    return target.features != host().features


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
    """What this processor is: equal for two processors of one model with the same features.

    None where the operating system does not say it in a file.
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
    return (*found, platform.release(), architecture(), seen)
