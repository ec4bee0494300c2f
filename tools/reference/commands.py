"""The page of the commands, from the help that they print."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from .. import main as command
from ..driver_arguments import DriverArguments
from .markdown import page, table


def commands_page() -> str:
    """All commands of `stepwell` with their arguments and options, and `stepwell-opt`."""
    group: Any = typer.main.get_command(command.app)
    named = sorted(group.commands.items())
    listed = [
        (f"[`stepwell {name}`](#stepwell-{name})", _help(inner).partition("\n\n")[0])
        for name, inner in named
    ]
    listed.append(("[`stepwell-opt`](#stepwell-opt)", "Run passes on MLIR text."))
    return page(
        "# Commands",
        "`stepwell --help`, `stepwell COMMAND --help` and `stepwell-opt --help` print this page.",
        table(("command", "what it does"), listed),
        *_command("stepwell", group),
        *(part for name, inner in named for part in _command(f"stepwell {name}", inner)),
        *_driver(),
    )


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## `{name}` {{ #{name.replace(' ', '-')} }}"
    yield _help(command)
    shown = [one for one in command.params if not one.hidden and "-completion" not in one.opts[0]]
    rows = [_parameter(parameter) for parameter in shown]
    yield table(("", "default", "what it is"), rows)


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _parameter(parameter: Any) -> tuple[str, str, str]:
    """An argument or an option: how it is written, its default, its help."""
    options = [*parameter.opts, *parameter.secondary_opts]
    is_option = options[0].startswith("-")
    written = (
        ", ".join(f"`{one}`" for one in options) if is_option else f"`{parameter.name.upper()}`"
    )
    default = parameter.default
    if parameter.required:
        shown = "required"
    elif default in (None, False, (), []) or callable(default):
        shown = ""
    else:
        shown = f"`{default}`"
    return written, shown, parameter.help or ""


def _driver() -> Iterator[str]:
    yield "## `stepwell-opt` { #stepwell-opt }"
    yield "Runs passes on MLIR text: see [the driver](../driver.md)."
    parser = argparse.ArgumentParser(prog="stepwell-opt")
    DriverArguments([]).register_all_arguments(parser)
    for group in parser._action_groups:
        shown = (one for one in group._group_actions if one.help != argparse.SUPPRESS)
        rows = [_action(action) for action in shown]
        if rows:
            yield f"### {(group.title or '').capitalize()}"
            yield table(("", "default", "what it is"), rows)


def _action(action: argparse.Action) -> tuple[str, str, str]:
    written = ", ".join(f"`{one}`" for one in action.option_strings) or f"`{action.dest.upper()}`"
    default = action.default
    plain = isinstance(default, (str, int, float)) and not isinstance(default, bool)
    shown = f"`{default}`" if plain and default not in ("", argparse.SUPPRESS) else ""
    return written, shown, re.sub(r"%\((\w+)\)s", "", action.help or "").replace("%%", "%")
