"""The key of a compilation: a digest of everything that decides what it results in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..core.errors import StepwellError
from ..core.files.reading import ReadingError, read_bytes
from ..core.ir.module import Module, unread_of
from ..core.processor import identity
from ..core.target import Target, device_named, has_device, host, this_machine
from ..core.threads import available_cores
from ..driver.request import Request
from ..passes.loop.scheduler.records import default_path
from .facts import Facts, OpaqueError, facts_of

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
        own = _target(request.target), asked, _digest(module)
    except (OpaqueError, StepwellError):
        return None
    found = sources, surroundings, own
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


def surroundings_of(request: Request) -> Facts | None:
    """Everything outside of a request that decides: the machine, the environment, and schedules.

    None if the schedules cannot be read.
    """
    try:
        return _machine(), _records(request.records)
    except (OSError, OpaqueError, ReadingError, StepwellError):
        return None


def _machine() -> Facts:
    """The machine this runs on, and what of the environment counts."""
    threads = available_cores(), os.environ.get("STEPWELL_NUM_THREADS")
    return processor(), facts_of(this_machine()), threads


def processor() -> Facts:
    """The processor."""
    # LLVM, which describes it as well, takes longer to import than a hit takes.
    return identity() or facts_of(host())


def _digest(module: Module) -> str:
    """The digest of a module, which is not made for it.

    Raises:
        OpaqueError: if its contents are not known.
    """
    if (known := unread_of(module)) is not None:
        return known.digest
    from .structure import module_digest

    return module_digest(module)


def _target(target: str | Target) -> Facts:
    if isinstance(target, Target) and target.legalize:
        raise OpaqueError("rules of a target")
    if isinstance(target, str) and has_device(target):
        # "cuda" is the device that is there.
        return target, facts_of(device_named(target))
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
