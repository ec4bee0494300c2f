"""Reading an artefact: its machine code is mapped into this process, and so are its weights."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.llvm import pool
from ...backends.llvm.assembled import Assembled, MappedProgram
from ...backends.llvm.boundary.layout import Layout
from ...backends.llvm.images import Image, can_be_mapped, system_function
from ...core import processor
from ...core.boundary.functions import found
from ...core.cuda import capability_of, driver
from ...core.errors import TargetError, explain
from ...core.files.reading import ReadingError
from ...core.pipelines.stages import DEVICE_STAGES, stages_from
from ...core.threads import most_threads
from ...dialects.rt.abi import FOR_DEVICES, PARALLEL_TILES
from ..functions import callback
from ..interface import Interface
from ..loaded import Program
from .container import Archive
from .manifest import ABI, MANIFESTS

if TYPE_CHECKING:
    from ...core.pipelines.decisions import Decision
    from ...dialects.program import Constant
    from ..device import ProgramDevice

ENTRY = "stepwell_entry"
"""The function of a program that takes a frame."""


class Artefact:
    """An artefact whose manifest has been read; an entry of the compile cache is one without IR
    and examples.

    Args:
        archive: its members.
        emulated: whether the emulator runs the kernels of a device, whatever that is.

    Raises:
        ImportModelError: if it is damaged, or of another version.
    """

    def __init__(self, archive: Archive, emulated: bool = False) -> None:
        self.archive, self._emulated = archive, emulated
        with self._read():
            manifest = archive.manifest
            try:
                self.manifest = MANIFESTS.upgraded(manifest, manifest["format"])
            except ReadingError as error:
                raise archive.damaged(str(error)) from error
            recipe = self.manifest["source"]["recipe"]
            self.stages = stages_from(recipe["stage"])
            """The stages of which there is text: from the one that is stored."""
            if recipe["target"].get("device") is not None:
                self.stages += DEVICE_STAGES

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Turn the errors of a manifest that says something else into `ImportModelError`."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self.archive.damaged(f"its manifest is malformed ({error!r})") from error

    def program(self) -> Program:
        """The best of its programs that this machine can run.

        Raises:
            DeviceError: if the driver does not take its kernels.
            ImportModelError: if the artefact is damaged.
            TargetError: if this machine can run none of them, or the environment states a wrong
                number of threads.
            StepwellError: if the system does not allow it to run code.
        """
        with self._read():
            entry = self.chosen
            interface = Interface.from_dict(entry["interface"])
            constants = tuple(map(self._constant, entry["constants"]))
            for name, place in entry["functions"].items():
                found(name, place)
            functions = tuple(map(callback, interface.functions))
            code = self._code(entry["code"])
            if word := entry["code"].get("threads"):
                ctypes.c_int64.from_address(code.address(word)).value = most_threads()
            device = self._device(entry.get("device"))
            return Program(interface, constants, functions, code.address(ENTRY), code, device)

    def boundary(self) -> tuple[Layout, Image] | None:
        """The call boundary, and the layout of objects that it reads; None if there is none."""
        with self._read():
            facts = self.manifest["support"].get("boundary")
            if facts is None or not can_be_mapped():
                return None
            return Layout(**facts["layout"]), self._image(facts)

    def decisions(self) -> list[Decision]:
        """The decisions that passes took."""
        with self._read():
            text = bytes(self.archive.part(self.manifest["decisions"]))
            return [_decision(entry) for entry in json.loads(text)["decisions"]]

    def examples(self) -> list[tuple[list[Any], list[np.ndarray]]]:
        """Inputs and the results that the program had for them; a CSR matrix is three arrays."""
        with self._read():
            return [
                (
                    [_input([self._checked(part) for part in parts]) for parts in one["inputs"]],
                    [self._checked(part) for part in one["results"]],
                )
                for one in self.manifest["examples"]
            ]

    def source(self) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
        """The IR, its weights by name, and the arguments of its compilation."""
        from ...dialects.program import constants_in

        with self._read():
            facts = self.manifest["source"]
            text = bytes(self.archive.part(facts["text"])).decode()
            packing = (one["interface"]["packing"] for one in self.manifest["programs"])
            declared = list(map(constants_in, packing))
            weights = {entry["name"]: self._weight(entry, declared) for entry in facts["weights"]}
            return text, weights, {**facts["recipe"], "target": self.target()}

    def target(self) -> Mapping[str, Any]:
        """The fields of the target that it was compiled for, with the device that runs it."""
        with self._read():
            target = dict(self.manifest["source"]["recipe"]["target"])
            if self._emulated and target.get("device") is not None:
                target["device"] = {**target["device"], "emulated": True}
            return target

    @cached_property
    def chosen(self) -> Mapping[str, Any]:
        """The program that needs the most of this machine, a device before all else.

        Raises:
            TargetError: if it can run none of them.
        """
        made = self.manifest["abi"]
        if made != ABI:
            fact = "its machine code was made by another version of Stepwell"
            raise self._unfit(fact, ABI, made)
        here = processor.architecture()
        programs = self.manifest["programs"]
        fit = [one for one in programs if one["target"]["architecture"] == here]
        if not fit:
            got = ", ".join(one["target"]["architecture"] for one in programs)
            raise self._unfit("its code is for another architecture", here, got)
        fit.sort(key=_needed, reverse=True)
        refused: TargetError | None = None
        for one in fit:
            if processor.missing(one["target"]["needs"]):
                continue
            facts = one.get("device")
            try:
                if facts is not None and not (facts["emulated"] or self._emulated):
                    driver().check(facts["processor"])
                return one
            except TargetError as error:
                refused = refused or error
        if refused is not None:
            hint = "load(..., emulated=True) runs this file on the emulator"
            raise TargetError(f"{refused}; {hint}") from refused
        lacks = processor.missing(fit[-1]["target"]["needs"])
        names = ", ".join(one["target"]["name"] for one in fit)
        fact = f"this processor lacks {', '.join(lacks)}, which its code for {names} needs"
        raise self._unfit(fact, None, None)

    def _device(self, facts: Mapping[str, Any] | None) -> ProgramDevice | None:
        """The device for the kernels of a program; None if it has none."""
        if facts is None:
            return None
        from ...backends.ptx.kernels import DeviceCode
        from ..cuda import device_of

        text = bytes(self.archive.part(facts["ptx"])).decode()
        code = DeviceCode.from_dict(text, facts)
        return device_of(replace(code, emulated=code.emulated or self._emulated))

    def _unfit(self, fact: str, expected: object, got: object) -> TargetError:
        hint = "load(..., recompile=True) compiles it for this machine"
        return TargetError(explain(self.archive.name, fact, expected=expected, got=got, hint=hint))

    def _constant(self, facts: Mapping[str, Any]) -> np.ndarray:
        # Compiled code takes constant integers as indices, without a check of its own.
        return self.archive.array(facts, checked=np.dtype(facts["dtype"]).kind in "iu")

    def _checked(self, facts: Mapping[str, Any]) -> np.ndarray:
        return self.archive.array(facts, checked=True)

    def _weight(self, entry: Mapping[str, Any], declared: Sequence[Sequence[Constant]]) -> Any:
        if "array" in entry:
            return self._checked(entry["array"])
        if "packed" in entry:
            from .packed import unpacked

            number, slot = entry["packed"]
            array = self._checked(self.manifest["programs"][number]["constants"][slot])
            return unpacked(declared[number][slot], array, entry["shape"])
        from scipy.sparse import csr_array

        indptr, indices, values = map(self._checked, entry["csr"])
        return csr_array((values, indices, indptr), shape=tuple(entry["shape"]))

    def _image(self, facts: Mapping[str, Any]) -> Image:
        return Image.from_dict(bytes(self.archive.part(facts["image"])), facts["facts"])

    def _code(self, facts: Mapping[str, Any]) -> Any:
        """The machine code of a program, in memory."""
        if "image" in facts and can_be_mapped():
            kernels = {name: self._image(one) for name, one in facts.get("kernels", {}).items()}
            return MappedProgram(Assembled(self._image(facts), kernels), self._function)
        if "object" not in facts:
            fact = "its code can only be run by Linux on x86-64"
            raise self._unfit(fact, None, None)
        from ...backends.llvm.jit import LinkedObject, add_function
        from ..device import functions_for_devices

        if not set(FOR_DEVICES).isdisjoint(facts["imports"]):
            for name, address in functions_for_devices().items():
                add_function(name, address)
        code = bytes(self.archive.part(facts["object"]))
        return LinkedObject(code, facts["functions"], facts["imports"])

    def _function(self, name: str) -> int:
        """The address of a function that machine code calls."""
        if name in FOR_DEVICES:
            from ..device import functions_for_devices

            return functions_for_devices()[name]
        if name != PARALLEL_TILES:
            return system_function(name)
        return pool.entry(lambda: pool.mapped(self._image(self.manifest["support"]["pool"])))


def _needed(entry: Mapping[str, Any]) -> tuple[int, int]:
    """How much a program needs: the number of the processor of its device, then features."""
    device = entry.get("device")
    capability = 0 if device is None else capability_of(device["processor"])
    return capability, len(entry["target"]["needs"])


def _input(parts: list[np.ndarray]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _decision(entry: Mapping[str, Any]) -> Decision:
    from ...core.pipelines.decisions import Decision

    return Decision(
        entry["subject"],
        entry["what"],
        entry["why"],
        entry["cost"],
        tuple(entry["nodes"]),
        entry["stage"] or "",
        entry["pass"] or "",
        entry["kind"],
        tuple(entry["places"]),
    )
