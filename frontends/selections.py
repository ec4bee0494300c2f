"""Methods of `Builder` whose results have computed sizes, each made of several operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .diagnostics import input_error
from .values import Operand, Value

_MANY = 2.0**62


class Selections:
    """Operators whose results are as long as values say: selections by truth values, ranges."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """The operator called `name`."""
            ...

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
        bound: int,
        name: str | None = None,
    ) -> Value:
        """The numbers start, start + delta, ... before limit: `numpy.arange` of values.

        Args:
            start: the first number, a scalar of integers or floats.
            limit: what ends the numbers; none of them reaches it.
            delta: the difference of two; 0 is an error of the call.
            bound: the most numbers that there may be; more are an error of the call, too.
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
        count = self._steps(first, end, step, name)
        places = self.arange(count, at_most=bound, name=name)
        return self.add(self.mul(self.cast(places, dtype), step, name=name), first, name=name)

    def _steps(self, first: Value, end: Value, step: Value, name: str | None) -> Value:
        """How many numbers there are from the first one to before the end."""
        wide = "f64" if "f" in first.dtype else "i64"
        first, end, step = (self.cast(value, wide, name=name) for value in (first, end, step))
        span = self.sub(end, first, name=name)
        whole = self.div(span, step, name=name)
        if wide == "f64":
            # So many that they are an error, whatever the bound, are still an integer.
            return self.max(self.cast(self.min(self.ceil(whole), _MANY), "i64"), 0, name=name)
        rest = self.sub(span, self.mul(whole, step), name=name)
        more = self.max(self.mul(self.sign(rest), self.sign(step)), 0, name=name)
        count = self.max(self.add(whole, more), 0, name=name)
        return self.where(self.equal(step, 0), int(_MANY), count, name=name)

    def _places(
        self, mask: Operand, subject: str, rank: int | None, name: str | None
    ) -> tuple[Value, ...]:
        """The indices of the elements of a mask that are not 0, one tensor for each dimension."""
        *places, _ = self.nonzero(mask, name=name)
        if rank not in (None, len(places)):
            raise input_error(subject, "the condition has the wrong rank", rank, len(places))
        return tuple(places)
