"""Attributes of the arguments of a kernel; `KernelOp` says what each means."""

from __future__ import annotations

CONSTANT = "loop.constant"
"""Every call passes a constant of the program."""
PACKING = "loop.packing"
"""The affine map from an index of the packed argument to one of the constant it is made of."""
BOUNDS = "loop.bounds"
"""The extents that its integers, which are indices, stay below."""
ENTRIES = "loop.entries"
"""Of column indices: the number of entries of their matrix, if every call has the same."""
IN_PLACE = "loop.in_place"
"""Of an output: the numbers of the inputs that it may be written over."""
