"""A square of machine vectors turned over: what was along a row is along a column."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from .scopes import Emitter


# Stage d swaps, in each square of 2 d rows and 2 d lanes, the half of d that is above with that
# below the diagonal; d = 1, 2, 4, ... turn the whole square over (Eklundh 1972).
def transposed(emitter: Emitter, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """As many machine vectors as each has lanes, a power of two: lane j of row i in row j."""
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
