"""What threads of a block read or compute in common, and so stage: for the step `stage_panels`.

It may import: `dialects` and `core`.
In: the loops of threads around a reduction; out: panels of inputs, and terms.
"""
