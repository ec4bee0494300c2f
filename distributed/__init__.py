"""Graphs that one machine, or its memory, does not hold: partitions, and programs on them.

It may import: `core`, `dialects`, the rooms between them and the compiler, and `compiler`.
In: a graph or an edge list on disk, and a model; out: a `Partition`, and results part by part.
"""
