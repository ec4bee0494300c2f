"""Loop nests written in Python: by operators, and by users in kernels of their own.

Operators write `value_at` and `write` in the interface of `nest.py`; `recording.py` records what
they do. `kernels.py` is `stepwell.kernel`, whose functions write into `builder.py`, statement by
statement. What follows from a kernel is in `proofs.py`, `sizes.py`, `values.py` and `flops.py`.

Imports dialects and `core`. In: operators, and functions of users. Out: a `Recording`, or a
`loop.kernel`.
"""
