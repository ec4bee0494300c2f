"""Passes within one level of the staircase, one in each file, a folder for each level.

`primitive.py` derives the passes that apply one schedule primitive.

It may import: `dialects` and `core`.
In: verified IR of one level; out: verified IR of the same level that computes the same.
"""
