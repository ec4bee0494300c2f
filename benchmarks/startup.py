"""The time until a process is ready: `import stepwell`, and the help of the commands.

Each is a fresh process that finds its bytecode on disk. Minima of five interleaved runs, of the
processor and by the clock, above those of a Python that does nothing for `import stepwell`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from harness import Row, Table

NOTHING = "python -c pass"
IMPORT = "import stepwell"
FOLDER = Path(sys.executable).parent
COMMANDS = {
    NOTHING: [sys.executable, "-c", "pass"],
    IMPORT: [sys.executable, "-c", IMPORT],
    "stepwell --help": [str(FOLDER / "stepwell"), "--help"],
    "stepwell-opt --help": [str(FOLDER / "stepwell-opt"), "--help"],
}


def seconds(command: list[str]) -> tuple[float, float]:
    """The time of a process: of the processor, and by the clock."""
    before, start = _spent(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return _spent() - before, time.perf_counter() - start


def _spent() -> float:
    """The time of the processor that processes which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, command: list[str], *, rounds: int = 5) -> Row:
    """Time a process; an import in turns with a Python that does nothing, and above it."""
    seconds(command)
    runs = [(seconds(command), seconds(COMMANDS[NOTHING])) for _ in range(rounds)]
    least = [[min(each) for each in zip(*times, strict=True)] for times in zip(*runs, strict=True)]
    above = np.subtract(least[0], least[1]) if name == IMPORT else least[0]
    titles = "of the processor", "by the clock"
    return {title: f"{1e3 * each:.0f} ms" for title, each in zip(titles, above, strict=True)}


TABLES = [Table("process", COMMANDS, row)]
