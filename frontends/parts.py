"""What the parts of a `Builder` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .values import Operand, Value


class BuilderPart(ABC):
    """A class of methods of `Builder`, and what they use of the whole."""

    _block: Block
    """Where operators are appended."""
    _region: Region
    """The body of the program."""
    _closed: set[Block | None]
    """The finished bodies of loops and conditions."""

    @abstractmethod
    def __getattr__(self, name: str) -> Callable[..., Any]: ...

    @abstractmethod
    def _product(self, left: Operand, right: Operand) -> Value: ...

    @abstractmethod
    def _own(self, value: object, subject: str) -> SSAValue: ...

    @abstractmethod
    def _operand(
        self, argument: Operand, like: Attribute | None, name: str, location: LocationAttr
    ) -> Any: ...

    @abstractmethod
    def _append(self, op: Operation, hint: str | None = None) -> Value: ...

    @abstractmethod
    def _function(self, region: Region, values: Sequence[SSAValue]) -> func.FuncOp: ...
