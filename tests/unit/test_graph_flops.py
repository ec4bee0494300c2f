"""The work that operators on windows say they do."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.parser import Parser

from stepwell.core.registry import make_context
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes

STEPS = "strides = [2, 2] dilations = [1, 1]"
WORK = {
    # 2 * 8 * 4 * 4 results of 3 * 3 * 3 products
    f"graph.conv %x, %w {STEPS} groups = 1 : (tensor<?x3x9x9xf32>, tensor<8x3x3x3xf32>) "
    "-> tensor<?x8x4x4xf32>": "6912*n",
    # each filter sees the channels of its group only
    f"graph.conv %x, %w {STEPS} groups = 3 : (tensor<?x3x9x9xf32>, tensor<6x1x3x3xf32>) "
    "-> tensor<?x6x4x4xf32>": "1728*n",
    f"graph.pool max %x window = [3, 3] {STEPS} : (tensor<?x3x9x9xf32>) "
    "-> tensor<?x3x4x4xf32>": "432*n",
    f"graph.pool mean %x window = [2, 1] {STEPS} : (tensor<?x3x9x9xf32>) "
    "-> tensor<?x3x4x5xf32>": "120*n",
}


@pytest.mark.parametrize("text", WORK, ids=lambda text: text.split(":")[0])
def test_work_of_a_window(text: str) -> None:
    filters = "8x3x3x3" if "8x3x3x3" in text else "6x1x3x3"
    module = Parser(
        make_context(),
        'func.func @main(%x: tensor<?x3x9x9xf32> {graph.name = "x", graph.dims = ["n", "", "", ""]}'
        f", %w: tensor<{filters}xf32>) {{ %y = {text} func.return }}",
    ).parse_module()
    module.verify()
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    op = next(op for op in function.walk() if isinstance(op, GraphOp))
    assert str(op.flops(SymbolicShapes(function))) == WORK[text]
