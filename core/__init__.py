"""What every room stands on: modules with weights, errors, provenance, the registry, pipelines, targets.

It may import: xDSL, NumPy and SciPy, and nothing else of this package.
In: names, arrays and parsed IR; out: the `Module`, `CompilerContext` and error types that all other rooms speak in.
"""
