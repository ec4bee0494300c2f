"""The machine that code is generated for: vector width, registers, caches, cores."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import TargetError, explain


@dataclass(frozen=True)
class Target:
    """A processor as the scheduler and the code generator see it.

    Sizes are in bytes, vector width in bits; `features` is LLVM's comma-separated text.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    cores: int = 1
    fma: bool = True
    """Whether a * b + c is one instruction; where it is not, `fma` is a call for each lane."""
    half: bool = True
    """Whether f16 is converted from and to f32 by an instruction, and not by a function."""
    legalize: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What `graph-legalize` does on this target with operators, by name."""

    @property
    def abreast(self) -> int:
        """For how many vectors a long chain of operations is done step by step.

        A step waits for the one before it, and the processor looks ahead by a few chains only.
        Each needs some three registers, and constants need some.
        """
        return max(1, self.vector_registers // 4)

    def lanes(self, element_bits: int) -> int:
        """How many elements of this width one vector register holds."""
        return max(1, self.vector_bits // element_bits)


_X86 = "x86_64-unknown-linux-gnu"
_NAMED = {
    "x86-64": ("x86-64", _X86, 128, 16),
    "x86-64-v2": ("x86-64-v2", _X86, 128, 16),
    "x86-64-v3": ("x86-64-v3", _X86, 256, 16),
    "x86-64-v4": ("x86-64-v4", _X86, 512, 32),
    "znver5": ("znver5", _X86, 512, 32),
    "neoverse-n1": ("neoverse-n1", "aarch64-unknown-linux-gnu", 128, 32),
    "apple-m1": ("apple-m1", "arm64-apple-macosx", 128, 32),
}


_WITHOUT_FMA = _WITHOUT_F16C = ("x86-64", "x86-64-v2")


def named(name: str) -> Target:
    """The target called `name`; "host" is the machine this runs on.

    Raises:
        TargetError: if there is no target of this name.
    """
    if name == "host":
        return host()
    if not isinstance(name, str) or name not in _NAMED:
        known = ", ".join(["host", *_NAMED])
        raise TargetError(explain("target", "unknown name", expected=known, got=f'"{name}"'))
    cpu, triple, bits, registers = _NAMED[name]
    fma, half = name not in _WITHOUT_FMA, name not in _WITHOUT_F16C
    return Target(name, triple, cpu, "", bits, registers, fma=fma, half=half)


@functools.cache
def host() -> Target:
    """The machine this runs on, as LLVM and the operating system describe it."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    bits, registers = 128, 16
    if features.get("avx512f") and features.get("avx512vl"):
        bits, registers = 512, 32
    elif features.get("avx2") and features.get("fma"):
        bits = 256
    triple = llvm.get_process_triple()
    arm = triple.startswith(("aarch64", "arm64"))
    if arm:
        registers = 32
    return Target(
        name="host",
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        vector_bits=bits,
        vector_registers=registers,
        l1_bytes=_cache_bytes("index0", 32 << 10),
        l2_bytes=_cache_bytes("index2", 1 << 20),
        cores=_cores(),
        fma=arm or bool(features.get("fma")),
        half=arm or bool(features.get("f16c")),
    )


def _cores() -> int:
    """How many cores this process may run on now."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_bytes(index: str, default: int) -> int:
    path = f"/sys/devices/system/cpu/cpu0/cache/{index}/size"
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return default
    scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    return int(digits) * scale if digits.isdigit() else default


def default_threads(target: Target) -> int:
    """How many threads a call may use where nobody says it: `STEPWELL_NUM_THREADS`, or as many as
    there are cores, of those that the process may run on.

    Raises:
        TargetError: if the variable of the environment is no number above 0.
    """
    text = os.environ.get("STEPWELL_NUM_THREADS", "").strip()
    if not text:
        return min(target.cores, _cores())
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        fact = "wrong number of threads"
        raise TargetError(
            explain("STEPWELL_NUM_THREADS", fact, expected="1 or more", got=repr(text))
        )
    return int(text)
