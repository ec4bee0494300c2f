"""`PREFIX_run`: a call of the program on the buffers of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ....core.algebra.dims import product
from ....core.boundary.wording import Detail, WordingCase, pieces
from ....core.errors import explain, in_iteration
from ....dialects.rt.abi import ARENA_TOO_SMALL, DETAIL_WORDS, Word
from ....dialects.rt.statuses import CallFailure
from ...c.interface import CInterface, Code
from .emitter import BYTE, CHOSEN, PTR, STATUS, WORD, FunctionEmitter, struct_of
from .sizes import SizeFunctions

_NOWHERE = ir.Constant(ir.ArrayType(BYTE, 64), None)
"""What an empty buffer points to."""
_SCOPE = ir.ArrayType(WORD, 1024 // 8 + 3)
"""A `%Scope` of `locals.ll`."""


@dataclass(frozen=True)
class _CallArray:
    """An array of a call: what it is called, its address, and its elements."""

    subject: str
    address: Any
    elements: Any
    item_bytes: int


def program_function(number: int) -> str:
    """The function that runs the kernels for a target: a name that no function of C has."""
    return f"stepwell.program.{number}"


class CallFunctions:
    """The functions of a program that call it.

    Args:
        module: where they go.
        interface: the interface of the program.
        sizes: its functions about sizes.
    """

    def __init__(self, module: ir.Module, interface: CInterface, sizes: SizeFunctions) -> None:
        self._module, self._interface, self._sizes = module, interface, sizes
        self._failures = list[CallFailure]()
        """The failures that statuses stand for: those of each target, one after the other."""
        self._first_status = list[int]()
        """The number in front of the first status of the program for each target."""
        for number, own in enumerate(interface.failures):
            if (same := interface.failures.index(own)) < number:
                self._first_status.append(self._first_status[same])
                continue
            self._first_status.append(len(self._failures))
            self._failures += own
        self._index = ir.IntType(interface.target.index_bits)
        self._add_explain()
        self._add_run()

    def _add_explain(self) -> None:
        """`explain(status, details)`: makes the message of a status that of the last error."""
        emit = FunctionEmitter(self._module, "explain", ir.VoidType(), STATUS, PTR)
        status, details = emit.arguments
        for number, failure in enumerate(self._failures, 1):
            meant = emit.builder.icmp_signed("==", status, STATUS(number))
            with emit.builder.if_then(meant):
                # The text of a failure, with the details in the context.
                emit.say(failure.beginning)
                _say_cases(emit, failure.cases, failure.detail_words, details)
                for place, loop in enumerate(failure.loops, DETAIL_WORDS):
                    text = in_iteration("", "{0}", loop)
                    _append(emit, text, 1, emit.word_at(details, place))
                emit.builder.ret_void()
        emit.say("call: unknown status")
        emit.builder.ret_void()

    def _add_run(self) -> None:
        """`PREFIX_run(program, inputs, outputs) -> code`."""
        name = self._interface.function("run")
        emit = FunctionEmitter(self._module, name, STATUS, PTR, PTR, PTR, seen=True)
        program, inputs, outputs = emit.arguments
        for argument, subject in zip(emit.arguments, ("program", "inputs", "outputs"), strict=True):
            emit.require_pointer(argument, subject)
        symbols = self._sizes.check(emit, inputs)
        read, words = self._inputs(emit, inputs)
        written, more = self._outputs(emit, outputs, symbols)
        addresses = self._check_buffers(emit, read, written)
        values = [addresses[w.subject] if isinstance(w, _CallArray) else w for w in (*words, *more)]
        reported = self._interface.signature.reported
        table = emit.builder.alloca(WORD, size=WORD(max(1, reported)))
        self._call(
            emit, program, [*values, *([table] if reported else [])], outputs, symbols, table
        )

    def _inputs(self, emit: FunctionEmitter, struct: Any) -> tuple[list[_CallArray], list[Any]]:
        """The buffers of the inputs, and the arguments of the program: buffers and sizes."""
        buffers: list[_CallArray] = []
        words: list[Any] = []
        kind = struct_of(self._interface.inputs)
        for number, field in enumerate(self._interface.inputs):
            sizes = self._sizes.passed_sizes(emit, field, struct, number)
            passed = [s for s, is_word in zip(sizes, field.passed, strict=False) if is_word]
            subject, own = f'input "{field.spec.name}"', field.item_bytes
            if not field.is_sparse:
                path = (number, 0) if field.has_shape else (number,)
                address = emit.load(emit.member(struct, kind, *path), PTR)
                buffer = _CallArray(subject, address, emit.product(sizes)[0], own)
                buffers.append(buffer)
                words += [buffer, *passed]
                continue
            rows, columns, entries = sizes
            pointers = emit.builder.add(rows, WORD(1))
            pointer, index = (dtype.itemsize for dtype in field.index_dtypes)
            facts = (("indptr", pointers, pointer), ("indices", entries, index))
            parts = [
                _CallArray(
                    f"{subject}, {part}",
                    emit.load(emit.member(struct, kind, number, place), PTR),
                    count,
                    item,
                )
                for place, (part, count, item) in enumerate((*facts, ("values", entries, own)))
            ]
            buffers += parts
            words += [parts[0], *([pointers] if field.passed[0] else []), parts[1], entries]
            words += [parts[2], entries, *([columns] if field.passed[1] else [])]
        return buffers, words

    def _outputs(
        self, emit: FunctionEmitter, struct: Any, symbols: Mapping[str, Any]
    ) -> tuple[list[_CallArray], list[Any]]:
        """The same of the results, whose shapes are checked."""
        buffers: list[_CallArray] = []
        words: list[Any] = []
        kind = struct_of(self._interface.outputs)
        for number, field in enumerate(self._interface.outputs):
            sizes = self._sizes.shape(emit, field, symbols)
            subject = f'output "{field.spec.name}"'
            path = (number, 0) if field.has_shape else (number,)
            address = emit.load(emit.member(struct, kind, *path), PTR)
            total, wrong = emit.product(sizes)
            self._sizes.bytes_of(emit, (total, wrong), field, subject)
            if field.computed:
                room = emit.load(emit.member(struct, kind, number, 1))
                fact = explain(subject, "too little room, expected at least ")
                enough = emit.builder.icmp_signed(">=", room, total)
                emit.require(enough, Code.ROOM, fact, total, ", got ", room)
                self._sizes.bytes_of(emit, (room, wrong), field, subject)
                total = room
            elif field.has_shape:
                for axis, size in enumerate(sizes):
                    given = emit.load(emit.member(struct, kind, number, 1, axis))
                    fact = explain(subject, f"wrong size of dimension {axis}, expected ")
                    emit.require(emit.same(given, size), Code.SIZE, fact, size, ", got ", given)
            buffer = _CallArray(subject, address, total, field.item_bytes)
            buffers.append(buffer)
            passed = [s for s, is_word in zip(sizes, field.passed, strict=True) if is_word]
            words += [buffer, *passed]
        return buffers, words

    def _check_buffers(
        self, emit: FunctionEmitter, read: Sequence[_CallArray], written: Sequence[_CallArray]
    ) -> dict[str, Any]:
        """Check addresses; returns them by what the buffers are called."""
        buffers = [*read, *written]
        ranges = emit.builder.alloca(WORD, size=WORD(2 * len(buffers)))
        names = [emit.text(buffer.subject) for buffer in buffers]
        found: dict[str, Any] = {}
        for number, buffer in enumerate(buffers):
            # The address of the buffer as a number, and the bytes of the buffer.
            begin = emit.builder.ptrtoint(buffer.address, WORD)
            bytes = emit.builder.mul(buffer.elements, WORD(buffer.item_bytes))
            empty = emit.same(bytes, WORD(0))
            good = emit.builder.or_(empty, emit.is_set(buffer.address))
            emit.require(good, Code.NULL, explain(buffer.subject, "is null"))
            rest = emit.builder.and_(begin, WORD(buffer.item_bytes - 1))
            good = emit.builder.or_(empty, emit.same(rest, WORD(0)))
            fact = explain(buffer.subject, f"is not aligned to {buffer.item_bytes} bytes")
            emit.require(good, Code.ALIGNMENT, fact)
            end = emit.builder.add(begin, bytes)
            if number >= len(read):
                place = emit.call("overlapping", WORD, ranges, WORD(number), begin, end)
                fact = explain(buffer.subject, "overlaps ")
                with emit.builder.if_then(emit.between(place, WORD(0), WORD(number)), likely=False):
                    emit.say(fact)
                    emit.call("say", ir.VoidType(), emit.address_in("subjects", names, place))
                    emit.builder.ret(STATUS(Code.OVERLAP))
            for part, value in enumerate((begin, end)):
                emit.builder.store(value, emit.word_at(ranges, 2 * number + part))
            empty = emit.same(bytes, WORD(0))
            nowhere = emit.data(_NOWHERE, "nowhere")
            found[buffer.subject] = emit.builder.select(empty, nowhere, buffer.address)
        return found

    def _call(
        self,
        emit: FunctionEmitter,
        program: Any,
        values: Sequence[Any],
        outputs: Any,
        symbols: Mapping[str, Any],
        table: Any,
    ) -> None:
        """Call the program in a frame, with an arena that grows until it is large enough."""
        frame = emit.call("begin_call", PTR, program)
        emit.require(emit.is_set(frame), Code.MEMORY, explain("call", "not enough memory"))
        scope: Any = None
        if self._interface.takes_memory:
            # A scope of `locals.ll`, which ends in an error where a kernel has no memory.
            scope = emit.builder.alloca(_SCOPE)
            scope.align = 16
            emit.call("enter_scope", ir.VoidType(), scope, program)
            mark = emit.call("_setjmp", STATUS, scope)
            emit.module.globals["_setjmp"].attributes.add("returns_twice")
            failed = emit.builder.icmp_signed("!=", mark, STATUS(0))
            with emit.builder.if_then(failed, likely=False):
                self._leave_scope(emit, scope)
                emit.call("give_back", ir.VoidType(), frame)
                emit.fail(Code.MEMORY, "call: not enough memory for a local array of a kernel")
        again = emit.builder.append_basic_block()
        emit.builder.branch(again)
        emit.builder.position_at_end(again)
        kept = (PTR, self._index)
        narrow = [v if v.type in kept else emit.builder.trunc(v, self._index) for v in values]
        status = self._run_kernels(emit, program, [frame, *narrow])
        details = emit.word_at(frame, Word.DETAILS)
        small = emit.builder.icmp_signed("==", status, STATUS(ARENA_TOO_SMALL))
        with emit.builder.if_then(small, likely=False):
            wanted = emit.load(details)
            grown = emit.call("grow_arena", ir.IntType(1), program, frame, wanted)
            with emit.builder.if_then(grown):
                emit.builder.branch(again)
            self._leave_scope(emit, scope)
            emit.call("give_back", ir.VoidType(), frame)
            emit.fail(Code.MEMORY, "call: not enough memory for an arena of ", wanted, " bytes")
        self._leave_scope(emit, scope)
        with emit.builder.if_then(emit.builder.icmp_signed("!=", status, STATUS(0)), likely=False):
            emit.call("explain", ir.VoidType(), status, details)
            emit.call("give_back", ir.VoidType(), frame)
            emit.builder.ret(STATUS(Code.VALUE))
        self._report(emit, frame, outputs, symbols, table)
        emit.call("give_back", ir.VoidType(), frame)
        emit.builder.ret(STATUS(Code.OK))

    def _run_kernels(self, emit: FunctionEmitter, program: Any, arguments: Sequence[Any]) -> Any:
        """The status of the kernels for the target that the program has chosen."""
        if not self._interface.chooses:
            return emit.call(program_function(0), STATUS, *arguments)
        kinds = [PTR if isinstance(a.type, ir.PointerType) else a.type for a in arguments]
        inner = FunctionEmitter(self._module, "run_chosen", STATUS, PTR, *kinds)
        chosen = inner.load(inner.word_at(inner.arguments[0], CHOSEN))
        for number in inner.cases(chosen, len(self._first_status)):
            status = inner.call(program_function(number), STATUS, *inner.arguments[1:])
            failed = inner.builder.icmp_signed(">", status, STATUS(0))
            shifted = inner.builder.add(status, STATUS(self._first_status[number]))
            inner.builder.ret(inner.builder.select(failed, shifted, status))
        inner.builder.unreachable()
        return emit.call("run_chosen", STATUS, program, *arguments)

    def _leave_scope(self, emit: FunctionEmitter, scope: Any) -> None:
        if scope is not None:
            emit.call("leave_scope", ir.VoidType(), scope)

    def _report(
        self, emit: FunctionEmitter, frame: Any, struct: Any, symbols: Mapping[str, Any], table: Any
    ) -> None:
        """Store the shapes of results of computed sizes, and copy those in the arena."""
        signature, kind = self._interface.signature, struct_of(self._interface.outputs)
        count = len(signature.computed)
        known = dict(symbols)
        for number, name in enumerate(signature.computed):
            known[name] = emit.load(emit.word_at(table, number))
        places = iter(range(count, signature.reported))
        for number, field in enumerate(self._interface.outputs):
            if not field.computed:
                continue
            for axis, dim in enumerate(field.exact):
                address = emit.member(struct, kind, number, 2, axis)
                emit.builder.store(emit.size(dim, known)[0], address)
            if not field.unbounded:
                continue
            start = emit.load(emit.word_at(table, next(places)))
            total, _ = emit.size(product(field.exact), known)
            room = emit.load(emit.member(struct, kind, number, 1))
            with emit.builder.if_then(emit.builder.icmp_signed("<", room, total), likely=False):
                emit.call("give_back", ir.VoidType(), frame)
                fact = explain(f'output "{field.spec.name}"', "too little room, expected at least ")
                emit.fail(Code.ROOM, fact, total, ", got ", room)
            arena = emit.load(emit.word_at(frame, Word.ARENA), PTR)
            source = emit.builder.gep(arena, [start], source_etype=BYTE)
            target = emit.load(emit.member(struct, kind, number, 0), PTR)
            bytes = emit.builder.mul(total, WORD(field.item_bytes))
            with emit.builder.if_then(emit.builder.icmp_signed(">", bytes, WORD(0))):
                emit.copy(target, source, bytes)


def _say_cases(
    emit: FunctionEmitter, cases: Sequence[WordingCase], count: int, details: Any
) -> None:
    case, *rest = cases
    if case.detail is None:
        _append(emit, case.text, count, details)
        return
    last = emit.load(emit.word_at(details, count - 1))
    most = last if case.most is None else WORD(case.most)
    value = emit.load(emit.word_at(details, case.detail))
    applies = emit.between(value, WORD(case.least), most)
    with emit.builder.if_else(applies) as (then, otherwise):
        with then:
            _append(emit, case.text, count, details)
        with otherwise:
            if rest:
                _say_cases(emit, rest, count, details)


def _append(emit: FunctionEmitter, text: str, count: int, details: Any) -> None:
    for piece in pieces(text, count):
        if isinstance(piece, Detail):
            value = emit.load(emit.word_at(details, piece.place))
            scaled = emit.builder.mul(value, WORD(piece.factor))
            value = emit.builder.add(scaled, WORD(piece.summand))
            emit.call("say_number", ir.VoidType(), value)
        else:
            emit.call("say", ir.VoidType(), emit.text(piece))
