"""How `graph-raise-messages` finds messages on an edge list, and brings them into entry order.

It may import: `dialects` and `core`.
In: gathers, operators on edges and scatters of a block; out: operators on a sparse matrix.
"""
