"""Modules and what belongs to them: context, weights, text, provenance, walks.

It may import: the same as the rest of `core`.
In: IR of any dialect; out: the same, printed, parsed, verified or looked at.
"""
