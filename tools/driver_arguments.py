"""The arguments of `stepwell-opt`: those of xDSL's driver, and those in `driver_options.py`.

They name passes and targets and import none: `--help` and wrong options have their answers before
anything that compiles is imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import ClassVar

from xdsl.xdsl_opt_main import xDSLOptMain

from ..core.registry import dialects, passes
from .driver_options import add_options
from .spellings import own_spelling

_DESCRIPTION = """\
Reads MLIR text, runs passes on it, and prints the result.

  stepwell-opt m.mlir -p "graph-fold-constant,graph-fuse-ops,convert-graph-to-loop"

`stepwell pipeline` prints the passes of `stepwell.compile` as text to edit and to pass to `-p`.
Weights beside the input (m.safetensors beside m.mlir) are loaded with it; `-o out.mlir`
writes them beside the output. `--list-passes` names the passes, `--check` finds the one that
changes what a program computes. Options of `mlir-opt` have its spellings too: passes by name
(`--canonicalize --cse`), `--mlir-print-ir-after-all`, `--verify-each=false`."""


class DriverArguments(xDSLOptMain):
    """The parsed arguments; ends the process for `--help` and the like, and for wrong ones."""

    version_format: ClassVar[str] = (
        f"stepwell-opt {metadata.version('stepwell')}, on xdsl {{xdsl_version}}"
    )

    def __init__(self, args: Sequence[str] | None = None) -> None:
        given = own_spelling(sys.argv[1:] if args is None else args, passes())
        super().__init__(description=_DESCRIPTION, args=given)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """The arguments of `xdsl-opt`, and those of this driver."""
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        super().register_all_arguments(arg_parser)
        add_options(arg_parser)

    def register_all_dialects(self) -> None:
        """The dialects of xDSL, of plug-ins and of this project, by name."""
        for name, load in dialects().items():
            self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        """The passes of xDSL, of plug-ins and of this project."""
        for name, load in passes().items():
            self.register_pass(name, load)

    def setup_pipeline(self) -> None:
        """Nothing: passes are imported to run."""
