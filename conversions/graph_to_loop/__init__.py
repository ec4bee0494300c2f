"""How `convert-graph-to-loop` works: primitive functions become kernels, calls pass destinations.

It may import: core, dialects and xDSL.
In: primitive functions and their plans; out: kernels of loop, and calls of the graph dialect.
"""
