"""Values that threads of a block read or compute in common, which `stage_panels` stages.

It may import: `dialects` and `core`.
In: the loops of threads around a reduction; out: panels of inputs, and terms.
"""
