"""Blocks that an instruction of the table computes: by its intrinsic, or else by its body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, SSAValue

from ...core.instructions import Instruction
from ...dialects.bodies import body_of, depth_of
from ...dialects.loop.attrs import Combine
from ...dialects.loop.ops import element_type
from ...dialects.loop.vectors import Row
from ...dialects.upstream import ops as upstream
from .blocks import Piece, VectorBlock, join


@dataclass(eq=False)
class InstructionBlock(VectorBlock):
    """A block of which an instruction computes each machine vector."""

    row: Instruction
    operands: Sequence[VectorBlock]
    intrinsics: Mapping[str, Attribute]
    """LLVM's names of the instruction, by the number of lanes of the result."""

    def operands_of(self, row: Row, chunk: int) -> Iterator[tuple[VectorBlock, Piece]]:
        return ((block, self._piece(block, row, chunk)) for block in self.operands)

    def _piece(self, block: VectorBlock, row: Row, chunk: int) -> Piece:
        """The piece of an operand for one of the result: its only group is that of all lanes."""
        sizes = block.layout.shape[:-1]
        place = tuple(0 if size == 1 else n for size, n in zip(sizes, row, strict=True))
        return place, min(chunk, len(block.layout.chunks) - 1)

    def make(self, row: Row, chunk: int) -> SSAValue:
        width, depth = self.layout.chunks[chunk].width, depth_of(self.row)
        operands: list[SSAValue] = []
        for argument, block in zip(body_of(self.row).args, self.operands, strict=True):
            value = block.piece(*self._piece(block, row, chunk))
            only = isinstance(argument.type, VectorType) and block.layout.shape[-1] == depth
            operands.append(self.emitter.repeat(value, width * depth) if only else value)
        name = self.intrinsics.get(str(width))
        if not isinstance(name, StringAttr):
            return self._body(operands, width)
        call = llvm.CallIntrinsicOp(name, operands, [self.type_of(chunk)])
        call.location = self.location
        self.emitter.scopes[self.depth].block.add_op(call)
        self.emitter.depths[call.results[0]] = self.depth
        return call.results[0]

    def _body(self, operands: Sequence[SSAValue], width: int) -> SSAValue:
        """The operations of the body, on machine vectors."""
        emit, depth, body = self.emitter, depth_of(self.row), body_of(self.row).body.block
        values = dict[SSAValue, SSAValue](zip(body.args, operands, strict=True))
        for op in body.ops:
            found = [values[operand] for operand in op.operands]
            if isinstance(op, ReturnOp):
                return found[0]
            (result,) = op.results
            if isinstance(op, upstream.ReductionOp):
                group, *start = found
                places = (range(n, width * depth, depth) for n in range(depth))
                parts = [emit.shuffle(group, group, place) for place in places]
                combine = Combine(op.kind.data.value)
                values[result] = join(emit, combine, [*parts, *start], self.depth)
                continue
            lanes = width * depth if isinstance(result.type, VectorType) else width
            kind = emit.machine(element_type(result.type), lanes)
            made = emit.emit(type(op), found, [kind], op.properties, self.depth)
            values[result] = made.results[0]
        raise AssertionError("the body ends with func.return")
