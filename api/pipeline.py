"""`Pipeline`: the passes of a compilation, to which passes are added by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.pipelines.staircase import pipeline as texts_of
from ..core.pipelines.staircase import pipeline_text, split_pipeline
from ..core.pipelines.text import PassEntry, check_known, entries
from ..core.target import Target, default_threads, named


class Pipeline(Mapping[str, str]):
    """The passes of a compilation, in order; as a mapping, the text of each stage by its name.

    It is immutable: every method returns another one. `str` is the text of all passes, as
    `stepwell pipeline` prints it.

    Args:
        text: the passes of a module from stage `graph` on; see `docs/pipeline.md`.

    Raises:
        CompileError: if the text is malformed, or does not lead to the last stage.
    """

    def __init__(self, text: str) -> None:
        self._stages = split_pipeline(text)

    def __getitem__(self, stage: str) -> str:
        return self._stages[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __str__(self) -> str:
        return pipeline_text(self._stages)

    def __repr__(self) -> str:
        return f"Pipeline({str(self)!r})"

    def after(self, name: str, passes: str) -> Pipeline:
        """Add passes after a pass; after the last one, if it runs several times.

        Args:
            name: the pass.
            passes: the passes to add, as text, such as "my-pass{factor=2},graph-cse".

        Raises:
            CompileError: if there is no such pass in this pipeline, or the text is malformed.
        """
        return self._with(self._places(name)[-1] + 1, passes)

    def before(self, name: str, passes: str) -> Pipeline:
        """Add passes before a pass; before the first one, if it runs several times.

        Args:
            name: the pass.
            passes: the passes to add, as text.

        Raises:
            CompileError: if there is no such pass in this pipeline, or the text is malformed.
        """
        return self._with(self._places(name)[0], passes)

    def replace(self, name: str, passes: str) -> Pipeline:
        """Put passes in the place of a pass, wherever it runs; "" removes it.

        Args:
            name: the pass.
            passes: the passes to run instead, as text, such as "graph-fuse-ops{max-ops=1}".

        Raises:
            CompileError: if there is no such pass in this pipeline, the text is malformed, or
                the pass is a conversion that the pipeline needs.
        """
        places, new = self._places(name), entries(passes)
        own = enumerate(self._entries)
        return _of([made for at, one in own for made in (new if at in places else [one])])

    @property
    def _entries(self) -> list[PassEntry]:
        return [entry for text in self._stages.values() for entry in entries(text)]

    def _places(self, name: str) -> list[int]:
        names = [entry.name for entry in self._entries]
        check_known([name], names)
        return [place for place, one in enumerate(names) if one == name]

    def _with(self, place: int, passes: str) -> Pipeline:
        own = self._entries
        return _of([*own[:place], *entries(passes), *own[place:]])


def _of(passes: Iterable[PassEntry]) -> Pipeline:
    return Pipeline(",".join(map(str, passes)))


def pipeline(
    target: str | Target = "host", threads: int | None = None, opt_level: int = 3
) -> Pipeline:
    """The passes that `compile` runs with these arguments, to be edited and passed to it.

        pipeline = sw.pipeline().after("graph-simplify", "my-pass")
        exe = sw.compile(module, pipeline=pipeline)

    Args:
        target: "host", the name of a processor, or a `Target`; it has the default of `threads`.
        threads: the maximum number of threads of a call; None for the value of the environment
            variable `STEPWELL_NUM_THREADS`, else the number of cores.
        opt_level: 0 to 3.

    Raises:
        CompileError: if there is no such level, or `threads` is not from 1 to 256.
        TargetError: if the target is unknown.
    """
    count = default_threads(named(target)) if threads is None else threads
    return Pipeline(pipeline_text(texts_of(opt_level, count)))
