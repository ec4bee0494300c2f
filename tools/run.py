"""`stepwell run` and `stepwell verify`: models and saved programs on arrays from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.pipelines.stages import IR_STAGES, check_stage
from .command import CompileOptions, ModelPath, out
from .grouped import grouped
from .models import files_of_results, read_inputs, write_array


@grouped
def run(
    model: ModelPath,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", help="An input, as in `x=x.npy` (sparse: SciPy's .npz); repeatable."
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="A file for a result, as in `y=y.npy`; repeatable."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            autocompletion=lambda: list(IR_STAGES),
            help="Interpret this stage, every access checked, instead of running machine code.",
        ),
    ] = None,
    *,
    options: CompileOptions,
) -> None:
    """Compile a model and run it on arrays from files.

    `stepwell run model.onnx --input x=x.npy --output y=y.npy`

    A program that `stepwell compile` wrote, `model.stepwell`, is run as it is.
    """
    import numpy as np

    if at is not None:
        check_stage(at)
    exe, arrays = options.called(model, lambda specs, _: read_inputs(inputs or [], specs))
    files = files_of_results(outputs or [], exe.outputs)
    results = exe(*arrays) if at is None else exe.run_at(at, *arrays)
    results = results if isinstance(results, tuple) else (results,)
    for file, number in files:
        write_array(file, results[number])
    for spec, result in zip(exe.outputs, results, strict=True):
        out.print(f"[bold]{spec.name}[/] {'x'.join(map(str, result.shape))} {result.dtype}")
        if not outputs:
            with np.printoptions(threshold=60, precision=6):
                out.print(str(result), markup=False, highlight=False)


def verify(
    program: Annotated[
        Path, typer.Argument(help="A program of `stepwell compile`.", show_default=False)
    ],
    emulated: Annotated[
        bool, typer.Option("--emulated", help="Run kernels for a GPU on the emulator.")
    ] = False,
) -> None:
    """Check the file of a program, and run the examples in it.

    `stepwell verify model.stepwell`
    """
    from ..api.loading import load

    out.print(str(load(program, emulated=emulated).verify()), highlight=False)
