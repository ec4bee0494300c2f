"""Hooks that report what passes do: the IR around them, their time, their counters.

It may import: what the rest of `core` may.
In: a context and a module around each pass; out: reports, as text and as JSON.
"""
