"""What a group of operators needs to become one kernel, found out before a nest is built.

`recording.py` derives from `value_at` or `write` what an operator reads and costs: it runs them on
the nest of `recording_nest.py`. `walk.py` follows values through a nest, `planner.py` plans a
group, and `writers.py` one with an operator that writes its results.

Imports dialects and `core`. In: operators of a block. Out: a `NestPlan`, which fusion asks and
`convert-graph-to-loop` obeys.
"""
