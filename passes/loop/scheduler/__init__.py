"""How each kind of nest is scheduled by default, one file for a kind.

A rule is given a schedule and a nest, and takes steps. It imports those of `steps`, the dialect and
the target; it is used by `loop-schedule` only.
"""
