"""Timing of calls: interleaved rounds, the minimum and the median of each candidate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.collector import without_collector

ROUNDS = 15
ROUND_SECONDS = 0.02
REST_SECONDS = 0.005
"""A process is idle if it uses hardly any CPU time for this long."""
MOST_RESTS = 100
"""The number of rests to wait at most: threads of some libraries spin for 0.1 s after a call."""
TURN_SECONDS = 1e-4
"""The duration of a turn of a pair: shorter than a time slice on a busy machine."""
PAIR_SECONDS = 0.4
WARM_SECONDS = 0.003
"""Calls for this long after a rest are not counted, as threads wake up."""


@dataclass(frozen=True)
class Timing:
    """Seconds for one call."""

    minimum: float
    median: float

    def __str__(self) -> str:
        return f"{duration(self.median)} (min {duration(self.minimum)})"


def duration(seconds: float) -> str:
    """A time as people read it: ``12.3 us``, ``4.56 ms``, ``1.2 s``."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def measure(
    candidates: Mapping[str, Callable[[], object]],
    progress: Callable[[], None] = lambda: None,
    rounds: int = ROUNDS,
    seconds: float = ROUND_SECONDS,
) -> dict[str, Timing]:
    """Time each candidate; their rounds are interleaved, so that all see the same clock rate.

    A turn begins with a rest and a few calls that are not counted, so that candidates do not
    disturb each other.

    Args:
        candidates: the calls to time, by name.
        progress: called after each round.
        rounds: the number of rounds.
        seconds: the time for a candidate in a round.
    """
    counts = {name: _calls_in(seconds, call) for name, call in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    with without_collector():
        for _ in range(rounds):
            for name, call in candidates.items():
                _rest()
                _calls_in(WARM_SECONDS, call)
                samples[name].append(_seconds(call, counts[name]))
            progress()
    return {name: Timing(min(times), statistics.median(times)) for name, times in samples.items()}


@dataclass(frozen=True)
class Pair:
    """Two candidates that were timed in turn."""

    first: Timing
    second: Timing
    ratio: float
    """The time of the second relative to the first: the median over consecutive turns."""


def measure_pair(first: Callable[[], object], second: Callable[[], object]) -> Pair:
    """Time two candidates in turns so short that both see the same load of the machine."""
    count = min(_calls_in(ROUND_SECONDS, call) for call in (first, second))
    count = max(1, round(count * TURN_SECONDS / ROUND_SECONDS))
    times: list[tuple[float, float]] = []
    with without_collector():
        end = time.perf_counter() + PAIR_SECONDS
        while time.perf_counter() < end or len(times) < ROUNDS:
            times.append((_seconds(first, count), _seconds(second, count)))
    ones, others = zip(*times, strict=True)
    return Pair(
        Timing(min(ones), statistics.median(ones)),
        Timing(min(others), statistics.median(others)),
        statistics.median(other / one for one, other in times),
    )


def _rest() -> None:
    """Wait until no thread of this process runs or spins."""
    for _ in range(MOST_RESTS):
        start = time.process_time()
        time.sleep(REST_SECONDS)
        if time.process_time() - start < 0.1 * REST_SECONDS:
            return


def _calls_in(seconds: float, call: Callable[[], object]) -> int:
    """Call for some seconds, and count the calls."""
    call()
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        count += 1
    return max(1, count)


def _seconds(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
