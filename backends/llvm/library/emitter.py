"""Building the C functions of a program in LLVM IR: checks, messages, sizes, fields of structs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir

from ....core.algebra.dims import Dim, SizeQuotient
from ....core.errors import explain
from ...c.interface import Code, Field
from ..linking import PTR

WORD, STATUS, BYTE, FLAG = map(ir.IntType, (64, 32, 8, 1))
HEAD, MAPPED, CHOSEN, CONSTANTS = 3, 4, 5, 8
"""Where things are in a program, in words, after its hooks."""
_FIRST = ir.IntType(32)(0)


class FunctionEmitter:
    """A function that is being built, and the module around it.

    A message is a sequence of texts and numbers. Numbers are words of 64 bits.
    """

    def __init__(
        self, module: ir.Module, name: str, result: ir.Type, *arguments: ir.Type, seen: bool = False
    ) -> None:
        """Begin a function.

        Args:
            module: where it goes.
            name: its name.
            result: the type of its result.
            arguments: those of its arguments.
            seen: whether other modules see it.
        """
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.function.attributes.add("nounwind")
        if not seen:
            self.function.linkage = "internal"
        self.builder: Any = ir.IRBuilder(self.function.append_basic_block())
        self.arguments: Sequence[Any] = self.function.args
        self.null: Any = ir.Constant(PTR, None)

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        """Call a function by name, declared on first use."""
        function = self.module.globals.get(name)
        if function is None:
            kinds = [PTR if isinstance(a.type, ir.PointerType) else a.type for a in arguments]
            kind = ir.FunctionType(result, kinds)
            function = ir.Function(self.module, kind, name)
        return self.builder.call(function, arguments)

    def text(self, text: str) -> Any:
        """The address of a text that ends with 0."""
        data = bytearray(text.encode() + b"\0")
        return self.data(ir.Constant(ir.ArrayType(BYTE, len(data)), data), f"text {text}")

    def data(self, value: ir.Constant, name: str) -> Any:
        """The address of a constant, which the module has once under a name."""
        found = self.module.globals.get(name)
        if found is None:
            found = ir.GlobalVariable(self.module, value.type, name)
            found.initializer = value  # type: ignore[assignment]
            found.linkage, found.global_constant = "internal", True
        return found.bitcast(PTR)

    def address_in(self, name: str, addresses: Sequence[Any], number: Any) -> Any:
        """The address of a number in a constant table, which the module has under a name."""
        table = self.data(ir.Constant(ir.ArrayType(PTR, len(addresses)), addresses), name)
        return self.load(self.builder.gep(table, [number], source_etype=PTR), PTR)

    def cases(self, value: Any, count: int) -> Iterator[int]:
        """The numbers below a count: what is emitted for one runs where a value is that number."""
        for number in range(count):
            with self.builder.if_then(self.same(value, WORD(number))):
                yield number

    def say(self, *message: Any) -> None:
        """Make a message that of the last error."""
        self.call("begin_message", ir.VoidType())
        for piece in message:
            if isinstance(piece, str):
                self.call("say", ir.VoidType(), self.text(piece))
            else:
                self.call("say_number", ir.VoidType(), piece)

    def fail(self, code: Code, *message: Any) -> None:
        """End the function with an error."""
        self.say(*message)
        self.builder.ret(STATUS(code))

    def require(self, good: Any, code: Code, *message: Any) -> None:
        """End the function with an error unless a condition holds."""
        with self.builder.if_then(self.builder.not_(good), likely=False):
            self.fail(code, *message)

    def require_pointer(self, pointer: Any, subject: str) -> None:
        """End the function with an error if a pointer is null."""
        self.require(self.is_set(pointer), Code.NULL, explain(subject, "is null"))

    def is_set(self, pointer: Any) -> Any:
        """Whether a pointer is not null."""
        return self.builder.icmp_unsigned("!=", pointer, self.null)

    def return_unless_ok(self, status: Any) -> None:
        """End the function with a status unless it is success."""
        with self.builder.if_then(self.builder.icmp_signed("!=", status, STATUS(0)), likely=False):
            self.builder.ret(status)

    # Words and members

    def same(self, left: Any, right: Any) -> Any:
        """Whether two numbers are equal."""
        return self.builder.icmp_signed("==", left, right)

    def between(self, value: Any, least: Any, most: Any) -> Any:
        """Whether a number is in a range, the ends included."""
        low = self.builder.icmp_signed(">=", value, least)
        return self.builder.and_(low, self.builder.icmp_signed("<=", value, most))

    def word_at(self, base: Any, number: int) -> Any:
        """The address of a word of an array of words."""
        return self.builder.gep(base, [WORD(number)], source_etype=WORD)

    def load(self, address: Any, kind: ir.Type = WORD) -> Any:
        """What is at an address."""
        return self.builder.load(address, typ=kind)

    def member(self, struct: Any, kind: ir.Type, *path: int) -> Any:
        """The address of a member of a struct, or of a member of that one."""
        places = [_FIRST, *(ir.IntType(32)(number) for number in path)]
        return self.builder.gep(struct, places, source_etype=kind)

    def copy(self, target: Any, source: Any, bytes: Any) -> None:
        """Copy a number of bytes."""
        name = "llvm.memcpy.p0.p0.i64"
        self.call(name, ir.VoidType(), target, source, bytes, ir.Constant(ir.IntType(1), 0))

    # Sizes

    def size(self, dim: Dim, symbols: Mapping[str, Any]) -> tuple[Any, Any]:
        """The value of a dimension, and whether its computation overflowed."""
        total, wrong = WORD(0), ir.IntType(1)(0)
        for names, coefficient in dim.terms:
            product = WORD(coefficient)
            for name in names:
                factor, wrong = self._factor(name, symbols, wrong)
                product, wrong = self._checked("smul", product, factor, wrong)
            total, wrong = self._checked("sadd", total, product, wrong)
        return total, wrong

    def _factor(self, name: str, symbols: Mapping[str, Any], wrong: Any) -> tuple[Any, Any]:
        """The value of a symbol or a quotient, and whether this or an earlier step overflowed."""
        if not isinstance(name, SizeQuotient):
            return symbols[name], wrong
        dividend, more = self.size(name.dividend, symbols)
        # A dividend is never negative, so that rounding to 0 is rounding down.
        quotient = self.builder.sdiv(dividend, WORD(name.divisor))
        return quotient, self.builder.or_(wrong, more)

    def product(self, sizes: Sequence[Any], wrong: Any = None) -> tuple[Any, Any]:
        """The product of numbers, and whether its computation overflowed."""
        total, wrong = WORD(1), ir.IntType(1)(0) if wrong is None else wrong
        for size in sizes:
            total, wrong = self._checked("smul", total, size, wrong)
        return total, wrong

    def _checked(self, operation: str, left: Any, right: Any, wrong: Any) -> tuple[Any, Any]:
        """The sum or product, and whether it or an earlier operation overflowed."""
        compute = getattr(self.builder, f"{operation}_with_overflow")
        pair = compute(left, right)
        flag = self.builder.extract_value(pair, 1)
        return self.builder.extract_value(pair, 0), self.builder.or_(wrong, flag)


def struct_of(fields: Sequence[Field]) -> ir.LiteralStructType:
    """The C struct of inputs or results."""
    return ir.LiteralStructType([member_type(field) for field in fields] or [ir.IntType(8)])


def member_type(field: Field) -> ir.Type:
    """The type of a member of that struct.

    Of a dense buffer of fixed shape it is an address, of another one also its shape, and of a
    result of computed size the room between them. Of a matrix in CSR it is three addresses, its
    shape and its number of entries.
    """
    shape = ir.ArrayType(WORD, len(field.shape))
    if field.is_sparse:
        return ir.LiteralStructType([PTR, PTR, PTR, shape, WORD])
    if not field.has_shape:
        return PTR
    return ir.LiteralStructType([PTR, WORD, shape] if field.computed else [PTR, shape])
