"""Forks of a process in which another thread uses LLVM."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from stepwell.core import exclusive

SCRIPT = """
import os, signal, sys, threading, time
from stepwell.backends.llvm import jit
from stepwell.core.target import host

def text(count):
    body = "{ %a = fadd double %x, 1.0  ret double %a }".replace("  ret", "\\n ret")
    return "\\n".join(f"define double @f{n}(double %x) {body}" for n in range(count))

one, many, end = text(1), text(150), []

def compile_on():
    while not end:
        jit.assembly(many, host())

jit.assembly(one, host())
thread = threading.Thread(target=compile_on)
thread.start()
for number in range(int(sys.argv[1])):
    time.sleep(0.003 * (number % 7))
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends a child that waits forever
        jit.assembly(one, host())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        break
end.append(True)
thread.join()
print(status)
"""


@pytest.mark.parametrize("forks", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_a_child_compiles_while_a_thread_of_its_parent_does(forks: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(forks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


class _Object:
    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class _Owner:
    pass


def test_objects_are_freed_with_their_owner() -> None:
    owner, freed = _Owner(), _Object()
    exclusive.close_after(owner, freed)
    assert not freed.closed.is_set()
    del owner
    gc.collect(1)
    assert freed.closed.is_set()


def test_objects_are_freed_by_the_thread_that_is_using_llvm() -> None:
    """Whoever loses the last reference does not wait."""
    inside, end = threading.Event(), threading.Event()

    @exclusive.exclusive
    def use() -> None:
        inside.set()
        end.wait()

    owner, freed = _Owner(), _Object()
    exclusive.close_after(owner, freed)
    thread = threading.Thread(target=use)
    thread.start()
    inside.wait()
    del owner
    gc.collect(1)
    assert not freed.closed.is_set()
    end.set()
    thread.join()
    assert freed.closed.is_set()
