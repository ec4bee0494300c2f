"""All cases of `accuracy.py`, and the operators that need none."""

from __future__ import annotations

from accuracy_case import Case
from accuracy_dense import ELEMENTWISE, NORMALIZATIONS, PRODUCTS, REDUCTIONS
from accuracy_graphs import GRAPHS, QUANTIZED, TREES

CASES: dict[str, Case] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **PRODUCTS,
    **QUANTIZED,
    **NORMALIZATIONS,
    **GRAPHS,
    **TREES,
}

WITHOUT_A_CASE = {
    "one operation of IEEE 754 for an element, half an ulp": (
        "add cast dequantize div fma leaky_relu mul sqrt sub"
    ),
    "a few of them": "hard_sigmoid hard_swish prelu softsign",
    "a part of `softmax`, which has a case": "small_exp",
    "an element of an operand, its sign, or its whole part": (
        "abs bitcast broadcast_to ceil clip combine concat constant dropout dynamic_broadcast "
        "dynamic_reshape dynamic_slice exchange floor fmod gather gather_elements gather_nd max "
        "min neg pad pad_same relu reshape round sign slice sort top_k transpose where"
    ),
    "integers and truth values, or numbers made of their bits": (
        "arange arg_reduce bitwise_and bitwise_not bitwise_or bitwise_xor dim equal greater "
        "greater_equal less less_equal logical_and logical_not logical_or logical_xor nonzero "
        "one_hot random_uniform searchsorted shift_left shift_right suppress_boxes unique"
    ),
    "entries of matrices": (
        "assemble at_entries check check_indices entries missing_self_loops slice_rows sort_edges "
        "sort_edges_with_loops with_entries"
    ),
    "other operators": "call_dps call_packed if loop yield",
}
"""Operators without an approximation or a sum, by what their results are."""
