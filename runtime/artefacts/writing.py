"""Writing an artefact: the machine code of a program, its weights, its IR and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ...backends.llvm import jit, thread_pool
from ...backends.llvm.boundary import code as boundary
from ...backends.llvm.boundary.code import ENTRY
from ...backends.llvm.elf import image_of
from ...backends.llvm.images import Image
from ...backends.llvm.thread_limit import MOST_THREADS, with_limit
from ...backends.ptx.kernels import DeviceCode
from ...backends.reference.samples import small_inputs
from ...core.boundary.functions import place_of
from ...core.boundary.labels import unlabelled
from ...core.errors import CompileError, InputError, StepwellError, TargetError, explain
from ...core.ir.weights import WeightStore
from ...core.pipelines.decisions import Decision
from ...core.pipelines.explanation import as_json
from ...core.processor import NEEDS
from ...core.target import Target, needs_of
from ...dialects.rt.abi import PARALLEL_TILES
from .. import objects
from ..loaded import Program
from ..lowered import Generated, Source, generated_of
from . import packed as packed_weights
from .container import ArtefactWriter
from .manifest import ABI, FORMAT

_DECLARED = re.compile(r'^declare [^@]*@"?([\w.$]+)"?\(', re.MULTILINE)
_LARGEST_EXAMPLES = 1 << 20
"""Examples of more bytes than this are left out, but for the first one."""
_CODE = "linux", "x86_64"
"""What the triple of code has that is laid out as an image."""


def write(
    writer: ArtefactWriter,
    programs: Sequence[Generated],
    source: Source,
    decisions: Sequence[Decision],
    run: Callable[..., Any],
) -> None:
    """Write an artefact.

    Args:
        writer: writes it.
        programs: the program for one or several targets.
        source: the IR that it can be compiled of.
        decisions: those of its passes.
        run: the program, which computes the results of the examples.

    Raises:
        StepwellError: if the program calls a function that no other process can find.
        TargetError: if it is not known what code for a target needs.
    """
    made = [_saved(writer, one, source.weights) for one in programs]
    packed = packed_weights.places(programs, source.weights)
    weights = {name: source.weights[name] for name in source.weights}
    pooled = any(PARALLEL_TILES in one.llvm_ir for one in programs)
    _close(
        writer,
        made,
        support=_support(writer, [one.target for one in programs], pooled),
        source={
            "text": writer.add("ir/program.mlir", source.text.encode()),
            "weights": [_stored(writer, *one, packed.get(one[0])) for one in weights.items()],
            "recipe": dict(source.recipe),
        },
        decisions=_decisions(writer, decisions),
        examples=_examples(writer, programs[0], run),
    )


def write_entry(
    writer: ArtefactWriter,
    program: Program,
    target: Target,
    decisions: Sequence[Decision],
    facts: Mapping[str, Any],
) -> None:
    """Write a program for the compile cache: an artefact without IR and examples.

    Args:
        writer: writes it.
        program: the program, which was compiled by this process.
        target: its target.
        decisions: those of its passes.
        facts: further entries of the manifest.
    """
    own = generated_of(program)
    if own is None:
        images = program.keep.images
        kernels = {
            name: _image(writer, f"code/{target.name}/{_plain(name)}", image)
            for name, image in images.kernels.items()
        }
        code = {**_image(writer, f"code/{target.name}/main", images.main), "kernels": kernels}
        pooled = PARALLEL_TILES in images.imports
    else:
        pooled = PARALLEL_TILES in own.llvm_ir
        code = _code(writer, own, program.keep.object_code, {})
    # Whoever compiles the same module has registered its functions, and the same processor.
    device = None if program.device is None else program.device.code
    made = _program(writer, program, target, code, [], {}) | _device(writer, target, device)
    support = _support(writer, [target], pooled)
    _close(writer, [made], support=support, decisions=_decisions(writer, decisions), **facts)


def _close(writer: ArtefactWriter, programs: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Write the manifest."""
    versions = {"format": FORMAT, "abi": ABI, "stepwell": _version()}
    writer.close({**versions, "programs": programs, **facts})


def _decisions(writer: ArtefactWriter, decisions: Sequence[Decision]) -> str:
    return writer.add("ir/decisions.json", as_json(decisions).encode())


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("stepwell")
    except metadata.PackageNotFoundError:
        return "unknown"


def _saved(writer: ArtefactWriter, program: Generated, weights: WeightStore) -> dict[str, Any]:
    """A program that any process on a machine with the right features can run."""
    target, needs = program.target, needs_of(program.target)
    if needs is None:
        fact, expected = "no program of this target can be saved", ", ".join(["host", *NEEDS])
        got, hint = f'"{target.name}"', "`stepwell export` makes a library for it"
        raise TargetError(explain("save", fact, expected=expected, got=got, hint=hint))
    functions = {callee.name: place_of(callee.name) for callee in program.interface.functions}
    pooled = PARALLEL_TILES in program.llvm_ir
    limit = {"threads": MOST_THREADS} if pooled else {}
    joined = with_limit if pooled else None
    code = jit.object_code(program.llvm_ir, target, program.effort, joined)
    made = _code(writer, program, code, limit)
    facts = _device(writer, target, program.device)
    facts["renewable"] = packed_weights.are_renewable(program, weights)
    return _program(writer, program, target, made, needs, functions) | facts


def _program(
    writer: ArtefactWriter,
    program: Generated | Program,
    target: Target,
    code: Mapping[str, Any],
    needs: Sequence[str],
    functions: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "target": {
            "name": target.name,
            "architecture": target.triple.partition("-")[0],
            "triple": target.triple,
            "needs": list(needs),
        },
        "interface": program.interface.to_dict(),
        "functions": dict(functions),
        "constants": [
            writer.add_array(f"constants/{_plain(name)}", array)
            for name, array in zip(program.interface.constants, program.constants, strict=True)
        ],
        "code": code,
    }


def _device(writer: ArtefactWriter, target: Target, code: DeviceCode | None) -> dict[str, Any]:
    """The kernels of a device, if a program has one."""
    if code is None:
        return {}
    ptx = writer.add(f"code/{_plain(target.name)}.ptx", code.text.encode())
    return {"device": {"ptx": ptx, **code.to_dict()}}


def _code(
    writer: ArtefactWriter, program: Generated, found: bytes, limit: dict[str, str]
) -> dict[str, Any]:
    """The machine code of a program: an image, or its object file where there can be none."""
    target = program.target
    name = f"code/{_plain(target.name)}"
    if all(part in target.triple for part in _CODE):
        try:
            return _image(writer, name, image_of(found)) | limit
        except CompileError:
            pass  # Code that needs a linker is linked when it is loaded.
    imports = [name for name in _DECLARED.findall(program.llvm_ir) if not name.startswith("llvm.")]
    names = {"imports": imports, "functions": [ENTRY, *limit.values()]}
    return {"object": writer.add(f"{name}.o", found)} | names | limit


def _image(writer: ArtefactWriter, name: str, image: Image) -> dict[str, Any]:
    return {"image": writer.add(name, image.data), "facts": image.to_dict()}


def _support(writer: ArtefactWriter, targets: Sequence[Target], pooled: bool) -> dict[str, Any]:
    """The thread pool, if it is used, and the call boundary, for code that is an image."""
    if not any(all(part in target.triple for part in _CODE) for target in targets):
        return {}
    found: dict[str, Any] = {}
    if pooled:
        found["pool"] = _image(writer, "code/thread-pool", thread_pool.image())
    if objects.are_known():
        layout = objects.layout()
        image = boundary.image(layout)
        found["boundary"] = {**_image(writer, "code/boundary", image), "layout": asdict(layout)}
    return found


def _stored(
    writer: ArtefactWriter, name: str, array: Any, packed: packed_weights.Place | None
) -> dict[str, Any]:
    """A weight of the IR: an array, a constant that it was packed to, or a CSR matrix as three."""
    if packed is not None:
        return {"name": name, "packed": list(packed), "shape": list(array.shape)}
    if isinstance(array, np.ndarray):
        return {"name": name, "array": writer.add_array(f"weights/{_plain(name)}", array)}
    stored = [writer.add_array(f"weights/{_plain(name)}", part) for part in _parts(array)]
    return {"name": name, "csr": stored, "shape": list(array.shape)}


def _examples(writer: ArtefactWriter, program: Generated, run: Callable[..., Any]) -> list[Any]:
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
        results = unlabelled(signature.outputs, results)
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
