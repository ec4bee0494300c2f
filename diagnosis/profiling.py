"""Profiling: the program is compiled once more, with a clock around each kernel that it calls.

The kernels are the same machine code; their callers record the time. A program that is not profiled
has no clock in it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Operation

from ..core.algebra.dims import Dim
from ..core.boundary.arrays import is_integer
from ..core.errors import InputError, StepwellError, explain
from ..core.ir.context import Work
from ..core.ir.provenance import names
from ..core.ir.typed import tensor_type
from ..core.pipelines import staircase as pipelines
from ..dialects.graph.nests.flops import kernel_flops
from ..dialects.graph.ops.control.call import CallDpsOp, CallLikeOp
from ..dialects.graph.plan.moved import bytes_of
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..dialects.rt import ops as rt
from ..driver.compilation import Compilation
from ..passes.rt.profile import timed_operations
from ..runtime.executable import Executable, executable, program_of
from ..runtime.limits import MachineLimits, known_limits
from ..runtime.lowered import machine_code
from ..runtime.profile import Profile, Row
from ..runtime.vectorcall import boundary

_LEAST_RUNS, _MOST_RUNS, _SECONDS = 10, 1000, 0.3
"""The default number of runs is as many as take this time, within limits."""

_MOST_OF_LIMIT = 1.1
"""The part of a limit that a kernel may seem to reach: what is above 1 is noise."""
_MOST_REPEATED = 3
"""How often limits are measured again while a kernel seems to be faster than they allow."""

_PASS = "rt-profile"
_THREADS = re.compile(r"convert-rt-to-llvm\{.*?threads=(\d+)")


@dataclass(frozen=True)
class Call:
    """The work of a call and the bytes of its arguments, in symbolic sizes of the model."""

    work: tuple[Work, ...]
    bytes: Dim


@dataclass(frozen=True)
class Site:
    """A timed operation: its name, the nodes that it computes, its work."""

    name: str
    nodes: tuple[str, ...]
    call: Call | None


@dataclass(frozen=True)
class Amount:
    """Time, calls and work in one run; `compute` and `memory` are the least times for the work."""

    seconds: float
    calls: int
    flops: int | None
    bytes: int | None
    compute: float
    memory: float

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.seconds + other.seconds,
            self.calls + other.calls,
            _sum([self.flops, other.flops]),
            _sum([self.bytes, other.bytes]),
            self.compute + other.compute,
            self.memory + other.memory,
        )

    def part(self, part: float, flops: int | None, moved: int | None) -> Amount:
        """A part of the time, for this work."""
        compute, memory = self.compute * part, self.memory * part
        return Amount(self.seconds * part, self.calls, flops, moved, compute, memory)

    def times(self, calls: int) -> Amount:
        """The work of one call, multiplied by the number of calls; the time is their total
        already."""
        flops, moved = (None if n is None else n * calls for n in (self.flops, self.bytes))
        return Amount(self.seconds, calls, flops, moved, self.compute * calls, self.memory * calls)

    def row(self, name: str, of: Mapping[str, None], whole: float) -> Row:
        """The row in the report of a run of `whole` seconds."""
        least = max(self.compute, self.memory)
        known = bool(least and self.seconds)
        return Row(
            name,
            tuple(of),
            self.calls,
            self.seconds,
            self.seconds / whole if whole else 0.0,
            self.flops,
            self.bytes,
            least / self.seconds if known else None,
            ("compute" if self.compute > self.memory else "memory") if known else None,
        )


class Profiler:
    """A program with clocks in it.

    Args:
        exe: the program, compiled with `rt-profile`.
        times: the table that it fills.
        sites: the operations that its rows time; one more row times the whole run.
        threads: the number of threads that a call may use.
    """

    def __init__(
        self, exe: Executable, times: np.ndarray, sites: Sequence[Site], threads: int
    ) -> None:
        self._exe, self._times, self._sites, self._threads = exe, times, sites, threads
        # All calls record their times in one table.
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """Profile calls with these inputs.

        Raises:
            InputError: if the inputs do not fit.
        """
        with self._lock:
            self._exe(*inputs)
            start = time.perf_counter()
            self._exe(*inputs)
            once = time.perf_counter() - start
            count = repeat or int(min(max(_SECONDS / once, _LEAST_RUNS), _MOST_RUNS))
            rows = self._measured(inputs, count)
        limits = known_limits(self._threads)
        sizes = self._exe.sizes_of(*inputs)
        kernels, nodes, refused = self._compared(rows, sizes, limits)
        return Profile(
            float(rows[-1][0]),
            count,
            self._threads,
            limits.gflops,
            dict(sorted(limits.known.items())),
            kernels,
            nodes,
            refused,
        )

    def _compared(
        self, rows: np.ndarray, sizes: Mapping[str, int], limits: MachineLimits
    ) -> tuple[tuple[Row, ...], tuple[Row, ...], str]:
        """The rows beside the limits of the machine, and why they are not compared with these."""
        kernels, nodes = self._rows(rows, sizes, limits)
        if program_of(self._exe).device is not None:
            kernels, nodes = (
                tuple(replace(row, limit=None, bound=None) for row in found)
                for found in (kernels, nodes)
            )
            return kernels, nodes, "kernels run on a device, whose limits are not measured"
        for _ in range(_MOST_REPEATED):
            if not any(map(_is_above, kernels)):
                break
            limits.raise_by_measuring()
            kernels, nodes = self._rows(rows, sizes, limits)
        return _believable(kernels, nodes)

    def _rows(
        self, rows: np.ndarray, sizes: Mapping[str, int], limits: MachineLimits
    ) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The rows of kernels, and those of nodes, beside the limits of the machine."""
        whole = float(rows[-1][0])
        kernels, nodes = _Sums(), _Sums()
        for site, (seconds, calls) in zip(self._sites, rows[:-1], strict=True):
            amount, parts = _amounts(site, seconds, round(calls), sizes, limits)
            kernels.add(site.name, site.nodes, amount)
            for node, part in parts.items():
                nodes.add(node, [site.name], part)
        return kernels.rows(whole), nodes.rows(whole)

    def _measured(self, inputs: Sequence[object], count: int) -> np.ndarray:
        """Seconds and calls of a run for each row of the table: means of the faster half."""
        runs = np.empty((count, *self._times.shape))
        before = self._times.copy()
        for number in range(count):
            self._exe(*inputs)
            after = self._times.copy()
            runs[number], before = after - before, after
        fastest = np.argsort(runs[:, -1, 0], kind="stable")[: (count + 1) // 2]
        return runs[fastest].mean(axis=0) / (1e9, 1)


def _is_above(row: Row) -> bool:
    """Whether a row is faster than the measured limits allow, beyond what noise explains."""
    return row.limit is not None and row.limit > _MOST_OF_LIMIT


def _believable(
    kernels: tuple[Row, ...], nodes: tuple[Row, ...]
) -> tuple[tuple[Row, ...], tuple[Row, ...], str]:
    """Rows without the limits that cannot be right, and one sentence that says why, or "".

    Operations are counted exactly, so a kernel above the limit by compute shows that the machine
    was busy while its limits were measured: no row is compared with them. Above the limit by memory
    is also a kernel that reads some of its operands' elements: it loses its own limit.
    """
    above = [row for row in kernels if _is_above(row)]
    if not above:
        return kernels, nodes, ""
    by_compute = [row for row in above if row.bound == "compute"]
    worst = max(by_compute or above, key=lambda row: row.limit or 0.0)
    fact = f'"{worst.name}" reached {worst.limit:.0%} of the limit by {worst.bound}'
    if by_compute:
        cause = "the machine was too busy to measure its limits, and none are shown"
    else:
        cause = "it does not read all of its operands, or memory was busy with other programs"
    names = {row.name for row in above}

    def kept(row: Row, members: Sequence[str]) -> Row:
        refused = by_compute or _is_above(row) or names.intersection(members)
        return replace(row, limit=None, bound=None) if refused else row

    measured = f"measured {1 + _MOST_REPEATED} times"
    return (
        tuple(kept(row, [row.name]) for row in kernels),
        tuple(kept(row, row.of) for row in nodes),
        f"{fact}, {measured}: {cause}",
    )


class _Sums:
    """Amounts by name, with their parts."""

    def __init__(self) -> None:
        self._amounts: dict[str, Amount] = {}
        self._members: dict[str, dict[str, None]] = {}

    def add(self, name: str, members: Sequence[str], amount: Amount) -> None:
        """Add to the amount of a name."""
        known = self._amounts.get(name)
        self._amounts[name] = amount if known is None else known + amount
        self._members.setdefault(name, {}).update(dict.fromkeys(members))

    def rows(self, whole: float) -> tuple[Row, ...]:
        """A row for each name, the longest time first."""
        rows = [a.row(name, self._members[name], whole) for name, a in self._amounts.items()]
        return tuple(sorted(rows, key=lambda row: -row.seconds))


def check(repeat: int | None) -> None:
    """Check the requirements that profiling has for any program.

    Raises:
        InputError: if `repeat` is below 1.
        StepwellError: if this machine has no clock that compiled code can read.
    """
    if repeat is not None and (not is_integer(repeat) or repeat < 1):
        raise InputError(explain("profile", "wrong repeat", expected="1 or more", got=repeat))
    try:
        time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    except (AttributeError, OSError) as error:
        fact = "this machine has no steady clock that compiled code can read"
        raise StepwellError(explain("profile", fact, hint="profile on a POSIX system")) from error


def profiler(compilation: Compilation) -> Profiler:
    """Compile a module with clocks in it.

    Raises:
        StepwellError: if the module is past the stage at which clocks are inserted.
    """
    start, passes = compilation.start, dict(compilation.passes)
    if start == "llvm":
        fact, expected = "clocks can no longer be inserted", 'stage "loops" or before'
        raise StepwellError(explain("profile", fact, expected=expected, got='stage "llvm"'))
    if start != "loops":
        passes["loops"] = ",".join(filter(None, (passes["loops"], _PASS)))
    timed = compilation.running(passes)
    work, ctx = timed.begin()
    if start == "loops":
        pipelines.run_passes(ctx, work.op, _PASS, start)
    calls: list[Call] = []
    sites: list[Site] = []
    slot = 0
    for stage in timed.descend(work, ctx):
        if stage == "kernels":
            ctx.work |= _work_of_own(work.main, ctx.work)
        if stage == "scheduled":
            calls = list(calls_of(work.main, ctx.work))
        if stage == "loops":
            # The position of the table of times among the constants of the program.
            record = next(op for op in work.main.walk() if isinstance(op, rt.RecordOp))
            table = record.times.owner
            assert isinstance(table, rt.ConstantOp)
            slot, known = table.slot.value.data, iter(calls)
            # The timed operations, with their calls where these are known.
            for op in timed_operations(work.main):
                is_call = isinstance(op, (rt.CallOp, rt.CallPackedOp))
                sites.append(Site(_name(op), names(op), next(known, None) if is_call else None))
    program = machine_code(work, timed.target, timed.listing)
    if program.device is not None:
        program.device.waits = True
    found = _THREADS.search(passes["llvm"])
    threads = int(found[1]) if found else 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads
    times = program.constants[slot]
    exe = executable(program, boundary(Executable))
    return Profiler(exe, times, sites, min(threads, cores))


def _name(op: Operation) -> str:
    match op:
        case rt.CallOp():
            return op.callee.string_value()
        case rt.CallPackedOp():
            return op.callee.data
        case rt.CheckCsrOp() | rt.CheckIndexOp() | rt.CheckOffsetsOp():
            return f"check of {op.subject.data}"
        case rt.ToDeviceOp():
            return "copy to the device"
        case rt.ToHostOp():
            return "copy to the host"
        case _:
            return "copy of a result"


def _work_of_own(
    main: func.FuncOp, known: Mapping[str, tuple[Work, ...]]
) -> dict[str, tuple[Work, ...]]:
    """The work of kernels that users wrote; nodes and bytes are those of each call."""
    found: dict[str, tuple[Work, ...]] = {}
    for call in (op for op in main.walk() if isinstance(op, CallDpsOp)):
        kernel, name = call.own_kernel, call.callee.string_value()
        if kernel is None or name in known:
            continue
        flops = kernel_flops(kernel, [tensor_type(value) for value in call.arguments])
        if flops is not None:
            found[name] = (Work((), flops, None),)
    return found


def calls_of(main: func.FuncOp, work: Mapping[str, tuple[Work, ...]]) -> Iterator[Call]:
    """The calls of a function on tensors, in order, in the symbols of the function."""
    shapes = SymbolicShapes(main)
    for op in main.walk():
        if not isinstance(op, CallLikeOp):
            continue
        sizes = shapes.of_arguments(op.arguments)
        parts = work.get(op.callee.string_value(), ()) if isinstance(op, CallDpsOp) else ()
        moved = bytes_of(dict.fromkeys([*op.arguments, *op.results]), shapes)
        found = [_substituted(part, sizes) for part in parts]
        own = names(op)
        yield Call(tuple(w if w.nodes else Work(own, w.flops, moved) for w in found), moved)


def _substituted(work: Work, sizes: Mapping[str, Dim]) -> Work:
    flops, moved = (
        None if dim is None or not set(dim.symbols) <= set(sizes) else dim.substitute(sizes)
        for dim in (work.flops, work.bytes)
    )
    return Work(work.nodes, flops, moved)


def _count(dim: Dim | None, sizes: Mapping[str, int]) -> int | None:
    if dim is None or not set(dim.symbols) <= set(sizes):
        return None
    return dim.evaluate(sizes)


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum of counts; None if one is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _amounts(
    site: Site, seconds: float, calls: int, sizes: Mapping[str, int], limits: MachineLimits
) -> tuple[Amount, dict[str, Amount]]:
    """The amount of a site in one run, and the part of each of its nodes.

    The time is divided in proportion to the least time that the machine needs for each operator,
    and evenly among the nodes of one operator.
    """
    work = () if site.call is None else site.call.work
    whole_bytes = None if site.call is None else _count(site.call.bytes, sizes)
    flops = [_count(part.flops, sizes) for part in work]
    moved = [_count(part.bytes, sizes) for part in work]
    whole_flops, among = _sum(flops) if work else None, whole_bytes or 0
    compute, memory = limits.seconds(whole_flops or 0, among, among)
    amount = Amount(seconds, 1, whole_flops, whole_bytes, compute, memory)
    least = [max(limits.seconds(f or 0, b or 0, among)) for f, b in zip(flops, moved, strict=True)]
    parts: dict[str, Amount] = {}
    if not sum(least):
        work, least = (Work(site.nodes, None, None),), [1.0]
        flops, moved = [whole_flops], [whole_bytes]
    for operator, needed, f, b in zip(work, least, flops, moved, strict=True):
        # A kernel that is called from several places names the nodes of all of them.
        nodes = [node for node in operator.nodes if node in site.nodes]
        count = len(nodes)
        for node in nodes:
            own = amount.part(needed / sum(least) / count, _part(f, count), _part(b, count))
            parts[node] = own if node not in parts else parts[node] + own
    return amount.times(calls), {node: part.times(calls) for node, part in parts.items()}


def _part(count: int | None, parts: int) -> int | None:
    return None if count is None else round(count / parts)
