"""A pass that runs on each function, kernel or other operation of a kind separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..errors import explain
from ..ir.context import called
from ..ir.symbols import find_symbol, symbol_of
from .pass_text import anchored, pass_text

_PUBLIC, _PRIVATE = StringAttr("public"), StringAttr("private")


@dataclass(frozen=True)
class NestedPass(ModulePass):
    """Runs a pass on each operation of a kind, each in a separate module.

    That module also holds copies of the operations referred to by symbol, functions without their
    bodies. The operation is public there: a pass must keep it and its type.
    """

    anchors: tuple[str, ...]
    """The operations around it, the outermost first."""
    step: ModulePass

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The pass in the text of a pipeline, without its options."""
        return anchored(self.step.name, self.anchors)

    def __str__(self) -> str:
        return pass_text(self)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass.

        Raises:
            PassFailedException: if the pass adds something beside the operation, replaces it by one
                of another kind, or changes an operation that it refers to, or if the operation
                uses outer values.
        """
        for found in list(_anchored_ops(op, self.anchors)):
            self._apply_alone(ctx, found)

    def _apply_alone(self, ctx: Context, op: Operation) -> None:
        inside = set(op.walk())
        for operand in [value for inner in inside for value in inner.operands]:
            owner = operand.owner
            if (owner.parent_op() if isinstance(owner, Block) else owner) not in inside:
                self._refuse(op, "it uses values from outside of it")
        copies = [_declaration(referred) for referred in _referred(op)]
        interfaces = [copy.properties | copy.attributes for copy in copies]
        with _alone(op, copies) as module:
            self.step.apply(ctx, module)
            # The module has to hold one operation, of the same kind and symbol.
            left = [o for o in module.ops if not any(o is copy for copy in copies)]
            same = [o for o in left if o.name == op.name and symbol_of(o) == symbol_of(op)]
            beside = [o for o in left if o not in same]
            if beside and same:
                self._refuse(op, f"the pass puts {called(beside[0])} beside it")
            if len(same) != 1:
                what = f"by {called(beside[0])}, {beside[0].name}" if beside else "by nothing"
                self._refuse(op, f"the pass replaces it {what}")
            for copy, interface in zip(copies, interfaces, strict=True):
                if copy.parent is not None and copy.properties | copy.attributes != interface:
                    self._refuse(op, f"the pass changes {called(copy)}, which it refers to")

    def _refuse(self, op: Operation, fact: str) -> None:
        hint = f"run {self.step.name} on the module"
        raise PassFailedException(explain(called(op), fact, hint=hint))


def _anchored_ops(op: Operation, anchors: Sequence[str]) -> Iterator[Operation]:
    """The operations named by the last anchor, each directly in one named by the anchor before."""
    if not anchors:
        yield op
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.name == anchors[0]:
                    yield from _anchored_ops(inner, anchors[1:])


def _referred(op: Operation) -> list[Operation]:
    """The outside operations that an operation refers to by symbol, transitively."""
    found: dict[Operation, None] = {}
    queue = [op]
    while queue:
        for name in _symbols(queue.pop()):
            referred = find_symbol(op, name)
            if referred is None or referred is op or op.is_ancestor(referred):
                continue
            if referred not in found:
                found[referred] = None
                queue += [] if isinstance(referred, FuncOp) else [referred]
    return list(found)


def _declaration(op: Operation) -> Operation:
    """A copy of an operation; of a function, only its declaration."""
    if not isinstance(op, FuncOp):
        return op.clone()
    copy = op.clone_without_regions()
    copy.properties["sym_visibility"] = _PRIVATE
    return copy


def _symbols(op: Operation) -> Iterator[StringAttr]:
    for inner in op.walk():
        queue = [*inner.properties.values(), *inner.attributes.values()]
        while queue:
            attribute = queue.pop()
            if isinstance(attribute, SymbolRefAttr):
                yield attribute.root_reference
            elif isinstance(attribute, ArrayAttr):
                queue += attribute.data
            elif isinstance(attribute, DictionaryAttr):
                queue += attribute.data.values()


@contextmanager
def _alone(op: Operation, copies: list[Operation]) -> Iterator[ModuleOp]:
    """A module with an operation, which is public there, and copies.

    Afterwards the result is moved back.
    """
    block, visibility = op.parent, op.properties.get("sym_visibility")
    assert block is not None
    place = ModuleOp([])
    block.insert_op_before(place, op)
    op.detach()
    if visibility is not None:
        op.properties["sym_visibility"] = _PUBLIC
    module = ModuleOp([*copies, op])
    try:
        yield module
    finally:
        for left in list(module.ops):
            if not any(left is copy for copy in copies):
                left.detach()
                block.insert_op_before(left, place)
                if visibility is not None and symbol_of(left) == symbol_of(op):
                    left.properties["sym_visibility"] = visibility
        place.detach()
