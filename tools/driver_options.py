"""The options of `stepwell-opt` beyond those of xDSL's driver, in groups."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..core.errors import StepwellError, explain
from .instruments import InstrumentOptions
from .pass_help import help_of_pass, list_of_passes


class _Print(argparse.Action):
    """Prints a text and exits."""

    def __init__(self, *, text: Callable[..., str], **options: Any) -> None:
        super().__init__(**options)
        self._text = text

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, values: Any, __: object = None
    ) -> NoReturn:
        print(self._text(*([values] if self.nargs is None else values)))
        parser.exit()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, and word anew those of xDSL that mean more here."""
    for action in parser._actions:
        if action.dest == "passes":
            action.help = (
                'passes to run in order, such as "canonicalize,graph-fuse-ops", or @FILE; those in '
                "func.func(...) run on each function alone"
            )
        elif action.dest == "print_between_passes":
            action.help = "the same as --print-ir-after-all"
        elif action.dest == "time_passes":
            action.help = "the same as --timing"
        elif action.dest == "verify_diagnostics":
            action.help = (
                "hold errors, and remarks with --remarks, against comments such as "
                '"// expected-error @+1 {{text}}"; fail where one is missing or too many'
            )
    _add_passes(parser.add_argument_group("passes"))
    _add_instruments(parser.add_argument_group("what passes do (to the standard error)"))
    _add_checks(parser.add_argument_group("finding the wrong step"))


def _add_passes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--pass-pipeline-file", metavar="FILE", help="a file with the passes to run, as for -p"
    )
    group.add_argument(
        "--dump-pass-pipeline",
        action="store_true",
        help="print the passes in one form, with the options that are no defaults (stderr)",
    )
    group.add_argument(
        "--list-passes",
        nargs=0,
        action=_Print,
        text=list_of_passes,
        help="name every pass, what it does and its options, and exit",
    )
    group.add_argument(
        "--help-pass",
        metavar="NAME",
        action=_Print,
        text=help_of_pass,
        help="print the whole documentation of a pass, and exit",
    )


def _add_instruments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--print-ir-before", metavar="PASSES", help="print the IR before these")
    group.add_argument("--print-ir-after", metavar="PASSES", help="print the IR after these")
    for name, text in (
        ("before-all", "print the IR before each pass"),
        ("after-all", "print the IR after each pass"),
        ("after-change", "print the IR after a pass only if that changed it"),
        ("after-failure", "print what is left when a pass fails"),
        ("diff", "print how the functions that a pass changed differ instead"),
    ):
        group.add_argument(f"--print-ir-{name}", action="store_true", help=text)
    group.add_argument(
        "--elide-constants",
        metavar="N",
        help="leave out constants of more elements where IR is printed (else 16; none: print all)",
    )
    group.add_argument(
        "--print-ir-tree-dir", metavar="DIR", help="write the IR after each pass into this folder"
    )
    group.add_argument("--timing", action="store_true", help="tell where the time went")
    group.add_argument(
        "--statistics", action="store_true", help="tell what each pass counted: patterns, ..."
    )
    group.add_argument(
        "--remarks",
        nargs="?",
        const="",
        metavar="KINDS",
        help="tell what passes decided, by node: passed, missed, analysis (else all)",
    )
    group.add_argument(
        "--remarks-filter",
        metavar="REGEX",
        help="only of passes, subjects or nodes in which this is found",
    )
    group.add_argument(
        "--json", action="store_true", help="print all of this as JSON, one object a line"
    )


def _add_checks(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="INPUTS.npz",
        help="run the module after each pass, on these inputs or on made-up ones; end at the "
        "first pass that changes a result, else tell what each did to the last bits (stderr)",
    )
    group.add_argument(
        "--run-reproducer",
        action="store_true",
        help="run the passes that the input names in its metadata, on the target it names: "
        "a file that was written when a pass failed",
    )
    group.add_argument(
        "--traceback", action="store_true", help="show where in the compiler an error arose"
    )


def instrument_options(args: argparse.Namespace) -> InstrumentOptions:
    """What is told of passes."""
    names = [field.name for field in dataclasses.fields(InstrumentOptions)]
    options = InstrumentOptions(**{name: getattr(args, name) for name in names})
    return dataclasses.replace(
        options,
        timing=options.timing or args.time_passes,
        print_ir_after_all=options.print_ir_after_all or args.print_between_passes,
    )


def pipeline_text(args: argparse.Namespace) -> str:
    """The passes to run, as text.

    Raises:
        StepwellError: if they are given twice, or the file cannot be read.
    """
    if args.pass_pipeline_file is None:
        text: str = args.passes
        return _read("-p", text[1:]) if text.startswith("@") else text
    if args.passes:
        fact, expected = "the passes are given twice", "no -p beside it"
        raise StepwellError(explain("--pass-pipeline-file", fact, expected=expected))
    return _read("--pass-pipeline-file", args.pass_pipeline_file)


def _read(option: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        fact = f"cannot read {path}: {getattr(error, 'strerror', None) or 'not a text'}"
        raise StepwellError(explain(option, fact)) from error
