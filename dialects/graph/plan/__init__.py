"""What a group of operators needs to become one kernel, found out before a nest is built.

`walk.py` follows values through a nest, from what `nests/recording.py` has recorded of operators;
`planner.py` plans a group, and `writers.py` one with an operator that writes its results.

Imports dialects and `core`. In: operators of a block. Out: a `NestPlan`, which fusion asks and
`convert-graph-to-loop` obeys.
"""
