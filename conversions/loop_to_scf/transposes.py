"""In-register transposes of squares of machine vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from .scopes import Emitter


# Stage d swaps the off-diagonal quarters of each square of 2 d rows and 2 d lanes; d = 1, 2, 4, ...
# transpose the whole square (Eklundh 1972).
def transposed(emitter: Emitter, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The transpose of n machine vectors of n lanes, a power of two."""
    values, width = list(rows), len(rows)
    apart = 1
    while apart < width:
        upper = [n if not n & apart else n - apart + width for n in range(width)]
        lower = [n + apart if not n & apart else n + width for n in range(width)]
        for one in [n for n in range(width) if not n & apart]:
            above, below = values[one], values[one + apart]
            values[one] = emitter.shuffle(above, below, upper)
            values[one + apart] = emitter.shuffle(above, below, lower)
        apart *= 2
    return values
