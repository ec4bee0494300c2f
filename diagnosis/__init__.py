"""What a program does wrong, what takes its time, and what became of its nodes.

Checked compilation, bisection, reduction and reproducers; profiles; the fate of a node.
"""
