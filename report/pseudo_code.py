"""Kernels as pseudo-code: a loop nest as it would be written in NumPy.

    kernel fused_dense_relu(x: f32[?, 784], w: f32[4, 784, 32]) -> (y: f32[?, 128]):
      for i in range(n):  # tiles: on several threads
        acc = 0
        for k in range(784):  # reduction by add
          acc = x[i, k] * w[j0, k, 0:32] + acc
        y[i, j0 * 32 + 0:32] = max(acc, 0)

A value that is used once is written where it is used, unless a store or a loop comes in between;
lanes of a vector are ranges of indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from xdsl.dialects import affine, arith, math, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from ..core.ir.typed import is_splat
from ..dialects.loop.attrs import Combine, LoopKind
from ..dialects.loop.ops import (
    FoldOp,
    ForOp,
    InstructionOp,
    KernelOp,
    LoadOp,
    LocalOp,
    PrefetchOp,
    StoreOp,
    YieldOp,
    block_shape,
)
from ..dialects.upstream.ops_vector import BroadcastOp
from .affine_text import ATOM, CHOICE, COMPARISON, PRODUCT, SUM, affine_text
from .inlining import inlined, is_constant

_SILENT = (BroadcastOp, vector.BroadcastOp, vector.ExtractOp)
"""As in NumPy, scalars and vectors of fewer axes are broadcast, and axes of one lane left out."""

_ORDERS = (
    *("false", "==", ">", ">=", "<", "<=", "!=", "ordered"),
    *("==", ">", ">=", "<", "<=", "!=", "unordered", "true"),
)
_INTEGER_ORDERS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""Comparisons by the numbers of predicates."""

_INFIX: dict[type[Operation], tuple[str, int]] = {
    arith.AddfOp: ("+", SUM),
    arith.AddiOp: ("+", SUM),
    arith.SubfOp: ("-", SUM),
    arith.SubiOp: ("-", SUM),
    arith.MulfOp: ("*", PRODUCT),
    arith.MuliOp: ("*", PRODUCT),
    arith.DivfOp: ("/", PRODUCT),
    arith.FloorDivSIOp: ("//", PRODUCT),
}
_FUNCTIONS: dict[type[Operation], str] = {
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
    arith.MaxUIOp: "max",
    arith.MinUIOp: "min",
}
_FOLDS = {
    Combine.ADD: "sum",
    Combine.MUL: "prod",
    Combine.MAX: "max",
    Combine.MAXNUM: "maxnum",
    Combine.MIN: "min",
    Combine.CUSTOM: "combine",
}
_KINDS = {
    LoopKind.PARALLEL: "parallel",
    LoopKind.TILES: "tiles, on several threads",
    LoopKind.ALTERNATING_TILES: "tiles, on several threads, in alternating order",
    LoopKind.THREADS: "threads of a device",
    LoopKind.BLOCKS: "blocks of threads of a device",
    LoopKind.SERIAL: "in order",
    LoopKind.UNROLL: "unrolled",
    LoopKind.ASYNC: "an asynchronous copy",
}
_ACCUMULATIONS = {Combine.ADD: "+=", Combine.MUL: "*="}

_LONGEST = 88
"""The length of a signature that is written on one line."""

Line = tuple[str, Sequence[Operation]]
"""A line, and the operations that it stands for."""


def pseudo_code(kernel: KernelOp) -> list[Line]:
    """The lines of a kernel."""
    return list(_Writer(kernel).lines())


class _Writer:
    """Writes a kernel; `names` are the texts of values that have one."""

    def __init__(self, kernel: KernelOp) -> None:
        self.kernel = kernel
        self.names: dict[SSAValue, str] = {}
        self._taken: set[str] = set()
        self._used: list[Operation] = []
        self._inlined: set[Operation] = set()

    def lines(self) -> Iterator[Line]:
        """The lines, the signature first."""
        # Name the arrays of sparse matrices by what they are, after the name of their matrix.
        for op in self.kernel.walk():
            if not isinstance(op, ForOp) or not op.over_entries:
                continue
            uses = [use.operation for use in op.variable.uses]
            buffers = [load.buffer for load in uses if isinstance(load, LoadOp)]
            named = zip((*op.matrix, *buffers[:1]), ("indptr", "indices", "values"), strict=False)
            for array, name in named:
                if array in self.kernel.inputs:
                    hint = array.name_hint
                    self._name(array, name if hint is None else f"{hint}_{name}")
        inputs, outputs = (
            [f"{self._name(value)}: {_type(value.type)}" for value in values]
            for values in (self.kernel.inputs, self.kernel.outputs)
        )
        begin = f"kernel {self.kernel.sym_name.data}("
        end = f") -> ({', '.join(outputs)}):"
        short = f"{begin}{', '.join(inputs)}{end}"
        lines = [short] if len(short) <= _LONGEST else [begin, *(f"    {i}," for i in inputs), end]
        yield from ((line, [self.kernel]) for line in lines)
        yield from self._block(self.kernel.body.block, "  ")

    def _block(self, block: Block, indent: str) -> Iterator[Line]:
        self._inlined |= inlined(block)
        for op in block.ops:
            if op in self._inlined:
                continue
            self._used = [op]
            for text, ops in self._statement(op, indent):
                yield f"{indent}{text}", ops

    def _statement(self, op: Operation, indent: str) -> Iterator[Line]:
        """The lines of an operation, without the indent of the first ones."""
        if isinstance(op, ForOp):
            yield from self._loop(op, indent)
        elif isinstance(op, StoreOp):
            yield self._store(op)
        elif isinstance(op, YieldOp):
            yield from self._yield(op)
        elif isinstance(op, LocalOp):
            sizes = [self.text(size) for size in op.sizes]
            yield f"{self._name(op.result)} = local {_type(op.result.type, sizes)}", self._used
        elif isinstance(op, PrefetchOp):
            place = self._place(op.buffer, op.map.data.results, op.indices, ())
            yield f"prefetch {place}", self._used
        else:
            text = self._expression(op)[0]
            names = [self._name(result) for result in op.results]
            yield f"{', '.join(names)} = {text}" if names else text, self._used

    def _loop(self, op: ForOp, indent: str) -> Iterator[Line]:
        for number, (value, init) in enumerate(zip(op.carried, op.inits, strict=True)):
            if _continues(op, number):
                self.names[value] = self.names[init]
                continue
            self._used = [op]
            yield f"{self._name(value)} = {self.text(init)}", self._used
        carried = [self.names[value] for value in op.carried]
        for result, name in zip(op.results, carried, strict=True):
            self.names[result] = name
        self._used = [op]
        names = [self._name(op.variable)]
        end = self._least(op.bound.data, op.bounds)[0]
        if op.over_entries:
            names.append(self._name(op.column))
            indptr, indices = (self.text(array) for array in op.matrix)
            over = f"entries({indptr}, {indices}, row={end})"
        else:
            over = f"range({end})"
        # How the iterations run.
        if op.is_reduction:
            by = ", ".join(dict.fromkeys(str(combine) for combine in op.combines))
            at_once = f", {op.at_once} accumulators" if op.at_once > 1 else ""
            how = f"reduction by {by}{at_once}"
        else:
            how = _KINDS[op.kind.data]
        yield f"for {', '.join(names)} in {over}:  # {how}", self._used
        inner = f"{indent}  "
        for text, ops in self._block(op.body.block, inner):
            yield text.removeprefix(indent), ops

    def _yield(self, op: YieldOp) -> Iterator[Line]:
        loop = op.parent_op()
        assert isinstance(loop, ForOp)
        for value, carried in zip(op.values, loop.carried, strict=True):
            self._used = [op]
            text = self.text(value)
            if text != self.names[carried]:
                yield f"{self.names[carried]} = {text}", self._used

    def _store(self, op: StoreOp) -> Line:
        place = self._place(op.buffer, op.map.data.results, op.indices, block_shape(op.value.type))
        value, how = self.text(op.value), op.accumulates
        if how is None or how in _ACCUMULATIONS:
            text = f"{place} {'=' if how is None else _ACCUMULATIONS[how]} {value}"
        else:
            text = f"{place} = {_FOLDS[how]}({place}, {value})"
        # How many lanes are inside of the buffer, as a comment.
        limits = zip(op.limited.get_values(), op.limits, strict=True)
        parts = [f"{self.text(limit)} lanes of axis {axis}" for axis, limit in limits]
        valid = f"  # the first {', '.join(parts)}" if parts else ""
        return f"{text}{valid}", self._used

    def _place(
        self,
        buffer: SSAValue,
        exprs: Iterable[AffineExpr],
        indices: Sequence[SSAValue],
        lanes: Sequence[int],
    ) -> str:
        texts = [self.text(index, PRODUCT) for index in indices]
        ranges = [f"0:{count}" for count in lanes]
        places = ", ".join(affine_text(expr, texts, ranges)[0] for expr in exprs)
        return f"{self.text(buffer)}[{places}]"

    def _least(self, map: AffineMap, operands: Sequence[SSAValue]) -> tuple[str, int]:
        """The least result of a map, and how tightly its text binds."""
        texts = [self.text(value, PRODUCT) for value in operands]
        found = [affine_text(expr, texts, ()) for expr in map.results]
        return found[0] if len(found) == 1 else (f"min({', '.join(t for t, _ in found)})", ATOM)

    # Values.

    def text(self, value: SSAValue, binding: int = 0) -> str:
        """The text of a value, in brackets where it binds less tightly than `binding`."""
        if value in self.names or isinstance(value, BlockArgument):
            return self._name(value)
        op = value.owner
        assert isinstance(op, Operation)
        if op not in self._inlined:
            return self._name(value)
        if not is_constant(op):
            # Numbers are shared by lines that have nothing else in common.
            self._used.append(op)
        text, own = self._expression(op)
        return f"({text})" if own < binding else text

    def _expression(self, op: Operation) -> tuple[str, int]:
        """The text of the result of an operation, and how tightly it binds."""
        if isinstance(op, LoadOp):
            lanes = block_shape(op.result.type)
            return self._place(op.buffer, op.map.data.results, op.indices, lanes), ATOM
        if isinstance(op, arith.ConstantOp):
            return _number(op.value), ATOM
        if isinstance(op, math.FmaOp):
            factors = " * ".join(self.text(value, PRODUCT) for value in (op.a, op.b))
            return f"{factors} + {self.text(op.c, SUM)}", SUM
        if isinstance(op, _SILENT) and not _picks_lanes(op):
            return self.text(op.operands[0], ATOM), ATOM
        if isinstance(op, arith.SelectOp):
            order = ((1, SUM), (0, COMPARISON), (2, SUM))
            chosen, condition, other = (self.text(op.operands[n], b) for n, b in order)
            return f"{chosen} if {condition} else {other}", CHOICE
        if isinstance(op, arith.CmpfOp | arith.CmpiOp):
            signs = _ORDERS if isinstance(op, arith.CmpfOp) else _INTEGER_ORDERS
            left, right = (self.text(value, SUM) for value in op.operands)
            return f"{left} {signs[op.predicate.value.data]} {right}", COMPARISON
        if isinstance(op, affine.ApplyOp | affine.MinOp):
            return self._least(op.map.data, op.operands)
        if isinstance(op, FoldOp):
            return (
                f"{_FOLDS[op.combine.data]}({self.text(op.value)}, axis={_number(op.axis)})",
                ATOM,
            )
        if (infix := _INFIX.get(type(op))) is not None:
            sign, binding = infix
            left, right = self.text(op.operands[0], binding), self.text(op.operands[1], binding + 1)
            return f"{left} {sign} {right}", binding
        name = _FUNCTIONS.get(type(op), op.name.partition(".")[2])
        if isinstance(op, InstructionOp):
            name = op.instruction.data
        return f"{name}({', '.join(map(self.text, op.operands))})", ATOM

    def _name(self, value: SSAValue, given: str | None = None) -> str:
        """The name of a value: the given one, its hint, or what it is; made unique."""
        if value not in self.names:
            base = given or value.name_hint or _kind(value)
            name, count = base, 0
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._taken.add(name)
            self.names[value] = name
        return self.names[value]


def _continues(op: ForOp, number: int) -> bool:
    """Whether a loop goes on with a value that the loop around it carries, which then is its."""
    outer, init, result = op.parent_op(), op.inits[number], op.results[number]
    if not isinstance(outer, ForOp) or init not in outer.carried:
        return False
    place = list(outer.carried).index(init)
    return init.has_one_use() and result.has_one_use() and outer.yielded[place] is result


def _picks_lanes(op: Operation) -> bool:
    """Whether an operation takes some lanes of several."""
    lanes = [prod(block_shape(value.type)) for value in (op.operands[0], op.results[0])]
    return lanes[0] > lanes[1]


def _kind(value: SSAValue) -> str:
    """The name of a value without a hint: what it is."""
    if isinstance(value, BlockArgument):
        return "acc" if isinstance(value.owner.parent_op(), ForOp) else "x"
    return "buffer" if isinstance(value.owner, LocalOp) else "v"


def _type(kind: Attribute, sizes: Sequence[str] = ()) -> str:
    if isinstance(kind, IndexType) or not isinstance(kind, MemRefType):
        return str(kind)
    given = iter(sizes)
    dims = [next(given, "?") if size < 0 else str(size) for size in kind.get_shape()]
    return f"{kind.element_type}[{', '.join(dims)}]"


def _number(value: Attribute) -> str:
    if isinstance(value, DenseIntOrFPElementsAttr):
        return str(value.get_values()[0]) if is_splat(value) else "[...]"
    if isinstance(value, IntegerAttr):
        return str(value.value.data)
    return f"{value.value.data:.7g}" if isinstance(value, FloatAttr) else str(value)
