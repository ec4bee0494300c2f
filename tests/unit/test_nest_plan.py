"""What is recorded of operators, and the plans of groups that are made of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.parser import Parser

from stepwell.conversions.graph_to_loop.kernel import build_kernel
from stepwell.core.algebra.injective import is_injective
from stepwell.core.errors import InternalError
from stepwell.core.registry import make_context
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.nests.recording import Recorder
from stepwell.dialects.graph.plan.nest_plan import MOST_OPERATORS, NestPlan
from stepwell.dialects.graph.plan.planner import plan_nests, planned
from stepwell.dialects.graph.plan.uses import Uses
from stepwell.dialects.graph.plan.visibility import StoredRounding
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes

CSR = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>"
D = [AffineExpr.dimension(number) for number in range(4)]


def operators(text: str) -> tuple[list[GraphOp], SymbolicShapes]:
    module = Parser(make_context(), text.replace("#csr", CSR)).parse_module()
    module.verify()
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    return [op for op in function.walk() if isinstance(op, GraphOp)], SymbolicShapes(function)


def plan_of(text: str) -> tuple[list[GraphOp], NestPlan]:
    ops, shapes = operators(text)
    return ops, plan_nests(ops, ops[-1].results, shapes, Recorder())


def test_a_reduction_is_recorded_with_its_loops() -> None:
    (op,), _ = operators(
        """func.func @main(%x: tensor<4x8xf32>, %w: tensor<3x8xf32>, %b: tensor<3xf32>) {
          %y = graph.dense %x, %w, %b
              : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<4x3xf32>
          func.return
        }"""
    )
    recording = Recorder().recording(op)
    assert recording.reduces
    assert [(r.operand, r.index, r.around) for r in recording.reads] == [
        (2, (D[1],), ()),
        (0, (D[0], D[2]), (0,)),
        (1, (D[1], D[2]), (0,)),
    ]


def test_entries_are_recorded_with_their_matrix() -> None:
    ops, _ = operators(
        """func.func @main(%a: tensor<?x?xf32, #csr>, %s: tensor<?xf32>, %x: tensor<?x8xf32>) {
          %e = graph.sddmm add %a, %s, %s
              : (tensor<?x?xf32, #csr>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
          %p = graph.edge_softmax %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
          %y = graph.aggregate sum %a, %x weights %p
              : (tensor<?x?xf32, #csr>, tensor<?x8xf32>, tensor<?xf32>) -> tensor<?x8xf32>
          func.return
        }"""
    )
    sddmm, softmax, aggregate = ops
    uses, a = Uses(Recorder()), sddmm.operands[0]
    assert uses.of_entries(sddmm) == uses.of_entries(softmax) == {a}
    assert uses.entries(softmax) == {sddmm.results[0]: a}
    assert uses.entries(aggregate) == {softmax.results[0]: a}
    assert uses.walked(aggregate) == {a}
    assert not uses.walked(sddmm)


def test_costs_are_counted() -> None:
    ops, _ = operators(
        """func.func @main(%x: tensor<4x8xf32>) {
          %0 = graph.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
          %1 = graph.leaky_relu %0 alpha = 2.000000e-01 : (tensor<4x8xf32>) -> tensor<4x8xf32>
          %2 = graph.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
          %3 = graph.gelu %2 approximate = none : (tensor<4x8xf32>) -> tensor<4x8xf32>
          func.return
        }"""
    )
    uses = Uses(Recorder())
    assert [uses.is_cheap(op) for op in ops] == [True, True, False, False]


def test_a_row_that_several_loops_read_is_staged() -> None:
    ops, plan = plan_of(
        """func.func @main(%x: tensor<?x16xf32>, %w: tensor<8x16xf32>) {
          %d = graph.dense %x, %w : (tensor<?x16xf32>, tensor<8x16xf32>) -> tensor<?x8xf32>
          %y = graph.softmax %d axis = -1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert plan.staged == {ops[0].results[0]: 1}


def test_what_is_too_large_to_be_staged_is_refused() -> None:
    ops, plan = plan_of(
        """func.func @main(%x: tensor<?x16xf32>, %w: tensor<9000x16xf32>) {
          %d = graph.dense %x, %w : (tensor<?x16xf32>, tensor<9000x16xf32>) -> tensor<?x9000xf32>
          %y = graph.softmax %d axis = -1 : (tensor<?x9000xf32>) -> tensor<?x9000xf32>
          func.return
        }"""
    )
    assert plan.refusal is not None
    assert plan.refusal.value is ops[0].results[0]
    assert plan.refusal.why == "its reductions would run again for each of its uses"


def test_indices_that_are_computed_are_refused() -> None:
    ops, plan = plan_of(
        """func.func @main(%x: tensor<9x4xf32>, %i: tensor<3xi64>) {
          %j = graph.add %i, %i : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
          %y = graph.gather %x, %j axis = 0
              : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
          func.return
        }"""
    )
    assert plan.refusal is not None
    assert plan.refusal.value is ops[0].results[0]
    assert plan.refusal.why == "indices are checked before the kernel that reads by them runs"


def test_a_reduction_that_all_rows_need_is_staged_before_them() -> None:
    ops, plan = plan_of(
        """func.func @main(%x: tensor<5x7xf32>, %y: tensor<3x5xf32>) {
          %s = graph.reduce sum %x axes = [1] keepdims = false : (tensor<5x7xf32>) -> tensor<5xf32>
          %z = graph.add %y, %s : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert plan.staged == {ops[0].results[0]: 0}


def test_the_loops_that_a_reduction_needs_come_first() -> None:
    _, plan = plan_of(
        """func.func @main(%x: tensor<5x7xf32>) {
          %y = graph.softmax %x axis = 0 : (tensor<5x7xf32>) -> tensor<5x7xf32>
          func.return
        }"""
    )
    assert [nest.order for nest in plan.nests] == [[1, 0]]


def test_a_row_that_is_centred_is_not_staged() -> None:
    ops, plan = plan_of(
        """func.func @main(%x: tensor<?x?xf32>) {
          %m = graph.reduce mean %x axes = [1] keepdims = true
              : (tensor<?x?xf32>) -> tensor<?x1xf32>
          %d = graph.sub %x, %m : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
          %q = graph.mul %d, %d : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
          %v = graph.reduce mean %q axes = [1] keepdims = true
              : (tensor<?x?xf32>) -> tensor<?x1xf32>
          %y = graph.div %d, %v : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert not plan.staged
    assert ops[0].results[0] not in plan.repeated


def shares(shape: str, total: str, kind: str, reader: str) -> tuple[SSAValue, NestPlan]:
    """The exponentials of a tensor, and the plan of a group that reads them and their sums."""
    full, row = f"tensor<{shape}x{kind}>", f"tensor<{total}x{kind}>"
    ops, plan = plan_of(
        f"""func.func @main(%x: {full}) {{
          %e = graph.exp %x : ({full}) -> {full}
          %s = graph.reduce sum %e axes = [1] keepdims = true : ({full}) -> {row}
          {reader.format(full=full, row=row)}
          func.return
        }}"""
    )
    return ops[0].results[0], plan


QUOTIENT = "%y = graph.div %e, %s : ({full}, {row}) -> {full}"
FLIPPED = """%f = graph.slice %e starts = [0, 8999] ends = [4, -1] steps = [1, -1]
                 : ({full}) -> {full}
             %y = graph.div %f, %s : ({full}, {row}) -> {full}"""
RATIO = """%m = graph.reduce max %e axes = [1] keepdims = true : ({full}) -> {row}
           %y = graph.div %m, %s : ({row}, {row}) -> {row}"""


@pytest.mark.parametrize(
    ("shape", "total", "kind"),
    [("?x?", "?x1", "f32"), ("4x9000", "4x1", "f32"), ("1x?", "1x1", "f32"), ("?x?", "?x1", "f64")],
)
def test_a_row_without_a_buffer_is_kept_in_the_result(shape: str, total: str, kind: str) -> None:
    row, plan = shares(shape, total, kind, QUOTIENT)
    assert plan.in_result is row
    assert plan.staged == {row: 1}
    assert not plan.repeated


@pytest.mark.parametrize(
    ("shape", "total", "kind", "reader"),
    [
        pytest.param("4x6", "4x1", "f32", QUOTIENT, id="it has a buffer"),
        pytest.param("?x?", "?x1", "f16", QUOTIENT, id="it is computed in another type"),
        pytest.param("4x9000", "4x1", "f32", FLIPPED, id="it is read where it is replaced"),
        pytest.param("?x?", "?x1", "f32", RATIO, id="the result has other rows"),
        pytest.param("?x?x4", "?x1x4", "f32", QUOTIENT, id="it is not the last dimension"),
    ],
)
def test_a_row_is_not_kept_in_the_result(shape: str, total: str, kind: str, reader: str) -> None:
    row, plan = shares(shape, total, kind, reader)
    assert plan.in_result is None
    assert (row in plan.staged) != (row in plan.repeated)


def test_another_order_of_the_loops_is_tried_before_a_refusal() -> None:
    _, plan = plan_of(
        """func.func @main(%x: tensor<64x16384xf32>) {
          %s = graph.reduce sum %x axes = [0] keepdims = false
              : (tensor<64x16384xf32>) -> tensor<16384xf32>
          %y = graph.add %x, %s
              : (tensor<64x16384xf32>, tensor<16384xf32>) -> tensor<64x16384xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert not plan.staged
    assert [(nest.order, nest.reordered) for nest in plan.nests] == [([1, 0], True)]


def test_what_a_walk_stages_is_forgotten_with_it() -> None:
    # In the first order of the loops the row of %d would be staged; in the second nothing is.
    _, plan = plan_of(
        """func.func @main(%x: tensor<64x16384xf32>) {
          %s = graph.reduce sum %x axes = [0] keepdims = false
              : (tensor<64x16384xf32>) -> tensor<16384xf32>
          %t = graph.reduce sum %x axes = [0, 1] keepdims = true
              : (tensor<64x16384xf32>) -> tensor<1x1xf32>
          %d = graph.mul %s, %s : (tensor<16384xf32>, tensor<16384xf32>) -> tensor<16384xf32>
          %z = graph.add %x, %d
              : (tensor<64x16384xf32>, tensor<16384xf32>) -> tensor<64x16384xf32>
          %y = graph.add %z, %t
              : (tensor<64x16384xf32>, tensor<1x1xf32>) -> tensor<64x16384xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert not plan.staged


def test_loops_that_run_once_do_not_count_as_reordered() -> None:
    _, plan = plan_of(
        """func.func @main(%x: tensor<10x1xf32>) {
          %s = graph.reduce sum %x axes = [0] keepdims = true
              : (tensor<10x1xf32>) -> tensor<1x1xf32>
          %y = graph.sub %x, %s : (tensor<10x1xf32>, tensor<1x1xf32>) -> tensor<10x1xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert [nest.reordered for nest in plan.nests] == [False]
    assert not plan.staged


def test_a_buffer_has_the_dimensions_after_those_of_its_loops() -> None:
    # The result has a dimension in front that the row does not have.
    ops, plan = plan_of(
        """func.func @main(%x: tensor<5x7xf32>, %w: tensor<8x7xf32>, %b: tensor<1x1x8xf32>) {
          %d = graph.dense %x, %w : (tensor<5x7xf32>, tensor<8x7xf32>) -> tensor<5x8xf32>
          %s = graph.softmax %d axis = -1 : (tensor<5x8xf32>) -> tensor<5x8xf32>
          %y = graph.add %s, %b : (tensor<5x8xf32>, tensor<1x1x8xf32>) -> tensor<1x5x8xf32>
          func.return
        }"""
    )
    assert plan.refusal is None
    assert plan.staged == {ops[0].results[0]: 1}
    assert ops[0].results[0] not in plan.repeated


def test_what_two_results_need_by_rows_and_by_columns_is_staged_once() -> None:
    ops, shapes = operators(
        """func.func @main(%x: tensor<5x7xf32>, %w: tensor<8x7xf32>) {
          %d = graph.dense %x, %w : (tensor<5x7xf32>, tensor<8x7xf32>) -> tensor<5x8xf32>
          %s = graph.softmax %d axis = -1 : (tensor<5x8xf32>) -> tensor<5x8xf32>
          %t = graph.reduce sum %d axes = [0] keepdims = false : (tensor<5x8xf32>) -> tensor<8xf32>
          func.return
        }"""
    )
    dense, softmax, total = ops
    plan = plan_nests(ops, [*softmax.results, *total.results], shapes, Recorder())
    assert plan.refusal is None
    assert plan.staged == {dense.results[0]: 0}
    assert dense.results[0] not in plan.repeated


@pytest.mark.parametrize(("columns", "depth"), [(8, 2), (9000, 0)])
def test_a_plan_that_stages_what_cannot_be_staged_is_an_error(columns: int, depth: int) -> None:
    module = Parser(
        make_context(),
        f"""func.func @main(%x: tensor<5x7xf32>, %w: tensor<{columns}x7xf32>) -> tensor<5xf32> {{
          %d = graph.dense %x, %w
              : (tensor<5x7xf32>, tensor<{columns}x7xf32>) -> tensor<5x{columns}xf32> loc("fc")
          %y = graph.reduce sum %d axes = [1] keepdims = false
              : (tensor<5x{columns}xf32>) -> tensor<5xf32>
          func.return %y : tensor<5xf32>
        }}""",
    ).parse_module()
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    shapes = SymbolicShapes(function)
    plan = planned(function, shapes, Recorder())
    plan.staged[next(iter(function.body.block.ops)).results[0]] = depth
    fact = "convert-graph-to-loop: the plan stages a value where no local buffer can be"
    got = f"got tensor<5x{columns}xf32>"
    with pytest.raises(InternalError, match=rf'{fact}, {got} \(node "fc"\)'):
        build_kernel(function, [False, False], shapes, plan, StoredRounding(module))


@pytest.mark.parametrize("count", [MOST_OPERATORS, MOST_OPERATORS + 1, 1500])
def test_a_long_chain_is_planned_or_refused(count: int) -> None:
    kind = "tensor<4xf32>"
    lines = [f"%{n + 1} = graph.neg %{n} : ({kind}) -> {kind}" for n in range(count - 1)]
    text = "\n".join(
        [
            "func.func @main(%x: tensor<4x5xf32>) {",
            "%0 = graph.reduce sum %x axes = [1] keepdims = false",
            ": (tensor<4x5xf32>) -> tensor<4xf32>",
            *lines,
            "func.return",
            "}",
        ]
    )
    refusal = plan_of(text)[1].refusal
    if count <= MOST_OPERATORS:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.why == f"a kernel may have at most {MOST_OPERATORS} operators"


INDEX = st.recursive(
    st.sampled_from(D[:3]) | st.integers(0, 3).map(AffineExpr.constant),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda pair: pair[0] // pair[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda pair: pair[0] % pair[1]),
    ),
    max_leaves=5,
)


@given(st.lists(INDEX, max_size=3), st.tuples(*[st.integers(1, 4)] * 3))
def test_an_injective_index_names_no_element_twice(
    index: list[AffineExpr], sizes: tuple[int, int, int]
) -> None:
    if is_injective(index, dict(zip(D, sizes, strict=False))):
        points = list(itertools.product(*map(range, sizes)))
        named = {tuple(expr.eval(point, []) for expr in index) for point in points}
        assert len(named) == len(points)


def test_a_reshape_is_injective() -> None:
    linear = (D[0] * 6 + D[1]) * 4 + D[2]
    sizes = dict(zip(D, (5, 6, 4), strict=False))
    rest = linear // 8
    assert is_injective([rest // 3, rest % 3, linear % 8], sizes)
    assert not is_injective([rest // 3, linear % 8], sizes)
    assert not is_injective([D[0] * 2 + D[1], D[2]], sizes)
