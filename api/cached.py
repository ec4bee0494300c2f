"""Programs that were compiled before, in the cache of the user; see `docs/cache.md`.

What a hit needs is imported at the top: neither the passes nor LLVM.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING

from .. import IMPORTED_NS
from ..caching.facts import Facts
from ..caching.folder import Folder, folder_of_user
from ..caching.keys import key_of, surroundings_of
from ..caching.memory import FolderMemory
from ..caching.sources import Stamp, sources_digest, stamp
from ..core.errors import StepwellError
from ..core.logs import logger
from ..core.target import has_device
from ..driver.request import Request
from ..runtime.artefacts.container import ArtefactWriter, mapped_file
from ..runtime.artefacts.reading import Artefact
from ..runtime.executable import Executable, executable, program_of
from ..runtime.staircase import Origin
from ..runtime.vectorcall import boundary, offer
from .loading import restored

if TYPE_CHECKING:
    from ..diagnosis.inspection import Inspection
    from ..driver.compilation import Compilation

_LOG = logger("cache")

_ENDING = ".program"


@dataclass(frozen=True)
class CachePlace:
    """Where the program of a request is, or will be, in the cache."""

    request: Request
    folder: Folder
    name: str
    digest: str
    """The digest of the compiler."""
    sources: Stamp
    """The state of its files when the name was found."""
    surroundings: Facts
    """What decided then, beside the arguments and the compiler."""

    def program(self) -> Executable | None:
        """The program; None if it is not there, is damaged, or does not run here."""
        try:
            _LOG.debug("looking for %s", self.name)
            with self.folder.read(self.name) as file:
                archive = mapped_file(self.name, file)
            archive.check()
            entry = Artefact(archive)
            # Its stages are those of the module as it is now.
            asked = replace(self.request, module=self.request.module.clone())
            shipped, program = entry.boundary(), entry.program()
            code = boundary(Executable) if shipped is None else offer(Executable, *shipped)
            make = partial(_stages, asked, entry)
            origin = Origin(make, entry.decisions, entry.stages, restored)
            made = executable(program, code, origin)
        except FileNotFoundError:
            _LOG.debug("not there: %s", self.name)
            return None
        except (OSError, StepwellError) as error:
            _LOG.warning("cannot use %s: %s", self.name, error)
            return None
        with suppress(OSError):  # A folder that is read-only is used as well.
            self.folder.count_use()
        return made

    def compiled(self, compilation: Compilation) -> Executable:
        """The program of a compilation, which the cache then has, and its kernels.

        Raises:
            CompileError, InternalError: see `compile`.
        """
        from ..backends.llvm.elf import LinkerError
        from ..backends.llvm.images import can_be_mapped
        from ..caching.kernels import KernelCache
        from ..diagnosis.inspection import inspected

        apart = compilation
        # Kernels of a device are one module.
        if can_be_mapped() and not has_device(compilation.target):
            kernels = KernelCache(self.folder, self.digest, lambda: stamp() == self.sources)
            observers = (kernels, *compilation.observers)
            apart = replace(compilation, observers=observers, code=kernels.code)
        try:
            exe, done = apart.executable(inspected, restored)
        except LinkerError:
            exe, done = compilation.executable(inspected, restored)
        self._keep(exe, done)
        return exe

    def _keep(self, exe: Executable, done: Compilation) -> None:
        """Write a program to the cache; if that is impossible, the next process compiles it, too.

        Args:
            exe: the program.
            done: its compilation, with the passes that have run.
        """
        from ..runtime.artefacts.writing import write_entry

        source = {"recipe": done.request.recipe(done.start)}
        facts = {"source": source, "form": done.form}

        def write(file: IO[bytes]) -> None:
            writer = ArtefactWriter(file)
            write_entry(writer, program_of(exe), done.target, exe.decisions, facts)
            writer.end()

        try:
            # What was compiled is still what the name says.
            if stamp() == self.sources and surroundings_of(self.request) == self.surroundings:
                self.folder.keep(self.name, write)
        except (OSError, StepwellError) as error:
            _LOG.warning("cannot keep %s: %s", self.name, error)


def place_of(request: Request) -> CachePlace | None:
    """Where the program of a request is in the cache; None if there is no cache for it.

    Raises:
        StepwellError: if an environment variable of the cache has no valid value.
    """
    folder = folder_of_user()
    if folder is None or folder.trouble(make=True) is not None:
        return None
    sources = sources_digest(FolderMemory(folder), IMPORTED_NS)
    surroundings = surroundings_of(request)
    if sources is None or surroundings is None:
        return None
    digest, state = sources
    key = key_of(request, digest, surroundings)
    if key is None:
        return None
    return CachePlace(request, folder, key + _ENDING, digest, state, surroundings)


def _stages(asked: Request, entry: Artefact) -> Inspection:
    """The stages of the program of an entry, from the module of a request."""
    from ..core.pipelines.exactness import with_rounding
    from ..diagnosis.inspection import inspected
    from ..driver.compilation import Compilation

    module, facts = asked.module, entry.manifest
    begun = module if asked.rounding is None else with_rounding(module, asked.rounding)
    request = Request.of_recipe(begun, facts["source"]["recipe"])
    return inspected(Compilation(request, form=facts["form"]))
