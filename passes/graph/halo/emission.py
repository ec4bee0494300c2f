"""The stages of a program as functions, and the function that calls them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....core.algebra.dims import Dim
from ....core.ir.public_function import DIMS, NNZ, argument_attrs
from ....core.ir.typed import returned
from ....dialects.graph import ops as graph
from ....dialects.graph.partitions import PartitionInterface
from ....dialects.graph.sizes.attributes import argument_attributes, argument_names
from .alignment import Alignment, RowSpace, SliceAccess
from .stages import Stage, Stages

WHOLE_PART = "graph.whole_part"
"""Attribute of a stage whose rows cannot be computed in several calls: it compares their numbers
with those of columns."""


class Emission:
    """Emits the stages of a function, and calls them in it.

    Args:
        known: the spaces of its values.
        stages: its stages.
    """

    def __init__(self, known: Alignment, stages: Stages) -> None:
        self.known, self.stages = known, stages.stages
        self.main = known.function
        taken = set(argument_names(self.main))
        rows, _ = known.shapes.shape(known.graph)
        entries = known.shapes.nnz(known.graph)
        self.nodes = _public(rows.symbols, "nodes")
        self.edges = _public(entries.symbols if entries else (), "edges")
        self.columns = "columns"
        while self.columns in taken:
            self.columns += "_"
        self._here: dict[SSAValue, SSAValue] = {argument: argument for argument in self.main.args}
        """The values of a part in the function that calls the stages."""
        self._around: dict[SSAValue, SSAValue] = {}
        """Those with the halo."""

    def emit(self) -> None:
        """Replace the body of the function."""
        last = self.main.body.block.last_op
        assert last is not None
        old = [op for op in self.main.body.block.ops if op is not last]
        for stage in self.stages:
            self._exchange(stage, last)
            self._call(stage, last)
        last.operands = [self._here[value] for value in returned(self.main)]
        for op in reversed(old):
            Rewriter.erase_op(op)
        # The columns of the graph have a size of their own.
        attributes = [dict(argument_attributes(self.main, n)) for n in range(len(self.main.args))]
        own = attributes[self.known.graph.index]
        own[DIMS] = ArrayAttr([StringAttr(self.nodes), StringAttr(self.columns)])
        self.main.arg_attrs = ArrayAttr([DictionaryAttr(one) for one in attributes])

    def _exchange(self, stage: Stage, last: Operation) -> None:
        for value in stage.received:
            if value not in self._around:
                op = graph.ExchangeOp(self.known.graph, self._here[value], value.type)
                op.result.name_hint = value.name_hint
                op.location = self._located(value)
                Rewriter.insert_op(op, InsertPoint.before(last))
                self._around[value] = op.result

    def _call(self, stage: Stage, last: Operation) -> None:
        body, name = _StageBody(self, stage), f"{self.main.sym_name.data}.{stage.level}"
        function = body.function(name)
        Rewriter.insert_op(function, InsertPoint.before(self.main))
        operands = [(self._around if around else self._here)[v] for v, around in body.parameters]
        call = func.CallOp(name, operands, [value.type for value in stage.results])
        call.location = last.location
        Rewriter.insert_op(call, InsertPoint.before(last))
        for value, result in zip(stage.results, call.results, strict=True):
            result.name_hint = value.name_hint
            self._here[value] = self._combined(value, result, last)

    def _combined(self, value: SSAValue, partial: SSAValue, last: Operation) -> SSAValue:
        """A result of a call, or over all nodes what the parts combine their results to."""
        if value not in self.known.combined:
            return partial
        kind, _ = self.known.combined[value]
        op = graph.CombineOp(partial, kind.value, partial.type)
        op.result.name_hint = value.name_hint
        op.location = self._located(value)
        Rewriter.insert_op(op, InsertPoint.before(last))
        return op.result

    def _located(self, value: SSAValue) -> LocationAttr:
        made = value.owner if isinstance(value.owner, Operation) else self.main
        return made.location


class _StageBody:
    """The operators of one stage."""

    def __init__(self, emission: Emission, stage: Stage) -> None:
        self.emission, self.known, self.stage = emission, emission.known, stage
        block = self.known.function.body.block
        self.ops = [op for op in block.ops if op in stage.rows or op in stage.columns]
        self._whole = self._needed_whole()
        used = {v for op in (*self.ops, *self._whole) for v in op.operands}
        given = [a for a in self.known.function.args if a in used and self._is_given(a)]
        self.parameters = [(value, False) for value in (*given, *stage.kept, *stage.combined)]
        """The values that the function takes, each with whether it has the halo."""
        self.parameters += [(value, True) for value in stage.received]

    def _is_given(self, argument: SSAValue) -> bool:
        """Whether an argument of the program is the same in all stages."""
        return self.known.spaces[argument] in (RowSpace.WHOLE, RowSpace.GRAPH)

    def _needed_whole(self) -> list[Operation]:
        """The operators that compute what parts do not differ in, in order."""
        found: set[Operation] = set()
        known = self.known
        pending: list[SSAValue] = [value for op in self.ops for value in op.operands]
        while pending:
            op = pending.pop().owner
            if not isinstance(op, Operation) or op in found:
                continue
            if not any(value in known.combined or known.is_of_part(value) for value in op.results):
                found.add(op)
                pending += op.operands
        return [op for op in known.function.body.block.ops if op in found]

    def function(self, name: str) -> func.FuncOp:
        """The stage as a function."""
        block = Block(arg_types=[value.type for value, _ in self.parameters])
        rows: dict[SSAValue, SSAValue] = {}
        columns: dict[SSAValue, SSAValue] = {}
        for (value, around), argument in zip(self.parameters, block.args, strict=True):
            argument.name_hint = value.name_hint
            (columns if around else rows)[value] = argument
        for op in self._whole:
            block.add_op(op.clone(rows))
        columns |= {v: n for v, n in rows.items() if not self.known.is_of_part(v)}
        for op in self.ops:
            if op in self.stage.columns:
                block.add_op(op.clone(columns))
            if op in self.stage.rows:
                block.add_op(self._on_rows(op, rows, columns))
        block.add_op(func.ReturnOp(*(rows[value] for value in self.stage.results)))
        results = [value.type for value in self.stage.results]
        types = [value.type for value, _ in self.parameters], results
        made = func.FuncOp(name, types, Region(block), visibility="private")
        made.arg_attrs = ArrayAttr([self._sizes(*pair) for pair in self.parameters])
        made.res_attrs = ArrayAttr([self._sizes(v, False) for v in self.stage.results])
        made.location = self.known.function.location
        if self.stage.rows & self.known.numbered:
            made.attributes[WHOLE_PART] = UnitAttr()
        return made

    def _on_rows(
        self, op: Operation, rows: dict[SSAValue, SSAValue], columns: dict[SSAValue, SSAValue]
    ) -> Operation:
        """An operator on the nodes of a part."""
        copy = op.clone({**columns, **rows})
        pairs = enumerate(zip(op.operands, self.known.accesses[op], strict=True))
        for number, (value, access) in pairs:
            copy.operands[number] = (columns if access == SliceAccess.COLUMNS else rows)[value]
        for value in op.results:
            if value in self.known.combined:
                copy.properties.update(self.known.combined[value][1])
        if op in self.known.numbered and isinstance(op, PartitionInterface):
            copy.properties.update(op.on_part or {})
        rows.update(zip(op.results, copy.results, strict=True))
        return copy

    def _sizes(self, value: SSAValue, around: bool) -> DictionaryAttr:
        """The names of the sizes of a parameter or a result."""
        emission, space = self.emission, self.known.spaces[value]
        dims = [_name(dim) for dim in self.known.shapes.shape(value)]
        if space == RowSpace.GRAPH:
            dims, entries = [emission.nodes, emission.columns], emission.edges
        else:
            known = self.known.shapes.nnz(value)
            entries = None if known is None else _name(known)
        if space == RowSpace.ROWS:
            dims[0] = emission.columns if around else emission.nodes
        elif space == RowSpace.ENTRIES:
            dims[0] = emission.edges
        named = dict(argument_attrs("", dims, entries).data)
        return DictionaryAttr({key: named[key] for key in (DIMS, NNZ) if key in named})


def _public(symbols: Sequence[str], default: str) -> str:
    """A size that a function names, or a name for it."""
    named = [symbol for symbol in symbols if not symbol.startswith("_")]
    return named[0] if named else default


def _name(dim: Dim) -> int | str:
    """A size as `graph.dims` states it: empty where it has no name."""
    if dim.is_static:
        return dim.value
    known = len(dim.symbols) == 1 and dim == Dim.symbol(dim.symbols[0])
    return _public(dim.symbols, "") if known else ""
