"""Commands of `stepwell` that report what passes do, with the options of `stepwell-opt`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from .grouped import with_parameters
from .instruments import InstrumentOptions, Instruments


def instrumented(command: Callable[..., None]) -> Callable[..., None]:
    """Add these options to a command, which receives `Instruments` for them as `instruments`."""
    own = inspect.signature(command, eval_str=True)
    parameters = [p for p in own.parameters.values() if p.name != "instruments"]
    added = dataclasses.fields(InstrumentOptions)
    parameters += [_parameter(option) for option in added]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = InstrumentOptions(**{option.name: given.pop(option.name) for option in added})
        instruments = Instruments(options, _passes)
        try:
            command(**given, instruments=instruments)
        finally:
            instruments.finish()

    return with_parameters(run, parameters)


def _passes() -> Iterable[str]:
    """The names of all passes."""
    from ..core.registry import passes

    return passes()


def _pass_after_comma(incomplete: str) -> list[str]:
    """The completions of a list that ends in an unfinished name."""
    done, comma, _ = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in sorted(_passes())]


def _parameter(option: dataclasses.Field[Any]) -> inspect.Parameter:
    text, metavar = option.metadata["help"], option.metadata["metavar"]
    described = typer.Option(
        f"--{option.name.replace('_', '-')}",
        metavar=metavar,
        autocompletion=_pass_after_comma if metavar == "PASSES" else None,
        help=f"{text[0].upper()}{text[1:]}.",
        show_default=False,
        rich_help_panel="What passes do (to the standard error)",
    )
    kind = bool if metavar is None else str | None
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind, described],
    )
