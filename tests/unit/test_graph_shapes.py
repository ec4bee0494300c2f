"""Symbolic shapes of functions, and the sizes that have to agree at run time."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from stepwell.core.algebra.dims import Dim
from stepwell.core.registry import make_context
from stepwell.dialects.graph.sizes.facts import text
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes

CSR = (
    "#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), "
    "posWidth = 32, crdWidth = 32 }>\n"
)


def analyse(text: str) -> SymbolicShapes:
    """The shapes of the first function of a module."""
    module = Parser(make_context(), CSR + text).parse_module()
    module.verify()
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    return SymbolicShapes(function)


def shapes(text: str) -> dict[str, str]:
    """The shapes of the values of the first function, by name."""
    found = analyse(text)
    values = [r for op in found.function.body.block.ops for r in op.results]
    return {str(v.name_hint): "x".join(map(str, found.shape(v))) for v in values}


BATCH = '%x: tensor<?x784xf32> {graph.name = "x", graph.dims = ["batch", ""]}'
GRAPH = (
    '%a: tensor<?x?xf32, #csr> {graph.name = "a", graph.dims = ["N", "N"], graph.nnz = "E"}, '
    '%x: tensor<?x3xf32> {graph.dims = ["N", ""]}'
)


def test_symbols_go_through_operators() -> None:
    assert shapes(
        f"""func.func @main({BATCH}, %w: tensor<10x784xf32>) {{
          %dense = graph.dense %x, %w : (tensor<?x784xf32>, tensor<10x784xf32>) -> tensor<?x10xf32>
          %t = graph.transpose %dense permutation = [1, 0] : (tensor<?x10xf32>) -> tensor<10x?xf32>
          %r = graph.reshape %x shape = [0, 28, 28] : (tensor<?x784xf32>) -> tensor<?x28x28xf32>
          %rows = graph.reshape %r shape = [-1, 14] : (tensor<?x28x28xf32>) -> tensor<?x14xf32>
          %flat = graph.reshape %r shape = [-1] : (tensor<?x28x28xf32>) -> tensor<?xf32>
          %c = graph.concat %x, %x axis = 0
            : (tensor<?x784xf32>, tensor<?x784xf32>) -> tensor<?x784xf32>
          %s = graph.reduce sum %x axes = [1] keepdims = true
            : (tensor<?x784xf32>) -> tensor<?x1xf32>
          func.return
        }}"""
    ) == {
        "dense": "batchx10",
        "t": "10xbatch",
        "r": "batchx28x28",
        "rows": "56*batchx14",
        "flat": "784*batch",
        "c": "2*batchx784",
        "s": "batchx1",
    }


def test_bindings_and_entry_counts() -> None:
    found = analyse(
        f"""func.func @main({GRAPH}) {{
          %h = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x3xf32>) -> tensor<?x3xf32>
          %n = graph.normalize row %a self_loops = false
            : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
          %l = graph.normalize row %a self_loops = true
            : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
          func.return
        }}"""
    )
    assert found.bindings == {"N": (0, 0), "E": (0, "nnz")}
    assert found.equalities == []
    h, n, loops = (op.results[0] for op in found.function.body.block.ops if op.results)
    assert str(found.shape(h)[0]) == "N"
    assert found.nnz(h) is None
    assert str(found.nnz(n)) == "E"
    unknown = found.nnz(loops)
    assert unknown is not None
    assert not set(unknown.symbols) & found.bindings.keys()


def test_entry_counts_of_constants_and_arguments() -> None:
    found = analyse(
        """func.func @main(%a: tensor<4x4xf32, #csr> {graph.nnz = 7}, %b: tensor<4x4xf32, #csr>) {
          %c = graph.constant nnz = 9 dense_resource<c> : tensor<4x4xf32, #csr>
          func.return
        }"""
    )
    a, b = found.function.body.block.args
    assert found.nnz(a) == 7
    assert found.nnz(b) == Dim.symbol("_0")
    assert found.bindings == {"_0": (1, "nnz")}
    (c,) = [op.results[0] for op in found.function.body.block.ops if op.results]
    assert found.nnz(c) == 9


def test_unnamed_sizes_avoid_names_in_use() -> None:
    found = analyse(
        """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32> {graph.dims = ["_0"]}) {
          func.return
        }"""
    )
    assert found.bindings == {"_1": (0, 0), "_0": (1, 0)}


def test_equalities() -> None:
    found = analyse(
        """func.func @main(%x: tensor<?x3xf32> {graph.dims = ["n", ""]},
                           %y: tensor<?x3xf32> {graph.dims = ["m", ""]}, %z: tensor<4x3xf32>) {
          %a = graph.add %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
          %b = graph.add %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
          %c = graph.mul %z, %x : (tensor<4x3xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
          %d = graph.relu %x : (tensor<?x3xf32>) -> tensor<5x3xf32>
          %e = graph.reshape %x shape = [2, 3] : (tensor<?x3xf32>) -> tensor<2x3xf32>
          func.return
        }"""
    )
    facts = [(str(a), str(b), op.name) for a, b, op in found.equalities]
    assert facts == [
        ("n", "m", "graph.add"),
        ("4", "n", "graph.mul"),
        ("n", "5", "graph.relu"),
        ("3*n", "6", "graph.reshape"),
    ]
    c = next(op.results[0] for op in found.function.body.block.ops if op.name == "graph.mul")
    assert found.shape(c) == (4, 3)


def test_a_quotient_is_demanded_to_be_exact() -> None:
    found = analyse(
        """func.func @main(%x: tensor<?x3xf32> {graph.dims = ["n", ""]}) {
          %y = graph.reshape %x shape = [2, -1] : (tensor<?x3xf32>) -> tensor<2x?xf32>
          func.return
        }"""
    )
    ((size, even, _),) = found.equalities
    assert (str(size), str(even)) == ("n", "2*(n//2)")
    y = next(iter(found.function.body.block.ops)).results[0]
    assert found.shape(y) == (2, Dim.symbol("n") + Dim.symbol("n").floordiv(2))


def test_exact_quotients_are_multiplied_out() -> None:
    found = analyse(
        """func.func @main(%x: tensor<?x3x5xf32> {graph.dims = ["n", "", ""]}) {
          %a = graph.reshape %x shape = [2, -1] : (tensor<?x3x5xf32>) -> tensor<2x?xf32>
          %b = graph.reshape %a shape = [4, -1] : (tensor<2x?xf32>) -> tensor<4x?xf32>
          %c = graph.reshape %b shape = [-1, 3, 5] : (tensor<4x?xf32>) -> tensor<?x3x5xf32>
          %d = graph.add %c, %x : (tensor<?x3x5xf32>, tensor<?x3x5xf32>) -> tensor<?x3x5xf32>
          func.return
        }"""
    )
    pairs = [(str(size), str(multiple)) for size, multiple, _ in found.equalities]
    assert pairs == [("n", "2*(n//2)"), ("n", "4*(n//4)")]
    shapes = [found.shape(op.results[0]) for op in found.function.body.block.ops if op.results]
    assert list(map(text, shapes)) == [
        "[2, 7*n+n//2]",
        "[4, (3*n)//4+3*n]",
        "[n, 3, 5]",
        "[n, 3, 5]",
    ]


def test_no_number_makes_an_odd_size_even() -> None:
    with pytest.raises(VerifyException, match=r"expected a multiple of 2, got 2\*n\+1"):
        analyse(
            """func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]}, %o: tensor<1xf32>) {
              %y = graph.concat %x, %x, %o axis = 0
                : (tensor<?xf32>, tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
              %z = graph.reshape %y shape = [2, -1] : (tensor<?xf32>) -> tensor<2x?xf32>
              func.return
            }"""
        )


def test_sizes_that_differ_by_a_number_cannot_agree() -> None:
    with pytest.raises(VerifyException, match=r"graph\.add: .* do not broadcast, expected n, got"):
        analyse(
            """func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]}, %o: tensor<1xf32>) {
              %y = graph.concat %x, %o axis = 0 : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
              %z = graph.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
              func.return
            }"""
        )


def test_calls_are_followed() -> None:
    text = f"""func.func @main({BATCH}) -> tensor<?xf32> {{
      %y = func.call @sum(%x) : (tensor<?x784xf32>) -> tensor<?xf32>
      %p = graph.call_packed "env.f"(%x) dims [["2*batch"]] : (tensor<?x784xf32>) -> tensor<?xf32>
      %q = graph.call_packed "env.g"(%x) : (tensor<?x784xf32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }}
    func.func private @sum(%x: tensor<?x?xf32>) -> tensor<?xf32> attributes {{graph.primitive}} {{
      %y = graph.reduce sum %x axes = [1] keepdims = false : (tensor<?x?xf32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }}"""
    text = text.replace("@sum(%x: tensor<?x?xf32>)", "@sum(%x: tensor<?x784xf32>)")
    text = text.replace("(tensor<?x?xf32>)", "(tensor<?x784xf32>)")
    assert shapes(text) == {"y": "batch", "p": "2*batch", "q": "_0"}


def test_recursion_is_refused() -> None:
    text = f"""func.func @main({BATCH}) -> tensor<?x784xf32> {{
      %y = func.call @main(%x) : (tensor<?x784xf32>) -> tensor<?x784xf32>
      func.return %y : tensor<?x784xf32>
    }}"""
    with pytest.raises(VerifyException, match=r"shapes are unknown, @main is recursive"):
        analyse(text)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('graph.dims = ["n"]', "graph.dims does not fit the type, expected 2 names, got"),
        ('graph.dims = ["n", "2*m"]', "graph.dims does not fit the type, expected 2 names"),
        ('graph.nnz = "2*E"', 'graph.nnz is not a number or a name, expected a name, got "2*E"'),
    ],
)
def test_attributes_that_do_not_fit(attributes: str, message: str) -> None:
    with pytest.raises(VerifyException, match=r"func\.func @main: ") as caught:
        analyse(f"func.func @main(%a: tensor<?x?xf32, #csr> {{{attributes}}}) {{ func.return }}")
    assert message in str(caught.value)
