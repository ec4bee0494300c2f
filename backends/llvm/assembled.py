"""A program of several images: the kernels, and the functions that call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .images import Image, MappedImage


@dataclass(frozen=True)
class Assembled:
    """Images that belong together: the first one calls functions of the others.

    Args:
        main: the image with the entry of the program.
        kernels: the image of each kernel, by the name under which the first one calls it. A kernel
            is the function `KERNEL` of its image.
    """

    main: Image
    kernels: Mapping[str, Image]

    @property
    def imports(self) -> set[str]:
        """The functions that are in none of the images."""
        called = {name for image in self.kernels.values() for name in image.imports}
        return called | (self.main.imports.keys() - self.kernels.keys())


KERNEL = "stepwell_kernel"
"""The name of a kernel in its own image."""


class MappedProgram:
    """Images in memory; the code stays while this object lives.

    Args:
        images: the images.
        resolve: returns the address of a function outside of them, by name.

    Raises:
        StepwellError: see `MappedImage`.
    """

    def __init__(self, images: Assembled, resolve: Callable[[str], int]) -> None:
        self.images = images
        self._kernels = {
            name: MappedImage(image, resolve) for name, image in images.kernels.items()
        }

        def address(name: str) -> int:
            kernel = self._kernels.get(name)
            return resolve(name) if kernel is None else kernel.address(KERNEL)

        self._main = MappedImage(images.main, address)

    def address(self, name: str) -> int:
        """The address of a function of the first image."""
        return self._main.address(name)
