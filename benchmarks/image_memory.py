"""Memory of convolutional networks for one image, beside the engines that people deploy them with.

Each is a process of its own that holds the model in ONNX, and reads, prepares and calls it three
times on one thread. A cell is the largest resident set, libraries included, less the one before
that. `saved` is a program that another process has compiled and saved.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cnn import MODELS
from harness import Make, Row, Table
from peers import OF_IMAGES, OURS, installed
from turns import in_a_process

import stepwell as sw

SAVED = "stepwell, saved"
_STATUS, _PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def kibibytes(field: str) -> int:
    """A field of what Linux says of this process."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def child(name: str, who: str, path: str) -> None:
    """Print the bytes by which an engine enlarges this process; nothing if it refuses the model."""
    # Engines print what they think.
    answer = os.dup(1)
    os.dup2(2, 1)
    case = MODELS[name]()
    # The largest resident set is that from here on.
    _PEAK.write_text("5")
    before = kibibytes("VmRSS")
    try:
        if who == SAVED:
            call = partial(sw.load(path), *case.arrays)
        elif who == OURS:
            call = partial(sw.compile(case.program, threads=1), *case.arrays)
        else:
            assert case.proto is not None
            call = OF_IMAGES[who](case.proto, case.arrays, 1)
    except RuntimeError:
        return
    for _ in range(3):
        call()
    os.write(answer, str(1024 * (kibibytes("VmHWM") - before)).encode())


def run(name: str, make: Make) -> Row:
    case = make()
    code = "import sys; from image_memory import child; child(*sys.argv[1:])"
    found: Row = {}
    with TemporaryDirectory() as scratch:
        path = str(Path(scratch, "saved.stepwell"))
        sw.compile(case.program, threads=1).save(path)
        for who in (SAVED, OURS, *filter(installed, OF_IMAGES)):
            taken = in_a_process(code, name, who, path)
            found[who] = f"{taken[0] / 2**20:.0f} MiB" if taken else "refuses the model"
    assert case.proto is not None
    weights = sum(len(one.raw_data) for one in case.proto.graph.initializer)
    return {"weights": f"{weights / 2**20:.0f} MiB"} | found


TABLES = [Table("network", MODELS, run)]
