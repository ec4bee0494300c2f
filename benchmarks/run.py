"""Print the tables of a module beside this one; their results are in RESULTS.md.

    python benchmarks/run.py                          # the names of all modules with tables
    python benchmarks/run.py cases                    # one
    python benchmarks/run.py cases --only MLP -t 1    # some of its cases, on one thread
    python benchmarks/run.py cases --help             # its other options

Weights and data are read from the folder `STEPWELL_DATA`, by default `shared/data` beside the
repository. Peers that are not installed, and cases without data or without any peer, are reported
and skipped; `pip install '.[bench]'` installs all peers.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import warnings
from pathlib import Path

from harness import command
from turns import answer

# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"


def modules() -> dict[str, str]:
    """The first lines of the modules with tables, by name."""
    texts = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))}
    return {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in texts.items()
        if "\nTABLES = " in text
    }


def main() -> None:
    known, (name, *arguments) = modules(), sys.argv[1:] or [""]
    if name not in known:
        print(__doc__, *(f"{name:16} {line}" for name, line in known.items()), sep="\n")
        raise SystemExit(f"there are no tables of {name}" if name else 0)
    warnings.simplefilter("ignore")
    module = importlib.import_module(name)
    if arguments == ["--work"]:
        answer(module.seconds)
    else:
        command(module.TABLES, name, module.__doc__ or "", arguments)


if __name__ == "__main__":
    main()
