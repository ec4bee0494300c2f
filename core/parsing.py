"""Reading MLIR text: xDSL's parser, with what it reads wrongly put right.

MLIR prints a floating-point number that has no exact short decimal form, and an infinity or a
NaN, as its bits in hexadecimal. xDSL does so as well, and reads that back where a number stands
alone, but takes it for an integer among the elements of a dense attribute: a vector of minus
infinities became one of 4286578688.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import AnyFloat
from xdsl.parser import Parser


class _Element(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of a dense attribute, before its type is known."""

    def to_type(self, parser: Any, type: Any) -> Any:
        """The element as a Python number; hexadecimal digits are the bits of a float."""
        if not isinstance(type, AnyFloat) or self.span.text[:2] not in ("0x", "0X"):
            return super().to_type(parser, type)
        bits = int(self.span.text, 16)
        if bits >> (8 * type.size):
            parser.raise_error(f"hexadecimal number is too large for {type}", self.span)
        return type.unpack(bits.to_bytes(type.size, "little"), 1)[0]


class MlirParser(Parser):
    """A parser of MLIR text."""

    _TensorLiteralElement = _Element
