"""Completion of `stepwell-opt` in a shell: options, files, and the names of passes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

_FUNCTION = "_stepwell_opt_passes"

_BASH = """\
{function}() {{
  local done="" word="$1"
  case "$word" in *[,\\(]*) done="${{word%"${{word##*[,\\(]}}"}}"; word="${{word##*[,\\(]}}";; esac
  compgen -P "$done" -W "{names}" -- "$word"
}}
"""

_ZSH = """\
{function}() {{
  compset -P '*[,(]'
  compadd -S '' -- {names}
}}
"""

_LISTS_OF_PASSES = ("passes", "print_ir_before", "print_ir_after", "help_pass")
_FILES = ("input_file", "output_file", "pass_pipeline_file", "check")


def completion_script(
    parser: argparse.ArgumentParser, passes: Iterable[str], shell: str, command: str
) -> str:
    """A script for a shell that completes a command without starting Python.

    Args:
        parser: the options of the command.
        passes: the names of passes; in a list one is completed after each comma.
        shell: "bash" or "zsh".
        command: the name of the command.
    """
    import shtab

    names, functions = " ".join(sorted(passes)), {"bash": _BASH, "zsh": _ZSH}
    for action in parser._actions:
        if action.dest in _LISTS_OF_PASSES:
            action.complete = dict.fromkeys(functions, _FUNCTION)  # type: ignore[attr-defined]
        elif action.dest in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest == "print_ir_tree_dir":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        action.help = (action.help or "").replace("\n", " ")
    parser.prog = command
    function = functions[shell].format(function=_FUNCTION, names=names)
    return shtab.complete(parser, shell, preamble=function)
