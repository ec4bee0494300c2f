"""The steps of schedules, one in each file: a primitive, which is also the pass `loop-<name>`.

A primitive takes a kernel and returns the one that replaces it, or refuses. It may import:
`dialects`, `core`, `passes/primitive.py`, `staging` and other primitives.
"""
