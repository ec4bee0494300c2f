"""The key of a compilation: a digest of everything that decides what it results in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from ..core.digests import bytes_of, digests
from ..core.errors import StepwellError
from ..core.module import Module
from ..core.processor import identity
from ..core.reading import ReadingError, read_bytes
from ..core.records import default_path
from ..core.request import Request
from ..core.target import Target, host, this_machine
from ..core.threads import available_cores
from ..core.weights import WeightStore
from .structure import Facts, OpaqueError, facts_of, structure_digest

_LARGEST_RECORDS = 1 << 26
"""A larger database of schedules is not read twice."""


def key_of(request: Request, sources: str, surroundings: Facts) -> str | None:
    """The key of a request; None if something takes part whose contents are not known.

    Args:
        request: the request.
        sources: the digest of the compiler.
        surroundings: what `surroundings_of` returned.
    """
    module = request.module
    try:
        # Nobody knows what rules of the user consist of.
        if type(module) is not Module or request.legalize is not None:
            return None
        passes = request.threads, request.opt_level, request.pipeline, request.copy_indices
        asked = facts_of((*passes, request.rounding, request.schedule, request.schedules))
        facts = structure_digest(module.op), facts_of(module.decisions)
        own = _target(request.target), asked, *facts, weights_facts(module.weights)
    except (OpaqueError, StepwellError):
        return None
    found = sources, surroundings, own
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


def surroundings_of(request: Request) -> Facts | None:
    """What outside of a request decides: the machine, the environment, and schedules.

    None if the schedules cannot be read.
    """
    try:
        return _machine(), _records(request.records)
    except (OSError, OpaqueError, ReadingError, StepwellError):
        return None


def _machine() -> Facts:
    """The machine this runs on, and what of the environment counts."""
    # LLVM, which describes it as well, takes longer to import than a hit takes.
    known = identity() or facts_of(host())
    threads = available_cores(), os.environ.get("STEPWELL_NUM_THREADS")
    return known, facts_of(this_machine()), threads


def _target(target: str | Target) -> Facts:
    if isinstance(target, Target) and target.legalize:
        raise OpaqueError("rules of a target")
    return facts_of(target)


def _records(records: str | Path | bool | None) -> Facts:
    """The contents of the database of schedules."""
    path = default_path() if records is None or records is True else records
    if path is None or path is False:
        return ("none",)
    if not isinstance(path, str | os.PathLike):
        raise OpaqueError("records of another kind")
    if records is None and not Path(path).exists():
        return ("none",)
    return ("file", hashlib.sha256(read_bytes(Path(path), _LARGEST_RECORDS)).hexdigest())


def weights_facts(weights: WeightStore) -> Facts:
    """The names, the types and the elements of all arrays, in the order of the store."""
    kinds: list[Facts] = []
    parts: list[np.ndarray] = []
    for name in weights:
        array = weights[name]
        dense = isinstance(array, np.ndarray)
        own = [array] if dense else [array.indptr, array.indices, array.data]
        if any(part.dtype.hasobject for part in own):
            raise OpaqueError("an array of objects")
        types = tuple((part.dtype.name, part.dtype.str, part.shape) for part in own)
        kinds.append((name, type(array).__name__ if not dense else "", array.shape, types))
        parts += own
    return tuple(kinds), tuple(weights.names.items()), tuple(digests([*map(bytes_of, parts)]))
