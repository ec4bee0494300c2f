"""`from_onnx`; the modules of files that were imported before are made when somebody looks at them.

What a known file needs is imported at the top: neither ONNX nor xDSL. See `docs/cache.md`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import IMPORTED_NS
from ..caching.facts import OpaqueError, facts_of, is_known
from ..caching.folder import folder_of_user
from ..caching.keys import processor
from ..caching.memory import FolderMemory
from ..caching.sources import Stamp, sources_digest, stamp
from ..core.errors import ImportModelError, StepwellError
from ..core.files.digests import digests
from ..core.files.reading import ReadingError, check_size, memory
from ..core.ir.module import Module, Unread, made_when_read
from ..frontends.onnx.files import ExternalData, Piece, read_model
from ..frontends.onnx.registry import registering_modules
from ..runtime.interface import spec_from

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..frontends.onnx.signature import Shapes


def from_onnx(
    source: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Shapes | None = None,
) -> Module:
    """Read an ONNX model.

    Initialisers go to the weight store by name (as constants even if they are also listed as
    inputs), and the names of nodes become the locations of operators. Shapes are inferred from the
    inputs; sizes that the model declares for other values are used where a shape is an operand of
    the call, which they then have to fit. Dropout and batch normalisation have their inference
    semantics.

    Args:
        source: path of a model, a serialised model, or a `ModelProto`, which is not changed.
            External data is only read from the folder of the path.
        shapes: input name -> shape that fixes (int) or renames (str) symbolic dimensions; None
            keeps a dimension. A symbol that is fixed for one input is fixed for all. An input that
            is a sequence needs a list of shapes, one for each of its tensors, which are inputs of
            the program; an optional one the shape of its element, or None for no element.

    Raises:
        ImportModelError: if the model cannot be read or is not valid ONNX (with the first error),
            or if it has unsupported nodes (with all of them, each with the closest supported
            feature).
    """
    if not isinstance(source, str | os.PathLike):
        return _import(source, "bytes", ExternalData(None), shapes)
    path = Path(source)
    content, data = read_model(path), ExternalData(path.parent)
    place = _place_of(content, shapes)
    if place is not None and (known := place.known(content, path, shapes)) is not None:
        return known
    module = _import(content, str(path), data, shapes)
    if place is not None:
        place.keep(module, data.pieces)
    return module


def _import(source: object, name: str, data: ExternalData, shapes: Shapes | None) -> Module:
    """Import a model now."""
    from ..frontends.onnx.importer import import_model

    return import_model(source, name, data, shapes)


@dataclass(frozen=True)
class _Place:
    """Where the cache of the user says what became of the contents of a file."""

    memory: FolderMemory
    name: str
    sources: Stamp
    """The state of the compiler's files when the name was found."""

    def known(self, content: bytes, path: Path, shapes: Shapes | None) -> Module | None:
        """The module; None if the file was not imported before, or its external data differ."""
        text = self.memory.recall(self.name)
        if text is None:
            return None
        known = json.loads(text)
        pieces = _pieces(known["pieces"], path.parent)
        if pieces is None:
            return None
        data = ExternalData(None, pieces)
        make = partial(_import, content, str(path), data, deepcopy(shapes))
        inputs, outputs = (tuple(map(spec_from, known[key])) for key in ("inputs", "outputs"))
        return made_when_read(Unread(known["digest"], known["name"], inputs, outputs, make))

    def keep(self, module: Module, pieces: Mapping[Piece, bytes]) -> None:
        """Remember what the file became, unless something takes part that is not known."""
        from ..caching.structure import module_digest

        try:
            if not _is_plain() or stamp() != self.sources:
                return
            known = {
                "digest": module_digest(module),
                "name": module.name,
                "inputs": list(map(asdict, module.inputs)),
                "outputs": list(map(asdict, module.outputs)),
                "pieces": list(zip(pieces, digests([*pieces.values()]), strict=True)),
            }
        except (OSError, OpaqueError, StepwellError):
            return
        self.memory.remember(self.name, json.dumps(known))


def _place_of(content: bytes, shapes: Shapes | None) -> _Place | None:
    """Where a file is in the cache; None if there is no cache for it."""
    try:
        folder = folder_of_user()
        if folder is None or folder.trouble(make=True) is not None or not _is_plain():
            return None
        sources = sources_digest(FolderMemory(folder), IMPORTED_NS)
        if sources is None:
            return None
        digest, state = sources
        found = digest, processor(), facts_of(shapes), hashlib.sha256(content).hexdigest()
    except (OSError, OpaqueError, StepwellError):
        # `compile` refuses a wrong limit of the cache, the importer a wrong shape.
        return None
    name = hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()
    return _Place(FolderMemory(folder), f"onnx-{name}", state)


def _pieces(listed: Sequence[Any], folder: Path) -> Mapping[Piece, bytes] | None:
    """External data that was listed with its digests; None if it is not the same any more."""
    data = ExternalData(folder)
    try:
        check_size(sum(length for (_, _, length), _ in listed), memory())
        for piece, _ in listed:
            data.read(Piece(*piece), "onnx")
    except (ImportModelError, ReadingError):
        return None
    same = digests([*data.pieces.values()]) == [digest for _, digest in listed]
    return data.pieces if same else None


def _is_plain() -> bool:
    """Whether only this package and plug-ins have registered conversions and operators.

    Raises:
        OSError, StepwellError: if the modules of a plug-in are not known.
    """
    defs = sys.modules.get("onnx.defs")
    schemas = [] if defs is None else defs.get_all_schemas_with_history()
    # Those of ONNX name the file of C++ that declares them.
    return all(map(is_known, registering_modules())) and not any(
        schema.file == "unknown" for schema in schemas
    )
