"""Passes: pipelines and their text, stages, running them, and what they decided.

It may import: the same as the rest of `core`.
In: a module and the names of passes; out: the module of a later stage.
"""
