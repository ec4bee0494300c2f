"""Files of other people: each reader has limits, and one error for what is beyond them."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import stepwell as sw
from stepwell.core.boundary.specs import ValueSpec
from stepwell.core.files.reading import (
    DEEPEST_JSON,
    ReadingError,
    amount,
    read_json,
    read_npy,
    read_npz,
    read_stream,
    read_text,
)
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.text import entries
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.frontends.mlir import from_mlir
from stepwell.passes.loop.scheduler.records import read_records
from stepwell.passes.loop.scheduler.replay import read_traces
from stepwell.runtime.archives import read_archive
from stepwell.tools.models import read_array, read_option

SPEC = ValueSpec("x", (4,), "f32")

READERS: dict[str, Callable[[Path], Any]] = {
    "from_mlir": from_mlir,
    "onnx": sw.from_onnx,
    "weights": WeightStore.load,
    "tuning records": read_records,
    "trace": lambda path: read_traces(None, str(path)),
    "--pipeline": lambda path: read_option("--pipeline", path),
    "--input": read_array,
    "--check": lambda path: read_archive(path, [SPEC]),
}


@pytest.mark.parametrize("subject", READERS)
def test_what_never_ends_is_not_read(tmp_path: Path, subject: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        expected = rf"{subject}: cannot read {path}.*: not a regular file"
        with pytest.raises((sw.StepwellError, ScheduleError), match=expected):
            READERS[subject](path)


@pytest.mark.parametrize("subject", ["trace", "--pipeline"])
def test_lists_have_a_size(tmp_path: Path, subject: str) -> None:
    path = tmp_path / "long"
    path.write_text("#" * (1 << 20) + "\n")
    expected = f"{subject}: cannot read {path}: too large, expected at most 1 MiB, got 1 MiB"
    with pytest.raises((sw.StepwellError, ScheduleError), match=expected):
        READERS[subject](path)


def test_a_stream_has_a_size() -> None:
    assert read_stream(BytesIO(b"abc"), 3) == b"abc"
    with pytest.raises(ReadingError, match="too large, expected at most 2 bytes"):
        read_stream(BytesIO(b"abc"), 2)


def test_text_is_utf_8_with_line_feeds(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("a\r\nb\rä".encode())
    assert read_text(tmp_path / "text") == "a\nb\nä"
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(ReadingError, match="not a text"):
        read_text(tmp_path / "binary")


def test_json_has_a_depth() -> None:
    deepest = "[" * DEEPEST_JSON + '"[[{\\"["' + "]" * DEEPEST_JSON
    assert str(read_json(deepest)).count("[") == DEEPEST_JSON + 3
    with pytest.raises(ReadingError, match="nested too deeply, expected at most 32 brackets"):
        read_json(f"[{deepest}]")
    for text in ("{", '"a', "[1,]", "9" * 5000):
        with pytest.raises(ReadingError, match="not JSON"):
            read_json(text)


def test_amounts_are_for_people() -> None:
    sizes = [0, 1023, 1024, 3 << 19, 400 * 10**9, 5 << 40]
    expected = ["0 bytes", "1023 bytes", "1 KiB", "1.5 MiB", "372.5 GiB", "5 TiB"]
    assert [amount(size) for size in sizes] == expected


# NumPy's formats


def header(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    """The beginning of a `.npy` file that claims to hold an array."""
    file = BytesIO()
    claim = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, claim)
    return file.getvalue()


CLAIMS = {
    "400 GB": (header((10**11,)) + bytes(16), "the array has less data than it claims"),
    "a size below zero": (header((-4,)) + bytes(16), "the array has no numbers in it"),
    "elements of no size": (header((10**12,), "|S0"), "the array has no numbers in it"),
    "objects": (header((4,), "|O") + bytes(32), "the array has no numbers in it"),
    "a damaged header": (header((4,)).replace(b"{", b"("), ""),
    "another version": (b"\x93NUMPY\x09\x00" + bytes(64), ""),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_array_has_the_data_it_claims(tmp_path: Path, claim: str) -> None:
    data, fact = CLAIMS[claim]
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(ReadingError, match=f"not an array in NumPy's format: .*{fact}"):
        read_npy(tmp_path / "x.npy")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
            archive.writestr("x.npy", data)
        expected = f"not an archive in NumPy's format: .*{fact}"
        for reader in (read_npz, read_array, WeightStore.load, READERS["--check"]):
            with pytest.raises((ReadingError, sw.StepwellError), match=expected):
                reader(tmp_path / "x.npz")


def test_an_archive_fits_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(1000), b=np.zeros(1000))
    assert sorted(read_npz(tmp_path / "x.npz")) == ["a", "b"]
    monkeypatch.setattr("stepwell.core.files.reading.memory", lambda: 10_000)
    with pytest.raises(ReadingError, match=re.escape("at most 9.766 KiB, got 15.62 KiB")):
        read_npz(tmp_path / "x.npz")


def test_an_unknown_compression(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", header((4,)) + bytes(16))
    with pytest.raises(ReadingError, match=r"x\.npy is compressed by an unknown method"):
        read_npz(tmp_path / "x.npz")


def test_arrays_are_what_was_written(tmp_path: Path) -> None:
    for array in (np.arange(6.0).reshape(2, 3).T, np.zeros((0, 4), np.int8), np.array(True)):
        np.save(tmp_path / "x.npy", array)
        np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), array)


# Weights


def test_metadata_of_another_writer(tmp_path: Path) -> None:
    save_file({"w": np.ones(3, np.float32)}, tmp_path / "w.safetensors", {"format": "pt"})
    assert list(WeightStore.load(tmp_path / "w.safetensors")) == ["w"]


def test_errors_of_safetensors_are_cut(tmp_path: Path) -> None:
    """They quote the header, which may be long."""
    header = json.dumps({"w": {"dtype": "F" * 9000, "shape": [], "data_offsets": [0, 0]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(sw.StepwellError, match="not in the format of safetensors") as caught:
        WeightStore.load(path)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("[" * 10_000, "weights: cannot read .*: nested too deeply, expected at most 32"),
        ("[1e999, 2]", 'weights: CSR matrix "a": cannot convert float infinity'),
        ("[2", "weights: cannot read .*: not JSON"),
    ],
)
def test_shapes_of_matrices_in_metadata(tmp_path: Path, shape: str, message: str) -> None:
    parts = {"indptr": np.array([0, 1, 2]), "indices": np.array([0, 1]), "values": np.ones(2)}
    arrays = {f"a.{name}": array for name, array in parts.items()}
    save_file(arrays, tmp_path / "m.safetensors", {"a": shape})
    with pytest.raises(sw.ImportModelError, match=message):
        WeightStore.load(tmp_path / "m.safetensors")


# Texts


def test_a_trace_file_is_not_shown(tmp_path: Path) -> None:
    """Who names a file in a pipeline need not be who may read it."""
    path = tmp_path / "secret"
    for text, line in (
        ("password: hunter2\n", 1),
        ("\n# a comment\n split(4.5, hunter2)", 3),
        ("tiles(i);\nhunter2", 2),
    ):
        path.write_text(text)
        with pytest.raises(ScheduleError) as caught:
            read_traces(None, str(path))
        expected = f"trace: cannot read line {line} of {path}, expected name(arguments); ..."
        assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("split(i, " + "9" * 5000 + ")", "trace: cannot read split"),
        ("a" * 100_000, "trace: cannot read step 1"),
        ("a();" * 50_000 + "!", "trace: cannot read step 50001"),
        ("\n" * 100_000 + "!", "trace: cannot read step 1"),
    ],
)
def test_long_traces(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as caught:
        read_traces(text, None)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func(" * 5000 + "cse" + ")" * 5000, "pipeline: nested too deeply, expected at most"),
        ("graph-fuse-ops{max-ops=" + "9" * 6000 + "}", "pipeline: cannot read 'graph-fuse-ops{"),
        ("\n" * 50_000 + "{", "pipeline: cannot read"),
        ("cse" + " " * 50_000 + "x", "pipeline: cannot read 'cse  "),
        ('loop-schedule{trace="' + '\\"' * 20_000, "pipeline: cannot read 'loop-schedule"),
        ("x(" * 50_000, "pipeline: parentheses do not match in 'x"),
    ],
)
def test_long_pipelines(text: str, message: str) -> None:
    with pytest.raises(sw.CompileError, match=message) as caught:
        entries(text)
    assert len(str(caught.value)) < 250


NUMBERS = [
    '"test.op"() {a = dense<1.0e39> : tensor<1xf32>} : () -> ()\n',
    '"test.op"() {a = dense<[1.0e39]> : vector<1xf16>} : () -> ()\n',
    '"test.op"() {a = 1.0e39 : f32} : () -> ()\n',
    '"test.op"() {a = array<f32: 1.0e39>} : () -> ()\n',
    '"test.op"() {a = -1.0e39 : f32} : () -> ()\n',
    '"test.op"() {a = 1.0e5 : f16} : () -> ()\n',
    '"test.op"() {a = 1.0e400 : f64} : () -> ()\n',
]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_beyond_their_type(text: str) -> None:
    with pytest.raises(
        sw.ImportModelError, match=r"text:1:\d+: a number is too large for its type"
    ):
        from_mlir(text)


def test_bits_beyond_their_type() -> None:
    # xDSL 0.75 words it itself.
    fact = "(a number is too large for its|Hexadecimal float constant out of range for) type"
    with pytest.raises(sw.ImportModelError, match=rf"text:1:\d+: {fact}"):
        from_mlir('"test.op"() {a = 0x123456789 : f32} : () -> ()\n')
    text = '"test.op"() {a = 0x7f800000 : f32, b = 0xfff0000000000000 : f64} : () -> ()\n'
    assert text.strip() in str(from_mlir(text).op)


def test_brackets_that_count() -> None:
    """Strings, comments and arrows have none."""
    text = f'"test.op"() {{a = "{"[" * 100}"}} : () -> ()  // {"(" * 100}\n'
    from_mlir(text)
    calls = ", ".join(["() -> ()"] * 100)
    from_mlir(f'"test.op"() {{a = [{calls}]}} : () -> ()\n')


@pytest.mark.parametrize("format", [np.array(True), np.array("csx"), np.array(["csr", "csr"])])
def test_a_matrix_without_a_format(tmp_path: Path, format: np.ndarray) -> None:
    parts = {"indptr": np.arange(3), "indices": np.arange(2), "data": np.ones(2)}
    np.savez(tmp_path / "a.npz", format=format, shape=np.array([2, 2]), **parts)
    with pytest.raises(sw.StepwellError, match="not an archive in NumPy's format: "):
        read_array(tmp_path / "a.npz")
