"""Data of the compiled call boundary: a plan for each executable, and frames.

A *plan* is a table of 8-byte words that describes the inputs and results of a program: the words
that `CallPlan` names, then records. A *frame* is the working memory of one call: the context passed
to compiled code, the words of its arguments, and space for the boundary. The frames of a program
form a list that only grows; a frame belongs to the call that has set its `Word.BUSY`.

The records, in order:

    dense input    DENSE, dtype, bytes of an element, rank, dimensions
    CSR input      CSR, dtype and bytes of values, of row pointers and of columns, the address of
                   the addresses of two types of matrices, the name of the dtype for `to_csr`,
                   two dimensions, and the code of the number of entries
    sizes          the number of size differences that must be 0, and their codes
    arena          the code of its size in bytes
    result         a `numpy.dtype`, its dtype, bytes of an element, rank, what becomes of it (FIXED,
                   RESIZED, IN_ARENA), dimensions
    computed       the number of results of computed sizes; for each its number, what becomes of it,
                   a `numpy.dtype`, bytes of an element, rank, and the codes of its sizes. Of one
                   that is RESIZED the dimensions in its record are upper bounds; one IN_ARENA has
                   none in its record, and here after its sizes the code of where it begins

A dimension is its code, and whether its size is an argument of compiled code. The code of a size is
its value, or the bitwise complement of the index of a symbol, or `POLYNOMIAL` followed by the
number of terms and, for each term, its coefficient, its number of factors and the factors. A factor
is the index of a symbol; or a number -d, followed by the code of a size that is divided by d. A
dtype is the word of `PyArray_Descr` with its kind, byte order and number. Inputs have codes of the
first two kinds only.
"""

from __future__ import annotations

from enum import IntEnum

from ....dialects.rt.abi import WORDS

DENSE, CSR = 0, 1
FIXED, RESIZED, IN_ARENA = 0, 1, 2
"""What becomes of a result after a call: nothing, it gets a smaller size, or it is copied from the
arena."""
POLYNOMIAL = -(1 << 63)
LARGEST_ARENA = 1 << 62
"""The largest arena: sizes are signed and have 64 bits."""
LARGE_RESULT = 1 << 22
"""A new array for a result of this many bytes or more is at a multiple of `LINE` bytes.

NumPy's own are 16 bytes after one, where each vector crosses a line of the cache.
"""
LINE = 64

ARGUMENTS = WORDS
"""The position of the argument words in a frame."""


class CallPlan(IntEnum):
    """The words of a plan."""

    CODE = 0
    """Address of the program: a function of a frame that returns a status."""
    FRAMES = 1
    """Address of the address of the first frame; `Word.NEXT` of a frame has that of the next."""
    SLOW = 2
    """A Python function, called with the executable and then the arguments of the call."""
    FAIL = 3
    """A Python function of the executable, a status and the address of a frame, which raises the
    error."""
    INPUTS = 4
    OUTPUTS = 5
    SYMBOLS = 6
    SIZES = 7
    """The position in a frame of the sizes of symbols."""
    RANGES = 8
    """The position in a frame of the begin and end of each buffer."""
    HELD = 9
    """The position in a frame of the objects that a call keeps alive."""
    RESULTS = 10
    """The position in a frame of the results."""
    SHAPE = 11
    """The position in a frame of the shape of a new result."""
    COMPUTED = 12
    """The position in a frame of the sizes that the program computes, and of where results begin in
    the arena, which are symbols too; 0 without any."""


RECORDS = len(CallPlan)
"""The position of the records in a plan."""
