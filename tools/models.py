"""Models and arrays as the command line names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.boundary.specs import ValueSpec
from ..core.errors import ImportModelError, InputError, StepwellError, explain

if TYPE_CHECKING:
    from ..core.ir.module import Module
    from ..runtime.executable import Executable

    Program = Callable[[], Module]

ARTEFACT = ".stepwell"
"""What the names of saved programs end with."""


def load_model(path: Path, shapes: Mapping[str, tuple[int, ...]], trusted: bool = False) -> Module:
    """Read a model of ONNX or torch, MLIR text or a saved program, by the suffix of the file.

    Of a saved program it is the stage `optimized`, the first that its file has.

    Args:
        path: a file that ends in `.onnx`, `.pt2`, `.mlir` or `.stepwell`.
        shapes: input name -> shape, for an ONNX model whose dimensions are symbolic.
        trusted: whether kernels in MLIR text are trusted; see `from_mlir`.

    Raises:
        ImportModelError: if the file is neither, or cannot be imported.
    """
    if not path.is_file():
        fact = f"{path} is a folder" if path.is_dir() else f"no such file: {path}"
        raise ImportModelError(explain("model", fact))
    if trusted and path.suffix != ".mlir":
        raise InputError(explain("--trusted", "applies to MLIR text only", got=path.name))
    if path.suffix == ".onnx":
        from .. import from_onnx

        return from_onnx(path, shapes=dict(shapes) or None)
    if path.suffix not in (".pt2", ".mlir", ARTEFACT):
        fact, expected = "unknown kind of file", f".onnx, .pt2, .mlir or {ARTEFACT}"
        raise ImportModelError(explain("model", fact, expected=expected, got=path.name))
    if shapes:
        raise InputError(explain("--shape", "applies to ONNX models only", got=path.name))
    if path.suffix == ".pt2":
        from .. import from_torch

        return from_torch(path)
    if path.suffix == ARTEFACT:
        from ..api.loading import load

        return stage_in(load(path), "optimized")
    from .. import from_mlir

    return from_mlir(path, trusted=trusted)


def stage_in(exe: Executable, stage: str) -> Module:
    """A stage of a program, as a module.

    Raises:
        CompileError: if it has no such stage.
    """
    from .. import from_mlir

    return from_mlir(exe.ir(stage), exe.weights(stage), trusted=True)


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`["x=64x784"]` as `{"x": (64, 784)}`; a comma separates as well."""
    result: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, dims = text.rpartition("=")
        try:
            result[name] = tuple(int(dim) for dim in dims.replace(",", "x").split("x"))
        except ValueError:
            result[name] = (-1,)
        if not name or min(result[name]) < 0:
            raise InputError(explain("--shape", "cannot read", expected="x=64x784", got=text))
    return result


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`["batch=64"]` as `{"batch": 64}`."""
    result: dict[str, int] = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise InputError(explain("--size", "cannot read", expected="batch=64", got=text))
        result[name] = int(size)
    return result


def read_or_make_inputs(
    texts: Sequence[str] | None,
    sizes: Sequence[str] | None,
    specs: Sequence[ValueSpec],
    program: Program,
) -> list[Any]:
    """The arrays of `--input`, as `read_inputs` returns them; without any, made-up ones.

    Args:
        texts: the values of `--input`.
        sizes: the symbolic sizes of made-up arrays, as in `["batch=64"]`.
        specs: the inputs of a program.
        program: returns the program.

    Raises:
        InputError: if an option is wrong.
    """
    from ..backends.reference.samples import random_inputs

    if texts:
        return read_inputs(texts, specs)
    return random_inputs(specs, parse_sizes(sizes or []), program())


def read_inputs(
    texts: Sequence[str], specs: Sequence[ValueSpec], option: str = "--input"
) -> list[Any]:
    """The arrays of `["x=x.npy"]` in the order of the inputs; `x.npy` alone for a single input.

    Args:
        texts: the values of the option.
        specs: the inputs, or the results, of a program.
        option: the option that takes them.

    Raises:
        InputError: if an input is missing, unknown or given twice, or a file cannot be read.
    """
    names = [spec.name for spec in specs]
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals and len(names) == 1:
            name, file = names[0], text
        if name not in names:
            fact = f"no such {option.strip('-')}"
            expected = " or ".join(f"{spec.name}=FILE.npy" for spec in specs) or "none"
            raise InputError(explain(option, fact, expected=expected, got=text))
        if name in given:
            raise InputError(explain(option, f'"{name}" is given twice'))
        given[name] = read_array(Path(file), option)
    missing = [str(spec) for spec in specs if spec.name not in given]
    if missing:
        raise InputError(
            explain(option, f"missing: {', '.join(missing)}", hint=f"use {option} NAME=FILE.npy")
        )
    return [given[name] for name in names]


def read_array(path: Path, option: str = "--input") -> Any:
    """The array of a `.npy` file, or the sparse matrix of a SciPy `.npz` file.

    Raises:
        InputError: if it is neither.
    """
    import numpy as np

    from ..core.files.reading import ReadingError, opened_npz, read_npy

    try:
        if path.suffix != ".npz":
            return read_npy(path)
        from scipy.sparse import csr_array, load_npz

        with opened_npz(path) as file:
            with np.load(file) as archive:
                names = archive.files
            if "format" not in names:
                fact = f"it has arrays ({', '.join(names)}), expected a sparse matrix of SciPy"
                raise ReadingError(f"{fact}; an array is read from a .npy file")
            file.seek(0)
            return csr_array(load_npz(file))
    except ReadingError as error:
        raise InputError(explain(option, f"cannot read {path}: {error}")) from error


def files_of_results(texts: Sequence[str], specs: Sequence[ValueSpec]) -> list[tuple[str, int]]:
    """The files that `["y=y.npy"]` names, each with the number of its result.

    `y.npy` alone is the file of a single result.

    Raises:
        InputError: if there is no such result, or no such file could be written.
    """
    names = [spec.name for spec in specs]
    found: list[tuple[str, int]] = []
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals and len(names) == 1:
            name, file = names[0], text
        if name not in names:
            expected = " or ".join(f"{name}=FILE.npy" for name in names)
            raise InputError(explain("--output", "no such output", expected=expected, got=text))
        if not file.endswith(".npy"):
            raise InputError(explain("--output", "the name of an array ends with .npy", got=text))
        if not Path(file).parent.is_dir():
            fact = f"cannot write {file}: the folder {Path(file).parent} does not exist"
            raise InputError(explain("--output", fact))
        found.append((file, names.index(name)))
    return found


def write_array(file: str, array: Any) -> None:
    """Write a result.

    Raises:
        StepwellError: if the file cannot be written.
    """
    import numpy as np

    try:
        np.save(file, array)
    except OSError as error:
        raise StepwellError(f"cannot write {file}: {error.strerror}") from error


def read_option(option: str, path: str | Path) -> str:
    """The text of the file that an option names.

    Raises:
        StepwellError: if it cannot be read.
    """
    from ..core.files.reading import LARGEST_LIST, ReadingError, read_text

    try:
        return read_text(path, LARGEST_LIST)
    except ReadingError as error:
        raise StepwellError(explain(option, f"cannot read {path}: {error}")) from error
