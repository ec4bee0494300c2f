"""The commands `stepwell` and `stepwell-opt`, the demo, and the universe that plain `xdsl-opt` discovers.

It may import: every other room; none imports it.
In: command lines and files; out: files, IR text and tables on the terminal.
"""
