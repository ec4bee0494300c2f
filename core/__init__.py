"""The foundation of all folders: modules with weights, errors, provenance, registry, targets.

It may import: xDSL, NumPy and SciPy, and nothing else of this package.
In: names, arrays and parsed IR; out: the `Module`, context and errors that all folders use.
"""
