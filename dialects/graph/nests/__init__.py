"""Loop nests written in Python: by operators, and by users in kernels of their own.

`body.py` is what loops are written with: in `GraphOp.write` (`operators.py`) and in functions of
`stepwell.kernel` (`builder.py`, `kernels.py`). It writes into a nest (`nest.py`), as `value_at`
does; `recording.py` records what an operator does. What follows from a kernel is in `proofs.py`,
`sizes.py`, `values.py` and `flops.py`.

Imports dialects and `core`. In: operators, and functions of users. Out: a `Recording`, or a
`loop.kernel`.
"""
