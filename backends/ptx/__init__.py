"""PTX, NVIDIA's virtual instruction set, executed on NumPy arrays: a GPU where there is none.

It may import: NumPy and `core`.
In: the text of a PTX module, a grid of threads and arrays; out: the arrays as the kernel leaves
them, errors that hardware does not report, and counters.
"""
