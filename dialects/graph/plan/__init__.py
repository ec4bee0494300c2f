"""What a group of operators needs to become one kernel, found out before a nest is built.

`recording.py` derives from `value_at` what one element of an operator reads and costs; `walk.py`
puts these together for a nest, `planner.py` for a group. Imports dialects and `core`. In: operators
of a block. Out: a `NestPlan`, which fusion asks and `convert-graph-to-loop` obeys.
"""
