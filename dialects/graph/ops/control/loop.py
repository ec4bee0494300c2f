"""`graph.loop`: iterations that carry values, take slices of tensors, and stack what they make."""

from __future__ import annotations

from xdsl.irdl import AttrSizedOperandSegments, ParsePropInAttrDict, traits_def
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import (
    HasCanonicalizationPatternsTrait,
    IsolatedFromAbove,
    RecursiveMemoryEffect,
)

from .....core.ir.definitions import irdl_op_definition
from .loop_base import GraphLoopBase
from .loop_rewrites import LOOP_REWRITES


class _LoopCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return LOOP_REWRITES


@irdl_op_definition
class LoopOp(GraphLoopBase):
    """Run the region for one iteration after another.

    %h, %ys = graph.loop carries(%h0 : tensor<4xf32>) slices(%xs : tensor<?x4xf32>)
        captures(%w : tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
    ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %x: tensor<4xf32>, %v: tensor<4xf32>):
      %y = graph.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %next = graph.add %h, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %next, %y : tensor<4xf32>, tensor<4xf32>
    }

    In NumPy, where the region is a function of arrays that returns lists:

    ```python
    carried, stacked = inits, []
    for i in range(count):
        if not condition:
            break
        condition, carried, rows = body(i, *carried, *(xs[i] for xs in sliced), *captures)
        stacked.append(rows)
    results = [*carried, *map(np.stack, zip(*stacked))]
    ```

    The arguments of the region are the number of the iteration, what the last one carries to this
    one, a slice of each operand of `slices` along its first axis, and the captures. It yields the
    condition of the next iteration if there is `while`, what it carries on, and a slice of each
    stacked result. The operation gives what the last iteration carries (without one, `carries`
    itself), and the stacked results.

    The number of iterations is the number of slices, `count` (a number, or a size of the function),
    or the value of `times`, of which a negative one counts as 0. It ends before an iteration
    for which the condition does not hold: the operand of `while` for the first one. A loop whose
    end no size determines may have a `limit`: another iteration is then an error.

    What is carried keeps its sizes, but for those that have an upper bound in `bounds`: one text
    for each dimension of each carried value, such as `[["", "n+9"], []]`, "" for one that stays.
    There `loop.iterations` is the number of slices, or `count`: what grows by two rows in each
    iteration has at most `"n+2*loop.iterations"`. `loop.start` is the size that the dimension has
    before the loop. In the region and after the loop they are computed sizes.

    Stacked results have as many slices as there were iterations. Where that depends on values, it
    is a computed size, at most `count`, the number of slices, or the `limit`. `sizes` names it.
    """

    name = "graph.loop"

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), _LoopCanonicalization())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "(`count` $count^)? (`times` `(` $times^ `:` type($times) `)`)? "
        "(`while` `(` $condition^ `:` type($condition) `)`)? "
        "(`carries` `(` $inits^ `:` type($inits) `)`)? "
        "(`slices` `(` $sliced^ `:` type($sliced) `)`)? "
        "(`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict-with-keyword "
        "`->` `(` type($res) `)` $body"
    )
