"""Methods of `Builder` whose results have computed sizes, each made of several operators."""

from __future__ import annotations

from contextlib import nullcontext

from .counts import step_count
from .diagnostics import input_error
from .parts import BuilderPart
from .values import Operand, Value


class Selections(BuilderPart):
    """Operators whose results are as long as values say: selections by truth values, ranges."""

    def compress(
        self, x: Operand, condition: Operand, axis: int | None = None, name: str | None = None
    ) -> Value:
        """The slices of x along an axis for which a vector is not 0, as `numpy.compress`.

        Args:
            x: a dense tensor; without `axis` its elements in row-major order.
            condition: a vector of any element type, at most as long as the axis.
            axis: the axis; a negative one counts from the back.
            name: the name of the model's node in messages; by default the caller's line.

        Raises:
            InputError: if the arguments do not fit.
        """
        source = self.reshape(x, shape=[-1], name=name) if axis is None else x
        places = self._places(condition, "compress", 1, name)
        return self.gather(source, *places, axis=axis or 0, name=name)

    def masked_select(self, x: Operand, mask: Operand, name: str | None = None) -> Value:
        """The elements of x, or slices of its first dimensions, where a mask is not 0: ``x[mask]``.

        They come in row-major order.

        Args:
            x: a dense tensor.
            mask: a tensor of any element type, of the sizes of the first dimensions of x.
            name: the name of the model's node in messages; by default the caller's line.

        Raises:
            InputError: if the arguments do not fit.
        """
        places = self._places(mask, "masked_select", None, name)
        if isinstance(x, Value) and isinstance(mask, Value):
            pairs = [
                (m, n) for m, n in zip(mask.shape, x.shape, strict=False) if None not in (m, n)
            ]
            if any(m != n for m, n in pairs):
                raise input_error("masked_select", "the mask does not fit", x.shape, mask.shape)
        return self.gather_nd(x, places, name=name)

    def range(
        self,
        start: Operand,
        limit: Operand,
        delta: Operand = 1,
        *,
        bound: int | None = None,
        name: str | None = None,
    ) -> Value:
        """The numbers start, start + delta, ... before limit: `numpy.arange` of values.

        Args:
            start: the first number, a scalar of integers or floats.
            limit: what ends the numbers; none of them reaches it.
            delta: the difference of two; 0 is an error of the call.
            bound: the most numbers that there may be; more are an error of the call, too. By
                default there may be any number: memory is allocated once it is known.
            name: the name of the model's node in messages; by default the caller's line.

        Raises:
            InputError: if none of the operands is a `Value`, or they do not fit.
        """
        given = [value for value in (start, limit, delta) if isinstance(value, Value)]
        if not given or any(value.shape != () for value in given):
            shapes = ", ".join(str(value.shape) for value in given) or "numbers alone"
            raise input_error("range", "wrong operands", "a Value without dimensions", shapes)
        dtype = given[0].dtype
        first, end, step = (
            value if isinstance(value, Value) else self.constant(value, dtype=dtype)
            for value in (start, limit, delta)
        )
        wide = "f64" if "f" in dtype else "i64"
        with nullcontext() if name is None else self.node(name):
            ends = (self.cast(value, wide) for value in (first, end, step))
            count = step_count(self, *ends, of_floats=wide == "f64")
            places = self.cast(self.arange(count, at_most=bound), dtype)
            return self.add(self.mul(places, step), first)

    def _places(
        self, mask: Operand, subject: str, rank: int | None, name: str | None
    ) -> tuple[Value, ...]:
        """The indices of the elements of a mask that are not 0, one tensor for each dimension."""
        *places, _ = self.nonzero(mask, name=name)
        if rank not in (None, len(places)):
            raise input_error(subject, "the condition has the wrong rank", rank, len(places))
        return tuple(places)
