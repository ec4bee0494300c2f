"""Operators that combine elements along axes: sums, extrema, norms, softmax, histograms.

It may import: the same as the rest of `dialects/graph`.
In: a tensor and its axes; out: fewer elements, or all of them relative to what was combined.
"""
