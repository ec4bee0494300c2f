"""What an imported module looks like: names, locations, weights, shapes; and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_sparse_tensor_value_info,
    make_tensor,
    make_tensor_sequence_value_info,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

import stepwell as sw
from stepwell.api.imported import from_onnx
from stepwell.core.ir.provenance import names
from stepwell.frontends.importing.values import Value
from stepwell.frontends.onnx.nodes import Node
from stepwell.frontends.onnx.registry import converts, supported

WEIGHTS = {"w0": (4, 3), "b0": (4,), "w1": (2, 4), "b1": (2,)}


def mlp(shape: Sequence[int | str | None] | None = ("batch", 3), opset: int = 17) -> ModelProto:
    nodes = [
        make_node("Gemm", ["x", "w0", "b0"], ["h"], name="fc0", transB=1),
        make_node("Relu", ["h"], ["r"]),
        make_node("Gemm", ["r", "w1", "b1"], ["y"], name="fc1", transB=1),
    ]
    weights = [from_array(np.full(s, i, np.float32), n) for i, (n, s) in enumerate(WEIGHTS.items())]
    return model(nodes, {"x": shape}, weights, opset=opset)


def model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Sequence[int | str | None] | None] | None = None,
    weights: Sequence[TensorProto] = (),
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
) -> ModelProto:
    shapes = {"x": (2, 3)} if inputs is None else inputs
    infos = [make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    built = make_graph(list(nodes), "g", infos, results, list(weights))
    return make_model(built, opset_imports=[make_opsetid("", opset)])


def message(source: object, **options: object) -> str:
    with pytest.raises(sw.ImportModelError) as caught:
        from_onnx(source, **options)
    return str(caught.value)


# What a module looks like


def test_ways_to_name_a_model(tmp_path: Path) -> None:
    source = mlp()
    before = source.SerializeToString(deterministic=True)
    path = tmp_path / "mlp.onnx"
    path.write_bytes(before)
    texts = {sw.from_onnx(s).text() for s in (source, before, bytearray(before), path, str(path))}
    assert len(texts) == 1
    assert source.SerializeToString(deterministic=True) == before


def test_names_inputs_and_outputs() -> None:
    module = from_onnx(mlp())
    assert [str(v) for v in module.inputs] == ["x: batchx3xf32"]
    assert [str(v) for v in module.outputs] == ["y: batchx2xf32"]


def test_initialisers_are_weights_under_their_names() -> None:
    module = from_onnx(mlp())
    assert {name: module.weights[name].shape for name in module.weights} == WEIGHTS
    assert module.text().count("dense_resource<") == 4
    np.testing.assert_array_equal(module.weights["b1"], np.full(2, 3, np.float32))


def test_scalars_are_in_the_text() -> None:
    source = model(
        [make_node("Mul", ["x", "s"], ["y"])], weights=[from_array(np.float32(2.5), "s")]
    )
    module = from_onnx(source)
    assert not len(module.weights)
    assert "graph.constant dense<2.5" in module.text()


def test_unused_initialisers_are_left_out() -> None:
    module = from_onnx(
        model([make_node("Relu", ["x"], ["y"])], weights=[from_array(np.ones(9), "u")])
    )
    assert not len(module.weights)


def test_weights_in_constant_nodes_have_the_name_of_the_value() -> None:
    constant = make_node("Constant", [], ["w"], value=from_array(np.ones(3, np.float32)))
    module = from_onnx(model([constant, make_node("Add", ["x", "w"], ["y"])]))
    assert list(module.weights) == ["w"]


def test_node_names_are_locations() -> None:
    ops = from_onnx(mlp()).main.body.block.ops
    found = [(op.name, names(op)) for op in ops if op.name != "graph.constant"]
    assert found == [
        ("graph.dense", ("fc0",)),
        ("graph.relu", ("Relu:r",)),
        ("graph.dense", ("fc1",)),
        ("func.return", ()),
    ]


def test_initialiser_that_is_listed_as_an_input_is_a_constant() -> None:
    source = model(
        [make_node("Add", ["x", "w"], ["y"])],
        {"x": (2, 3), "w": (3,)},
        [from_array(np.ones(3, np.float32), "w")],
    )
    assert [v.name for v in from_onnx(source).inputs] == ["x"]


def test_input_and_initialiser_as_outputs() -> None:
    source = model([], {"x": (2, 3)}, [from_array(np.ones(3, np.float32), "w")], outputs=("x", "w"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    first, second = from_onnx(source).run_reference(x)
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, np.ones(3))


def test_model_without_inputs() -> None:
    source = model(
        [make_node("Exp", ["w"], ["y"])], {}, [from_array(np.zeros((300, 300), np.float32), "w")]
    )
    np.testing.assert_array_equal(from_onnx(source).run_reference(), np.ones((300, 300)))


def test_text_is_deterministic() -> None:
    assert from_onnx(mlp()).text(locations=True) == from_onnx(mlp()).text(locations=True)


def test_text_is_read_back(tmp_path: Path) -> None:
    from_onnx(mlp()).save(tmp_path / "m.mlir")
    x = np.ones((5, 3), np.float32)
    np.testing.assert_array_equal(
        sw.from_mlir(tmp_path / "m.mlir").run_reference(x), from_onnx(mlp()).run_reference(x)
    )


def test_names_that_the_text_cannot_hold(tmp_path: Path) -> None:
    """Spaces, slashes, quotes and digits first, in values, weights, symbols and nodes."""
    weight = from_array(np.ones(3, np.float32), '0/"w" 1')
    node = make_node("Add", ['x "1"', '0/"w" 1'], ["y/0"], name='n "0"\\')
    source = model([node], {'x "1"': ("n-1 (a)", 3)}, [weight], outputs=("y/0",))
    module = from_onnx(source)
    assert module.inputs[0].name == 'x "1"'
    assert module.inputs[0].shape == ("n_1__a_", 3)
    (weight_name,) = module.weights
    assert weight_name in module.text()
    module.save(tmp_path / "m.mlir")
    again = sw.from_mlir(tmp_path / "m.mlir")
    assert again.outputs[0].name == "y/0"
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(again.run_reference(x), x + 1)


def test_names_with_dots_are_those_of_values() -> None:
    node = make_node("Relu", ["x"], ["layers.0/out"])
    given, made = (make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "layers.0/out"))
    module = from_onnx(make_model(make_graph([node], "g", [given], [made]), ir_version=10))
    assert "%layers.0_out = graph.relu %x" in module.text()


@pytest.mark.parametrize("name", ["_0", "größe"])
def test_names_that_values_cannot_have_in_the_text(name: str) -> None:
    node = make_node("Relu", [name], [f"{name}_"])
    given, made = (make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in (name, f"{name}_"))
    module = from_onnx(make_model(make_graph([node], "g", [given], [made]), ir_version=10))
    assert module.clone().inputs[0].name == name


def test_import_of_the_package_does_not_load_onnx() -> None:
    code = "import sys, stepwell; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Shapes


def test_shapes_fix_symbols() -> None:
    assert from_onnx(mlp(), shapes={"x": (64, 3)}).inputs[0].shape == (64, 3)
    assert from_onnx(mlp(), shapes={"x": [np.int64(64), 3]}).outputs[0].shape == (64, 2)
    assert from_onnx(mlp(), shapes={"x": ("rows", None)}).inputs[0].shape == ("rows", 3)
    assert from_onnx(mlp(None), shapes={"x": (None, 3)}).inputs[0].shape == ("x_0", 3)
    assert from_onnx(mlp((None, 3)), shapes={"x": (7, 3)}).inputs[0].shape == (7, 3)
    assert from_onnx(mlp((None, 3))).inputs[0].shape == ("x_0", 3)


def test_symbol_of_two_inputs_is_fixed_once() -> None:
    source = model([make_node("Add", ["x", "z"], ["y"])], {"x": ("n", 3), "z": ("n", 1)})
    module = from_onnx(source, shapes={"z": (5, 1)})
    assert [v.shape for v in module.inputs] == [(5, 3), (5, 1)]
    assert 'shapes: symbol "n" is given two sizes (input "z"), expected 4, got 5' in message(
        source, shapes={"x": (4, 3), "z": (5, 1)}
    )


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"z": (1, 3)}, 'onnx: shapes: unknown input "z", expected x, got z'),
        ({"x": (1, 2, 3)}, 'onnx: shapes: rank of input "x" differs, expected 2, got 3'),
        ({"x": (1, 4)}, 'dimension 1 of input "x" is fixed by the model, expected 3, got 4'),
        ({"x": (-1, 3)}, 'bad dimension of input "x", expected a size, a name or None, got -1'),
        ({"x": (1.5, 3)}, 'bad dimension of input "x"'),
        ({"x": (True, 3)}, 'bad dimension of input "x"'),
        ({"x": "ab"}, 'shapes: "x" needs a tuple, got str'),
        ({"x": 3}, 'shapes: "x" needs a tuple, got int'),
        ([("x", (1, 3))], "onnx: shapes: expected a mapping of input names, got list"),
    ],
)
def test_shapes_that_do_not_fit(shapes: object, text: str) -> None:
    assert text in message(mlp(), shapes=shapes)


def test_input_without_shape() -> None:
    assert 'input "x" has no shape; give one: shapes={"x": (...)}' in message(mlp(None))


@pytest.mark.parametrize("unknown", [-1, "-1", "?", ""])
def test_unknown_dimensions(unknown: int | str) -> None:
    """What exporters write for a dimension that they know nothing about; two need not be equal."""
    node = make_node("Relu", ["x"], ["y"])
    proto = model([node], {"x": (1, 4)})
    for dim in proto.graph.input[0].type.tensor_type.shape.dim:
        if isinstance(unknown, str):
            dim.dim_param = unknown
        else:
            dim.dim_value = unknown
    assert [spec.shape for spec in sw.from_onnx(proto).inputs] == [("x_0", "x_1")]
    fixed = sw.from_onnx(proto, shapes={"x": (2, 3)})
    assert [spec.shape for spec in fixed.inputs] == [(2, 3)]


@pytest.mark.parametrize("end", [10**9, 2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("start", [0, -(10**9), -(2**63)])
def test_slices_to_the_end_of_a_symbolic_dimension(start: int, end: int) -> None:
    constants = [
        from_array(np.array([n], np.int64), name) for n, name in ((start, "s"), (end, "e"))
    ]
    proto = model([make_node("Slice", ["x", "s", "e"], ["y"])], {"x": ("n", 4)}, constants)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(sw.from_onnx(proto).run_reference(x), x)


def test_what_is_symbolic_is_reported_together() -> None:
    """Blocks and windows that might fit do not hide what comes after them."""
    w = from_array(np.zeros((4, 1, 2, 2), np.float32), "w")
    nodes = [
        make_node("SpaceToDepth", ["x"], ["b"], name="blocks", blocksize=2),
        make_node("ConvTranspose", ["x", "w"], ["c"], name="windows", output_shape=[9, 9]),
        make_node("RandomNormal", [], ["d"], name="last"),
    ]
    proto = model(nodes, {"x": (1, 4, "h", "w")}, [w], ("b", "c", "d"))
    with pytest.raises(sw.ImportModelError) as caught:
        sw.from_onnx(proto)
    text = str(caught.value)
    assert text.startswith("onnx: 3 parts of the model are not supported")
    assert "output_shape for symbolic dimension h" in text
    assert "blocks of 2 in a symbolic image hxw" in text
    assert all(f'node "{name}"' in text for name in ("blocks", "windows", "last"))


def test_symbolic_size_as_data() -> None:
    nodes = [make_node("Shape", ["x"], ["y"])]
    module = sw.from_onnx(model(nodes, {"x": ("n", 3)}))
    assert module.run_reference(np.zeros((5, 3), np.float32)).tolist() == [5, 3]
    nodes = [make_node("Shape", ["x"], ["s"]), make_node("ReduceProd", ["s"], ["y"], keepdims=0)]
    module = sw.from_onnx(model(nodes, {"x": ("n", 3)}))
    assert module.run_reference(np.zeros((5, 3), np.float32)) == 15


# What is not supported


def test_everything_unsupported_is_reported_at_once() -> None:
    nodes = [
        make_node("RandomNormal", [], ["a"], name="where1"),
        make_node("Relu", ["a"], ["b"], name="act"),
        make_node("MatMull", ["b", "w"], ["d"], name="odd"),
        make_node("Gelu", ["d"], ["e"], name="early"),
        make_node("Softmax", ["x"], ["p"], name="soft", beta=1.0),
        make_node("Cast", ["x"], ["q"], name="narrow", to=TensorProto.COMPLEX64),
        make_node("Add", ["e", "p"], ["y"], name="sum"),
    ]
    weights = [from_array(np.ones(3, np.float32), "w")]
    assert (
        message(model(nodes, {"x": (1, 3, 8, 8)}, weights))
        == """\
onnx: 5 parts of the model are not supported
  node "where1": RandomNormal (opset 17): its numbers differ from call to call; \
closest supported: a node with a seed
  node "odd": MatMull (opset 17): no such operator in ONNX; closest supported: MatMul, QLinearMatMul
  node "early": Gelu (opset 17): the operator begins with opset 20; closest supported: Erf, Tanh
  node "soft": Softmax (opset 17): attribute beta is not supported
  node "narrow": Cast (opset 17): complex64 is not an IR element type"""
    )


def test_an_attribute_with_one_supported_value() -> None:
    node = make_node("BatchNormalization", ["x", *"stuv"], ["y"], name="bn", spatial=0)
    weights = [from_array(np.ones(3, np.float32), n) for n in "stuv"]
    text = message(model([node], {"x": (1, 3, 8, 8)}, weights, opset=7))
    assert "BatchNormalization (opset 7): attribute spatial = 0 is not supported, only 1" in text


@pytest.mark.parametrize("operator", ["If", "Loop", "Scan"])
def test_a_subgraph_of_another_signature(operator: str) -> None:
    body = make_graph(
        [make_node("Identity", ["q"], ["z"])],
        "b",
        [onnx.ValueInfoProto(name="q")] * 4,
        [onnx.ValueInfoProto(name="z")],
    )
    names = {"If": ["then_branch", "else_branch"]}.get(operator, ["body"])
    more = {"num_scan_inputs": 1} if operator == "Scan" else {}
    inputs = {"If": ["p"], "Loop": ["m", "", "x"], "Scan": ["x"]}[operator]
    node = make_node(operator, inputs, ["y"], name="flow", **dict.fromkeys(names, body), **more)
    text = message(model([node], {"x": (2, 3), "p": (), "m": ()}))
    assert "the subgraph has another number of inputs" in text
    assert 'node "flow"' in text


def test_operator_of_another_domain() -> None:
    source = model([make_node("FusedGemm", ["x"], ["y"], name="f", domain="org.other")])
    source.opset_import.append(make_opsetid("org.other", 1))
    assert message(source).splitlines()[1] == (
        '  node "f": org.other.FusedGemm (opset 1): domain "org.other" is not supported; '
        "closest supported: Gemm"
    )


def test_inputs_that_are_no_tensors() -> None:
    source = model([make_node("Relu", ["x"], ["y"])])
    source.graph.input.append(make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    source.graph.input.append(make_sparse_tensor_value_info("p", TensorProto.FLOAT, (2, 2)))
    source.graph.input.append(make_tensor_value_info("t", TensorProto.COMPLEX64, (2,)))
    source.graph.input.append(make_tensor_value_info("u", TensorProto.COMPLEX128, (2,)))
    assert (
        message(source)
        == """\
onnx: 4 parts of the model are not supported
  input "s": sequence inputs are only supported where shapes says what they are; \
closest supported: shapes={"s": [(2, 3), (4, 3)]}
  input "p": sparse tensor inputs are not supported; closest supported: tensor inputs
  input "t": complex64 is not an IR element type
  input "u": complex128 is not an IR element type"""
    )


def test_sparse_and_string_initialisers() -> None:
    values, indices = from_array(np.ones(1, np.float32), "w"), from_array(np.array([1]))
    source = model([make_node("Add", ["x", "w"], ["y"])])
    source.graph.sparse_initializer.add(values=values, indices=indices, dims=[3])
    assert "sparse tensors are not supported" in message(source)
    source = model(
        [make_node("StringNormalizer", ["w"], ["y"])],
        weights=[make_tensor("w", TensorProto.STRING, [1], [b"a"])],
    )
    assert "StringNormalizer" in message(source)


def test_long_reports_are_cut() -> None:
    nodes = [make_node("RandomNormal", [], [f"a{i}"], name=f"c{i}") for i in range(250)]
    lines = message(model([*nodes, make_node("Relu", ["a9"], ["y"])])).splitlines()
    assert lines[0] == "onnx: 250 parts of the model are not supported"
    assert lines[-1] == "  and 150 more: RandomNormal (opset 17) 150 times"


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (make_node("Softmax", ["x"], ["y"], axis=2), "axis out of range"),
        (make_node("Transpose", ["x"], ["y"], perm=[0, 0]), "perm is not a permutation"),
        (
            make_node("Reshape", ["x", "i"], ["y"]),
            "elements of [2, 3] do not fit, expected 6",
        ),
        (make_node("Concat", ["x"], ["y"]), 'attribute "axis" is missing'),
        (make_node("Squeeze", ["x"], ["y"], axes=[0]), "attribute axes is not supported"),
        (make_node("Gelu", ["x"], ["y"], approximate="x"), 'attribute "approximate" is unknown'),
        (make_node("Gemm", ["x", "w"], ["y"]), "an operand is not a matrix"),
        (make_node("MatMul", ["x", "s"], ["y"]), "an operand is a scalar"),
        (make_node("Exp", ["i"], ["y"]), "not supported for int64"),
        (make_node("Add", ["x", "i"], ["y"]), "element types differ"),
        (make_node("Add", ["x", "w"], ["y"]), "do not broadcast"),
        (make_node("Expand", ["x", "i"], ["y"]), "shapes do not broadcast"),
        (make_node("Split", ["x", "i"], ["y", "z"], axis=1), "parts do not fit 2 results"),
        (make_node("Slice", ["x", "i", "i", "zero", "zero"], ["y"]), "a step is 0"),
        (make_node("Constant", [], ["y"]), "one value is needed"),
        (make_node("Unsqueeze", ["x", "twice"], ["y"]), "an axis is named twice"),
        (make_node("Clip", ["x", "w"], ["y"]), "a bound is not a scalar"),
        (make_node("Dropout", ["x", "two"], ["y"]), "ratio out of range"),
        (make_node("ConstantOfShape", ["minus"], ["y"]), "negative dimension"),
        (make_node("Tile", ["x", "i"], ["y"]), "repeats do not fit"),
        (make_node("Gather", ["i", "i"], ["y"]), "an index is out of range"),
    ],
)
def test_nodes_that_are_broken(node: NodeProto, text: str) -> None:
    weights = {
        "w": np.ones(4, np.float32), "s": np.float32(1), "i": np.array([4]), "two": np.float32(2),
        "zero": np.array([0]), "twice": np.array([1, 1]), "minus": np.array([-1]),
    }  # fmt: skip
    stored = [from_array(np.asarray(v), n) for n, v in weights.items()]
    node.name = "it"
    found = message(model([node], {"x": (2, 3)}, stored, opset=20))
    assert text in found
    assert 'node "it"' in found


# The registry


def test_conversions_of_a_third_party() -> None:
    @converts("Double", since=1, domain="com.acme")
    def double(node: Node) -> Value:
        return node.add(node.input(0), node.input(0))

    source = model([make_node("Double", ["x"], ["y"], domain="com.acme")])
    source.opset_import.append(make_opsetid("com.acme", 3))
    assert "Double" in supported("com.acme")
    y = from_onnx(source).run_reference(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(y, np.full((2, 3), 2))


def test_every_operator_of_the_plan_is_supported() -> None:
    wanted = (
        "Add BatchNormalization Cast CastLike Clip Concat Constant ConstantOfShape Div "
        "Dropout Erf Exp Expand Flatten Gather Gelu Gemm Identity LeakyRelu Log LogSoftmax MatMul "
        "Max Mean Min Mul Neg Pow Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "Relu Reshape Shape Sigmoid Slice Softmax Split Sqrt Squeeze Sub Sum Tanh Transpose "
        "Unsqueeze"
    )
    assert set(wanted.split()) <= set(supported())
