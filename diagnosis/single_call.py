"""One call of a function in a program that takes long to be interpreted as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..backends.reference.replayed import Replayed
from .traces import Trace


@dataclass(frozen=True)
class SingleCall:
    """A call, by function and number, in a run that is known; None for no call at all.

    `replays` says whether other calls have the results of that run; otherwise they run as well.
    """

    run: Trace
    key: tuple[str, int] | None
    replays: bool = True

    @property
    def trace(self) -> Trace:
        """What is known of this call alone."""
        calls = {key: call for key, call in self.run.calls.items() if key == self.key}
        return replace(self.run, calls=calls)

    def replayed(self) -> Replayed:
        """The results of the other calls."""
        if not self.replays:
            return Replayed({}, None)
        known = {key: [part.values for part in call[1]] for key, call in self.run.calls.items()}
        return Replayed(known, self.key)
