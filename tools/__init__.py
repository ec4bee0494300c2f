"""The commands `stepwell` and `stepwell-opt`, the demo, the universe for plain `xdsl-opt`.

It may import: every other folder; none imports it.
In: command lines and files; out: files, IR text and tables on the terminal.
"""
