"""Writing an artefact: the machine code of a program, its weights, its IR and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...backends.llvm import jit, thread_pool
from ...backends.llvm.boundary import code as boundary
from ...backends.llvm.boundary.code import ENTRY
from ...backends.llvm.boundary.layout import Layout
from ...backends.llvm.elf import image_of
from ...backends.llvm.images import Image
from ...backends.llvm.processor import FAMILIES, needs_of
from ...backends.reference.samples import small_inputs
from ...core.decisions import Decision
from ...core.errors import CompileError, InputError, StepwellError, TargetError, explain
from ...core.explanation import as_json
from ...core.functions import place_of
from ...dialects.rt.abi import PARALLEL_TILES
from ..machine_code import Generated, Source
from .container import Writer
from .manifest import ABI, FORMAT

_DECLARED = re.compile(r'^declare [^@]*@"?([\w.$]+)"?\(', re.MULTILINE)
_LARGEST_EXAMPLES = 1 << 20
"""Examples of more bytes than this are left out, but for the first one."""
_CODE = "linux", "x86_64"
"""What the triple of code has that is laid out as an image."""


@dataclass(frozen=True)
class Content:
    """What is written: programs for one or several targets, and facts about them.

    `layout` is that of the objects that the call boundary reads; None without a boundary.
    """

    programs: Sequence[Generated]
    source: Source
    decisions: Sequence[Decision]
    layout: Layout | None


def write(writer: Writer, content: Content, run: Callable[..., Any]) -> None:
    """Write an artefact.

    Args:
        writer: writes it.
        content: what it consists of.
        run: the program, which computes the results of the examples.

    Raises:
        StepwellError: if the program calls a function that no other process can find.
        TargetError: if it is not known what code for a target needs.
    """
    programs = [_program(writer, one) for one in content.programs]
    source = content.source
    first = content.programs[0]
    writer.close(
        {
            "format": FORMAT,
            "abi": ABI,
            "stepwell": _version(),
            "programs": programs,
            "support": _support(writer, content),
            "source": {
                "text": writer.add("ir/program.mlir", source.text.encode()),
                "weights": [_stored(writer, n, source.weights[n]) for n in source.weights],
                "recipe": dict(source.recipe),
            },
            "decisions": writer.add("ir/decisions.json", as_json(content.decisions).encode()),
            "examples": _examples(writer, first, run),
        }
    )


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("stepwell")
    except metadata.PackageNotFoundError:
        return "unknown"


def _program(writer: Writer, program: Generated) -> dict[str, Any]:
    target, needs = program.target, needs_of(program.target)
    if needs is None:
        fact, expected = "it is not known what its code needs", ", ".join(["host", *FAMILIES])
        raise TargetError(explain("save", fact, expected=expected, got=f'"{target.name}"'))
    for callee in program.interface.functions:
        place_of(callee.name)
    return {
        "target": {
            "name": target.name,
            "architecture": target.triple.partition("-")[0],
            "triple": target.triple,
            "needs": needs,
        },
        "interface": program.interface.to_dict(),
        "functions": {c.name: place_of(c.name) for c in program.interface.functions},
        "constants": [
            writer.add_array(f"constants/{_plain(name)}", array)
            for name, array in zip(program.interface.constants, program.constants, strict=True)
        ],
        "code": _code(writer, program),
    }


def _code(writer: Writer, program: Generated) -> dict[str, Any]:
    """The machine code of a program: an image, or an object file where there can be none."""
    target = program.target
    found = jit.object_code(program.llvm_ir, target, program.effort)
    name = f"code/{target.name}"
    if all(part in target.triple for part in _CODE):
        try:
            return _image(writer, name, image_of(found))
        except CompileError:
            pass  # Code that needs a linker is linked when it is loaded.
    imports = [name for name in _DECLARED.findall(program.llvm_ir) if not name.startswith("llvm.")]
    return {"object": writer.add(f"{name}.o", found), "imports": imports, "functions": [ENTRY]}


def _image(writer: Writer, name: str, image: Image) -> dict[str, Any]:
    return {"image": writer.add(name, image.data), "facts": image.to_dict()}


def _support(writer: Writer, content: Content) -> dict[str, Any]:
    """The thread pool and the call boundary, for code that is an image."""
    if not any(all(part in one.target.triple for part in _CODE) for one in content.programs):
        return {}
    found: dict[str, Any] = {}
    if any(PARALLEL_TILES in one.llvm_ir for one in content.programs):
        found["pool"] = _image(writer, "code/thread-pool", thread_pool.image())
    if content.layout is not None:
        image = boundary.image(content.layout)
        found["boundary"] = {
            **_image(writer, "code/boundary", image),
            "layout": asdict(content.layout),
        }
    return found


def _stored(writer: Writer, name: str, array: Any) -> dict[str, Any]:
    """A weight of the IR: an array, or a CSR matrix as three."""
    if isinstance(array, np.ndarray):
        return {"name": name, "array": writer.add_array(f"weights/{_plain(name)}", array)}
    stored = [writer.add_array(f"weights/{_plain(name)}", part) for part in _parts(array)]
    return {"name": name, "csr": stored, "shape": list(array.shape)}


def _examples(writer: Writer, program: Generated, run: Callable[..., Any]) -> list[Any]:
    """Generated inputs with the results of the program; none if it takes none of them."""
    signature = program.interface.signature

    def takes(inputs: Sequence[Any]) -> bool:
        try:
            run(*inputs)
        except (InputError, StepwellError):
            return False
        return True

    found: list[Any] = []
    size = 0
    for inputs in small_inputs(signature.inputs, takes)[:2]:
        arrays = [_parts(array) for array in inputs]
        size += sum(part.nbytes for parts in arrays for part in parts)
        if (found and size > _LARGEST_EXAMPLES) or not takes(inputs):
            continue
        results = run(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        found.append(
            {
                "inputs": [[writer.add_array("examples/input", p) for p in a] for a in arrays],
                "results": [writer.add_array("examples/result", array) for array in results],
            }
        )
    return found


def _parts(array: Any) -> list[np.ndarray]:
    """A dense array, or the three arrays of a CSR matrix."""
    return [array] if isinstance(array, np.ndarray) else [array.indptr, array.indices, array.data]


def _plain(name: str) -> str:
    """A name for a member."""
    return re.sub(r"[^\w.-]", "_", name)[:80] or "array"
