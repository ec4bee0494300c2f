"""Tiles that several threads run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import (
    ConstantLike,
    HasCanonicalizationPatternsTrait,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
)
from xdsl.utils.exceptions import VerifyException

from ...core.dtypes import byte_size
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from ...core.pipelines.exactness import EXACT, states
from .abi import COPIED_BYTES


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of `rt.parallel_tiles`.

    rt.yield

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %squares: memref<4xi64>) -> i32
        attributes {graph.signature = () -> tensor<4xi64>} {
      %n = arith.constant 4 : index
      rt.parallel_tiles %n captures(%squares : memref<4xi64>) {
      ^bb0(%tile: index, %all: memref<4xi64>):
        %square = arith.muli %tile, %tile : index
        %v = arith.index_cast %square : index to i64
        memref.store %v, %all[%tile] : memref<4xi64>
        rt.yield
      }
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.yield"

    assembly_format = "attr-dict"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ParallelTilesOp)))

    def __init__(self):
        super().__init__()


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Makes the threads of a block of a device wait until all of them are here.

    rt.barrier

    What they have written is seen by all of them afterwards. Outside of blocks, where ranges run
    one after the other, it does nothing.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %y: memref<4xi64>) -> i32
        attributes {graph.signature = () -> tensor<4xi64>} {
      %n = arith.constant 4 : index
      %s = memref.alloca() : memref<4xi64>
      rt.parallel_tiles %n captures(%s : memref<4xi64>) {
      ^bb0(%tile: index, %all: memref<4xi64>):
        %v = arith.index_cast %tile : index to i64
        memref.store %v, %all[%tile] : memref<4xi64>
        rt.yield
      }
      rt.barrier
      rt.parallel_tiles %n captures(%s, %y : memref<4xi64>, memref<4xi64>) {
      ^bb0(%tile: index, %all: memref<4xi64>, %to: memref<4xi64>):
        %last = arith.constant 3 : index
        %other = arith.subi %last, %tile : index
        %v = memref.load %all[%other] : memref<4xi64>
        memref.store %v, %to[%tile] : memref<4xi64>
        rt.yield
      }
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.barrier"

    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """Reads the element that another thread of the warp has, in a buffer with one for each thread.

    %v = rt.shuffle %p, %thread {rt.parts = 64 : i64} : memref<64xf32>

    All threads of the warp execute it together, which are 32 neighbours from a multiple of 32 on.
    Where the buffer has no parts of threads, it is a load.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %y: memref<32xi64>) -> i32
        attributes {graph.signature = () -> tensor<32xi64>} {
      %n = arith.constant 32 : index
      %p = memref.alloca() : memref<32xi64>
      rt.parallel_tiles %n captures(%p : memref<32xi64>) {
      ^bb0(%tile: index, %all: memref<32xi64>):
        %v = arith.index_cast %tile : index to i64
        memref.store %v, %all[%tile] : memref<32xi64>
        rt.yield
      }
      rt.parallel_tiles %n captures(%p, %y : memref<32xi64>, memref<32xi64>) {
      ^bb0(%tile: index, %all: memref<32xi64>, %to: memref<32xi64>):
        %last = arith.constant 31 : index
        %other = arith.subi %last, %tile : index
        %v = rt.shuffle %all, %other : memref<32xi64>
        memref.store %v, %to[%tile] : memref<32xi64>
        rt.yield
      }
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())

    parts = operand_def(MemRefType.constr(T))
    thread = operand_def(IndexType)
    result = result_def(T)

    assembly_format = "$parts `,` $thread attr-dict `:` type($parts)"

    traits = traits_def(MemoryReadEffect())

    def __init__(self, parts: SSAValue | Operation, thread: SSAValue | Operation):
        kind = memref_type(SSAValue.get(parts))
        super().__init__(operands=[parts, thread], result_types=[kind.element_type])

    def verify_(self) -> None:
        kind = memref_type(self.parts)
        if kind.get_num_dims() != 1 or byte_size(kind.element_type) not in (4, 8):
            raise VerifyException(
                f"{self.name}: wrong buffer, expected elements of 4 or 8 bytes, got {kind}"
            )


@irdl_op_definition
class CopyAsyncOp(IRDLOperation):
    """Copies 16 bytes of neighbours, without waiting until they are there.

    rt.copy_async %x[%i, %j] to %s[%k] {rt.shared} : memref<4x8xf32> to memref<8xf32>

    With `rt.shared`, the target is memory of a block of a device, whose threads see what is copied
    after the next `rt.barrier`. Otherwise it is copied at once.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<2x4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<2x4xf32>) -> tensor<4xf32>} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      rt.copy_async %x[%one, %zero] to %y[%zero] : memref<2x4xf32> to memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.copy_async"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    target = operand_def(MemRefType.constr(T))
    places = var_operand_def(IndexType)

    assembly_format = (
        "$source `[` $indices `]` `to` $target `[` $places `]` attr-dict "
        "`:` type($source) `to` type($target)"
    )

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        target: SSAValue | Operation,
        places: Sequence[SSAValue | Operation],
    ):
        super().__init__(operands=[source, indices, target, places])

    @property
    def count(self) -> int:
        """How many elements are copied."""
        return COPIED_BYTES // byte_size(memref_type(self.source).element_type)

    def verify_(self) -> None:
        for buffer, indices in ((self.source, self.indices), (self.target, self.places)):
            if memref_type(buffer).get_num_dims() != len(indices):
                raise VerifyException(
                    f"{self.name}: wrong number of indices, expected one for each dimension of "
                    f"{buffer.type}, got {len(indices)}"
                )


class _TilesCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (CaptureConstant(), DropCapture())


@irdl_op_definition
class ParallelTilesOp(IRDLOperation):
    """Runs its body for each tile in [0, count), in any order and on any thread.

    ```mlir
    rt.parallel_tiles %n captures(%x, %y : memref<?xf32>, memref<?xf32>) {
    ^bb0(%tile: index, %a: memref<?xf32>, %b: memref<?xf32>):
      %v = memref.load %a[%tile] : memref<?xf32>
      memref.store %v, %b[%tile] : memref<?xf32>
      rt.yield
    }
    ```

    The body uses nothing but the tile and the captures; tiles write disjoint memory. With
    `alternating` each execution runs them in the opposite order of the one before, and each thread
    the same tiles if it can: it begins with those whose data its caches still hold. With `device`
    each tile is a thread of the device of the target; with `block` as well, a block of so many
    threads. In the body of a block all threads do the same, and those of a range with `device` run
    its tiles. An `rt.barrier` orders two such ranges.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      %n = arith.constant 4 : index
      rt.parallel_tiles %n captures(%x, %y : memref<4xf32>, memref<4xf32>) {
      ^bb0(%tile: index, %a: memref<4xf32>, %b: memref<4xf32>):
        %v = memref.load %a[%tile] : memref<4xf32>
        %w = arith.negf %v : f32
        memref.store %w, %b[%tile] : memref<4xf32>
        rt.yield
      }
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.parallel_tiles"

    count = operand_def(IndexType)
    captures = var_operand_def()
    alternating = opt_prop_def(UnitAttr)
    device = opt_prop_def(UnitAttr)
    block = opt_prop_def(IntegerAttr.constr(i64))
    body = region_def()

    assembly_format = (
        "$count (`alternating` $alternating^)? (`device` $device^)? (`block` $block^)? "
        "(`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict-with-keyword $body"
    )

    traits = traits_def(IsolatedFromAbove(), _TilesCanonicalization())

    def __init__(
        self,
        count: SSAValue | Operation,
        captures: Sequence[SSAValue | Operation],
        body: Region | None = None,
        alternating: UnitAttr | None = None,
        device: UnitAttr | None = None,
        block: IntegerAttr | None = None,
    ):
        """`body` is one empty block with the right arguments where it is not given."""
        values = [SSAValue.get(value) for value in captures]
        if body is None:
            body = Region(Block(arg_types=[IndexType(), *(value.type for value in values)]))
        super().__init__(
            operands=[count, values],
            properties={"alternating": alternating, "device": device, "block": block},
            regions=[body],
        )

    @property
    def tile(self) -> SSAValue:
        """The argument of the body that is the number of the tile."""
        return self.body.blocks[0].args[0]

    @property
    def captured(self) -> tuple[BlockArgument, ...]:
        """The arguments of the body that stand for the captures, in order."""
        return tuple(self.body.blocks[0].args[1:])

    def verify_(self) -> None:
        if self.block is not None and (self.device is None or self.block.value.data < 1):
            raise VerifyException(f"{self.name}: wrong block, expected threads of a device")
        if not self.body.blocks:
            raise VerifyException(f"{self.name}: empty body, expected one block")
        expected = (IndexType(), *(value.type for value in self.captures))
        got = tuple(argument.type for argument in self.body.blocks[0].args)
        if expected != got:
            raise VerifyException(
                f"{self.name}: body arguments differ from the captures, expected "
                f"({', '.join(map(str, expected))}), got ({', '.join(map(str, got))})"
            )
        if not any(isinstance(block.last_op, YieldOp) for block in self.body.blocks):
            raise VerifyException(f"{self.name}: body does not end, expected rt.yield")


@states(EXACT, "tiles captures(constant c) { use(arg) } == tiles { use(constant c) }")
class CaptureConstant(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ParallelTilesOp, rewriter: PatternRewriter) -> None:
        for value, argument in zip(op.captures, op.captured, strict=True):
            owner = value.owner
            if not isinstance(owner, Operation) or not owner.has_trait(ConstantLike):
                continue
            if not argument.uses:
                continue
            inside = owner.clone()
            block = op.body.blocks[0]
            first = block.first_op
            assert first is not None
            block.insert_op_before(inside, first)
            rewriter.replace_all_uses_with(argument, inside.results[0])
            rewriter.notify_op_modified(op)


@states(
    EXACT,
    "tiles captures(a, b, a) { use(x, z) } == tiles captures(a) { use(x, x) }  for b unused",
)
class DropCapture(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ParallelTilesOp, rewriter: PatternRewriter) -> None:
        first: dict[SSAValue, SSAValue] = {}
        for value, argument in zip(op.captures, op.captured, strict=True):
            if argument.uses:
                rewriter.replace_all_uses_with(argument, first.setdefault(value, argument))
        kept = list(first)
        if len(kept) == len(op.captures):
            return
        for argument in op.captured:
            if not argument.uses:
                rewriter.erase_block_argument(argument)
        body = op.detach_region(op.body)
        marks = op.alternating, op.device, op.block
        rewriter.replace(op, ParallelTilesOp(op.count, kept, body, *marks))
