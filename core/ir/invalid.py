"""Which operations of a module do not verify, and where they are in its text."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from ..errors import explain, first_line
from .dominance import early_uses
from .parsing import MlirParser
from .provenance import origin
from .refusal import operation_of


def invalid_operations(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """The first operation of each function that does not verify by itself, with the reason.

    If values are used before their definitions, only these uses are reported.
    """
    early = [(op, explain(op.name, fact, origin=origin(op))) for op, fact in early_uses(module)]
    if early:
        yield from early
        return
    for outer in (*module.ops, module):
        for op in outer.walk(region_first=True) if outer is not module else (module,):
            try:
                op.verify(verify_nested_ops=False)
                for block in (b for region in op.regions for b in region.blocks if not b.ops):
                    block.verify()
            except VerifyException as error:
                yield operation_of(error) or _redefining(op) or op, first_line(error)
                break


def _redefining(table: Operation) -> Operation | None:
    """The first operation of a symbol table whose symbol is that of one before it."""
    known = set[str]()
    for op in (op for region in table.regions for block in region.blocks for op in block.ops):
        trait = op.get_trait(SymbolOpInterface)
        name = None if trait is None else trait.get_sym_attr_name(op)
        if name is not None and name.data in known:
            return op if table.has_trait(SymbolTable) else None
        if name is not None:
            known.add(name.data)
    return None


def place_in_text(
    op: Operation, module: ModuleOp, parser: MlirParser, *, implicit_module: bool = True
) -> str | None:
    """Where an operation of a module is in the text that it was parsed from: ``file:line:column``.

    Keeping places is expensive: the text is parsed again to find this one. None for a module that
    is not in the text.

    Args:
        op: the operation.
        module: what another parser made of the text.
        parser: a new parser of the text, which keeps places.
        implicit_module: see `MlirParser.parse_module`.
    """
    again = parser.parse_module(implicit_module)
    pairs = zip(module.walk(), again.walk(), strict=True)
    return next((parser.places.get(there) for here, there in pairs if here is op), None)
