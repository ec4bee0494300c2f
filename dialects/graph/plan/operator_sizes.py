"""The sizes of the operands and results of one operator, from its shape rule alone."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....core.dims import Dim, Shape
from ..interfaces import GraphOp, declared_shape, tensor_type, unknown_sizes
from ..shape_facts import ShapeFacts


class OperatorSizes:
    """The sizes of the operands and results of an operator, from its shape rule."""

    def __init__(self, op: GraphOp) -> None:
        self.held: dict[str, tuple[SSAValue, Dim | None]] = {}
        """Symbols of sizes that scalars hold: the scalar, and the upper bound."""
        self._same: dict[str, Dim] = {}
        fresh = unknown_sizes()

        def hold(scalar: SSAValue, bound: Dim | None) -> Dim:
            size = fresh()
            self.held[size.symbols[0]] = scalar, bound
            return size

        shapes = {value: declared_shape(value, fresh) for value in dict.fromkeys(op.operands)}
        facts = ShapeFacts(op, fresh, record=self._equal, held=hold)
        inferred = op.infer_shapes([shapes[value] for value in op.operands], facts)
        for result, shape in zip(op.results, inferred, strict=True):
            shapes[result] = shape
            for size, declared in zip(shape, tensor_type(result).get_shape(), strict=True):
                if declared >= 0:
                    self._equal(size, Dim.of(declared))
        self.shapes: dict[SSAValue, Shape] = {
            value: tuple(map(self.known, shape)) for value, shape in shapes.items()
        }

    def _equal(self, a: Dim, b: Dim) -> None:
        """Note that two sizes are equal, which is checked before a kernel runs."""
        a, b = a.substitute(self._same), b.substitute(self._same)
        for one, other in ((a, b), (b, a)):
            if (name := one.name) is not None and name not in other.symbols:
                known = {name: other}
                self._same = {key: size.substitute(known) for key, size in self._same.items()}
                self._same[name] = other
                return

    def known(self, size: Dim) -> Dim:
        """A size in the symbols of `shapes`."""
        return size.substitute(self._same)
