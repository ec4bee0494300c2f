"""The options of `stepwell-opt` beyond those of xDSL's driver, in groups."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.errors import StepwellError, explain
from ..core.registry import dialects, own_dialects, passes
from .instruments import InstrumentOptions
from .models import read_option
from .spellings import PASSES


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
    """Add the options, and reword those of xDSL that do more here."""
    parser.usage = "stepwell-opt [options] [input_file]"
    parser.error = functools.partial(_fail, parser)  # type: ignore[method-assign]
    for action in parser._actions:
        if action.dest == "passes":
            action.help = (
                'passes to run in order, such as "canonicalize,graph-fuse-ops", or @FILE; those in '
                "func.func(...) run on each function alone"
            )
        elif action.dest == "frontend":
            action.choices, action.help = ["mlir"], "what the input is, whatever its file is called"
        elif action.dest == "print_between_passes":
            action.help = "the same as --print-ir-after-all"
        elif action.dest == "disable_verify":
            action.help = "do not verify the input and the result of each pass"
        elif action.dest == "version":
            action.help = "print the versions of this command and of xdsl, and exit"
        elif action.dest == "time_passes":
            action.help = "the same as --timing"
        elif action.dest == "verify_diagnostics":
            action.help = (
                "check errors, and remarks with --remarks, against comments such as "
                '"// expected-error @+1 {{text}}"; fail if one is missing or unexpected'
            )
    _add_passes(parser.add_argument_group("passes"))
    _add_instruments(parser.add_argument_group("what passes do (to the standard error)"))
    _add_checks(parser.add_argument_group("finding the wrong step"))
    parser.add_argument(
        "--show-completion",
        choices=("bash", "zsh"),
        action=_Print,
        text=functools.partial(_completion, parser),
        help="print a script that completes this command in a shell, and exit",
    )


def _fail(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Print the error of the command line in one line, and exit with 2."""
    unknown = message.removeprefix("unrecognized arguments: ")
    if unknown != message:
        name = unknown.partition(" ")[0].partition("=")[0]
        import difflib

        known = [*parser._option_string_actions, *(f"--{name}" for name in passes())]
        near = difflib.get_close_matches(name, known, 3)
        message += f"; nearest names: {', '.join(near)}" if near else ""
    parser.exit(2, f"stepwell-opt: error: {message}\n")


def _completion(parser: argparse.ArgumentParser, shell: str) -> str:
    from .completion import completion_script

    return completion_script(parser, passes(), shell, "stepwell-opt")


def _list_of_passes() -> str:
    from .pass_help import list_of_passes

    return list_of_passes()


def _list_of_dialects() -> str:
    own, available = own_dialects(), dialects()
    lines = ["dialects of stepwell:", *own, "dialects of xDSL and of installed plug-ins:"]
    lines += sorted(available.keys() - own.keys())
    return "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)


def _list_of_rules() -> str:
    from .rule_list import list_of_rules

    return list_of_rules()


def _help_of_pass(name: str) -> str:
    from .pass_help import help_of_pass

    return help_of_pass(name)


def _add_passes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pass-pipeline", metavar="PASSES", help="the same as -p, as in mlir-opt")
    group.add_argument(PASSES, help=argparse.SUPPRESS)
    group.add_argument(
        "--pass-pipeline-file", metavar="FILE", help="a file with the passes to run, as for -p"
    )
    group.add_argument(
        "--dump-pass-pipeline",
        action="store_true",
        help="print the passes in canonical form, with options that are not defaults (stderr)",
    )
    group.add_argument(
        "--list-passes",
        nargs=0,
        action=_Print,
        text=_list_of_passes,
        help="list every pass with its summary and options, and exit",
    )
    group.add_argument(
        "--list-dialects",
        nargs=0,
        action=_Print,
        text=_list_of_dialects,
        help="list every dialect, and exit",
    )
    group.add_argument(
        "--list-rules",
        nargs=0,
        action=_Print,
        text=_list_of_rules,
        help="list every rewrite rule with its identity, how exact it is and its passes, and exit",
    )
    group.add_argument(
        "--help-pass",
        metavar="NAME",
        action=_Print,
        text=_help_of_pass,
        help="print the whole documentation of a pass, and exit",
    )


def _add_instruments(group: argparse._ArgumentGroup) -> None:
    for option in dataclasses.fields(InstrumentOptions):
        name, metavar = f"--{option.name.replace('_', '-')}", option.metadata["metavar"]
        text: str = option.metadata["help"]
        if metavar is None:
            group.add_argument(name, action="store_true", help=text)
        elif option.name == "remarks":
            group.add_argument(name, nargs="?", const="all", metavar=metavar, help=text)
        else:
            group.add_argument(name, metavar=metavar, help=text)


def _add_checks(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="INPUTS.npz",
        help="run the module after each pass, on these inputs or on made-up ones; end at the "
        "first pass that changes a result, else report each change of last bits (stderr)",
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
    """The options for reports about passes."""
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
    values = args.passes, args.pass_pipeline, args.pass_pipeline_file, args.passes_by_name
    options = "-p", "--pass-pipeline", "--pass-pipeline-file", "--PASS"
    given = [pair for pair in zip(options, values, strict=True) if pair[1]]
    if len(given) > 1:
        fact, expected = "the passes are given twice", f"no {given[0][0]}"
        raise StepwellError(explain(given[1][0], fact, expected=expected))
    for option, text in given:
        if option == "--pass-pipeline-file":
            return read_option(option, text)
        return read_option(option, text[1:]) if text.startswith("@") else text
    return ""
