"""What all tests share."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_origin

import pytest
from hypothesis import settings
from xdsl import irdl
from xdsl.ir import Attribute, Operation
from xdsl.irdl import OpDef
from xdsl.traits import SameOperandsAndResultType

import stepwell as sw
from stepwell.core.pipelines import pass_manager
from stepwell.core.pipelines.stages import STAGES

from . import harness
from .guards.memory import memory
from .guards.programs import install

# The same examples on every run, unless HYPOTHESIS_PROFILE=random. A test states how many it takes
# as a percentage of its profile's.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("random", derandomize=False, deadline=None, max_examples=100)
# What tests compile is scheduled by default, whatever was tuned on this machine.
os.environ["STEPWELL_TUNING"] = ""
# What tests compile is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"

SECONDS = 60
"""How long what runs apart may take before it counts as hanging."""

ROOT = Path(__file__).resolve().parent.parent
# `python -m pytest` puts the root first on the path, where a room would hide a package of its name.
sys.path.sort(key=lambda entry: Path(entry).resolve() == ROOT)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own: files are written anew, or memory is guarded."""
    parser.addoption(
        "--renew-public", action="store_true", help="write tests/public/ and docs/onnx.md again"
    )
    places, what = ("front", "back"), "end the process where a program leaves a buffer there"
    parser.addoption("--guarded", choices=places, help=what)


QUICK = "not slow"
"""The expression that leaves slow tests out."""


def pytest_configure(config: pytest.Config) -> None:
    """Fewer random examples where slow tests are left out, and fewer collections."""
    usual = "quick" if config.option.markexpr == QUICK else "fixed"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))
    if config.option.guarded:
        install(config.option.guarded)
    # The collector runs less often: modules, tests and IR are many small objects.
    gc.set_threshold(100_000)


def pytest_collectstart() -> None:
    """The arrays of a test file do not depend on the files that were imported before."""
    harness.restart()


@pytest.fixture(autouse=True)
def random_stream() -> None:
    """The arrays of a test do not depend on the tests that ran before."""
    harness.restart()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Some tests measure memory, or limit it, and so cannot run with guards."""
    for item in items if config.option.guarded else ():
        for mark in item.iter_markers("unguarded"):
            item.add_marker(pytest.mark.skip(reason=f"with guards {mark.args[0]}"))


@pytest.fixture(autouse=True)
def undamaged(pytestconfig: pytest.Config) -> Iterator[None]:
    """Where memory is guarded, nothing was written around the buffers that were freed so far."""
    yield
    place = pytestconfig.option.guarded
    assert place is None or not memory(place).damaged


@pytest.fixture
def all_tests(pytestconfig: pytest.Config) -> bool:
    """Whether slow tests run too, and tests may compare more."""
    return pytestconfig.option.markexpr != QUICK


@pytest.fixture(scope="module", autouse=True)
def young_heap() -> None:
    """The collector looks at what a file of tests makes, and not at what lived before it.

    It would take a fifth of the time of all tests; and forks copy what it marks.
    """
    gc.collect()
    gc.freeze()


OPEN_STAGES, IS_EXTENDED = pass_manager.OPEN_STAGES, pass_manager.is_extended


def _verify_all_stages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pass_manager, "OPEN_STAGES", STAGES)
    patch.setattr(pass_manager, "is_extended", lambda ctx, op: True)


@pytest.fixture(scope="session", autouse=True)
def verification(pytestconfig: pytest.Config) -> Iterator[None]:
    """A compilation verifies all stages, whatever takes part in it, where slow tests run too."""
    with pytest.MonkeyPatch.context() as patch:
        if pytestconfig.option.markexpr != QUICK:
            _verify_all_stages(patch)
        yield


@pytest.fixture(scope="module")
def every_stage_verified() -> Iterator[None]:
    """The compilations of a file verify all stages, though slow tests are left out."""
    with pytest.MonkeyPatch.context() as patch:
        _verify_all_stages(patch)
        yield


@pytest.fixture
def usual_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compilation verifies what it does outside of tests, though slow tests run too."""
    monkeypatch.setattr(pass_manager, "OPEN_STAGES", OPEN_STAGES)
    monkeypatch.setattr(pass_manager, "is_extended", IS_EXTENDED)


class Numbers:
    """Numbers of attributes, the same for equal ones.

    They are looked up by identity first: to hash an attribute is to hash all that it consists of.
    """

    MOST = 50_000
    """The most objects that are kept alive to be recognised."""

    def __init__(self) -> None:
        self.objects: dict[int, tuple[Attribute, int]] = {}
        self.values: dict[Attribute, int] = {}

    def of(self, attr: Attribute) -> int:
        found = self.objects.get(id(attr))
        if found is None:
            if len(self.objects) > self.MOST:
                self.objects.clear()
            found = attr, self.values.setdefault(attr, len(self.values))
            self.objects[id(attr)] = found
        return found[1]


@pytest.fixture(scope="session", autouse=True)
def known_declarations() -> Iterator[None]:
    """The declared types and attributes of an operation are verified once for each combination.

    Nothing else enters that verification, which would take a third of the time of a compilation
    that verifies all stages. `verify_` and traits that see more than types run every time, and a
    combination that was refused is verified again. The constraint of a type hint is made once.
    """
    whole, known, numbers = OpDef.verify, set[Hashable](), Numbers()
    make_constraint = irdl.irdl_to_attr_constraint
    remembered = functools.cache(make_constraint)

    def verify(self: OpDef, op: Operation) -> None:
        key = _declared(op, numbers)
        if key in known:
            for trait in self.traits:
                if type(trait) is not SameOperandsAndResultType:
                    trait.verify(op)
            return
        whole(self, op)
        known.add(key)

    def constraint(hint: Any, **options: Any) -> Any:
        # Definitions of operations pass hints that hold constraints: not all of these have hashes.
        is_plain = not options and get_origin(hint) not in (None, Annotated)
        return remembered(hint) if is_plain else make_constraint(hint, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpDef, "verify", verify)
        patch.setattr(irdl, "irdl_to_attr_constraint", constraint)
        yield


def _declared(op: Operation, numbers: Numbers) -> Hashable:
    """All that the declaration of an operation says something about."""
    of = numbers.of
    first = [region.first_block for region in op.regions]
    return (
        type(op),
        tuple([of(operand.type) for operand in op.operands]),
        tuple([of(result.type) for result in op.results]),
        tuple([(name, of(attr)) for name, attr in op.properties.items()]),
        tuple([(name, of(attr)) for name, attr in op.attributes.items()]),
        len(op.successors),
        tuple([len(region.blocks) for region in op.regions]),
        tuple([block and tuple([of(arg.type) for arg in block.args]) for block in first]),
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """A function from a file name to its path among the real weights and data.

    They are looked for in the folder `STEPWELL_DATA`, by default `shared/data` beside the
    repository; the test is skipped where the file is not there.
    """
    folder = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"{name} is not in {folder}; set STEPWELL_DATA to the folder that has it")
        return path

    return find


@pytest.fixture(scope="session")
def apart() -> Callable[[Callable[[], object]], str]:
    """A function that runs an action in a forked process, where a crash is seen as one.

    It returns the text of the StepwellError that the action raised, or "works"; it fails the
    test where the process dies, hangs, or raises anything else.
    """
    return _run_apart


def _run_apart(action: Callable[[], object]) -> str:
    read, write = os.pipe()
    with warnings.catch_warnings():
        # The child only uses the thread that it was forked from.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(read)
        signal.alarm(SECONDS)
        os.write(write, _outcome(action).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        outcome = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the process died of signal {status & 127}"
    assert not outcome.startswith("leaked"), outcome
    assert "\n" not in outcome, f"more than one line: {outcome}"
    return outcome


def _outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except sw.StepwellError as error:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return f"leaked {traceback.format_exc()}"
    return "works"
