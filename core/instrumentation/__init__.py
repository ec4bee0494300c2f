"""Hooks that report on passes: the IR before and after, times, counters.

It may import: the same as the rest of `core`.
In: a context and a module around each pass; out: reports, as text and as JSON.
"""
