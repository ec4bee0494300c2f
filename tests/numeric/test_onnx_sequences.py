"""Sequences and optional values of ONNX, of which a program has nothing, against its evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_optional_type_proto,
    make_tensor_sequence_value_info,
    make_tensor_type_proto,
    make_value_info,
)
from onnx.helper import make_tensor_value_info as info

import stepwell as sw

from .test_onnx_operators import agrees_with_onnx, array, model

A, B = array(2, 3), array(4, 3)


def test_sequences() -> None:
    nodes = [
        make_node("SequenceConstruct", ["a", "b", "a"], ["s"]),
        make_node("SequenceInsert", ["s", "b", "first"], ["t"]),
        make_node("SequenceInsert", ["t", "a"], ["longer"]),
        make_node("SequenceErase", ["longer", "back"], ["u"]),
        make_node("SequenceErase", ["u"], ["v"]),
        make_node("Identity", ["v"], ["w"]),
        make_node("SequenceLength", ["w"], ["n"]),
        make_node("SequenceAt", ["w", "back"], ["x"]),
        make_node("ConcatFromSequence", ["w"], ["y"], axis=0),
        make_node("SequenceEmpty", [], ["e"]),
        make_node("SequenceInsert", ["e", "a"], ["one"]),
        make_node("ConcatFromSequence", ["one"], ["z"], axis=-1, new_axis=1),
    ]
    known = {"first": np.array(0), "back": np.array(-2)}
    agrees_with_onnx(nodes, {"a": A, "b": B}, known, outputs=["n", "x", "y", "z"])


def test_splits() -> None:
    nodes = [
        make_node("SplitToSequence", ["b", "three"], ["s"], axis=0),
        make_node("SplitToSequence", ["b"], ["t"], axis=1, keepdims=0),
        make_node("SplitToSequence", ["b", "sizes"], ["u"], axis=-2),
        *(make_node("SequenceAt", [name, "one"], [f"{name}1"]) for name in ("s", "t", "u")),
        make_node("SequenceLength", ["t"], ["n"]),
    ]
    known = {"three": np.array(3), "sizes": np.array([0, 3, 1]), "one": np.array(1)}
    agrees_with_onnx(nodes, {"b": B}, known, outputs=["s1", "t1", "u1", "n"])
    own = {"three": known["three"], "one": known["one"]}
    agrees_with_onnx([nodes[2], nodes[5]], {"b": B, "sizes": known["sizes"]}, own, outputs=["u1"])


def test_a_position_that_comes_at_run_time() -> None:
    nodes = [
        make_node("SequenceConstruct", ["a", "c", "a"], ["s"]),
        make_node("SequenceAt", ["s", "at"], ["y"]),
    ]
    for at in (1, -1, 2):
        agrees_with_onnx(nodes, {"a": A, "c": -A, "at": np.array(at)})
    source = model(nodes, {n: (x, x.shape) for n, x in (("a", A), ("c", A), ("at", at0))}, {}, 18)
    with pytest.raises(sw.InputError, match=r'"SequenceAt:y": index out of range .* got 3'):
        sw.from_onnx(source).run_reference(A, A, np.array(3))


at0 = np.array(0)


def test_maps_and_loops() -> None:
    types = TensorProto.FLOAT, None
    step = make_graph(
        [make_node("Add", ["p", "q"], ["sum"]), make_node("Shape", ["p"], ["size"])],
        "step",
        [info("p", *types), info("q", *types)],
        [info("sum", *types), info("size", TensorProto.INT64, None)],
    )
    flag = info("more", TensorProto.BOOL, []), info("on", TensorProto.BOOL, [])
    growing = make_graph(
        [
            make_node("Identity", ["more"], ["on"]),
            make_node("SequenceInsert", ["held", "a"], ["grown"]),
        ],
        "growing",
        [
            info("i", TensorProto.INT64, []),
            flag[0],
            make_tensor_sequence_value_info("held", *types),
        ],
        [flag[1], make_tensor_sequence_value_info("grown", *types)],
    )
    nodes = [
        make_node("SequenceConstruct", ["a", "b"], ["s"]),
        make_node("SequenceMap", ["s", "one"], ["sums", "sizes"], body=step),
        make_node("ConcatFromSequence", ["sums"], ["y"], axis=0),
        make_node("ConcatFromSequence", ["sizes"], ["z"], axis=0),
        make_node("Loop", ["m", "yes", "s"], ["long"], body=growing),
        make_node("ConcatFromSequence", ["long"], ["w"], axis=0),
    ]
    known = {"one": np.ones(1, np.float32), "m": np.array(3), "yes": np.array(True)}
    agrees_with_onnx(nodes, {"a": A, "b": B}, known, outputs=["y", "z", "w"])
    inputs = {"a": (A, A.shape), "b": (B, B.shape), "m": (at0, ())}
    with pytest.raises(
        sw.ImportModelError, match="loop state 0 is a sequence, which needs a known"
    ):
        sw.from_onnx(model(nodes, inputs, {k: known[k] for k in ("one", "yes")}, 18, ["w"]))


def test_optional_values() -> None:
    nodes = [
        make_node("Optional", ["a"], ["o"]),
        make_node("OptionalHasElement", ["o"], ["yes"]),
        make_node("OptionalHasElement", [], ["no"]),
        make_node("OptionalGetElement", ["o"], ["y"]),
    ]
    source = model(nodes, {"a": (A, A.shape)}, {}, 18, ["yes", "no", "y"])
    yes, no, y = sw.from_onnx(source).run_reference(A)
    assert (bool(yes), bool(no)) == (True, False)
    np.testing.assert_array_equal(y, A)


SEQUENCE = make_node("SequenceConstruct", ["a", "b"], ["s"])
WRONG: dict[str, Sequence[NodeProto]] = {
    "position out of range, expected -2 to 1, got 2": [
        SEQUENCE,
        make_node("SequenceAt", ["s", "two"], ["y"]),
    ],
    r"SequenceErase: the sequence is empty": [
        make_node("SequenceEmpty", [], ["s"]),
        make_node("SequenceErase", ["s", "two"], ["t"]),
        make_node("SequenceLength", ["t"], ["y"]),
    ],
    "operand 0 is a sequence or an empty optional, expected a tensor": [
        SEQUENCE,
        make_node("Relu", ["s"], ["y"]),
    ],
    "operand 0 is not a sequence, expected a sequence, got a tensor": [
        make_node("SequenceLength", ["a"], ["y"])
    ],
    "element types of a sequence differ, expected float32, got int64": [
        make_node("SequenceConstruct", ["a", "two"], ["s"]),
        make_node("SequenceLength", ["s"], ["y"]),
    ],
    "the sequence is empty, expected 1 tensor or more": [
        make_node("SequenceEmpty", [], ["s"]),
        make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ],
    "a position that comes at run time, of tensors of different shapes": [
        SEQUENCE,
        make_node("SequenceAt", ["s", "m"], ["y"]),
    ],
    "the length of the sequence depends on symbolic dimension n; give the sizes of all parts": [
        make_node("SplitToSequence", ["c"], ["s"]),
        make_node("SequenceLength", ["s"], ["y"]),
    ],
    "parts do not fit the axis, expected 2": [
        make_node("SplitToSequence", ["a", "sizes"], ["s"]),
        make_node("SequenceLength", ["s"], ["y"]),
    ],
    "wrong size of the parts, expected 1 or more, got 0": [
        make_node("SplitToSequence", ["a", "none"], ["s"]),
        make_node("SequenceLength", ["s"], ["y"]),
    ],
    'output "y": a sequence or an optional without a tensor is no result': [
        make_node("SequenceEmpty", [], ["y"])
    ],
    "the optional value has no element": [
        make_node("Optional", [], ["o"]),
        make_node("OptionalGetElement", ["o"], ["y"]),
    ],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_sequences(message: str) -> None:
    inputs = {"a": (A, A.shape), "b": (B, B.shape), "c": (B, ("n", 3)), "m": (at0, ())}
    known = {"two": np.array(2), "sizes": np.array([1, 2]), "none": np.array(0)}
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_onnx(model(WRONG[message], inputs, known, 18))


def test_a_branch_that_gives_an_empty_sequence() -> None:
    result = make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    branch = make_graph([make_node("SequenceEmpty", [], ["s"])], "branch", [], [result])
    nodes = [
        make_node("If", ["p"], ["t"], then_branch=branch, else_branch=branch),
        make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    flag = np.array(True)
    source = model(nodes, {"a": (A, A.shape), "p": (flag, ())}, {}, 18)
    with pytest.raises(sw.ImportModelError, match="gives an empty sequence, which needs a known"):
        sw.from_onnx(source)


def sequence_info(name: str, shape: Sequence[int | str] | None = None) -> ValueInfoProto:
    return make_tensor_sequence_value_info(name, TensorProto.FLOAT, shape)


def test_sequences_as_operands_and_results() -> None:
    """Their tensors are, where their shapes are given."""
    nodes = [
        make_node("SequenceInsert", ["s", "a"], ["t"]),
        make_node("SequenceLength", ["t"], ["n"]),
    ]
    infos = [sequence_info("s", ["r", 3]), info("a", TensorProto.FLOAT, ["m", 3])]
    outputs = [sequence_info("t"), info("n", TensorProto.INT64, [])]
    program = make_model(make_graph(nodes, "g", infos, outputs))
    module = sw.from_onnx(program, {"s": [(4, 3), ("k", 3)], "a": (2, 3)})
    assert [spec.name for spec in module.inputs] == ["s.0", "s.1", "a"]
    assert [spec.name for spec in module.outputs] == ["t.0", "t.1", "t.2", "n"]
    exe, parts = sw.compile(module, threads=1), (B, A[:1], A)
    for got, want in zip(exe(*parts), (*parts, 3), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(
        sw.ImportModelError, match=r'input "s": sequence inputs .* shapes=\{"s": \['
    ):
        sw.from_onnx(program)
    with pytest.raises(sw.ImportModelError, match='"s" needs a list of shapes, got NoneType'):
        sw.from_onnx(program, {"s": None})
    with pytest.raises(sw.ImportModelError, match=r'rank of input "s.1" differs, expected 2'):
        sw.from_onnx(program, {"s": [(4, 3), (3,)]})


def test_optional_operands() -> None:
    kind = make_optional_type_proto(make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    nodes = [
        make_node("OptionalHasElement", ["o"], ["has"]),
        make_node("If", ["has"], ["y"], then_branch=element("o"), else_branch=element("x")),
    ]
    infos = [make_value_info("o", kind), info("x", TensorProto.FLOAT, [2, 3])]
    outputs = [info("y", TensorProto.FLOAT, None), info("has", TensorProto.BOOL, [])]
    program = make_model(make_graph(nodes, "g", infos, outputs))
    with_element = sw.from_onnx(program, {"o": (2, 3)})
    y, has = with_element.run_reference(A, -A)
    np.testing.assert_array_equal(y, A)
    assert has
    without = sw.from_onnx(program, {"o": None})
    assert [spec.name for spec in without.inputs] == ["x"]
    y, has = without.run_reference(-A)
    np.testing.assert_array_equal(y, -A)
    assert not has
    with pytest.raises(sw.ImportModelError, match=r'input "o": optional .* shapes=\{"o": None\}'):
        sw.from_onnx(program)
    empty = make_graph(
        [make_node("Identity", ["o"], ["p"])], "g", infos, [make_value_info("p", kind)]
    )
    with pytest.raises(sw.ImportModelError, match=r'output "p": .* without a tensor is no result'):
        sw.from_onnx(make_model(empty), {"o": None})


def element(name: str) -> GraphProto:
    """A branch with the element of an optional value."""
    node = make_node("OptionalGetElement", [name], ["e"])
    return make_graph([node], "b", [], [info("e", TensorProto.FLOAT, [2, 3])])


def test_branches_with_sequences() -> None:
    def branch(names: list[str]) -> GraphProto:
        node = make_node("SequenceConstruct", names, ["t"])
        return make_graph([node], "b", [], [sequence_info("t")])

    infos = [info("p", TensorProto.BOOL, []), info("a", TensorProto.FLOAT, [2, 3])]
    for names in (["c", "a"], ["c"]):
        bodies = {"then_branch": branch(["a", "c"]), "else_branch": branch(names)}
        nodes = [
            make_node("Neg", ["a"], ["c"]),
            make_node("If", ["p"], ["s"], name="n", **bodies),
        ]
        program = make_model(make_graph(nodes, "g", infos, [sequence_info("s")]))
        if len(names) == 1:
            with pytest.raises(sw.ImportModelError, match=r'expected 2, got 1 \(node "n"\)'):
                sw.from_onnx(program)
            continue
        exe = sw.compile(sw.from_onnx(program), threads=1)
        for holds in (True, False):
            first, second = exe(np.array(holds), A)
            np.testing.assert_array_equal(first, A if holds else -A)
            np.testing.assert_array_equal(second, -first)
