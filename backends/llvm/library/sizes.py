"""The sizes that a caller passes: checked, and those of results computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir

from ....core.algebra.dims import LARGEST_SIZE, Dim
from ....core.errors import explain
from ...c.interface import CInterface, Code, Field, symbols_of
from .emitter import STATUS, WORD, FunctionEmitter, struct_of

PTR = ir.PointerType()


class SizeFunctions:
    """The functions of a program that read and write sizes.

    Args:
        module: where they go.
        interface: the interface of the program.
    """

    def __init__(self, module: ir.Module, interface: CInterface) -> None:
        self.interface = interface
        self.symbols = list(symbols_of(interface.inputs))
        self._module = module
        self.largest = 1 << (interface.target.index_bits - 2)
        """No buffer has more bytes: sizes are signed, and the sum of two does not overflow."""
        self._largest_size = min(LARGEST_SIZE, self.largest - 1)
        self._add_check()
        self._add_shapes()

    def check(self, emit: FunctionEmitter, inputs: Any) -> dict[str, Any]:
        """Check the sizes of all inputs, and return those of the symbols."""
        count = max(1, len(self.symbols))
        table = emit.builder.alloca(WORD, size=WORD(count))
        emit.return_unless_ok(emit.call("check_sizes", STATUS, inputs, table))
        # The sizes of the symbols that the check has stored.
        return {
            name: emit.load(emit.word_at(table, number)) for number, name in enumerate(self.symbols)
        }

    def passed_sizes(
        self, emit: FunctionEmitter, field: Field, struct: Any, number: int
    ) -> list[Any]:
        """The sizes in a member of the struct of inputs: those of its shape, then its entries."""
        kind = struct_of(self.interface.inputs)
        if not field.has_shape:
            return [WORD(dim.value) for dim in field.shape]
        place = 3 if field.is_sparse else 1
        paths = [(number, place, axis) for axis in range(len(field.shape))]
        paths += [(number, 4)] if field.is_sparse else []
        return [emit.load(emit.member(struct, kind, *path)) for path in paths]

    def bytes_of(self, emit: FunctionEmitter, elements: Any, field: Field, what: str) -> Any:
        """The bytes of a buffer of so many elements, and whether that overflowed, checked."""
        total, wrong = emit.product([WORD(field.item_bytes)], elements[1])
        total, wrong = emit.product([total, elements[0]], wrong)
        small = emit.between(total, WORD(0), WORD(self.largest))
        good = emit.builder.and_(emit.builder.not_(wrong), small)
        emit.require(good, Code.SIZE, explain(what, "is larger than memory"))
        return total

    def _add_check(self) -> None:
        """`check_sizes(inputs, symbols) -> code`: stores the sizes of the symbols."""
        emit = FunctionEmitter(self._module, "check_sizes", STATUS, PTR, PTR)
        struct, table = emit.arguments
        known: dict[str, tuple[Any, str]] = {}
        for number, field in enumerate(self.interface.inputs):
            if field.has_shape:
                self._check_input(
                    emit, field, self.passed_sizes(emit, field, struct, number), known
                )
        sizes = {name: value for name, (value, _) in known.items()}
        self._check_equal(emit, sizes)
        # Refuse sizes for which address arithmetic in the program would overflow.
        total, wrong = emit.size(self.interface.signature.arena, sizes)
        small = emit.between(total, WORD(0), WORD(self.largest))
        good = emit.builder.and_(emit.builder.not_(wrong), small)
        fact = explain("call", "intermediate values are larger than memory")
        emit.require(good, Code.SIZE, fact)
        for number, name in enumerate(self.symbols):
            emit.builder.store(sizes[name], emit.word_at(table, number))
        emit.builder.ret(STATUS(Code.OK))

    def _check_input(
        self,
        emit: FunctionEmitter,
        field: Field,
        sizes: Sequence[Any],
        known: dict[str, tuple[Any, str]],
    ) -> None:
        subject = f'input "{field.spec.name}"'
        dims = [*field.shape, *([] if field.entries is None else [field.entries])]
        for axis, (dim, size) in enumerate(zip(dims, sizes, strict=True)):
            entries = axis == len(field.shape)
            what = (
                "wrong number of stored entries" if entries else f"wrong size of dimension {axis}"
            )
            if dim.is_static:
                fact = explain(subject, what, expected=f"{dim.value}, got ")
                emit.require(emit.same(size, WORD(dim.value)), Code.SIZE, fact, size)
                continue
            fact = explain(subject, what, expected=f"0 to {self._largest_size}, got ")
            good = emit.between(size, WORD(0), WORD(self._largest_size))
            emit.require(good, Code.SIZE, fact, size)
            name = dim.symbols[0]
            value, owner = known.setdefault(name, (size, field.spec.name))
            if value is not size:
                fact = explain(subject, f'dimension "{name}" differs from that of "{owner}"')
                message = (f"{fact}, expected ", value, ", got ", size)
                emit.require(emit.same(size, value), Code.SIZE, *message)
        elements = sizes[-1:] if field.is_sparse else sizes
        self.bytes_of(emit, emit.product(elements), field, subject)

    def _check_equal(self, emit: FunctionEmitter, sizes: Mapping[str, Any]) -> None:
        for left, right in self.interface.signature.equal:
            one, other = (self.value(emit, dim, sizes, str(dim)) for dim in (left, right))
            fact = explain("call", f"dimensions {left} and {right} must agree")
            message = (f"{fact}, expected ", one, ", got ", other)
            emit.require(emit.same(one, other), Code.SIZE, *message)

    def value(self, emit: FunctionEmitter, dim: Dim, sizes: Mapping[str, Any], what: str) -> Any:
        """The value of a dimension, checked for overflow."""
        value, wrong = emit.size(dim, sizes)
        fact = explain("call", f"{what} is too large")
        emit.require(emit.builder.not_(wrong), Code.SIZE, fact)
        return value

    def shape(self, emit: FunctionEmitter, field: Field, sizes: Mapping[str, Any]) -> list[Any]:
        """The sizes of the buffer for a result; the upper bounds if they are computed.

        Those of a result without an upper bound are 0.
        """
        if field.unbounded:
            return [WORD(0)] * len(field.shape)
        subject = f'output "{field.spec.name}"'
        found: list[Any] = []
        for axis, dim in enumerate(field.shape):
            if dim.is_static:
                found.append(WORD(dim.value))
                continue
            size = self.value(emit, dim, sizes, f"{subject}, dimension {axis},")
            fact = explain(subject, f"wrong size of dimension {axis}", expected="0 or more, got ")
            good = emit.builder.icmp_signed(">=", size, WORD(0))
            emit.require(good, Code.SIZE, fact, size)
            found.append(size)
        return found

    def _add_shapes(self) -> None:
        """`PREFIX_shapes(inputs, outputs) -> code`: fills in the shapes of results."""
        name = self.interface.function("shapes")
        emit = FunctionEmitter(self._module, name, STATUS, PTR, PTR, seen=True)
        inputs, outputs = emit.arguments
        emit.require_pointer(inputs, "inputs")
        emit.require_pointer(outputs, "outputs")
        symbols = self.check(emit, inputs)
        kind = struct_of(self.interface.outputs)
        for number, field in enumerate(self.interface.outputs):
            if not field.has_shape:
                continue
            sizes = self.shape(emit, field, symbols)
            if field.computed:
                room, _ = emit.product(sizes)
                emit.builder.store(room, emit.member(outputs, kind, number, 1))
            place = 2 if field.computed else 1
            for axis, size in enumerate(sizes):
                emit.builder.store(size, emit.member(outputs, kind, number, place, axis))
        emit.builder.ret(STATUS(Code.OK))
