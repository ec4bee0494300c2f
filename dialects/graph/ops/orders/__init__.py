"""Operators that compare elements with each other: sorts, searches, boxes, trees.

It may import: the same as the rest of `dialects/graph`.
In: tensors whose elements are ordered; out: elements in order, or their places.
"""
