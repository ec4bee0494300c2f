"""Data of the compiled call boundary: a plan of each executable, and frames.

A *plan* is a table of 8-byte words that describes the inputs and results of a program: those that
`Plan` names, then records. A *frame* is the working memory of one call: the context passed to
compiled code, then the words of its arguments, and space for the boundary. The frames of a program
form a list that only grows; a frame belongs to the call that has set `Word.BUSY` in it.

The records, one after the other:

    dense input    DENSE, dtype, bytes of an element, rank, dimensions
    CSR input      CSR, dtype and bytes of values, dtype and bytes of indices, the address of
                   the addresses of two types of matrices, the name of the dtype for `to_csr`,
                   two dimensions, and the code of the number of entries
    sizes          how many differences of sizes must be 0, and their codes
    arena          the code of its bytes
    result         a `numpy.dtype`, its dtype, bytes of an element, rank, dimensions

A dimension is its code, and whether it is an argument of compiled code. The code of a size is
the number, or the complement of the number of a symbol, or `POLYNOMIAL`, then the number of terms,
and for each its coefficient, its number of factors and their symbols. A dtype is written as the
word of `PyArray_Descr` that has its kind, byte order and number. Inputs have codes of the first
two kinds only.
"""

from __future__ import annotations

from enum import IntEnum

from ....dialects import rt

DENSE, CSR = 0, 1
POLYNOMIAL = -(1 << 63)
LARGEST_ARENA = 1 << 62
"""The largest arena: sizes are signed and have 64 bits."""

ARGUMENTS = rt.WORDS
"""Where in a frame the words of the arguments begin."""


class Plan(IntEnum):
    """What the words of a plan are."""

    CODE = 0
    """Address of the program: a function of a frame that returns a status."""
    FRAMES = 1
    """Address of the address of the first frame; each has that of the next in `Word.NEXT`."""
    SLOW = 2
    """A Python function, called with the executable and then the arguments of the call."""
    FAIL = 3
    """A Python function of the executable, a status and the address of a frame, which raises."""
    INPUTS = 4
    OUTPUTS = 5
    SYMBOLS = 6
    SIZES = 7
    """Where in a frame the sizes of symbols are."""
    RANGES = 8
    """Where in a frame begin and end of each buffer are."""
    HELD = 9
    """Where in a frame the objects are that a call keeps alive."""
    RESULTS = 10
    """Where in a frame the results are."""
    SHAPE = 11
    """Where in a frame a shape is made."""


RECORDS = len(Plan)
"""Where in a plan the records begin."""
