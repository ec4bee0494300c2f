"""How each kind of nest is scheduled by default, one file for a kind.

A rule is given a schedule and a nest, and takes steps through the primitives beside this
folder. It imports those, the dialect and the target; it is used by `loop-schedule` only.
"""
