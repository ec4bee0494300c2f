"""`from_mlir`: paths, text, weights beside it, and every way in which it can be malformed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import BytesAttr, StringAttr

from stepwell.core.errors import ImportModelError
from stepwell.core.ir.module import Module
from stepwell.core.ir.weights import WeightStore
from stepwell.frontends.builder import Builder
from stepwell.frontends.mlir import from_mlir

WEIGHTED = """
%0 = arith.constant dense_resource<w0> : tensor<4xf32> loc("fc1")
%1 = arith.constant dense_resource<w0> : tensor<4xf32>
"""

WIDE = "#sparse_tensor.encoding<{ map = (d0) -> (d0 : dense), posWidth = 33 }>"


def store(array: np.ndarray) -> WeightStore:
    weights = WeightStore()
    weights.add("w0", array)
    return weights


def test_text() -> None:
    module = from_mlir("func.func @f(%x: f32) -> f32 {\n  func.return %x : f32\n}")
    assert module.main.sym_name.data == "f"
    assert len(module.weights) == 0


def test_path_with_weights_beside_it_survives_a_round_trip(tmp_path: Path) -> None:
    array = np.arange(4, dtype=np.float32)
    first = from_mlir(WEIGHTED, weights=store(array))
    first.save(tmp_path / "m.mlir")
    second = from_mlir(tmp_path / "m.mlir")
    assert second.text(locations=True) == first.text(locations=True)
    np.testing.assert_array_equal(second.weights["w0"], array)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("elements", ["0.0, -0.0", "-0.0, 0.0", "-0.0, -0.0"])
def test_zeros_keep_their_signs(kind: str, elements: str) -> None:
    module = from_mlir(f"""func.func @main() -> tensor<2x{kind}> {{
      %c = graph.constant dense<[{elements}]> : tensor<2x{kind}>
      func.return %c : tensor<2x{kind}>
    }}""")
    again = from_mlir(module.text())
    signs = [zero.strip() == "-0.0" for zero in elements.split(",")]
    assert np.signbit(again.run_reference()).tolist() == signs


def test_names_that_are_not_ascii_survive_a_round_trip(tmp_path: Path) -> None:
    b = Builder("main")
    b.output(b.relu(b.input("größe", (None, 2)), name="nœud"), name="結果")
    first = b.module()
    first.save(tmp_path / "m.mlir")
    second = from_mlir(tmp_path / "m.mlir")
    assert second.text(locations=True) == first.text(locations=True)
    assert [second.inputs[0].name, second.outputs[0].name] == ["größe", "結果"]


def test_names_with_dots_are_those_of_values(tmp_path: Path) -> None:
    b = Builder("main")
    w = b.constant(np.ones((3, 2), np.float32), name="layers.0.weight")
    b.output(b.dense(b.input("x.0", (None, 2)), w))
    b.output(b.relu(b.input("y._0", (2,))))
    first = b.module()
    assert "%layers.0.weight = graph.constant dense_resource<layers.0.weight>" in str(first)
    assert "graph.dense %x.0, %layers.0.weight" in str(first)
    first.save(tmp_path / "m.mlir")
    assert from_mlir(tmp_path / "m.mlir").clone().text() == first.text()


def test_names_that_are_numbers_can_be_copied() -> None:
    body = "^_1:\n  cf.br ^_2(%_0 : i32)\n^_2(%_3 : i32):\n  func.return %_3 : i32"
    module = from_mlir(f"func.func @f(%_0: i32) -> i32 {{\n  cf.br ^_1\n{body}\n}}")
    assert module.clone().text() == module.text()


def test_bytes_that_are_no_text_stay_bytes() -> None:
    text = from_mlir('func.func @f() attributes {a = "\\FF", b = "\\C3\\A9"} {\n  func.return\n}')
    found = text.main.attributes
    assert [type(found[name]) for name in "ab"] == [BytesAttr, StringAttr]


def test_weight_names_stay_the_same_however_often_they_are_read() -> None:
    for _ in range(3):
        text = str(from_mlir(WEIGHTED, weights=store(np.zeros(4, np.float32))))
        assert text.count("dense_resource<w0>") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("xx\n", r"text:2?1?.*Operation xx is not registered"),
        ("func.func @f(%x: tensor<3xf99>) {\n}", r"text:1:\d+: "),
        ("builtin.module {\n", r"text:\d+:\d+: "),
        ("builtin.module {" * 5000, "text:1:1040: nested too deeply, expected at most 64 brackets"),
        ("{-# external_resources: { #-}", r"text:1:\d+: identifier expected"),
        ('"foo.bar"() : () -> ()\n', r"text:1:2: Operation foo.bar is not registered"),
        ("func.func @f() -> f32 {\n  func.return\n}", "text:2:3: .*expected .f32., got"),
        ('func.func @f() attributes {a = "' + "x" * 200 + "\n}", "End of file reached before"),
        (
            "%0 = arith.constant dense<1.0> : tensor<100000x10000xf32>\n",
            r"text:1:34: the literal is too large, expected 67108864 elements or fewer, got 10{9}",
        ),
        (
            f'func.func @f() {{\n  "test.op"() {{a = {WIDE}}} : () -> ()\n}}',
            "text:2:3: cannot parse: sparse_tensor.encoding: posWidth not supported",
        ),
        (WEIGHTED, r'text:2:1: weight "w0" is not in the weights beside the text \(node "fc1"\)'),
    ],
)
def test_malformed_text_is_one_error(text: str, message: str) -> None:
    with pytest.raises(ImportModelError, match=message) as caught:
        from_mlir(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("array", [np.zeros(5, np.float32), np.zeros(4, np.float64)])
def test_a_weight_that_is_not_of_its_type(array: np.ndarray) -> None:
    with pytest.raises(ImportModelError, match='weight "w0" differs from its type'):
        from_mlir(WEIGHTED, weights=store(array))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"cannot read nowhere\.mlir: No such file"):
        from_mlir("nowhere.mlir")
    (tmp_path / "b.mlir").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ImportModelError, match="from_mlir: cannot read"):
        from_mlir(tmp_path / "b.mlir")
    (tmp_path / "c.mlir").write_text("builtin.module {\n}")
    (tmp_path / "c.safetensors").write_bytes(b"junk")
    with pytest.raises(ImportModelError, match="weights: cannot read"):
        from_mlir(tmp_path / "c.mlir")
    with pytest.raises(ImportModelError, match="from_mlir: the text is empty"):
        from_mlir("")
    with pytest.raises(ImportModelError, match="neither a path nor text, got int"):
        from_mlir(3)  # type: ignore[arg-type]


def test_a_module_is_returned() -> None:
    assert isinstance(from_mlir("builtin.module {\n}"), Module)


def test_damaged_text_is_one_error_in_a_moment(root: Path) -> None:
    source = (root / "tests/lit/passes/graph/fuse-ops-options.mlir").read_text()
    numbers = random.Random(0)
    messages: list[str] = []
    for _ in range(100):
        damaged = list(source)
        for _ in range(numbers.randint(1, 6)):
            place = numbers.randrange(len(damaged))
            damaged[place : place + numbers.randint(0, 8)] = numbers.choice(
                '{}()<>[]%@#!?x0-"\n,:='
            )
        try:
            from_mlir("".join(damaged))
        except ImportModelError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert not [message for message in messages if "\n" in message]


def test_an_error_quotes_little_of_the_text() -> None:
    """xDSL's own error repeats a predicate that it does not know, however long it is."""
    predicate = "(" * 2000
    text = f"""
builtin.module {{
  func.func @main(%a: i64) {{
    %c = llvm.icmp "{predicate}" %a, %a : i64
  }}
}}"""
    with pytest.raises(ImportModelError, match=r"^text:4:\d+: cannot parse: '\(+\.\.\.$") as error:
        from_mlir(text)
    assert len(str(error.value)) < 1200
