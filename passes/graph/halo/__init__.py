"""How `graph-split-at-halo` finds what comes from other parts, and where it cuts a program.

It may import: networkx, `dialects` and `core`.
In: a function on a graph; out: its stages, as functions on one part of the graph.
"""
