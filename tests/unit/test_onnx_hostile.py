"""Broken and hostile ONNX models end in one `ImportModelError`, quickly."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import (
    make_attribute,
    make_function,
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

from stepwell import ImportModelError
from stepwell.api.imported import from_onnx
from stepwell.frontends.onnx import importer


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    """Every case ends within seconds of the processor, whatever it claims to contain."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 20


def model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int | str, ...] | None] | None = None,
    initialisers: list[TensorProto] | None = None,
    outputs: tuple[str, ...] = ("y",),
    opset: int = 17,
    **options: object,
) -> ModelProto:
    shapes = {"x": (2, 3)} if inputs is None else inputs
    infos = [make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    results = [make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    graph = make_graph(nodes, "g", infos, results, initialisers or [])
    return make_model(graph, opset_imports=[make_opsetid("", opset)], **options)


def relu() -> ModelProto:
    return model([make_node("Relu", ["x"], ["y"], name="act")])


def refused(source: object, text: str, **options: object) -> None:
    with pytest.raises(ImportModelError, match=re.escape(text)):
        from_onnx(source, **options)


# Files


def test_file_that_is_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "none.onnx", "No such file or directory")
    refused(str(tmp_path), "Is a directory")
    refused("/dev/zero", "not a regular file")
    refused("a\0b", "cannot read a\0b: not a path")
    os.mkfifo(tmp_path / "pipe.onnx")
    refused(tmp_path / "pipe.onnx", "pipe.onnx: not a regular file")
    with (tmp_path / "long.onnx").open("wb") as file:
        file.truncate(1 << 31)
    refused(tmp_path / "long.onnx", "too large, expected at most 2 GiB, got 2 GiB; keep the")


def test_source_of_another_kind() -> None:
    refused(3, "onnx: unknown source, expected path, bytes or ModelProto, got int")


@pytest.mark.parametrize("data", [b"", b"\xff" * 100, b"hello, world", b"\x08\x07"])
def test_bytes_that_are_no_model(data: bytes) -> None:
    refused(data, "not an ONNX model")


def test_truncated_model() -> None:
    data = model(
        [make_node("MatMul", ["x", "w"], ["y"])],
        initialisers=[from_array(np.ones((3, 4), np.float32), "w")],
    ).SerializeToString()
    for length in range(0, len(data) - 1, 3):
        with pytest.raises(ImportModelError):
            from_onnx(data[:length])


def test_deeply_nested_message() -> None:
    """A graph in an attribute of a node of a graph, a thousand times."""
    inner = b""
    for level in range(3000):
        tag = (b"\x0a", b"\x2a", b"\x32")[level % 3]
        inner = tag + _varint(len(inner)) + inner
    with pytest.raises(ImportModelError):
        from_onnx(b"\x3a" + _varint(len(inner)) + inner)


def _varint(number: int) -> bytes:
    result = bytearray()
    while number >= 128:
        result.append(number & 127 | 128)
        number >>= 7
    return bytes([*result, number])


def test_name_that_is_no_text() -> None:
    refused(relu().SerializeToString().replace(b"Relu", b"R\x80lu"), "a name is not UTF-8 text")


@settings(
    max_examples=settings().max_examples * 150 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    """A model with some bytes changed is taken or refused; nothing else happens."""
    raw = bytearray(_CHANGED)
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(st.integers(0, len(raw) - 1))
        raw[position] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ImportModelError):
        from_onnx(bytes(raw)).verify()


_CHANGED = model(
    [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "i"], ["n"]),
        make_node("Unsqueeze", ["n", "zero"], ["m"]),
        make_node("Concat", ["m", "rest"], ["t"], axis=0),
        make_node("Gemm", ["x", "w", "b"], ["h"], transB=1, alpha=0.5),
        make_node("Softmax", ["h"], ["p"], axis=1),
        make_node("Reshape", ["p", "t"], ["y"]),
    ],
    {"x": ("batch", 3)},
    [
        from_array(np.ones((4, 3), np.float32), "w"),
        from_array(np.ones(4, np.float32), "b"),
        from_array(np.array(0), "i"),
        from_array(np.array([0]), "zero"),
        from_array(np.array([2, 2]), "rest"),
    ],
).SerializeToString()


# Graphs


@pytest.mark.parametrize("opset", [0, 99, -3, 2**40])
def test_opset_that_is_not_known(opset: int) -> None:
    refused(
        model([make_node("Relu", ["x"], ["y"])], opset=opset),
        f"onnx: opset version is not supported, expected 1 to "
        f"{onnx.defs.onnx_opset_version()}, got {opset}",
    )


def test_no_opset() -> None:
    broken = relu()
    del broken.opset_import[:]
    refused(broken, 'onnx: domain "" is not imported (node "act")')


def test_opset_in_two_versions() -> None:
    broken = relu()
    broken.opset_import.append(make_opsetid("ai.onnx", 12))
    refused(broken, "is imported in two versions")


def test_domain_that_is_not_imported() -> None:
    refused(
        model([make_node("Relu", ["x"], ["y"], domain="com.acme")]),
        'domain "com.acme" is not imported (node "Relu:y")',
    )


def test_cyclic_graph() -> None:
    nodes = [
        make_node("Add", ["x", "b"], ["a"], name="first"),
        make_node("Relu", ["a"], ["b"], name="second"),
        make_node("Relu", ["b"], ["y"], name="after"),
    ]
    refused(model(nodes), 'onnx: the graph is cyclic: "first" -> "second" -> "first"')
    refused(model([make_node("Add", ["x", "y"], ["y"], name="self")]), '"self" -> "self"')


def test_unsorted_graph_is_sorted() -> None:
    nodes = [
        make_node("Relu", ["b"], ["y"], name="third"),
        make_node("Exp", ["a"], ["b"], name="second"),
        make_node("Neg", ["x"], ["a"], name="first"),
    ]
    ops = [op.name for op in from_onnx(model(nodes)).main.body.block.ops]
    assert ops == ["graph.neg", "graph.exp", "graph.relu", "func.return"]


def test_undefined_and_doubly_defined_values() -> None:
    refused(
        model([make_node("Add", ["x", "nowhere"], ["y"], name="sum")]),
        'onnx: value "nowhere" is not defined (node "sum")',
    )
    refused(
        model([make_node("Relu", ["x"], ["y"]), make_node("Exp", ["x"], ["y"], name="again")]),
        'onnx: value "y" is defined twice (node "again")',
    )
    refused(model([make_node("Relu", ["x"], ["x"], name="a")], outputs=("x",)), "defined twice")
    refused(model([make_node("Relu", ["x"], ["a"])]), 'value "y" is not defined (outputs)')
    refused(
        model([make_node("Relu", ["x"], ["y"])], outputs=("y", "y")), 'output "y" is listed twice'
    )
    refused(model([make_node("Relu", ["x"], ["y"])], outputs=()), "the graph has no outputs")
    two = [from_array(np.ones(3, np.float32), "w")] * 2
    refused(model([make_node("Add", ["x", "w"], ["y"])], initialisers=two), "defined twice")


def test_missing_operand() -> None:
    refused(
        model([make_node("Add", ["x"], ["y"], name="sum")]),
        'onnx.Add: operand 1 is missing (node "sum")',
    )


def test_too_many_operands_and_results() -> None:
    refused(
        model([make_node("Relu", ["x", "x"], ["y"], name="act")]),
        'onnx.Relu: too many operands, expected at most 1, got 2 (node "act")',
    )
    refused(model([make_node("Relu", ["x"], ["y", "z"])]), "onnx.Relu: too many results")


def test_attribute_of_another_type() -> None:
    refused(
        model([make_node("Softmax", ["x"], ["y"], name="p", axis="last")]),
        'onnx.Softmax: attribute "axis" has the wrong type, expected INT, got STRING (node "p")',
    )
    twice = make_node("Softmax", ["x"], ["y"], axis=1)
    twice.attribute.append(make_attribute("axis", 0))
    refused(model([twice]), 'attribute "axis" is given twice')


def test_operands_that_do_not_fit() -> None:
    refused(
        model([make_node("Add", ["x", "z"], ["y"], name="sum")], {"x": (2, 3), "z": (4,)}),
        'node "sum"',
    )
    refused(model([make_node("Softmax", ["x"], ["y"], axis=5)]), "axis out of range")


def test_output_of_another_type() -> None:
    broken = relu()
    broken.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    refused(broken, 'output "y" has another element type, expected int64, got float32')


# Functions of the model


def with_functions(*bodies: tuple[str, list[NodeProto]]) -> ModelProto:
    imports = [make_opsetid("", 17), make_opsetid("f", 1)]
    functions = [make_function("f", name, ["a"], ["b"], nodes, imports) for name, nodes in bodies]
    result = model(
        [make_node(bodies[0][0], ["x"], ["y"], name="call", domain="f")], functions=functions
    )
    result.opset_import.append(make_opsetid("f", 1))
    return result


def test_function_is_expanded() -> None:
    body = [make_node("Exp", ["a"], ["c"], name="e"), make_node("Neg", ["c"], ["b"], name="n")]
    x = np.ones((2, 3), np.float32)
    module = from_onnx(with_functions(("twice", body)))
    np.testing.assert_allclose(module.run_reference(x), -np.exp(x), rtol=1e-6)
    assert 'loc("call/e")' in module.text(locations=True)


def test_function_with_absent_operands() -> None:
    imports = [make_opsetid("", 17)]
    clip = make_node("Clip", ["a", "low", "high"], ["b"], name="c")
    function = make_function("f", "cut", ["a", "low", "high"], ["b"], [clip], imports)
    node = make_node("cut", ["x", "", "h"], ["y"], domain="f")
    weights = [from_array(np.array(0.5, np.float32), "h")]
    source = model([node], initialisers=weights, functions=[function])
    source.opset_import.append(make_opsetid("f", 1))
    y = from_onnx(source).run_reference(np.full((2, 3), 2, np.float32))
    np.testing.assert_array_equal(y, np.full((2, 3), 0.5))
    source.functions[0].output[0] = "low"
    refused(source, 'value "low" is not defined (node "cut:y")')


def test_function_with_attributes() -> None:
    imports = [make_opsetid("", 17)]
    leaky = make_node("LeakyRelu", ["a"], ["b"], name="l")
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = make_function("f", "leak", ["a"], ["b"], [leaky], imports, attributes=["slope"])
    node = make_node("leak", ["x"], ["y"], domain="f", slope=0.25)
    source = model([node], functions=[function])
    source.opset_import.append(make_opsetid("f", 1))
    y = from_onnx(source).run_reference(np.full((2, 3), -4, np.float32))
    np.testing.assert_array_equal(y, np.full((2, 3), -1))


def test_function_that_calls_itself() -> None:
    refused(with_functions(("loop", [make_node("loop", ["a"], ["b"], domain="f")])), "calls itself")


def test_functions_that_multiply(monkeypatch: pytest.MonkeyPatch, all_tests: bool) -> None:
    """Thirty functions, each calling the next one twice: 2 ** 30 nodes if all were expanded."""
    if not all_tests:
        monkeypatch.setattr(importer, "_MOST_NODES", 2000)
    bodies = []
    for i in range(30):
        call = f"f{i + 1}"
        nodes = [
            make_node(call, ["a"], ["c"], domain="f"),
            make_node(call, ["c"], ["b"], domain="f"),
        ]
        bodies.append((f"f{i}", nodes))
    bodies.append(("f30", [make_node("Identity", ["a"], ["b"])]))
    refused(with_functions(*bodies), "nodes once functions are expanded")


# Tensors


def tensor(dims: list[int], raw: bytes = b"", kind: int = TensorProto.FLOAT) -> TensorProto:
    result = TensorProto(name="w", data_type=kind, raw_data=raw)
    result.dims.extend(dims)
    return result


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (tensor([2, 3], b"\0" * 20), "data does not fill shape 2x3 of float32, expected 24 bytes"),
        (tensor([2**31, 2**31]), "absurd dimensions"),
        (tensor([2**62, 2**62]), "absurd dimensions"),
        (tensor([0, 2**62]), "absurd dimensions"),
        (tensor([-1, 3]), "negative dimension"),
        (tensor([1] * 1000, b"\0" * 4), "absurd rank"),
        (tensor([2**30]), "data does not fill shape"),
        (make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]), ""),
        (tensor([1], b"\0", 77), "element type 77 is not an IR element type"),
        (tensor([1], b"\0", TensorProto.STRING), "data does not fill shape 1 of strings"),
    ],
)
def test_initialiser(weight: TensorProto, text: str) -> None:
    source = model([make_node("Add", ["x", "w"], ["y"])], initialisers=[weight])
    if text:
        refused(source, text)
    else:
        from_onnx(source)


def test_numbers_that_do_not_fit() -> None:
    weight = TensorProto(name="w", data_type=TensorProto.INT8, dims=[1], int32_data=[300])
    source = model([make_node("Add", ["x", "w"], ["y"])], initialisers=[weight])
    refused(source, 'onnx: initialiser "w": numbers in int32_data do not fit int8')
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], float_data=[1.0])
    source = model([make_node("Add", ["x", "w"], ["y"])], initialisers=[weight])
    refused(source, "expected 3 numbers in float_data, got 1")


def test_external_data_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tensors of 4 KB share a part of a file, on a machine with 10 KB of memory."""
    (tmp_path / "data").write_bytes(bytes(4096))
    monkeypatch.setattr("stepwell.frontends.onnx.tensors.memory", lambda: 10_000)
    weights = [
        TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[1024]) for i in range(3)
    ]
    for weight in weights:
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="data")
    nodes = [make_node("Sum", ["w0", "w1", "w2"], ["y"])]
    onnx.save(model(nodes, {}, weights), tmp_path / "m.onnx")
    refused(tmp_path / "m.onnx", "external data: too large, expected at most 9.766 KiB, got 12 KiB")


@pytest.mark.parametrize("shape", [(2**40, 2**40), (-5, 3), (10**13,)])
def test_absurd_input(shape: tuple[int, ...]) -> None:
    with pytest.raises(ImportModelError, match=r'input "x": (absurd|negative) dimension'):
        from_onnx(model([make_node("Relu", ["x"], ["y"])], {"x": shape}))


def test_absurd_results() -> None:
    nodes = [make_node("Add", ["x", "z"], ["y"])]
    refused(model(nodes, {"x": (2**30, 1), "z": (2**30,)}), "absurd dimensions")
    shape = from_array(np.array([2**31, 2**31]), "s")
    nodes = [make_node("ConstantOfShape", ["s"], ["y"])]
    refused(model(nodes, initialisers=[shape]), "absurd dimensions")
    nodes = [make_node("Expand", ["x", "s"], ["y"])]
    refused(model(nodes, {"x": ()}, [shape]), "absurd dimensions")
    ends = [from_array(np.array(n), f"n{n}") for n in (0, 2**60, 1)]
    nodes = [make_node("Range", [f"n{n}" for n in (0, 2**60, 1)], ["y"])]
    refused(model(nodes, initialisers=ends), "too long")


def test_constants_that_double() -> None:
    """Forty concatenations of a constant with itself, then eighty: 8 TB, never computed."""
    nodes = [make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(60)]
    nodes.append(make_node("Identity", ["c60"], ["y"]))
    start = [from_array(np.ones(2, np.float32), "c0")]
    refused(model(nodes, initialisers=start), "absurd dimensions")


def test_dimensions_that_grow() -> None:
    """(N + M) squared thirty times."""
    nodes = [
        make_node("Concat", ["x", "z"], ["c"], axis=0),
        make_node("Shape", ["c"], ["s0"]),
        *[make_node("Mul", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(30)],
        make_node("Reshape", ["x", "s30"], ["y"]),
    ]
    with pytest.raises(ImportModelError):
        from_onnx(model(nodes, {"x": ("N",), "z": ("M",)}))


# External data


def external(folder: Path, location: str, **entries: object) -> Path:
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, **entries}.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, str(value)
    path = folder / "model.onnx"
    path.write_bytes(
        model([make_node("Add", ["x", "w"], ["y"])], initialisers=[weight]).SerializeToString()
    )
    return path


def test_external_data(tmp_path: Path) -> None:
    values = np.arange(5, dtype=np.float32)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "weights").write_bytes(values.tobytes())
    path = external(tmp_path, "sub/weights", offset=8, length=12)
    y = from_onnx(path).run_reference(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(y, np.tile(values[2:], (2, 1)))


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("../secret", "is outside the model's folder"),
        ("sub/../../secret", "is outside the model's folder"),
        ("/etc/hostname", "is outside the model's folder"),
        ("link", "is outside the model's folder"),
        ("loop", "external data"),
        ("none", "is not a readable file"),
        ("", "is not a readable file"),
        (".", "is not a readable file"),
        ("a\0b", "bad location"),
        ("x" * 5000, "external data"),
    ],
)
def test_external_data_elsewhere(tmp_path: Path, location: str, text: str) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"\0" * 12)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder / "loop")
    refused(external(folder, location), text)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"offset": -4}, 'bad offset, expected a number, got "-4"'),
        ({"offset": "many"}, "bad offset"),
        ({"offset": 2**70}, "bad offset"),
        ({"length": 2**40}, "data does not fill shape 3 of float32, expected 12 bytes"),
        ({"offset": 4}, "is too short, expected 16 bytes, got 12"),
    ],
)
def test_external_data_of_another_size(
    tmp_path: Path, entries: dict[str, object], text: str
) -> None:
    (tmp_path / "weights").write_bytes(b"\0" * 12)
    refused(external(tmp_path, "weights", **entries), text)


def test_external_data_without_folder(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"\0" * 12)
    data = external(tmp_path, "weights").read_bytes()
    refused(data, "external data without a folder; give the path of the model")


def test_external_data_in_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "weights")
    refused(external(tmp_path, "weights"), "is not a readable file")
