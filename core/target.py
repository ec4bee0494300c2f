"""The machine that code is generated for: vector width, registers, caches, cores."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import TargetError, explain
from .exclusive import exclusive
from .instructions import Form, Instruction, architecture_of
from .plugins import processors
from .processor import NEEDS, missing, stated_host
from .threads import MOST_THREADS, available_cores, stated_threads


@dataclass(frozen=True)
class Device:
    """A device that runs the kernels of programs whose other code runs on the host.

    `name` is the processor, such as "sm_90"; `emulated` says that its code is executed on NumPy
    arrays. A block of threads has `block` of them.
    """

    name: str
    triple: str
    features: str
    emulated: bool
    block: int = 128

    @property
    def copies_asynchronously(self) -> bool:
        """Whether its threads copy to shared memory without waiting: from sm_80 on."""
        return int(self.name.removeprefix("sm_")) >= 80


@dataclass(frozen=True)
class Target:
    """A processor as the scheduler and the code generator see it, with a device if there is one.

    Sizes are in bytes, vector width in bits; `features` is LLVM's comma-separated text.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    index_bits: int = 64
    """The width of an address, and hence of an index."""
    general_registers: int = 16
    """Registers for addresses and counters, including the stack pointer."""
    memory_operands: bool = True
    """Whether arithmetic can read an operand from memory, without a register for it."""
    fma_latency: int = 4
    """The latency of a vector's fused multiply-add in cycles."""
    fma_per_cycle: int = 2
    """Its throughput: the number issued per cycle."""
    l1_bytes: int = 32 << 10
    """The first-level data cache."""
    l1_ways: int = 8
    """Its associativity: the number of lines for addresses a multiple of `l1_way_bytes` apart."""
    l2_bytes: int = 1 << 20
    l2_ways: int = 8
    l3_bytes: int = 32 << 20
    """The cache that cores share; 0 for none."""
    cores: int = 1
    """The number of cores; 1 if the name does not determine it."""
    device: Device | None = None
    """The device that runs kernels; None for the processor itself."""
    legalize: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Rules of `graph-legalize` on this target, by operator name."""

    @property
    def in_flight(self) -> int:
        """The number of independent fused multiply-adds that saturate the units: latency times
        throughput."""
        return self.fma_latency * self.fma_per_cycle

    def forms(self, instruction: Instruction) -> list[Form]:
        """The forms of an instruction that this processor has.

        Its features are those of `cpu`, if it is in `core.processor.NEEDS`, with the changes that
        `features` makes to them.
        """
        return instruction.on(architecture_of(self.triple), self._features)

    def has(self, instruction: Instruction) -> bool:
        """Whether this processor has an instruction in any form."""
        return bool(self.forms(instruction))

    @functools.cached_property
    def _features(self) -> frozenset[str]:
        found = set(NEEDS.get(self.cpu, ()))
        for change in filter(None, self.features.split(",")):
            (found.add if change[0] == "+" else found.discard)(change[1:])
        return frozenset(found)

    @property
    def l1_way_bytes(self) -> int:
        """The bytes of a way: addresses a multiple of this apart compete for the same lines."""
        return self.l1_bytes // self.l1_ways

    @property
    def interleaved_vectors(self) -> int:
        """The number of vectors on which an expensive function is computed at a time, with
        interleaved steps.

        Each step depends on the one before it, and out-of-order execution overlaps only a few
        chains. Each chain needs about three registers, and constants need some more: twice as many
        where no instruction reads one of its operands from memory.
        """
        return max(1, self.vector_registers // (4 if self.memory_operands else 5))

    @property
    def has_masks(self) -> bool:
        """Whether it has masked loads and stores of every type, with registers for masks."""
        return self.vector_bits >= 512

    @property
    def has_fast_halves(self) -> bool:
        """Whether a vector of half the width takes half the time: 512 bits in units of 256."""
        return self.vector_bits >= 512 and self.fma_per_cycle < 2

    def lanes(self, element_bits: int) -> int:
        """The number of elements of this width in a vector register."""
        return max(1, self.vector_bits // element_bits)


_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"
_APPLE = "arm64-apple-macosx"
_RISCV = "riscv64-unknown-linux-gnu"
_WASM = "wasm32-unknown-unknown"


def _x86(cpu: str, bits: int, **facts: Any) -> Target:
    return Target(cpu, _X86, cpu, "", bits, 32 if bits == 512 else 16, **facts)


def _arm(cpu: str, triple: str = _ARM, **facts: Any) -> Target:
    registers = {"general_registers": 31, "memory_operands": False}
    return Target(cpu, triple, cpu, "", 128, 32, **registers, **facts)


_KB, _MB = 1 << 10, 1 << 20
_NAMED = {
    target.name: target
    for target in (
        _x86("x86-64", 128),
        _x86("x86-64-v2", 128),
        _x86("x86-64-v3", 256),
        _x86("x86-64-v4", 512, l1_bytes=48 * _KB, l1_ways=12),
        _x86("haswell", 256, fma_latency=5, l2_bytes=256 * _KB),
        _x86("skylake-avx512", 512, l2_ways=16),
        _x86("sapphirerapids", 512, l1_bytes=48 * _KB, l1_ways=12, l2_bytes=2 * _MB, l2_ways=16),
        _x86("znver3", 256, l2_bytes=512 * _KB),
        _x86("znver4", 512, fma_per_cycle=1),
        _x86("znver5", 512, l1_bytes=48 * _KB, l1_ways=12, l2_ways=16),
        Target("aarch64", _ARM, "generic", "", 128, 32, 64, 31, memory_operands=False, l1_ways=4),
        _arm("cortex-a76", l1_bytes=64 * _KB, l1_ways=4, l2_bytes=512 * _KB, l3_bytes=4 * _MB),
        _arm("neoverse-n1", l1_bytes=64 * _KB, l1_ways=4),
        _arm("neoverse-v2", fma_per_cycle=4, l1_bytes=64 * _KB, l1_ways=4, l2_bytes=2 * _MB),
        _arm(
            "apple-m1",
            _APPLE,
            fma_per_cycle=4,
            l1_bytes=128 * _KB,
            l2_bytes=12 * _MB,
            l2_ways=12,
            l3_bytes=0,
            cores=8,
        ),
        Target(
            "rv64gcv",
            _RISCV,
            "generic-rv64",
            "+m,+a,+f,+d,+c,+v,+zvl128b",
            128,
            32,
            general_registers=32,
            memory_operands=False,
            fma_per_cycle=1,
            l2_bytes=512 * _KB,
            l3_bytes=0,
        ),
        Target(
            "wasm32",
            _WASM,
            "generic",
            "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext",
            128,
            16,
            index_bits=32,
            memory_operands=False,
        ),
    )
}
"""Processors by their LLVM names, and families by their common features.

Latencies, rates and caches are those of the vendors' optimisation guides; families have those of
typical members.
"""


def named(name: str | Target) -> Target:
    """The target called `name`; "host" is the machine this runs on, and a `Target` is itself.

    Raises:
        TargetError: if there is no target of this name.
        StepwellError: if what another package registers is not a target of its name.
    """
    if isinstance(name, Target):
        return name
    if name == "host":
        return host()
    if isinstance(name, str) and name in _NAMED:
        return _NAMED[name]
    if _is_device(name):
        return _with_device(name)
    # The targets that other packages register.
    others: dict[str, Target] = {}
    for other, target, error in processors():
        if not isinstance(target, Target) or target.name != other:
            got = target.name if isinstance(target, Target) else type(target).__name__
            expected = f'a stepwell.Target with name="{other}"'
            raise error(f'wrong target "{other}"', expected=expected, got=got)
        others[other] = target
    if not isinstance(name, str) or name not in others:
        known = ", ".join(["host", *_NAMED, *others])
        raise TargetError(explain("target", "unknown name", expected=known, got=f'"{name}"'))
    return others[name]


def has_device(target: str | Target) -> bool:
    """Whether a target, or one of a name, has a device; nothing is looked up."""
    return target.device is not None if isinstance(target, Target) else _is_device(target)


def _is_device(name: object) -> bool:
    return isinstance(name, str) and name.startswith("cuda")


_PTX = {
    "sm_70": "60",
    "sm_75": "63",
    "sm_80": "70",
    "sm_86": "71",
    "sm_89": "78",
    "sm_90": "80",
    "sm_100": "86",
    "sm_120": "87",
}
"""NVIDIA's processors, and the oldest version of PTX that has each, at least 6.0."""


def _with_device(name: str) -> Target:
    """The host with one of NVIDIA's devices."""
    device = device_named(name)
    return replace(host(), name=name, device=device)


def device_named(name: str) -> Device:
    """One of NVIDIA's devices: "cuda", "cuda:sm_90" or "cuda:sm_90,emulated".

    "cuda" is the device that is there, with code for the latest processor that it can be.

    Raises:
        TargetError: if there is no such device.
    """
    device, *options = name.removeprefix("cuda:").split(",")
    if name == "cuda":
        from .cuda import capability_of, driver

        # Code for a processor runs on later ones.
        found = driver()
        found.check(next(iter(_PTX)))
        device = [one for one in _PTX if capability_of(one) <= found.capability][-1]
    if device not in _PTX or options not in ([], ["emulated"]):
        expected = f'"cuda", or cuda:NAME or cuda:NAME,emulated with one of {", ".join(_PTX)}'
        raise TargetError(explain("target", "unknown device", expected=expected, got=f'"{name}"'))
    return Device(device, "nvptx64-nvidia-cuda", f"+ptx{_PTX[device]}", bool(options))


@dataclass(frozen=True)
class HostMachine:
    """What the operating system reports about this machine; None where it does not."""

    l1_bytes: int | None
    l1_ways: int | None
    l2_bytes: int | None
    l2_ways: int | None
    l3_bytes: int | None
    cores: int
    """The number of cores that this process could run on when it was first asked."""


@functools.cache
def this_machine() -> HostMachine:
    """The machine this runs on, as the operating system describes it."""
    return HostMachine(
        l1_bytes=_cache("index0", "size"),
        l1_ways=_cache("index0", "ways_of_associativity"),
        l2_bytes=_cache("index2", "size"),
        l2_ways=_cache("index2", "ways_of_associativity"),
        l3_bytes=_cache("index3", "size"),
        cores=available_cores(),
    )


@functools.cache
@exclusive
def host() -> Target:
    """The machine this runs on, as LLVM and the operating system describe it.

    Facts that neither reports (latencies) come from the named target of the same processor. The
    environment can state an older one (`STEPWELL_HOST`), of which only the caches are this one's.

    Raises:
        TargetError: if it states one that this machine cannot be.
    """
    import llvmlite.binding as llvm

    known, stated = this_machine(), stated_host()
    if stated is None:
        features, cpu = llvm.get_host_cpu_features(), llvm.get_host_cpu_name()
    else:
        features, cpu = llvm.FeatureMap(dict.fromkeys(NEEDS[stated], True)), stated
    bits, registers = 128, 16
    if features.get("avx512f") and features.get("avx512vl"):
        bits, registers = 512, 32
    elif features.get("avx2") and features.get("fma"):
        bits = 256
    triple = llvm.get_process_triple()
    arm = triple.startswith(("aarch64", "arm64"))
    like = _NAMED.get(cpu, _NAMED["neoverse-n1" if arm else "x86-64-v3"])
    return Target(
        name="host",
        triple=triple,
        cpu=cpu,
        features=features.flatten(),
        vector_bits=bits,
        vector_registers=32 if arm else registers,
        general_registers=like.general_registers,
        memory_operands=like.memory_operands,
        fma_latency=like.fma_latency,
        fma_per_cycle=like.fma_per_cycle,
        l1_bytes=known.l1_bytes or like.l1_bytes,
        l1_ways=known.l1_ways or like.l1_ways,
        l2_bytes=known.l2_bytes or like.l2_bytes,
        l2_ways=known.l2_ways or like.l2_ways,
        l3_bytes=known.l3_bytes or like.l3_bytes,
        cores=known.cores,
    )


def needs_of(target: Target) -> list[str] | None:
    """The features that code for a target may use; None if they are not known.

    For the machine that this runs on, they are those that Linux reports as well. For another one
    that a program was compiled for, those that any processor here is known for count too.
    """
    if target.name == "host" or target.device is not None:
        on = re.findall(r"\+([\w.-]+)", target.features)
        known = NEEDS.values() if target.features != host().features else ()
        counted = {name for names in known for name in names}
        return sorted(name for name in on if name in counted or not missing([name]))
    needs = NEEDS.get(target.cpu)
    return None if needs is None else sorted(needs)


def _cache(index: str, what: str) -> int | None:
    """A number that Linux reports about a cache, in bytes if it is a size."""
    path = f"/sys/devices/system/cpu/cpu0/cache/{index}/{what}"
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    return int(digits) * scale if digits.isdigit() else None


def default_threads(target: Target) -> int:
    """The default number of threads of a call: `STEPWELL_NUM_THREADS`, or the number of cores that
    the process may run on, up to 256.

    Raises:
        TargetError: if the environment variable is not a number from 1 to 256.
    """
    return stated_threads() or min(target.cores, available_cores(), MOST_THREADS)
