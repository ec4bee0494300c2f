"""`PREFIX_create`, `PREFIX_open` and `PREFIX_destroy`: programs in memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....core.errors import explain
from ...c.interface import CInterface
from ..pool import FORGET
from .emitter import (
    BYTE,
    CHOSEN,
    CONSTANTS,
    FLAG,
    MAPPED,
    PTR,
    STATUS,
    WORD,
    FunctionEmitter,
)
from .features import add_lacks_features, checked_features
from .weights import HEADER, Weights

_SUBJECT = "weights"


class LifeFunctions:
    """The functions of a program that make and delete one.

    Args:
        module: where they go.
        interface: the interface of the program.
        weights: its constants.
    """

    def __init__(self, module: ir.Module, interface: CInterface, weights: Weights) -> None:
        self._module, self._interface, self._weights = module, interface, weights
        self._add_make()
        if interface.linked_weights:
            self._add_create_linked()
        else:
            self._add_create()
            if interface.maps_files:
                self._add_open()
        self._add_destroy()
        if interface.chooses:
            self._add_target()
        # `PREFIX_last_error() -> text`.
        emit = self._begin("last_error", PTR)
        emit.builder.ret(emit.call("last_message", PTR))

    def _begin(self, name: str, result: ir.Type, *arguments: ir.Type) -> FunctionEmitter:
        function = self._interface.function(name)
        return FunctionEmitter(self._module, function, result, *arguments, seen=True)

    def _add_make(self) -> None:
        """`make(allocator, weights, mapped) -> program`; null with a message."""
        emit = FunctionEmitter(self._module, "make", PTR, PTR, PTR, PTR)
        hooks, weights, mapped = emit.arguments
        chosen = self._choose(emit)
        good = emit.call("are_hooks", FLAG, hooks)
        _require(emit, good, explain("allocator", "a function is null"))
        program = emit.call("new_program", PTR, hooks)
        _require(emit, emit.is_set(program), explain("create", "not enough memory"))
        emit.builder.store(mapped, emit.word_at(program, MAPPED))
        emit.builder.store(chosen, emit.word_at(program, CHOSEN))
        table = emit.word_at(program, CONSTANTS)
        for number in emit.cases(chosen, len(self._weights.slots)):
            for place, slot in enumerate(self._weights.slots[number]):
                offset = WORD(self._weights.offsets[slot])
                address = emit.builder.gep(weights, [offset], source_etype=BYTE)
                word = emit.builder.ptrtoint(address, WORD)
                emit.builder.store(word, emit.word_at(table, place))
        if self._interface.pooled:
            # The child of a fork has no workers: let it start a pool of its own.
            flag = ir.GlobalVariable(self._module, STATUS, "watches_forks")
            flag.initializer, flag.linkage = STATUS(0), "internal"  # type: ignore[assignment]
            before = emit.builder.atomic_rmw("xchg", flag, STATUS(1), "acq_rel")
            with emit.builder.if_then(emit.builder.icmp_signed("==", before, STATUS(0))):
                forget = ir.Function(self._module, ir.FunctionType(ir.VoidType(), ()), FORGET)
                emit.call("pthread_atfork", STATUS, emit.null, emit.null, forget.bitcast(PTR))
        emit.builder.ret(program)

    def _choose(self, emit: FunctionEmitter) -> Any:
        """The number of the first target whose code this processor can run; without any, the
        function returns null, and the message says what the last target needs."""
        *better, least = self._interface.targets
        last: Any = WORD(len(better))
        chosen = last
        for number, target in reversed(list(enumerate(better))):
            name = f"lacks_features_{number}"
            add_lacks_features(self._module, target, name, told=False)
            chosen = emit.builder.select(emit.call(name, FLAG), chosen, WORD(number))
        if checked_features(least):
            add_lacks_features(self._module, least, "lacks_features", told=True)
            with (
                emit.builder.if_then(emit.same(chosen, last)),
                emit.builder.if_then(emit.call("lacks_features", FLAG), likely=False),
            ):
                emit.builder.ret(emit.null)
        return chosen

    def _add_target(self) -> None:
        """`PREFIX_target(program) -> text`; null for null."""
        emit = self._begin("target", PTR, PTR)
        (program,) = emit.arguments
        with emit.builder.if_then(emit.builder.not_(emit.is_set(program))):
            emit.builder.ret(emit.null)
        names = [emit.text(target.name) for target in self._interface.targets]
        chosen = emit.load(emit.word_at(program, CHOSEN))
        emit.builder.ret(emit.address_in("targets", names, chosen))

    def _add_create_linked(self) -> None:
        """`PREFIX_create(allocator) -> program`."""
        emit = self._begin("create", PTR, PTR)
        size = self._weights.bytes - HEADER
        header = ir.ArrayType(BYTE, HEADER)
        kind = ir.LiteralStructType([header, ir.ArrayType(BYTE, size)])
        block: Any = ir.GlobalVariable(self._module, kind, _SUBJECT)
        texts = bytearray(self._weights.header)
        zeros = ir.Constant(ir.ArrayType(BYTE, size), None)
        value: Any = ir.Constant(kind, [ir.Constant(header, texts), zeros])
        block.initializer, block.linkage, block.align = value, "internal", HEADER
        block.global_constant = True
        emit.builder.ret(emit.call("make", PTR, emit.arguments[0], block.bitcast(PTR), emit.null))

    def _add_create(self) -> None:
        """`PREFIX_create(weights, bytes, allocator) -> program`."""
        emit = self._begin("create", PTR, PTR, WORD, PTR)
        weights, bytes, hooks = emit.arguments
        _require(emit, emit.is_set(weights), explain(_SUBJECT, "is null"))
        rest = emit.builder.and_(emit.builder.ptrtoint(weights, WORD), WORD(HEADER - 1))
        aligned = explain(_SUBJECT, f"is not aligned to {HEADER} bytes")
        _require(emit, emit.same(rest, WORD(0)), aligned)
        fact = explain(_SUBJECT, "wrong number of bytes", expected=f"{self._weights.bytes}, got ")
        _require(emit, emit.same(bytes, WORD(self._weights.bytes)), fact, bytes)
        self._require_header(emit, weights, None)
        emit.builder.ret(emit.call("make", PTR, hooks, weights, emit.null))

    def _add_open(self) -> None:
        """`PREFIX_open(path, allocator) -> program`."""
        emit = self._begin("open", PTR, PTR, PTR)
        path, hooks = emit.arguments
        _require(emit, emit.is_set(path), explain("path", "is null"))
        size = WORD(self._weights.bytes)
        mapped = emit.call("map_file", PTR, path, size)
        fact = explain(
            _SUBJECT, f"no file of {self._weights.bytes} bytes that can be read", got='"'
        )
        with emit.builder.if_then(emit.builder.not_(emit.is_set(mapped))):
            emit.say(fact)
            emit.call("say", ir.VoidType(), path)
            emit.call("say", ir.VoidType(), emit.text('"'))
            emit.builder.ret(emit.null)
        self._require_header(emit, mapped, mapped)
        program = emit.call("make", PTR, hooks, mapped, mapped)
        with emit.builder.if_then(emit.builder.not_(emit.is_set(program))):
            emit.call("unmap_file", ir.VoidType(), mapped, size)
        emit.builder.ret(program)

    def _require_header(self, emit: FunctionEmitter, weights: Any, mapped: Any) -> None:
        """Refuse weights of another program, and unmap them if they are mapped."""
        header = ir.Constant(ir.ArrayType(BYTE, HEADER), bytearray(self._weights.header))
        known = emit.data(header, "header")
        good = FLAG(1)
        for number in range(HEADER // 8):
            one, other = (emit.load(emit.word_at(base, number)) for base in (weights, known))
            good = emit.builder.and_(good, emit.same(one, other))
        with emit.builder.if_then(emit.builder.not_(good)):
            if mapped is not None:
                emit.call("unmap_file", ir.VoidType(), mapped, WORD(self._weights.bytes))
            emit.say(explain(_SUBJECT, "are not those of this program"))
            emit.builder.ret(emit.null)

    def _add_destroy(self) -> None:
        """`PREFIX_destroy(program)`; null is no program, and nothing is done."""
        emit = self._begin("destroy", ir.VoidType(), PTR)
        (program,) = emit.arguments
        with emit.builder.if_then(emit.is_set(program)):
            if not self._interface.linked_weights and self._interface.maps_files:
                mapped = emit.load(emit.word_at(program, MAPPED), PTR)
                with emit.builder.if_then(emit.is_set(mapped)):
                    emit.call("unmap_file", ir.VoidType(), mapped, WORD(self._weights.bytes))
            emit.call("delete_program", ir.VoidType(), program)
        emit.builder.ret_void()


def _require(emit: FunctionEmitter, good: Any, *message: Any) -> None:
    """Return null, with a message, unless a condition holds."""
    with emit.builder.if_then(emit.builder.not_(good), likely=False):
        emit.say(*message)
        emit.builder.ret(emit.null)
