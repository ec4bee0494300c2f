"""What is proved of the kernels in `tests/lit`, and what is not: changes are on purpose.

`pytest --renew-public tests/unit/test_provable.py` writes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.core.algebra.dims import Dim
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.ir.typed import memref_type
from stepwell.core.registry import make_context
from stepwell.dialects.loop.loops import loops_in
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.proofs.coverage import is_covered
from stepwell.dialects.loop.proofs.dependences import dependences, unwritten
from stepwell.dialects.loop.proofs.indices import Known
from stepwell.dialects.loop.proofs.inside import Inside, Unproved, as_text, readers_in

LIT = Path(__file__).parents[1] / "lit"
TABLE = Path(__file__).with_name("provable.txt")


def known_of(kernel: KernelOp) -> Known:
    """Sizes named after the number and the dimension of an argument; CSR matrices are valid."""
    known = Known()
    for number, buffer in enumerate(kernel.body.block.args):
        if hasattr(buffer.type, "get_shape"):
            known.shapes[buffer] = [
                Dim.symbol(f"a{number}.{axis}") if size == DYNAMIC_INDEX else Dim.of(size)
                for axis, size in enumerate(memref_type(buffer).get_shape())
            ]
            if isinstance(memref_type(buffer).element_type, IntegerType):
                known.contents[buffer] = [(Dim.of(0), Dim.symbol(f"a{number}.most"))]
    for loop in loops_in(kernel.body.block):
        if loop.over_entries:
            indptr, entries = loop.matrix[0], Dim.symbol("nnz")
            known.contents[indptr] = [(Dim.of(0), entries + 1)]
            known.entries[indptr] = entries
    return known


def answers(kernel: KernelOp) -> Iterator[str]:
    """Every question that is asked about a kernel, with its answer."""
    known, block = known_of(kernel), kernel.body.block
    for access in readers_in(kernel):
        found = [
            "not proved" if isinstance(one, Unproved) else as_text(one)
            for one in Inside(known).conditions(access)
        ]
        yield f"{Unproved(access, 0)} is inside: {', '.join(found) or 'yes'}"
    for number, output in enumerate(kernel.outputs):
        yield f"output {number} is stored: {'yes' if is_covered(known, output) else 'no'}"
    for dependence in dependences(block, {}):
        yield str(dependence)
    for read in unwritten(block, set(kernel.outputs)):
        yield f"{Unproved(read, 0)} is read before it is written"


def kernels() -> Iterator[tuple[str, KernelOp]]:
    for path in sorted(LIT.glob("**/*.mlir")):
        for number, part in enumerate(path.read_text().split("// -----")):
            if "loop.kernel" not in part:
                continue
            try:
                module = MlirParser(make_context(), part, "text").parse_module()
                found = [op for op in module.walk() if isinstance(op, KernelOp)]
                for kernel in found:
                    kernel.verify()
            except (ParseError, VerifyException):
                continue  # one that is refused
            for kernel in found:
                if any(readers_in(kernel)):
                    yield f"{path.relative_to(LIT)} {number} {kernel.sym_name.data}", kernel


def test_what_is_provable_of_kernels(request: pytest.FixtureRequest) -> None:
    lines = [f"{name}\n" + "".join(f"  {a}\n" for a in answers(k)) for name, k in kernels()]
    assert len(lines) > 100
    if request.config.getoption("--renew-public"):
        TABLE.write_text("".join(lines))
    assert "".join(lines) == TABLE.read_text()


@pytest.mark.parametrize("divisor", [0, -1])
@pytest.mark.parametrize("operation", ["floordivsi", "ceildivsi"])
def test_a_quotient_by_no_positive_number_may_be_any_index(operation: str, divisor: int) -> None:
    text = f"""
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {{
  %d = arith.constant {divisor} : index
  loop.for "i" %i to 4 {{
    %j = arith.{operation} %i, %d : index
    %v = loop.load %x (d0) -> (d0)(%j) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%j) : f32, memref<4xf32>
  }}
}}"""
    (kernel,) = MlirParser(make_context(), text, "text").parse_module().ops
    assert isinstance(kernel, KernelOp)
    found = list(answers(kernel))
    assert found[:2] == ["x[j] is inside: not proved", "y[j] is inside: not proved"]
