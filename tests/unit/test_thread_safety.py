"""The thread pool and the list of frames, watched: by the thread sanitizer, and slowed down."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell.backends.llvm import thread_pool
from stepwell.backends.llvm.boundary import code
from stepwell.backends.llvm.linking import FRAMES, Definitions
from stepwell.core.target import host
from stepwell.dialects.rt.abi import Word

from ..harness import tool

GUARDS = Path(__file__).resolve().parents[1] / "guards"
DRIVER, DELAY = GUARDS / "threads.c", GUARDS / "delay.ll"
HEAD = re.compile(r"^(define [^{]*)\{$", re.MULTILINE)
TRIPLE = re.compile(r"^target .*\n", re.MULTILINE)
PASSES = "module(tsan-module),function(tsan)"
TOOLS = {"opt": "llvm", "llc": "llvm", "gcc": "gcc", "setarch": "util-linux"}
"""Programs, and the packages of Debian that have them."""

Change = Callable[[str], str]


def run(*command: object) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)


def texts() -> dict[str, str]:
    """The files of the pool, that of frames, and what Python adds to them."""
    made = Definitions()
    thread_pool.define(made, host().triple)
    made.place("frame_busy", 8 * Word.BUSY)
    made.place("frame_next", 8 * Word.NEXT)
    files = [*thread_pool.files(host().triple), FRAMES]
    return {"definitions": str(made.module), **{file.stem: file.read_text() for file in files}}


def built(folder: Path, change: Change = lambda text: text) -> Path:
    """The driver with an instrumented pool; skips the test where a tool is missing."""
    for name, debian in TOOLS.items():
        tool(name, debian)
    objects: list[Path] = []
    options = run("opt", "-help-hidden").stdout
    pointers = [option for option in ("-opaque-pointers",) if option in options]
    for name, text in texts().items():
        source, bitcode = folder / f"{name}.ll", folder / f"{name}.bc"
        text = f'target triple = "{host().triple}"\n' + TRIPLE.sub("", change(text))
        source.write_text(HEAD.sub(r"\1sanitize_thread {", text))
        for command in (
            ("opt", *pointers, f"-passes={PASSES}", source, "-o", bitcode),
            ("llc", *pointers, "-relocation-model=pic", "-filetype=obj", bitcode),
        ):
            done = run(*command)
            assert not done.returncode, done.stderr
        objects.append(bitcode.with_suffix(".o"))
    words = f"const long busy_word = {int(Word.BUSY)}, next_word = {int(Word.NEXT)};\n"
    (folder / "words.c").write_text(words)
    sources = DRIVER, folder / "words.c"
    done = run("gcc", "-g", "-O1", "-fsanitize=thread", *sources, *objects, "-o", folder / "driver")
    if "cannot find" in done.stderr and "tsan" in done.stderr:
        pytest.skip("needs the library of the thread sanitizer: apt install libtsan2")
    assert not done.returncode, done.stderr
    return folder / "driver"


def watched(driver: Path) -> subprocess.CompletedProcess[str]:
    """Run where addresses are those that the sanitizer expects."""
    return run("setarch", "-R", driver)


@pytest.mark.slow
def test_no_access_is_unordered(tmp_path: Path) -> None:
    done = watched(built(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


WEAKER = {
    "tiles are reported without release": ("add ptr @done, i64 %ran release", "release"),
    "tiles are awaited without acquire": ("load atomic i64, ptr @done acquire", "acquire"),
    "a frame is claimed without acquire": ("i64 0, i64 1 acquire monotonic", "acquire"),
    "a frame is given back without release": ("store atomic i64 0, ptr %word release", "release"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_order_is_seen(name: str, tmp_path: Path) -> None:
    line, order = WEAKER[name]
    assert any(line in text for text in texts().values())
    weaker = line.replace(order, "monotonic", 1)
    done = watched(built(tmp_path, lambda text: text.replace(line, weaker)))
    assert "WARNING: ThreadSanitizer: data race" in done.stderr


# Slowed down.

ATOMIC = re.compile(r"^(?=.*\b(?:load atomic|store atomic|cmpxchg|atomicrmw)\b)", re.MULTILINE)

SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
from stepwell.backends.llvm import thread_pool
from stepwell.backends.llvm.boundary import code

slow, seconds = Path(sys.argv[1]), float(sys.argv[2])
signal.alarm(int(seconds) + 120)

def slowed(files):
    return [slow / file.name for file in files] + [slow / "delay.ll"]

pool, boundary = thread_pool.files, list(code._FILES)
thread_pool.files = lambda triple: slowed(pool(triple))
code._FILES[:] = slowed(boundary)

import stepwell as sw

def model():
    b = sw.Builder("main")
    x = b.input("x", ("n", 300), "f32")
    h = b.softmax(b.dense(x, np.eye(300, dtype=np.float32)[::-1].copy()), axis=1)
    b.output(h, name="y")
    b.output(b.compress(h, b.greater(b.reduce(h, "max", axes=[1], keepdims=False), 0.02), axis=0))
    return b.module()

exes = [sw.compile(model(), threads=threads) for threads in (2, 3, 5)]
rng = np.random.default_rng(0)
cases = [rng.standard_normal((n, 300), np.float32) for n in (400, 70, 9)]
expected = [[exe(x) for x in cases] for exe in exes]
end = time.monotonic() + seconds
wrong = []

def same(found, known):
    return all(map(np.array_equal, found, known))

def calls():
    for exe, known in zip(exes, expected):
        for x, y in zip(cases, known):
            if not same(exe(x), y):
                wrong.append(len(x))

def caller():
    while time.monotonic() < end:
        calls()

threads = [threading.Thread(target=caller) for _ in range(4)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    child = os.fork()
    if not child:
        signal.alarm(60)
        calls()
        os._exit(bool(wrong))
    assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


def slow_files(folder: Path, change: Change = lambda text: text) -> None:
    """Write the files of the pool and the boundary with a delay before each atomic access."""
    for file in [*thread_pool.files(host().triple), *code._FILES]:
        text, count = ATOMIC.subn("  call void @delay()\n", change(file.read_text()))
        more = "\ndeclare void @delay()\n" if count else ""
        (folder / file.name).write_text(text + more)
    shutil.copy(DELAY, folder)


def called(folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-W", "ignore", "-c", SCRIPT, folder, seconds)


def test_delays_change_nothing(tmp_path: Path, all_tests: bool) -> None:
    slow_files(tmp_path)
    done = called(tmp_path, 40 if all_tests else 1)
    assert not done.returncode, done.stderr


@pytest.mark.slow
def test_delays_show_a_job_that_is_written_while_tiles_are_taken(tmp_path: Path) -> None:
    """Tickets are not closed before: it crashes, hangs or computes something else."""
    slow_files(tmp_path, lambda text: text.replace(CLOSING, ""))
    assert CLOSING in "".join(texts().values())
    assert called(tmp_path, 20).returncode


CLOSING = "  call void @set_tickets(i64 %tickets, i64 %closed)\n"
