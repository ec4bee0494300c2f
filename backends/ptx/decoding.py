"""Instructions of PTX as steps of the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import InputError, explain
from . import memory
from .counters import LineCounters, count_global, count_shared
from .functions import REDUCTIONS, computation, dtype_of, is_float, unsupported
from .machine import Action, PtxStep, Threads, Undefined, coordinates, joined
from .memory import FaultError, Region
from .text import PtxInstruction, PtxKernel, bits_of, number

Array = np.ndarray[Any, np.dtype[Any]]
Read = Callable[[Threads, Array], Array]

_ADDRESS = re.compile(r"\[\s*([\w%$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_SPACES = ("global", "shared", "local", "const", "param")
_BITS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def decode(kernel: PtxKernel) -> list[PtxStep]:
    """The steps of a kernel, with counters of their own.

    Raises:
        InputError: if the text is wrong.
        UnsupportedError: if it has an instruction that is not known.
    """
    return [_Decoder(kernel, op).step() for op in kernel.code]


def granules(kernel: PtxKernel) -> int:
    """The bytes of the smallest access of a kernel to memory."""
    sizes = [bits_of(op.kind) // 8 for op in kernel.code if op.name in ("ld", "st", "atom", "red")]
    copies = 4 if any(op.name == "cp" for op in kernel.code) else 16
    return min([*sizes, copies])


class _Decoder:
    """One instruction of a kernel, and how its operands are read and its result is written."""

    def __init__(self, kernel: PtxKernel, op: PtxInstruction) -> None:
        self.kernel, self.op = kernel, op
        self.row = LineCounters(op.line, str(op), "move", op.source)

    def step(self) -> PtxStep:
        """The instruction as a step."""
        op = self.op
        if op.name in ("ret", "exit"):
            return self._control(-1)
        if op.name == "bra":
            if op.operands[0] not in self.kernel.labels:
                raise InputError(explain("PTX", "no such label", got=op.operands[0]))
            return self._control(self.kernel.labels[op.operands[0]])
        if op.name == "trap":
            self.row.group = "control"
            return PtxStep(op, self.row, _trap)
        if op.name in _GATHERING:
            return _GATHERING[op.name](self)
        if op.name in _ACTIONS:
            return PtxStep(op, self.row, _ACTIONS[op.name](self))
        return PtxStep(op, self.row, self._computing())

    def _control(self, jump: int) -> PtxStep:
        self.row.group = "control"
        return PtxStep(self.op, self.row, jump=jump)

    def operand(self, n: int) -> str:
        """The text of an operand."""
        if n >= len(self.op.operands):
            raise InputError(explain("PTX", "an operand is missing", origin=self.op.origin))
        return self.op.operands[n]

    # Operands

    def reader(self, text: str, kind: str, *, strict: bool = True) -> Read:
        """A function that reads an operand as a type; if `strict`, it has to be defined."""
        op, dtype = self.op, dtype_of(kind)
        if text in self.kernel.variables:
            return _constant(self._place(text), kind)
        if text == "WARP_SZ":
            return _constant(32, kind)
        if text.startswith("!"):
            inner = self.reader(text[1:], kind, strict=strict)
            return lambda threads, lanes: ~inner(threads, lanes)
        base = text.rpartition(".")[0] if text[-2:] in (".x", ".y", ".z") else text
        if base in _SPECIAL:
            axis = "xyz".index(text[-1]) if base != text else 0
            special = _SPECIAL[base]
            return lambda threads, lanes: np.broadcast_to(
                np.asarray(special(threads, lanes, axis)), lanes.shape
            ).astype(dtype)
        if not text.startswith("%") and (text[:1].isdigit() or text[:1] in "-+."):
            return _constant(number(text, kind), kind)
        width = self.kernel.width(text)
        if width < bits_of(kind) or (width == 1) != (kind == "pred"):
            got = f"{text} of {width} bits"
            raise InputError(
                explain("PTX", "wrong register", expected=f".{kind}", got=got, origin=op.origin)
            )
        if not strict:
            return lambda threads, lanes: _typed(threads.bits(text, lanes), dtype)
        return lambda threads, lanes: _typed(threads.read(text, op, lanes), dtype)

    def undefined(self, text: str, threads: Threads, lanes: Array) -> Undefined | None:
        """Where an operand is not defined; None if it is everywhere."""
        name = text.lstrip("!")
        if not name.startswith("%") or name.split(".")[0] in _SPECIAL:
            return None
        return threads.undefined(name, self.op, lanes)

    def propagating(self, sources: Sequence[str], targets: Sequence[str], act: Action) -> Action:
        """An action whose results are undefined where an operand is.

        LLVM computes with what it leaves undefined, and selects something else afterwards. What
        is stored, or decides where the thread goes on, has to be defined.
        """
        results = [name for name in targets if name and name != "_"]

        def propagated(threads: Threads, lanes: Array) -> None:
            found = joined(self.undefined(text, threads, lanes) for text in sources)
            act(threads, lanes)
            if found is not None:
                for name in results:
                    threads.undefine(name, lanes, found)

        return propagated

    def writer(self, text: str, kind: str) -> Callable[[Threads, Array, Array], None]:
        """A function that writes values of a type to a register, extended to its width."""
        if text == "_":
            return lambda threads, lanes, values: None
        width = self.kernel.width(text)
        if kind == "pred":
            return lambda threads, lanes, values: threads.write(text, values.astype(bool), lanes)
        wide = np.dtype(f"i{width // 8}" if kind[0] == "s" else _BITS[width])
        bits = _BITS[width]

        def write(threads: Threads, lanes: Array, values: Array) -> None:
            raw = values.view(f"{'i' if kind[0] == 's' else 'u'}{values.dtype.itemsize}")
            threads.write(text, raw.astype(wide).view(bits), lanes)

        return write

    def address(self, n: int) -> Read:
        """A function that reads an address operand, as 64 bits."""
        found = _ADDRESS.fullmatch(self.operand(n))
        if found is None:
            raise InputError(explain("PTX", "not an address", origin=self.op.origin))
        base, by = found[1], number(found[2] or "0", "u64")
        if base in self.kernel.variables:
            return _constant((self._place(base) + by) % (1 << 64), "u64")
        narrow = base.startswith("%") and self.kernel.width(base) == 32
        read = self.reader(base, "u32" if narrow else "u64")
        offset = np.uint64(by)
        return lambda threads, lanes: read(threads, lanes).astype(np.uint64) + offset

    def _place(self, name: str) -> int:
        """The address of a variable in its state space."""
        return self.kernel.variables[name].offset

    # Computing

    def _computing(self) -> Action:
        """An instruction that is a function of its operands."""
        found, op = computation(self.op), self.op
        if found is None:
            raise unsupported(op)
        self.row.group = found.group
        sources = [self.operand(n + 1) for n in range(len(found.operands))]
        reads = [self.reader(*of, strict=False) for of in zip(sources, found.operands, strict=True)]
        first, _, second = self.operand(0).partition("|")
        write = self.writer(first, found.result)
        opposite = self.writer(second, found.result) if second else None
        divides = op.name in ("div", "rem") and not is_float(op.kind)

        def act(threads: Threads, lanes: Array) -> None:
            values = [read(threads, lanes) for read in reads]
            if divides and (zero := values[1] == 0).any():
                unknown = self.undefined(sources[1], threads, lanes)
                if unknown is not None:
                    threads.refuse(unknown, lanes)
                raise FaultError("division", "the divisor is 0", int(zero.argmax()))
            result = found.function(*values)
            write(threads, lanes, result)
            if opposite is not None:
                opposite(threads, lanes, ~result)

        if op.name == "selp":
            return self._selecting(sources, first, act)
        if op.name == "prmt":
            sources = self._taken(sources)
        return self.propagating(sources, [first, second], act)

    def _selecting(self, sources: Sequence[str], target: str, act: Action) -> Action:
        """A choice between two operands, of which the other one need not be defined."""
        one, other, condition = sources
        holds = self.reader(condition, "pred", strict=False)

        def selected(threads: Threads, lanes: Array) -> None:
            chosen = holds(threads, lanes)
            pairs = ((one, chosen), (other, ~chosen))
            found = [self.undefined(text, threads, lanes) for text, _ in pairs]
            found = [f and f.among(where) for f, (_, where) in zip(found, pairs, strict=True)]
            undefined = joined([*found, self.undefined(condition, threads, lanes)])
            act(threads, lanes)
            if undefined is not None:
                threads.undefine(target, lanes, undefined)

        return selected

    def _taken(self, sources: Sequence[str]) -> Sequence[str]:
        """The operands of a ``prmt`` of which bytes are taken: LLVM leaves others undefined."""
        *words, selector = sources
        if not selector[:1].isdigit():
            return sources
        places = number(selector, "u32")
        taken = {(places >> (4 * n) & 7) // 4 for n in range(4)}
        return [word for n, word in enumerate(words) if n in taken]

    def move(self) -> Action:
        """Copy a register; or the parts of one, or of several."""
        into, source, kind = self.operand(0), self.operand(1), self.op.kind
        if into.startswith("{") or source.startswith("{"):
            return self._packing(into, source, kind)
        read, write = self.reader(source, kind, strict=False), self.writer(into, kind)
        return self.propagating(
            [source], [into], lambda threads, lanes: write(threads, lanes, read(threads, lanes))
        )

    def _packing(self, into: str, source: str, kind: str) -> Action:
        """Copy a register to narrower ones that are its parts, or the other way."""
        targets, sources = _list(into), _list(source)
        parts = max(len(targets), len(sources))
        part, whole = f"b{bits_of(kind) // parts}", kind.replace("f", "b")
        of_source, of_target = (part if len(names) > 1 else whole for names in (sources, targets))
        reads = [self.reader(name, of_source, strict=False) for name in sources]
        writes = [self.writer(name, of_target) for name in targets]

        def act(threads: Threads, lanes: Array) -> None:
            columns = [read(threads, lanes) for read in reads]
            raw = np.stack(columns, 1).view(dtype_of(part if len(writes) > 1 else whole))
            for write, column in zip(writes, raw.T, strict=True):
                write(threads, lanes, np.ascontiguousarray(column))

        return self.propagating(sources, targets, act)

    def convert_address(self) -> Action:
        """Between generic addresses and those of a state space: ``cvta``."""
        space = next((m for m in self.op.modifiers if m in _SPACES), None)
        shift = {"shared": memory.SHARED, "local": memory.LOCAL}.get(space or "", 0)
        shift = -shift if "to" in self.op.modifiers else shift
        read, write = self.reader(self.operand(1), "u64"), self.writer(self.operand(0), "u64")
        added = np.uint64(shift % (1 << 64))
        return lambda threads, lanes: write(threads, lanes, read(threads, lanes) + added)

    # Memory

    def load(self) -> Action:
        """``ld``. What it loads into a register that no other instruction names is no access.

        LLVM loads 16 bytes where 12 of them are used.
        """
        op = self.op
        if "param" in op.modifiers:
            return self._parameter()
        space, kind, dtype = self._space(), op.kind, dtype_of(op.kind)
        targets, address = _list(self.operand(0)), self.address(1)
        writes = [self.writer(name, kind) for name in targets]
        used = [n for n, name in enumerate(targets) if self.kernel.named[name] > 1]
        used = used or list(range(len(targets)))
        end = dtype.itemsize * (used[-1] + 1)
        how = "atomic" if self._strong() else "read"
        self._check_access(len(targets))
        self.row.group = f"load {space}"
        count, width = self._counted(len(targets))

        def act(threads: Threads, lanes: Array) -> None:
            start = address(threads, lanes)
            count(threads, lanes, start)
            columns = {n: np.empty(len(lanes), dtype) for n in used}
            holes = dict[int, Undefined]()
            for chosen, region, at in _accesses(threads, lanes, start, space, width, end):
                who = threads.accessors(lanes[chosen])
                for n, column in columns.items():
                    place = at + n * dtype.itemsize
                    with _Located(chosen):
                        column[chosen] = region.load(place, dtype, who, how)
                    missing = region.missing(place, dtype.itemsize)
                    if missing is not None:
                        where = np.zeros(len(lanes), bool)
                        where[chosen] = missing
                        holes[n] = Undefined(where, region.unwritten(place, missing), op)
            for n, column in columns.items():
                writes[n](threads, lanes, column)
                if n in holes:
                    threads.undefine(targets[n], lanes, holes[n])

        return act

    def store(self) -> Action:
        """``st``."""
        op = self.op
        space, kind, dtype = self._space(), op.kind, dtype_of(op.kind)
        sources, address = _list(self.operand(1)), self.address(0)
        reads = [self.reader(name, kind, strict=False) for name in sources]
        how = "atomic" if self._strong() else "write"
        self._check_access(len(sources))
        self.row.group = f"store {space}"
        count, width = self._counted(len(sources))

        def act(threads: Threads, lanes: Array) -> None:
            start = address(threads, lanes)
            count(threads, lanes, start)
            columns = [read(threads, lanes) for read in reads]
            unknown = [self.undefined(name, threads, lanes) for name in sources]
            for chosen, region, at in _accesses(threads, lanes, start, space, width):
                who = threads.accessors(lanes[chosen])
                for n, column in enumerate(columns):
                    place, undefined = at + n * dtype.itemsize, unknown[n]
                    if undefined is not None and not region.private:
                        threads.refuse(undefined, lanes)
                    with _Located(chosen):
                        region.store(place, column[chosen], who, how)
                    if undefined is not None:
                        region.forget(place[undefined.at[chosen]], dtype.itemsize)

        return act

    def update(self) -> Action:
        """``atom``, ``red``."""
        op, kind = self.op, self.op.kind
        space, shift = self._space(), int(op.name == "atom")
        name = next((m for m in op.modifiers if m in REDUCTIONS or m == "cas"), None)
        if name is None or ("noftz" in op.modifiers and kind not in ("f16", "bf16")):
            raise unsupported(op)
        function = _swap if name == "cas" else REDUCTIONS[name](op)
        address = self.address(shift)
        reads = [self.reader(self.operand(shift + 1 + n), kind) for n in range(1 + (name == "cas"))]
        write = self.writer(self.operand(0), kind) if shift else None
        self.row.group = f"atomic {space}"
        count, width = self._counted(1)

        def act(threads: Threads, lanes: Array) -> None:
            start = address(threads, lanes)
            count(threads, lanes, start)
            values = [read(threads, lanes) for read in reads]
            old = np.empty(len(lanes), values[0].dtype)
            for chosen, region, at in _accesses(threads, lanes, start, space, width):
                who, operands = threads.accessors(lanes[chosen]), tuple(v[chosen] for v in values)
                with _Located(chosen):
                    old[chosen] = region.update(at, function, operands, who)
            if write is not None:
                write(threads, lanes, old)

        return act

    def _parameter(self) -> Action:
        """``ld.param``: from the arguments of the launch."""
        op, kind, dtype = self.op, self.op.kind, dtype_of(self.op.kind)
        known = {p.name: p for p in self.kernel.parameters}
        found = _ADDRESS.fullmatch(self.operand(1))
        if found is None or found[1] not in known:
            raise InputError(explain("PTX", "not a parameter of the kernel", origin=op.origin))
        start = known[found[1]].offset + int(found[2] or 0)
        self.row.group = "load param"
        writes = [self.writer(name, kind) for name in _list(self.operand(0))]

        def act(threads: Threads, lanes: Array) -> None:
            for n, write in enumerate(writes):
                at = start + n * dtype.itemsize
                value = threads.parameters[at : at + dtype.itemsize].view(dtype)
                write(threads, lanes, np.repeat(value, len(lanes)))

        return act

    def copy(self) -> Action:
        """``cp.async``: copies to shared memory, and their groups."""
        op = self.op
        self.row.group = "copy"
        if "commit_group" in op.modifiers:
            return _commit
        if "wait_group" in op.modifiers or "wait_all" in op.modifiers:
            left = int(self.operand(0)) if "wait_group" in op.modifiers else -1
            return lambda threads, lanes: _wait(threads, lanes, left)
        if "async" not in op.modifiers or "bulk" in op.modifiers or len(op.operands) > 3:
            raise unsupported(op)
        into, source, size = self.address(0), self.address(1), int(self.operand(2))
        word = np.dtype(np.uint32)

        def act(threads: Threads, lanes: Array) -> None:
            start, target = source(threads, lanes), into(threads, lanes)
            count_global(self.row, threads.warp[lanes], start, size)
            for chosen, region, at in _accesses(threads, lanes, start, "global", size):
                _, shared, to = _accesses(threads, lanes[chosen], target[chosen], "shared", size)[0]
                who = threads.accessors(lanes[chosen])
                for n in range(0, size, 4):
                    with _Located(chosen):
                        values = region.load(at + n, word, who)
                        copied = shared.begin_copy(to + n, values, who)
                    groups = threads.committed[lanes[chosen]]
                    threads.copies.append((lanes[chosen], groups, copied))

        return act

    def _space(self) -> str:
        """The state space of an access; "generic" if it is not stated."""
        return next((m for m in self.op.modifiers if m in _SPACES), "generic")

    def _strong(self) -> bool:
        """Whether an access orders itself with others, as those of flags do."""
        return bool({"volatile", "relaxed", "acquire", "release"} & set(self.op.modifiers))

    def _check_access(self, elements: int) -> None:
        """Check that the operands of an access are as many as it says.

        Raises:
            InputError: if they are not.
        """
        stated = next((int(m[1:]) for m in self.op.modifiers if re.fullmatch(r"v\d", m)), 1)
        if stated != elements:
            fact = "wrong number of registers"
            raise InputError(
                explain("PTX", fact, expected=stated, got=elements, origin=self.op.origin)
            )

    def _counted(self, elements: int) -> tuple[Callable[[Threads, Array, Array], None], int]:
        """A function that counts accesses to memory, and their width in bytes."""
        row, space = self.row, self._space()
        width = elements * bits_of(self.op.kind) // 8

        def count(threads: Threads, lanes: Array, address: Array) -> None:
            warp = threads.warp[lanes]
            if space in ("global", "generic"):
                outside = address < np.uint64(memory.LOCAL)
                if outside.any():
                    count_global(row, warp[outside], address[outside], width)
            elif space == "shared":
                count_shared(row, warp, threads.lane[lanes], address.astype(np.int64), width)

        return count, width

    # Threads together

    def barrier(self) -> PtxStep:
        """``bar.sync``, ``barrier.sync`` and ``bar.warp.sync``."""
        op, words = self.op, set(self.op.modifiers)
        self.row.group = "barrier"
        if "warp" in words:
            members = self.reader(self.operand(0), "b32")
            return PtxStep(op, self.row, _synced, gathers="warp", members=members)
        if "sync" not in words or len(op.operands) != 1:
            raise unsupported(op)
        return PtxStep(op, self.row, gathers="block")

    def shuffle(self) -> PtxStep:
        """``shfl.sync``: a register of another thread of the warp."""
        op = self.op
        if "sync" not in op.modifiers:
            raise unsupported(op)
        self.row.group = "shuffle"
        mode = op.modifiers[1]
        first, _, flag = self.operand(0).partition("|")
        write, inside = self.writer(first, "b32"), self.writer(flag or "_", "pred")
        reads = [self.reader(self.operand(n), "b32") for n in (1, 2, 3)]
        members = self.reader(self.operand(4), "b32")

        def act(threads: Threads, lanes: Array) -> None:
            value, by, bounds = (read(threads, lanes) for read in reads)
            lane, found = _partner(mode, threads.lane[lanes], by, bounds)
            source = lanes - threads.lane[lanes] + lane
            at = np.searchsorted(lanes, source)
            missing = (at >= len(lanes)) | (lanes[np.minimum(at, len(lanes) - 1)] != source)
            if missing.any():
                n = int(missing.argmax())
                fact = f"lane {lane[n]}, whose register it reads, does not take part"
                raise FaultError("barrier", fact, n)
            write(threads, lanes, value[at])
            inside(threads, lanes, found)

        return PtxStep(op, self.row, act, gathers="warp", members=members)

    def vote(self) -> PtxStep:
        """``vote.sync``: what the threads of a warp say together."""
        op = self.op
        if "sync" not in op.modifiers:
            raise unsupported(op)
        self.row.group = "shuffle"
        mode, kind = op.modifiers[1], op.kind
        read, write = self.reader(self.operand(1), "pred"), self.writer(self.operand(0), kind)
        members = self.reader(self.operand(2), "b32")

        def act(threads: Threads, lanes: Array) -> None:
            values = read(threads, lanes)
            warps = threads.warp[lanes]
            bits = np.zeros(threads.blocks * threads.shape.warps, np.uint32)
            said = lanes[values]
            one = np.uint32(1) << threads.lane[said].astype(np.uint32)
            np.bitwise_or.at(bits, threads.warp[said], one)
            ballot, all_ = bits[warps], members(threads, lanes)
            results = {
                "ballot": ballot,
                "all": ballot == all_,
                "any": ballot != 0,
                "uni": (ballot == all_) | (ballot == 0),
            }
            write(threads, lanes, results[mode])

        return PtxStep(op, self.row, act, gathers="warp", members=members)

    def reduce(self) -> PtxStep:
        """``redux.sync``: a reduction over the threads of a warp."""
        op, kind = self.op, self.op.kind
        function = REDUCTIONS.get(op.modifiers[1])
        if function is None or op.modifiers[0] != "sync":
            raise unsupported(op)
        self.row.group = "shuffle"
        combine: Any = function(op)
        read, write = self.reader(self.operand(1), kind), self.writer(self.operand(0), kind)
        members = self.reader(self.operand(2), "b32")

        def act(threads: Threads, lanes: Array) -> None:
            values, warps = read(threads, lanes), threads.warp[lanes]
            starts = np.flatnonzero(np.r_[True, warps[1:] != warps[:-1]])
            counts = np.diff(np.r_[starts, len(lanes)])
            write(threads, lanes, np.repeat(combine.reduceat(values, starts), counts))

        return PtxStep(op, self.row, act, gathers="warp", members=members)

    def active(self) -> Action:
        """``activemask``: the threads of the warp that are here."""
        write = self.writer(self.operand(0), "b32")
        return lambda threads, lanes: write(threads, lanes, threads.present(lanes))

    def nothing(self) -> Action:
        """Fences: memory is consistent, and races are found without them."""
        self.row.group = "barrier"
        return lambda threads, lanes: None


_ACTIONS: dict[str, Callable[[_Decoder], Action]] = {
    "activemask": _Decoder.active,
    "atom": _Decoder.update,
    "cp": _Decoder.copy,
    "cvta": _Decoder.convert_address,
    "fence": _Decoder.nothing,
    "ld": _Decoder.load,
    "ldu": _Decoder.load,
    "membar": _Decoder.nothing,
    "mov": _Decoder.move,
    "red": _Decoder.update,
    "st": _Decoder.store,
}
_GATHERING: dict[str, Callable[[_Decoder], PtxStep]] = {
    "bar": _Decoder.barrier,
    "barrier": _Decoder.barrier,
    "redux": _Decoder.reduce,
    "shfl": _Decoder.shuffle,
    "vote": _Decoder.vote,
}

_SPECIAL: dict[str, Callable[[Threads, Array, int], Any]] = {
    "%tid": lambda t, lanes, axis: coordinates(t.thread[lanes], t.shape.block)[axis],
    "%ntid": lambda t, lanes, axis: t.shape.block[axis],
    "%ctaid": lambda t, lanes, axis: coordinates(t.block[lanes] + t.first, t.shape.grid)[axis],
    "%nctaid": lambda t, lanes, axis: t.shape.grid[axis],
    "%laneid": lambda t, lanes, axis: t.lane[lanes],
    "%warpid": lambda t, lanes, axis: t.thread[lanes] // 32,
    "%nwarpid": lambda t, lanes, axis: t.shape.warps,
    "%lanemask_eq": lambda t, lanes, axis: 1 << t.lane[lanes],
    "%lanemask_lt": lambda t, lanes, axis: (1 << t.lane[lanes]) - 1,
    "%lanemask_le": lambda t, lanes, axis: (2 << t.lane[lanes]) - 1,
    "%lanemask_gt": lambda t, lanes, axis: (1 << 32) - (2 << t.lane[lanes]),
    "%lanemask_ge": lambda t, lanes, axis: (1 << 32) - (1 << t.lane[lanes]),
    "%clock": lambda t, lanes, axis: t.steps,
    "%clock64": lambda t, lanes, axis: t.steps,
}
"""Special registers, of threads and an axis."""


class _Located:
    """Number the threads of a fault among all that execute the instruction."""

    def __init__(self, chosen: Array | slice) -> None:
        self._chosen = chosen

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FaultError) and isinstance(self._chosen, np.ndarray):
            error.at = int(self._chosen[error.at])


def _accesses(
    threads: Threads, lanes: Array, address: Array, space: str, width: int, end: int | None = None
) -> list[tuple[Array | slice, Region, Array]]:
    """The accesses of threads to each region: which they are, and positions in it.

    They are aligned to their width. Of the bytes of a load, those up to `end` are used.
    """
    found: list[tuple[Array | slice, Region, Array]] = []
    if space == "generic":
        shared, local = address >= memory.SHARED, address >= memory.LOCAL
        for chosen, name, start in (
            (np.flatnonzero(~local), "global", 0),
            (np.flatnonzero(local & ~shared), "local", memory.LOCAL),
            (np.flatnonzero(shared), "shared", memory.SHARED),
        ):
            if len(chosen):
                moved = address[chosen] - np.uint64(start)
                with _Located(chosen):
                    parts = _accesses(threads, lanes[chosen], moved, name, width, end)
                found += [(chosen[inner], region, at) for inner, region, at in parts]
        return found
    if space in ("global", "const"):
        for chosen, region, offset in threads.memory.of(address):
            with _Located(chosen):
                found.append((chosen, region, region.positions(offset, width, end, None)))
        return found
    region = threads.spaces[space]
    part = threads.block[lanes] if space == "shared" else lanes
    return [(slice(None), region, region.positions(address.astype(np.int64), width, end, part))]


def _typed(bits: Array, dtype: np.dtype[Any]) -> Array:
    """The low bits of registers as a type."""
    if dtype.kind == "b" or bits.dtype.itemsize == dtype.itemsize:
        return bits.view(dtype)
    return bits.astype(_plain(dtype)).view(dtype)


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the bits of a type."""
    return dtype if dtype.kind == "b" else np.dtype(f"u{dtype.itemsize}")


def _constant(value: int, kind: str) -> Read:
    dtype = dtype_of(kind)
    if dtype.kind == "b":
        return lambda threads, lanes: np.full(len(lanes), bool(value))
    bits = np.array([value % (1 << bits_of(kind))], np.uint64).astype(_plain(dtype)).view(dtype)
    return lambda threads, lanes: np.repeat(bits, len(lanes))


def _list(text: str) -> list[str]:
    """The registers in braces, or the one without them."""
    return [part.strip() for part in text.strip("{}").split(",")]


def _swap(old: Array, compared: Array, new: Array) -> Array:
    return np.where(old == compared, new, old)


def _trap(threads: Threads, lanes: Array) -> None:
    raise FaultError("trap", "the kernel ends itself", 0)


def _synced(threads: Threads, lanes: Array) -> None:
    threads.syncs[lanes] += 1


def _partner(mode: str, lane: Array, by: Array, bounds: Array) -> tuple[Array, Array]:
    """The lane that each one reads in a shuffle, and whether it is inside of the segment."""
    clamp, segment = bounds.astype(np.int64) & 31, bounds.astype(np.int64) >> 8 & 31
    by = by.astype(np.int64) & 31
    most, least = (lane & segment) | (clamp & ~segment & 31), lane & segment
    wanted = {
        "up": lane - by,
        "down": lane + by,
        "bfly": lane ^ by,
        "idx": least | (by & ~segment & 31),
    }[mode]
    inside = wanted >= most if mode == "up" else wanted <= most
    return np.where(inside, wanted, lane), inside


def _commit(threads: Threads, lanes: Array) -> None:
    threads.committed[lanes] += 1


def _wait(threads: Threads, lanes: Array, left: int) -> None:
    """Complete the copies of threads in all but the latest `left` groups; all if it is -1."""
    waits = np.zeros(threads.count, bool)
    waits[lanes] = True
    kept: list[tuple[Array, Array, list[Array]]] = []
    shared = threads.spaces["shared"]
    for owners, groups, granules_ in threads.copies:
        ready = waits[owners] & ((left < 0) | (groups < threads.committed[owners] - left))
        if ready.any():
            with _Located(np.searchsorted(lanes, owners[ready])):
                shared.end_copy([g[ready] for g in granules_], threads.accessors(owners[ready]))
        if not ready.all():
            kept.append((owners[~ready], groups[~ready], [g[~ready] for g in granules_]))
    threads.copies = kept
