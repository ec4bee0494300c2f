"""The time until a process is ready: the import, the help of commands, the first result of an MLP.

    python benchmarks/run.py startup
    python benchmarks/run.py startup --against FOLDER

Each is a fresh process that finds its bytecode on disk. Minima of interleaved runs, of the
processor and by the clock, above those of a Python that does nothing for `import stepwell`. With
`--against` it is the processor alone, in turns with the package `stepwell` in that folder.
"""

from __future__ import annotations

import atexit
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import deployed
import numpy as np
from harness import Row, Table
from turns import compared, turns, versions

NOTHING = "python -c pass"
IMPORT = "import stepwell"
KNOWN = "first result of an MLP, known"
FIRST = "first result of an MLP, without a cache"
BIN = Path(sys.executable).parent
CALL = """
import sys
import numpy as np
import stepwell as sw
exe = sw.compile(sw.from_onnx(sys.argv[1]))
exe(np.zeros((64, 784), np.float32))
"""
COMMANDS = {
    NOTHING: [sys.executable, "-c", "pass"],
    IMPORT: [sys.executable, "-c", IMPORT],
    "stepwell --help": [str(BIN / "stepwell"), "--help"],
    "stepwell-opt --help": [str(BIN / "stepwell-opt"), "--help"],
    KNOWN: [sys.executable, "-c", CALL],
    FIRST: [sys.executable, "-c", CALL],
}


@cache
def scratch() -> Path:
    """A folder with the model, and for the cache; it is removed when this process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    model = Path(folder.name, "mlp.onnx")
    model.write_bytes(deployed.perceptron().SerializeToString())
    return Path(folder.name)


def both(name: str) -> tuple[float, float]:
    """The time of a process: of the processor, and by the clock."""
    folder = scratch()
    cached = {"STEPWELL_CACHE": f"{folder}/cache" if name == KNOWN else "off"}
    # As for users, modules are compiled to bytecode once.
    given = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"} | cached
    command = [*COMMANDS[name], *([f"{folder}/mlp.onnx"] if name in (KNOWN, FIRST) else [])]
    before, start = _spent(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=given)
    return _spent() - before, time.perf_counter() - start


def _spent() -> float:
    """The time of the processor that processes which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(name: str) -> float:
    return both(name)[0]


def row(name: str, command: list[str], *, rounds: int = 5, against: str = "") -> Row:
    if against:
        workers = versions("startup", against)
        turns(workers, name, 1)
        return compared(turns(workers, name, rounds), lambda time: f"{1e3 * time:.0f} ms")
    both(name)
    runs = [(both(name), both(NOTHING)) for _ in range(rounds)]
    least = [[min(each) for each in zip(*times, strict=True)] for times in zip(*runs, strict=True)]
    above = np.subtract(least[0], least[1]) if name == IMPORT else least[0]
    titles = "of the processor", "by the clock"
    return {title: f"{1e3 * each:.0f} ms" for title, each in zip(titles, above, strict=True)}


TABLES = [Table("process", COMMANDS, row)]
