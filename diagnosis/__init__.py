"""Diagnosis of a program: its defects, its run time, and the fate of its nodes.

Checked compilation, bisection, reduction and reproducers; profiles; the fate of a node.
"""
