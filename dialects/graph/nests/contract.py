"""What an operator may do with its nest; an error names one that does something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from ....core.algebra.affine import dims_in
from ....core.errors import UnsupportedError, explain
from ....core.ir.provenance import origin
from ...loop.attrs import Combine
from ...sparse_tensor import is_sparse
from ..attrs import compute_type
from ..combiners import COMBINERS
from ..interfaces import GraphOp, element_type, is_foreign, rank, tensor_type
from .accesses import Sources


class Contract:
    """Checks the indices and scalars that one operator passes to its nest."""

    def __init__(self, op: GraphOp) -> None:
        self.op = op
        self.operands = {value: number for number, value in enumerate(op.operands)}
        self.sources: dict[SSAValue, Sources] = {}
        """What each scalar of the nest is computed from."""
        self.loops_of: list[frozenset[int]] = []
        """The loops in which each atom has a meaning."""
        self.visible: frozenset[int] = frozenset()
        """The loops that are open."""
        self.pure: tuple[str, ...] = ()
        """The open functions that only compute: their loops may be moved or merged."""

    def wrong(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> UnsupportedError:
        """An error that names the operator and its node."""
        where, subject = origin(self.op), self.op.name
        return UnsupportedError(
            explain(subject, fact, expected=expected, got=got, origin=where, hint=hint)
        )

    @contextmanager
    def computing(self, where: str) -> Iterator[None]:
        """Refuse writes within the context, but for those to local buffers of its own."""
        self.pure = (*self.pure, where)
        try:
            yield
        finally:
            self.pure = self.pure[:-1]

    # Operands and results.

    def operand(self, value: SSAValue, *, sparse: bool = False) -> int:
        """The number of an operand that is read at an index, or by its entries."""
        if not isinstance(value, SSAValue) or value not in self.operands:
            got = value.type if isinstance(value, SSAValue) else type(value).__name__
            raise self.wrong("reads what is not an operand", "an operand", got)
        if sparse != is_sparse(value.type):
            what = ("a sparse operand is read only by its entries", "entries of a dense operand")
            raise self.wrong(what[sparse], "nest.at" if sparse else "nest.pattern", value.type)
        return self.operands[value]

    def dimension(self, value: SSAValue, dim: int) -> None:
        """Require that an operand or a result has a dimension."""
        if value not in self.operands and value not in self.op.results:
            raise self.wrong("the size of another tensor", "an operand or a result", value.type)
        if not 0 <= dim < rank(value):
            expected = f"0 to {rank(value) - 1}"
            raise self.wrong(f"{tensor_type(value)} does not have a dimension", expected, dim)

    def result(self, result: int) -> None:
        """Require that there is a result of a number."""
        last = len(self.op.results) - 1
        if not 0 <= result <= last:
            raise self.wrong("writes a result that it does not have", f"0 to {last}", result)

    def element(
        self, result: int, index: Sequence[AffineExpr], value: SSAValue, combine: str | None
    ) -> None:
        """Require that a scalar fits a result at an index."""
        self.result(result)
        own = self.op.results[result]
        if len(index) != rank(own):
            raise self.wrong("writes at an index of another rank", rank(own), len(index))
        self.stored(index, value, compute_type(element_type(own)), combine)

    def stored(
        self,
        index: Sequence[AffineExpr],
        value: SSAValue,
        kind: Attribute,
        combine: str | None,
        around: int = 0,
    ) -> None:
        """Require that a scalar fits the elements of a buffer, and joins them in a known way.

        Of the open functions that only compute, the outermost `around` are around the buffer.
        """
        if self.pure[around:]:
            raise self.wrong(f"writes in {self.pure[-1]}", "a step of nest.serial")
        self.index(index)
        self.scalar(value)
        if value.type != kind:
            raise self.wrong("writes a scalar of another type", kind, value.type)
        if combine is not None and combine not in COMBINERS:
            raise self.wrong("unknown combiner", ", ".join(COMBINERS), combine)

    # Indices and scalars.

    def index(self, exprs: Iterable[AffineExpr]) -> None:
        """Require index expressions of this nest, each variable in its loop."""
        for expr in exprs:
            if not isinstance(expr, AffineExpr):
                got = expr.type if isinstance(expr, SSAValue) else type(expr).__name__
                raise self.wrong("an index is not an index expression", "an AffineExpr", got)
            for position in dims_in(expr):
                if position >= len(self.loops_of):
                    raise self.wrong("an index expression is of another nest")
                self.inside("the variable", self.loops_of[position])

    def scalar(self, value: SSAValue) -> None:
        """Require a scalar of this nest, in the loop that computes it."""
        if not isinstance(value, SSAValue):
            got = type(value).__name__
            raise self.wrong("uses what is not a scalar", "a value of the nest", got)
        if value not in self.sources:
            raise self.wrong("uses a scalar that is not of this nest", got=value.type)
        self.inside("a scalar", self.sources[value].loops)

    def inside(self, what: str, loops: frozenset[int]) -> None:
        """Require that loops are open."""
        if not loops <= self.visible:
            hint = "a loop returns the values that it carries"
            raise self.wrong(f"uses {what} of a loop outside of it", hint=hint)

    def operation(self, op: Operation) -> None:
        """Require a valid operation on scalars."""
        for operand in op.operands:
            self.scalar(operand)
        if is_foreign(self.op):
            try:
                op.verify()
            except VerifyException as error:
                why = " ".join(str(error).partition("\n\n")[0].split())
                raise self.wrong(f"inserts an operation that is not valid: {why}") from error

    def reduction(self, combines: Sequence[str], inits: Sequence[SSAValue]) -> None:
        """Require a known combiner for each accumulator."""
        known = [str(combine) for combine in Combine]
        for combine in combines:
            if combine not in known:
                raise self.wrong("unknown combiner", ", ".join(known), combine)
        if len(combines) != len(inits):
            raise self.wrong("wrong number of combiners", len(inits), len(combines))

    def step(self, inits: Sequence[SSAValue], after: Sequence[SSAValue]) -> None:
        """Require the next value for each one that a loop carries, of its type."""
        expected = ", ".join(str(init.type) for init in inits) or "an empty list"
        if not isinstance(after, Sequence) or len(after) != len(inits):
            got = f"{len(after)} values" if isinstance(after, Sequence) else type(after).__name__
            raise self.wrong("a step does not return the next values", expected, got)
        for value in after:
            self.scalar(value)
        if [value.type for value in after] != [init.type for init in inits]:
            got = ", ".join(str(value.type) for value in after)
            raise self.wrong("a step returns values of other types", expected, got)
