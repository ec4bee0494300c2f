"""The spellings of `mlir-opt`: what its users type, as arguments of `stepwell-opt`.

Passes are options of their own there (``--canonicalize --tile="size=4"``), run in their order, and
options that concern all dialects begin with ``--mlir-``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..core.errors import StepwellError, explain

_OTHERS = {
    "--mlir-pass-statistics": "--statistics",
    "--mlir-elide-elementsattrs-if-larger": "--elide-constants",
    "--show-dialects": "--list-dialects",
}
_ALWAYS = ("--mlir-disable-threading", "--mlir-print-ir-module-scope", "--verify-each")
"""What is so in any case."""
_TRUTHS = {"": True, "true": True, "1": True, "false": False, "0": False}
PASSES = "--passes-by-name"
"""The option for passes that were options of their own."""


def own_spelling(arguments: Sequence[str], passes: Collection[str]) -> list[str]:
    """The arguments of `stepwell-opt` that are meant.

    Args:
        arguments: those that were typed.
        passes: the names of all passes.

    Raises:
        StepwellError: if a switch is given something else than true or false.
    """
    found: list[str] = []
    named: list[str] = []
    for argument in arguments:
        option, _, value = argument.partition("=")
        name = option.lstrip("-")
        if option.startswith("-") and name in passes:
            named.append(f"{name}{{{value}}}" if value else name)
        elif option in _ALWAYS:
            if value not in _TRUTHS:
                raise StepwellError(
                    explain(option, "wrong value", expected="true or false", got=value)
                )
            if option == "--verify-each" and not _TRUTHS[value]:
                found.append("--disable-verify")
        elif option in _OTHERS:
            found.append(_OTHERS[option] + argument[len(option) :])
        elif option.startswith(("--mlir-print-", "--mlir-timing")):
            found.append("--" + argument.removeprefix("--mlir-"))
        else:
            found.append(argument)
    return [*found, f"{PASSES}={','.join(named)}"] if named else found
