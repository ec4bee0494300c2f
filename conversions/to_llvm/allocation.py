"""The function by which compiled code allocates memory on the heap, as MLIR text."""

from __future__ import annotations

import functools
from string import Template

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType

from ...core.ir.parsing import MlirParser
from ...core.registry import make_context
from ...dialects.rt import ops as rt

ALLOCATE = "rt_allocate"
"""The function `(bytes) -> address`. A kernel cannot fail, so without memory the process ends."""
ALIGNMENT = 64
"""Memory begins at a multiple of this many bytes: a cache line, a vector."""

# The C library takes multiples of the alignment, and may have no address for 0 bytes.
_ALLOCATE = f"""
llvm.func internal @{ALLOCATE}(%bytes: $index) -> !llvm.ptr {{
  %more = llvm.mlir.constant({2 * ALIGNMENT - 1}) : $index
  %mask = llvm.mlir.constant({-ALIGNMENT}) : $index
  %alignment = llvm.mlir.constant({ALIGNMENT}) : $index
  %zero = llvm.mlir.constant(0) : $index
  %longer = llvm.add %bytes, %more : $index
  %whole = llvm.and %longer, %mask : $index
  %address = llvm.call @{rt.SYSTEM_ALLOCATE}(%alignment, %whole) : ($index, $index) -> !llvm.ptr
  %number = llvm.ptrtoint %address : !llvm.ptr to $index
  %none = llvm.icmp "eq" %number, %zero : $index
  llvm.cond_br %none, ^fail, ^end
^fail:
  llvm.call @{rt.SYSTEM_ABORT}() : () -> ()
  llvm.br ^end
^end:
  llvm.return %address : !llvm.ptr
}}
"""


@functools.cache
def allocate(index: IntegerType) -> llvm.FuncOp:
    """The function, to be cloned into a module."""
    text = Template(_ALLOCATE).substitute(index=index)
    op = MlirParser(make_context(), text).parse_module().body.block.first_op
    assert isinstance(op, llvm.FuncOp)
    return op
