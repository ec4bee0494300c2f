"""The kernels of a program for a device, as a launch and a file see them: plain data, and PTX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel: a buffer, or a scalar.

    Attributes:
        type: what it is called in messages, such as "memref<4xf32>".
        itemsize: the bytes of an element of a buffer; 0 for a scalar.
        shape: the sizes of a buffer, None for those that a launch passes; None for a scalar.
        read: whether the kernel only reads it.
        written: whether the kernel may write to it.
    """

    type: str
    itemsize: int
    shape: tuple[int | None, ...] | None
    read: bool = False
    written: bool = False

    def size(self, sizes: Sequence[int]) -> int:
        """The bytes of a buffer whose open sizes are these."""
        given = iter(sizes)
        return self.itemsize * math.prod(next(given) if n is None else n for n in self.shape or ())


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel: its name in the code, and its arguments after the number of threads.

    Attributes:
        block: how many threads a block has, if a launch is of blocks and not of threads.
    """

    name: str
    arguments: tuple[KernelArgument, ...]
    block: int | None = None

    def launched(
        self, words: Iterator[int]
    ) -> Iterator[tuple[KernelArgument, int, tuple[int, ...]]]:
        """The arguments of a launch, of the words that compiled code passes.

        Each comes with its first word, which is an address or has a scalar in its first bytes, and
        the sizes that its type leaves open.
        """
        for argument in self.arguments:
            first = next(words)
            yield argument, first, tuple(next(words) for n in argument.shape or () if n is None)


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a program, in the order of their numbers, and their text.

    Attributes:
        processor: the oldest processor that takes them, such as "sm_90".
        emulated: whether the emulator executes them.
        block: how many threads a block has, of a kernel that does not say it.
    """

    processor: str
    emulated: bool
    block: int
    kernels: tuple[DeviceKernel, ...]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """All but the text as values of JSON."""
        facts = asdict(self)
        del facts["text"]
        return facts

    @staticmethod
    def from_dict(text: str, facts: Mapping[str, Any]) -> DeviceCode:
        """The code of a text and what `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: if it is none.
        """
        kernels = tuple(map(_kernel, facts["kernels"]))
        is_emulated, block = bool(facts["emulated"]), int(facts["block"])
        return DeviceCode(str(facts["processor"]), is_emulated, block, kernels, text)


def _kernel(facts: Mapping[str, Any]) -> DeviceKernel:
    block = facts["block"]
    arguments = tuple(map(_argument, facts["arguments"]))
    return DeviceKernel(str(facts["name"]), arguments, None if block is None else int(block))


def _argument(facts: Mapping[str, Any]) -> KernelArgument:
    shape = facts["shape"]
    sizes = None if shape is None else tuple(None if n is None else int(n) for n in shape)
    access = bool(facts["read"]), bool(facts["written"])
    return KernelArgument(str(facts["type"]), int(facts["itemsize"]), sizes, *access)
