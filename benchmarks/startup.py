"""The time until a process is ready: `import stepwell`, and the help of the commands.

    python benchmarks/startup.py

Each is a fresh process that finds its bytecode on disk. Minima of five interleaved runs, of the
processor and by the clock, above those of a Python that does nothing for `import stepwell`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROUNDS = 5
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


def main() -> None:
    """Print the table."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        seconds(command)
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            found[name].append(seconds(command))
    least = {
        name: [min(each) for each in zip(*times, strict=True)] for name, times in found.items()
    }
    least[IMPORT] = [a - b for a, b in zip(least[IMPORT], least[NOTHING], strict=True)]
    table = Table("", "of the processor", "by the clock")
    for name, times in least.items():
        table.add_row(name, *(f"{1e3 * each:.0f} ms" for each in times))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
