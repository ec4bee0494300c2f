"""What compiled code and the run time agree on: words of the context, functions, numbers."""

from __future__ import annotations

from enum import IntEnum

ARENA_TOO_SMALL = -1
"""What the public function returns when the arena must grow before anything can run."""

PARALLEL_TILES = "stepwell_parallel_tiles"
"""The function of the run time that compiled code calls to run tiles on several threads:
`(body, context, count, threads, order)`, where `body` is called with the context and a tile."""

LAUNCH = "stepwell_launch"
"""The function of the run time that compiled code calls to run a kernel on a device:
`(number, arguments, count)`, the number of the kernel in the program, an array with the words of
its arguments, and the number of threads, or of blocks."""

TO_DEVICE, TO_HOST = "stepwell_to_device", "stepwell_to_host"
"""The functions of the run time that compiled code calls to copy memory of the host to the device,
and back: `(address, bytes)`."""

FOR_DEVICES = (LAUNCH, TO_DEVICE, TO_HOST)
"""The functions of the run time that only programs for a device call."""

THREAD, THREADS = "stepwell_thread", "stepwell_threads"
"""The functions by which code of a block of a device learns which of its threads executes it, and
how many do. Elsewhere one thread does."""

BARRIER = "stepwell_barrier"
"""The function in which the threads of a block wait for each other."""

SHUFFLE = "stepwell_shuffle"
"""The function by which threads of a warp read 4 bytes that another one of them has:
`(address, thread)`, the address of what the thread of this number has. On a device, where each
thread has its own part at one address, the number alone says whose it is."""

COPY = "stepwell_copy"
"""The function by which a thread of a device copies 16 bytes from global to shared memory: `(to,
from)`. They are there when the threads of the block have waited for each other."""

COPIED_BYTES = 16
"""The bytes of such a copy."""

SYSTEM_CLOCK = "clock_gettime"
"""The function of the system (POSIX) that compiled code reads a clock by."""

SYSTEM_ALLOCATE = "aligned_alloc"
"""The function of the C library that compiled code allocates memory by: `(alignment, bytes)`."""

SYSTEM_FREE = "free"
"""The function of the C library by which compiled code frees it."""

SYSTEM_ABORT = "abort"
"""The function of the C library that ends the process where there is no memory left."""

TABLE_WORDS = 1 << 31
"""How many words a table may have: LLVM's constant indices are i32."""

DETAIL_WORDS = 3
"""How many words a failed check may leave in the context."""

ITERATION_WORDS = 4
"""How many loops around a failed check may leave the number of their iteration there."""

RECORD_WORDS = 2
"""Words of a row that `rt.record` keeps: nanoseconds, and how often they were taken."""


ALIGNMENT = 64
"""Constants, the arena, its buffers, and those that compiled code allocates begin at multiples of
this many bytes: a cache line, a vector."""


def rounded_up(size: int) -> int:
    """A number of bytes, rounded up to a multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class TileOrder(IntEnum):
    """The order in which threads run tiles."""

    ANY = 0
    """A thread takes the next tile."""
    FORWARDS = 1
    """Each thread has a range of tiles, and helps the others when it has run them."""
    BACKWARDS = 2
    """The same ranges, each from its last tile to its first."""


class Word(IntEnum):
    """Where things are in the context, in 8-byte words."""

    CONSTANTS = 0
    """Address of the table of addresses of constants."""
    FUNCTIONS = 1
    """Address of the table of addresses of registered functions."""
    ARENA = 2
    """Address of the arena, a multiple of `ALIGNMENT`."""
    ARENA_BYTES = 3
    """Size of the arena."""
    BUSY = 4
    """For the run time's own use: 1 while a call has the context."""
    NEXT = 5
    """For the run time's own use: address of another context of the program."""
    DETAILS = 6
    """First of `DETAIL_WORDS` words about the check that failed."""
    ITERATIONS = DETAILS + DETAIL_WORDS
    """First of `ITERATION_WORDS` words: the iterations around that check, the innermost first."""


WORDS = Word.ITERATIONS + ITERATION_WORDS
"""Size of the context in words."""
