"""What is known of floats: the range that follows from an operation, and what it states."""

from __future__ import annotations

from math import inf

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from stepwell.core.registry import make_context
from stepwell.dialects.upstream.float_ranges import range_of

CASES = {
    "": (-inf, inf),
    "%r = arith.constant 2.0 : f32": (2.0, 2.0),
    "%r = arith.constant 0x7FC00000 : f32": (-inf, inf),
    "%r = arith.addf %x, %y {stepwell.at_most = 3.0} : f32": (-inf, 3.0),
    "%r = arith.minimumf %x, %two : f32": (-inf, 2.0),
    "%r = arith.maximumf %x, %two : f32": (2.0, inf),
    "%a = math.absf %x : f32 %r = arith.negf %a : f32": (-inf, 0.0),
    "%a = arith.minimumf %x, %two : f32 %r = math.absf %a : f32": (0.0, inf),
    # min(x, 2) - max(x, 2), as in softplus
    "%a = arith.minimumf %x, %two : f32 %b = arith.maximumf %x, %two : f32 "
    "%r = arith.subf %a, %b : f32": (-inf, 0.0),
    # min(x, y) - max(x, y), as in a sum of exponentials
    "%a = arith.minimumf %x, %y : f32 %b = arith.maximumf %x, %y : f32 "
    "%r = arith.subf %a, %b : f32": (-inf, 0.0),
    "%a = arith.maximumf %x, %y : f32 %r = arith.subf %y, %a : f32": (-inf, 0.0),
    "%a = arith.minimumf %x, %y : f32 %r = arith.subf %x, %a : f32": (-inf, inf),
    "%r = arith.subf %two, %x : f32": (-inf, inf),
    "%a = math.absf %x : f32 %r = arith.subf %a, %two : f32": (-2.0, inf),
    # A NaN x stays NaN.
    "%c = arith.cmpf ogt, %two, %x : f32 %r = arith.select %c, %two, %x : f32": (2.0, inf),
    # Here it becomes y.
    "%c = arith.cmpf ogt, %x, %y : f32 %r = arith.select %c, %x, %y : f32": (-inf, inf),
    "%a = math.absf %x : f32 %c = arith.cmpf ogt, %a, %y : f32 "
    "%r = arith.select %c, %a, %y : f32": (-inf, inf),
    "%a = math.absf %x : f32 %c = arith.cmpf olt, %two, %a : f32 "
    "%r = arith.select %c, %two, %a : f32": (0.0, inf),
    "%v = vector.broadcast %two : f32 to vector<4xf32> %r = arith.negf %v : vector<4xf32>": (
        -2.0,
        -2.0,
    ),
    "%r = arith.constant dense<[1.0, 2.0]> : vector<2xf32>": (-inf, inf),
}
"""Operations on f32 `x` and `y`, and the range of the last."""


@pytest.mark.parametrize("text", CASES)
def test_ranges(text: str) -> None:
    module = Parser(
        make_context(),
        f"func.func @f(%x: f32, %y: f32) {{ %two = arith.constant 2.0 : f32 {text} func.return }}",
    ).parse_module()
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    last = list(func.body.block.ops)[-2] if text else None
    assert range_of(last.results[0] if last else func.args[0]) == CASES[text]
