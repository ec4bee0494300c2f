"""What the parts of a `Builder` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..core.ir.provenance import named
from ..dialects.graph.op_builder import OpBuilder
from .diagnostics import caller_location
from .values import Operand, Value


class BuilderPart(OpBuilder[Value], ABC):
    """A class of methods of `Builder`, and what they use of the whole."""

    _block: Block
    """Where operators are appended."""
    _region: Region
    """The body of the program."""
    _closed: set[Block | None]
    """The finished bodies of loops and conditions."""
    _node: LocationAttr | None
    """The node of the model that operators belong to where they have no name."""

    def _located(self, name: str | None) -> LocationAttr:
        """The location of an operator: its name, else the node, else the caller's line."""
        return named(name) if name is not None else self._node or caller_location()

    @contextmanager
    def node(self, name: str) -> Iterator[None]:
        """Give the operators that are appended within the context the name of a node of the model.

        It stands in messages and profiles where an operator has no name of its own, in place of the
        caller's line.
        """
        before, self._node = self._node, named(name)
        try:
            yield
        finally:
            self._node = before

    @abstractmethod
    def constant(
        self, array: Operand, name: str = "constant", dtype: str | None = None
    ) -> Value: ...

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
