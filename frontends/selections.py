"""Methods of `Builder` that select elements by their values, each made of several operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .diagnostics import input_error
from .values import Operand, Value


class Selections:
    """Selections by truth values: their results are as long as the values say."""

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

    def _places(
        self, mask: Operand, subject: str, rank: int | None, name: str | None
    ) -> tuple[Value, ...]:
        """The indices of the elements of a mask that are not 0, one tensor for each dimension."""
        *places, _ = self.nonzero(mask, name=name)
        if rank not in (None, len(places)):
            raise input_error(subject, "the condition has the wrong rank", rank, len(places))
        return tuple(places)
