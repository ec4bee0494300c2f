"""The boundary of a call: arguments, results and their specifications.

It may import: the same as the rest of `core`.
In: what callers pass; out: arrays of the types and sizes that a program takes.
"""
