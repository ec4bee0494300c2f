"""`stepwell bisect` and `stepwell reduce`: the pass to blame, and a small program that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InputError, StepwellError, explain
from .command import CompileOptions, ModelPath, err
from .grouped import grouped
from .models import read_inputs
from .outputs import check_output
from .progress import passes_shown

if TYPE_CHECKING:
    from ..diagnosis.bisection import Bisection
    from ..diagnosis.reduction import Reduction
    from ..driver.request import Request

_MOST_LINES = 40
"""The number of lines of a diff that are shown; a reproducer has all of them."""

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i", help="An input, as in `x=x.npy` (sparse: SciPy's .npz); repeatable."
    ),
]
PassesText = Annotated[
    str | None,
    typer.Option(
        "--passes",
        "-p",
        help='Passes to run instead, such as "canonicalize,graph-fuse-ops", to any stage.',
    ),
]
MaxUlp = Annotated[
    float | None,
    typer.Option("--max-ulp", help="How far a pass may move a result, in units in the last place."),
]


@dataclass(frozen=True)
class _Case:
    """A program, and how it is compiled."""

    request: Request
    inputs: list[Any] | None
    max_ulp: float | None


@grouped
def bisect(
    model: ModelPath,
    inputs: Inputs = None,
    expected: Annotated[
        list[str] | None,
        typer.Option("--expected", help="A correct result, as in `y=y.npy`; repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the reproducer (.mlir).")
    ] = None,
    passes: PassesText = None,
    *,
    options: CompileOptions,
    max_ulp: MaxUlp = None,
) -> None:
    """Find the pass, and the single step of it, that breaks a model.

    `stepwell bisect model.onnx --level 3 -o found.mlir`

    The model is run after each pass, on made-up inputs or on those given. The first failure (a
    crash, an invalid module or a wrong result) is repeated with fewer and fewer steps of its pass.
    A reproducer has its own passes. Exits with 1 if nothing fails.
    """
    from ..diagnosis.bisection import bisected

    if output is not None:
        check_output("--output", output, "a reproducer", [".mlir"])
    case = _case(model, inputs, passes, max_ulp, options)
    wanted = None
    if expected:
        wanted = read_inputs(expected, case.request.module.outputs, "--expected")
    with passes_shown("running pass by pass"):
        found = bisected(case.request, case.inputs, case.max_ulp, wanted)
    if found is None:
        raise StepwellError("bisect: nothing fails")
    show(found)
    if output is not None:
        print(f"reproducer: {found.save(output)}")


@grouped
def reduce(
    model: ModelPath,
    inputs: Inputs = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            help="A command that exits with a status other than 0 for a module that fails; "
            "by default the same pass has to fail in the same way.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds after which the command is stopped.")
    ] = 60,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="A time limit; then the smallest so far is kept."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file for the small module (.mlir), else stdout."),
    ] = None,
    passes: PassesText = None,
    *,
    options: CompileOptions,
    max_ulp: MaxUlp = None,
) -> None:
    """Shrink a model that fails to a small one that still does.

    `stepwell reduce model.onnx --level 3 -o small.mlir`

    Removes operations, results, inputs and sizes as long as the same pass fails in the same way,
    or, as with `mlir-reduce`, as long as the command of `--test` fails.
    """
    from ..diagnosis.reduction import Command, reduced

    if output is not None:
        check_output("--output", output, "a module", [".mlir"])
    case = _case(model, inputs, passes, max_ulp, options)
    with passes_shown("reducing"):
        chosen = None if test is None else Command(test, timeout)
        small = reduced(case.request, case.inputs, chosen, case.max_ulp, seconds)
    _write(small, output)


def _write(small: Reduction, output: Path | None) -> None:
    """Write the small module to a file, or print it, and report the pass to blame."""
    if output is not None:
        small.save(output)
    else:
        print(small.module.text(), end="")
    err.print(str(small), markup=False, highlight=False, soft_wrap=True)


def show(found: Bisection) -> None:
    """Print the pass to blame, and the beginning of its diff."""
    print(found)
    lines = found.diff().splitlines()
    for line in lines[:_MOST_LINES]:
        print(line)
    if len(lines) > _MOST_LINES:
        print(f"... {len(lines) - _MOST_LINES} more lines")


def _case(
    model: Path,
    inputs: list[str] | None,
    passes: str | None,
    max_ulp: float | None,
    options: CompileOptions,
) -> _Case:
    """The case of the arguments, or of a reproducer."""
    from ..diagnosis.reproducer import load as load_reproducer

    for other, given in (("--pipeline", options.pipeline), ("--schedule", options.schedule)):
        if passes is not None and given is not None:
            fact = f"is given together with {other}"
            raise InputError(explain("--passes", fact, expected="one of them"))
    # Passes are found by running them; schedules of records are no part of a reproducer.
    request = replace(options.request(options.load(model)), records=False)
    if passes is not None:
        request = replace(request, pipeline=passes)
    arrays = read_inputs(inputs, request.module.inputs) if inputs else None
    usual = request.pipeline is None and request.schedule is None
    kept = load_reproducer(model) if usual and model.suffix == ".mlir" else None
    if kept is None:
        return _Case(request, arrays, max_ulp)
    own = list(kept.inputs) if kept.inputs is not None else None
    limit = kept.max_ulp if max_ulp is None else max_ulp
    return _Case(replace(kept.request, threads=options.threads), arrays or own, limit)
