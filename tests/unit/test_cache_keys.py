"""The key of a compilation: different for whatever can be observed to be different."""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    FloatData,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Data, Operation
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition

import stepwell as sw
from stepwell.caching import facts, keys, packages, sources
from stepwell.caching.facts import OpaqueError, facts_of
from stepwell.caching.keys import key_of, surroundings_of
from stepwell.caching.structure import structure_digest, weights_facts
from stepwell.core import processor
from stepwell.core import target as targets
from stepwell.core.files.digests import digests
from stepwell.core.ir.provenance import named
from stepwell.core.pipelines.decisions import Decision
from stepwell.driver.request import Request

W = np.arange(12, dtype=np.float32).reshape(4, 3)
A = csr_array(np.eye(4, dtype=np.float32)[[1, 0, 0, 3]])


def model(
    inputs: tuple[str, str] = ("x", "n"),
    weights: np.ndarray = W,
    names: tuple[str, str] = ("w", "fc"),
    matrix: csr_array = A,
    axis: int = 1,
    slope: float = 0.1,
    result: str = "y",
    program: str = "main",
    dtype: str = "f32",
) -> sw.Module:
    b = sw.Builder(program)
    x = b.input(inputs[0], (inputs[1], 3), dtype)
    w = b.constant(weights, name=names[0])
    y = b.leaky_relu(b.dense(b.cast(x, "f32"), w, name=names[1]), slope)
    b.output(b.softmax(b.spmm(b.constant(matrix, name="a"), b.transpose(y, (1, 0))), axis))
    b.output(y, name=result)
    return b.module()


def key(module: sw.Module, target: Any = "host", surroundings: Any = (), **options: Any) -> str:
    plain: dict[str, Any] = {"threads": 1, "opt_level": 3, "pipeline": None, "records": False}
    plain |= {"copy_indices": False, "rounding": None} | options
    found = key_of(Request(module, target, **plain), "sources", surroundings)
    assert found is not None
    return found


def flipped(array: np.ndarray, place: int) -> np.ndarray:
    """A copy with another bit."""
    raw = array.copy()
    raw.view(np.uint8).reshape(-1)[place] ^= 1
    return raw


def with_parts(matrix: csr_array, **parts: np.ndarray) -> csr_array:
    made = csr_array(matrix.shape, dtype=matrix.dtype)
    for part in ("indptr", "indices", "data"):
        setattr(made, part, parts.get(part, getattr(matrix, part)))
    return made


def changed(change: Callable[[sw.Module], object]) -> sw.Module:
    made = model()
    change(made)
    return made


def variants() -> Iterator[tuple[str, sw.Module]]:
    """Modules that all differ."""
    yield "plain", model()
    for what, options in {
        "the name of an input": {"inputs": ("x2", "n")},
        "the name of a size": {"inputs": ("x", "m")},
        "the name of a result": {"result": "z"},
        "the name of the program": {"program": "net"},
        "the name of a node": {"names": ("w", "fc2")},
        "the name of a weight": {"names": ("w2", "fc")},
        "the dtype of an input": {"dtype": "f64"},
        "an axis": {"axis": 0},
        "the last bit of a number": {"slope": float(np.nextafter(0.1, 1))},
        "the sign of a 0": {"weights": np.where(W == 0, np.float32(-0.0), W)},
        "a NaN": {"weights": np.where(W == 0, np.float32(np.nan), W)},
        "another NaN": {"weights": flipped(np.where(W == 0, np.float32(np.nan), W), 0)},
        "a shape": {"weights": np.tile(W, (2, 1)), "matrix": csr_array(np.eye(8, dtype="f4"))},
        "an index": {"matrix": with_parts(A, indices=np.array([0, 0, 0, 3], np.int32))},
        "a row": {"matrix": with_parts(A, indptr=np.array([0, 2, 2, 3, 4], np.int32))},
        "a value": {"matrix": with_parts(A, data=np.array([1, 1, 1, 2], np.float32))},
    }.items():
        yield what, model(**options)
    yield "a decision", changed(lambda m: setattr(m, "decisions", (Decision("a", "b", "c"),)))
    yield "its reason", changed(lambda m: setattr(m, "decisions", (Decision("a", "b", "d"),)))
    yield "the name of a value", changed(lambda m: setattr(first(m).results[0], "name_hint", "q"))
    yield "a place", changed(lambda m: setattr(first(m), "location", named("elsewhere")))
    yield (
        "a location of an input",
        changed(lambda m: setattr(m.main.body.block.args[0], "location", named("elsewhere"))),
    )
    yield "an attribute", changed(lambda m: first(m).attributes.update({"k": UnitAttr()}))
    yield "a further weight", changed(lambda m: m.weights.add("unused", W))
    yield "names for callers", changed(lambda m: setattr(m.weights, "names", {"other": "w"}))
    yield (
        "a rounding",
        changed(lambda m: m.op.attributes.update({"graph.rounding": StringAttr("kept")})),
    )


def first(module: sw.Module) -> Operation:
    return next(iter(module.main.body.block.ops))


def options() -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments that all differ."""
    yield "another target", {"target": "x86-64-v3"}
    yield "a target", {"target": targets.named("x86-64-v3")}
    for name, value in {"vector_bits": 128, "cores": 3, "features": "+x"}.items():
        yield name, {"target": replace(targets.named("x86-64-v3"), **{name: value})}
    yield from ((f"{n} threads", {"threads": n}) for n in (2, None, True, 1.0))
    yield from ((f"level {n}", {"opt_level": n}) for n in (0, 1, 2))
    yield from ((f"rounding {r}", {"rounding": r}) for r in ("kept", "free", "unseen"))
    yield "copied indices", {"copy_indices": True}
    yield from ((f"pipeline {p}", {"pipeline": p}) for p in ("", "a", "b", {"a": "b"}, {"b": "a"}))
    yield "a trace", {"schedule": "@fused_dense: split(i, 8)"}
    yield "what tuning found", {"schedules": {"k": "split(i, 8)"}}
    yield "other surroundings", {"surroundings": ("other",)}


def test_keys_of_what_differs_differ() -> None:
    found = {what: key(module) for what, module in variants()}
    found |= {what: key(model(), **given) for what, given in options()}
    same = [(a, b) for a, b in itertools.combinations(found, 2) if found[a] == found[b]]
    assert not same
    assert key(model()) == found["plain"]
    assert key(model().clone()) == found["plain"]


def test_keys_do_not_depend_on_where_arrays_lie() -> None:
    base = key(model())
    strided = np.concatenate([W, W], 1)[:, :3]
    frozen = W.copy()
    frozen.flags.writeable = False
    for array in (np.asfortranarray(W), strided, frozen):
        assert key(model(weights=array)) == base


@given(st.integers(0, 4 * 12 - 1), st.integers(0, 7))
@settings(max_examples=settings().max_examples * 50 // 100)
def test_each_bit_of_a_weight_counts(place: int, bit: int) -> None:
    raw = W.copy()
    raw.view(np.uint8).reshape(-1)[place] ^= np.uint8(1 << bit)
    assert weights_facts(stored(raw)) != weights_facts(stored(W))


def stored(array: Any) -> sw.WeightStore:
    store = sw.WeightStore()
    store.add("w", array)
    return store


SAME_BYTES = [
    np.zeros(4, np.float32),
    np.zeros(4, np.int32),
    np.zeros(4, ">f4"),
    np.zeros((2, 2), np.float32),
    np.zeros((2, 4), np.float16),
    np.zeros((4, 1), np.float32),
    np.zeros(16, np.bool_),
    np.zeros(0, np.float32),
    np.zeros((0, 2), np.float32),
]


def test_types_of_arrays_count() -> None:
    arrays = [*SAME_BYTES, A, with_parts(A, indices=A.indices.astype(np.int64)), csr_matrix(A)]
    found = [repr(weights_facts(stored(array))) for array in arrays]
    assert len(set(found)) == len(found)


def affine(scale: int) -> Attribute:
    return AffineMapAttr(AffineMap.from_callable(lambda i: (i * scale,)))


ATTRIBUTES: list[Attribute] = [
    *(UnitAttr(), NoneAttr(), StringAttr(""), StringAttr("1"), StringAttr("\ud800")),
    *(IntegerAttr(1, i32), IntegerAttr(1, i64), IntegerAttr(-1, i32)),
    *(FloatAttr(1.0, f32), FloatAttr(1.0, f64), FloatAttr(0.1, f64), FloatAttr(-0.0, f64)),
    *(FloatAttr(0.0, f64), FloatAttr(float(np.nextafter(0.1, 1)), f64)),
    *(FloatData(1.0), FloatData(float("nan")), FloatData(float("inf"))),
    *(ArrayAttr([]), ArrayAttr([UnitAttr()]), ArrayAttr([ArrayAttr([])])),
    *(DictionaryAttr({}), DictionaryAttr({"a": i32}), DictionaryAttr({"a": i64})),
    *(TensorType(f32, [2]), TensorType(f32, [-1]), TensorType(f32, []), TensorType(f32, [2, 1])),
    *(affine(1), affine(2)),
]


def digest_of(attribute: Attribute) -> str:
    return structure_digest(test.TestOp(attributes={"a": attribute}))


def test_attributes_that_differ_have_other_digests() -> None:
    found = [digest_of(attribute) for attribute in ATTRIBUTES]
    assert len(set(found)) == len(found)


def test_plain_values_have_their_types() -> None:
    values = [1, True, 1.0, 1 + 0j, "1", b"1", None, (1,), [1], {1}, {1: 1}, np.int64(1)]
    found = {repr(facts_of(value)) for value in values}
    assert len(found) == len(values)


numbers = st.lists(st.integers(0, 3), max_size=6)


@given(numbers, numbers)
@settings(max_examples=settings().max_examples)
def test_the_wiring_of_operations_counts(left: list[int], right: list[int]) -> None:
    """Operation n takes the results of earlier ones."""

    def wired(places: list[int]) -> Operation:
        ops = [test.TestOp(result_types=[i32])]
        for place in places:
            ops.append(test.TestOp([ops[place % len(ops)]], result_types=[i32]))
        return ModuleOp(list[Operation](ops))

    def meant(places: list[int]) -> list[int]:
        return [place % (number + 1) for number, place in enumerate(places)]

    same = meant(left) == meant(right)
    assert (structure_digest(wired(left)) == structure_digest(wired(right))) is same


@irdl_attr_definition
class ForeignAttr(Data[int]):
    name = "foreign.number"

    @classmethod
    def parse_parameter(cls, parser: Any) -> int:
        return parser.parse_integer()

    def print_parameter(self, printer: Any) -> None:
        printer.print_string(f"{self.data}")


def test_what_is_not_known_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (ForeignAttr(1), StringAttr(object())):
        with pytest.raises(OpaqueError):
            digest_of(value)
    other = changed(lambda m: first(m).attributes.update({"k": ForeignAttr(1)}))
    assert key_of(Request(other), "s", ()) is None
    objects = changed(lambda m: m.weights.add("o", np.array([None])))
    assert key_of(Request(objects), "s", ()) is None
    ruled = replace(targets.named("x86-64-v3"), legalize={"graph.relu": print})
    assert key_of(Request(model(), ruled), "s", ()) is None
    assert key_of(Request(model(), threads=cast(Any, print)), "s", ()) is None
    assert key_of(Request(model(), legalize={}), "s", ()) is None
    assert key_of(Request(model()), "s", ()) is not None
    assert surroundings_of(Request(model())) is not None


def test_keys_are_the_same_in_every_process() -> None:
    folder = Path(__file__).parent
    code = f"""
import sys
sys.path.insert(0, {str(folder)!r})
from test_cache_keys import key, model
print(key(model()))
"""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == key(model())


def surroundings(records: Any = False) -> Any:
    found = surroundings_of(Request(model(), records=records))
    assert found is not None
    return found


def test_the_machine_and_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [surroundings()]
    monkeypatch.setenv("STEPWELL_NUM_THREADS", "1")
    found.append(surroundings())
    monkeypatch.setattr(keys, "available_cores", lambda: 77)
    found.append(surroundings())
    monkeypatch.setattr(keys, "identity", lambda: ("another processor",))
    found.append(surroundings())
    monkeypatch.setattr(keys, "identity", lambda: None)
    found.append(surroundings())
    other = replace(targets.this_machine(), l2_bytes=1)
    monkeypatch.setattr(keys, "this_machine", lambda: other)
    found.append(surroundings())
    assert len(set(map(repr, found))) == len(found)
    assert repr(surroundings()) == repr(found[-1])


def test_the_processor_is_told_by_what_linux_says(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = processor.identity.__wrapped__
    assert plain() == plain()
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(OSError))
    assert plain() is None


def test_schedules_count_by_their_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuning.jsonl"
    monkeypatch.setenv("STEPWELL_TUNING", str(path))
    none = surroundings(False)
    assert surroundings(None) == none
    request = Request(model(), records=path)
    assert surroundings_of(request) is None  # `compile` says that there is no such file.
    path.write_text("a")
    one = surroundings(None)
    assert one == surroundings(path) == surroundings(str(path)) == surroundings(True)
    path.write_text("b")
    assert len({repr(one), repr(none), repr(surroundings(None))}) == 3


class Known(dict[str, str]):
    """Remembers texts while the test runs."""

    def recall(self, name: str) -> str | None:
        return self.get(name)

    def remember(self, name: str, text: str) -> None:
        self[name] = text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose sources are what counts."""
    for name in ("__init__.py", "a.py", "inner/__init__.py", "inner/b.ll", "data/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(sources, "_ROOT", tmp_path)
    # The files were just written, and the package was imported before.
    monkeypatch.setattr(sources, "_CLOCKS_DIFFER_BY", -(10**12))
    return tmp_path


def digest(memory: Known) -> str:
    found = sources.sources_digest(memory, time.time_ns())
    assert found is not None
    return found[0]


def test_sources_count_by_their_contents(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Known()
    found = [digest(memory)]
    for name in ("a.py", "inner/b.ll", "inner/__init__.py"):
        (package / name).write_text("2")
        found.append(digest(memory))
    (package / "new.py").write_text("1")
    found.append(digest(memory))
    (package / "new.py").rename(package / "newer.py")
    found.append(digest(memory))
    monkeypatch.setattr(sources, "_PACKAGES", ("numpy",))
    found.append(digest(Known()))
    assert len(set(found)) == len(found)
    (package / "data" / "c.py").write_text("2")
    assert digest(Known()) == found[-1]


def test_a_digest_is_remembered_by_the_state_of_the_files(package: Path) -> None:
    memory = Known()
    found = digest(memory)
    (name,) = memory
    memory[name] = "what was remembered"
    assert digest(memory) == "what was remembered"
    state = (package / "a.py").stat()
    (package / "a.py").write_text("2")
    os.utime(package / "a.py", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest(memory) not in (found, "what was remembered")


def test_sources_that_changed_after_the_import_are_not_those_that_run(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_CLOCKS_DIFFER_BY", 0)
    changed_ns = (package / "a.py").stat().st_ctime_ns
    assert sources.sources_digest(Known(), changed_ns - 1) is None
    monkeypatch.setattr(sources, "_ROOT", package / "nowhere")
    assert sources.sources_digest(Known(), 1 << 62) is None


def installed(
    site: Path, name: str, version: str, *, requires: str = "", editable: bool = False
) -> None:
    """Describe a distribution as an installer does."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: {requires}\n"
    )
    files = "" if editable else f"{name}/__init__.py,,\n"
    (info / "RECORD").write_text(f"{files}{info.name}/METADATA,,\n")
    (info / "entry_points.txt").write_text(f"[xdsl.universe]\n{name} = {name}:UNIVERSE\n")
    if editable:
        (info / "direct_url.json").write_text(
            '{"url": "file:///x", "dir_info": {"editable": true}}'
        )


@pytest.fixture
def acme(
    package: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any
) -> Iterator[Path]:
    """Where the files of a plug-in are, which requires two packages; one of these is editable."""
    site, work = (tmp_path_factory.mktemp(name) for name in ("site", "work"))
    for folder, name in ((site, "acme_ops"), (work, "acme_base"), (site, "acme_math")):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("1")
        monkeypatch.syspath_prepend(folder)
    (site / "acme_ops" / "table.bin").write_text("1")
    installed(site, "acme_ops", "1.0", requires="acme-base >= 1\nRequires-Dist: stepwell")
    installed(site, "acme_base", "1.0", requires="acme.math", editable=True)
    installed(site, "acme_math", "1.0")
    monkeypatch.setattr(packages, "plugin_packages", lambda: {"acme_ops"})
    packages.packages_of_plugins.cache_clear()
    yield site
    packages.packages_of_plugins.cache_clear()


def digest_anew() -> str:
    packages.packages_of_plugins.cache_clear()
    return digest(Known())


def test_plugins_count_by_their_files_and_versions(acme: Path) -> None:
    (base,) = (Path(entry) for entry in sys.path if (Path(entry) / "acme_base").is_dir())
    found = [digest_anew()]
    assert digest_anew() == found[0]
    for path in (acme / "acme_ops" / "__init__.py", acme / "acme_ops" / "table.bin"):
        path.write_text("2")
        found.append(digest_anew())
    (base / "acme_base" / "new.py").write_text("")  # of a package that is edited
    found.append(digest_anew())
    for name in ("acme_ops", "acme_math"):
        (acme / f"{name}-1.0.dist-info").rename(acme / f"{name}-2.0.dist-info")
        metadata = acme / f"{name}-2.0.dist-info" / "METADATA"
        metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 2.0"))
        importlib.invalidate_caches()
        found.append(digest_anew())
    assert len(set(found)) == len(found)
    (acme / "acme_math" / "__init__.py").write_text("2")  # known by its version
    (acme / "acme_ops" / ".hidden").write_text("2")
    assert digest_anew() == found[-1]
    assert packages.modules_of_plugins() == {"acme_ops", "acme_base"}


def test_plugins_that_changed_after_the_import_are_not_those_that_run(
    acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_CLOCKS_DIFFER_BY", 0)
    latest = sources.stamp().changed
    time.sleep(0.01)
    (acme / "acme_ops" / "__init__.py").write_text("3")
    assert sources.stamp().changed > latest
    assert sources.sources_digest(Known(), latest) is None


def test_plugins_whose_files_are_not_known_have_no_digest(
    acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_digest() -> bool:
        packages.packages_of_plugins.cache_clear()
        return sources.sources_digest(Known(), time.time_ns()) is None

    assert not no_digest()
    monkeypatch.setattr(packages, "_MOST_FILES", 2)
    assert not no_digest()
    monkeypatch.setattr(packages, "_MOST_FILES", 1)
    assert no_digest()
    monkeypatch.undo()
    for plugin in ("nobody", "acme_ops"):
        monkeypatch.setattr(sources, "_ROOT", Path(sources.__file__).parent)
        monkeypatch.setattr(sources, "_CLOCKS_DIFFER_BY", -(10**12))
        monkeypatch.setattr(packages, "plugin_packages", lambda p=plugin: {p})
        assert no_digest()

    def broken() -> None:
        raise sw.StepwellError("package: cannot be loaded")

    monkeypatch.setattr(packages, "plugin_packages", broken)
    assert no_digest()


def test_classes_of_plugins_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    value = ForeignAttr(1)
    monkeypatch.setattr(facts, "modules_of_plugins", lambda: {__name__.partition(".")[0]})
    facts.class_name.cache_clear()
    assert digest_of(value) == digest_of(ForeignAttr(1)) != digest_of(ForeignAttr(2))
    monkeypatch.undo()
    facts.class_name.cache_clear()
    with pytest.raises(OpaqueError):
        digest_of(value)


def test_long_arrays_are_digested_on_threads() -> None:
    arrays = [np.full(size, size % 7, np.uint8).data for size in (3, 1 << 22, 5, 1 << 20, 0)]
    assert digests(arrays) == [digests([one])[0] for one in arrays]
