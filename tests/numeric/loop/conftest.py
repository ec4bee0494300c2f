"""Kernels as text, and the oracle: a kernel means the same before and after a schedule."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr, MemRefType, ModuleOp
from xdsl.parser import Parser

from stepwell.backends.llvm.jit import CompiledModule, Effort, compile_module
from stepwell.backends.reference.machine import run_kernel
from stepwell.core.ir.context import PassHook
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.packing import pack_array

from ...harness import close, same

Size = int | None
"""A size in a type; None is written `?`."""


def shape(*sizes: Size, kind: str = "f32") -> str:
    return "memref<" + "x".join(["?" if n is None else str(n) for n in sizes] + [kind]) + ">"


def bound(size: Size, otherwise: str) -> str:
    return otherwise if size is None else str(size)


def dense(m: Size, n: Size, k: Size, kind: str = "f32") -> str:
    """relu(x W^T + b): x of shape (m, k), W (n, k), b (n)."""
    x, w, b, y = (shape(*s, kind=kind) for s in ((m, k), (n, k), (n,), (m, n)))
    constant = " {loop.constant}" if n is not None and k is not None else ""
    return f"""
loop.kernel @dense(%x: {x}, %w: {w}{constant}, %b: {b}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {kind}
  %m = memref.dim %x, %c0 : {x}
  %n = memref.dim %b, %c0 : {b}
  %kk = memref.dim %x, %c1 : {x}
  loop.for "i" %i to {bound(m, "%m")} {{
    loop.for "j" %j to {bound(n, "%n")} {{
      %b0 = loop.load %b (d0) -> (d0)(%j) : {b}, {kind}
      %s = loop.for "k" %k to {bound(k, "%kk")} reduction carry(%acc = %b0 : {kind} add) {{
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {x}, {kind}
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : {w}, {kind}
        %t = math.fma %p, %q, %acc : {kind}
        loop.yield %t : {kind}
      }}
      %r = arith.maximumf %s, %zero : {kind}
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : {kind}, {y}
    }}
  }}
}}"""


def matmul(batch: int, m: Size, n: Size, k: Size, kind: str = "f32") -> str:
    """a b for a of shape (batch, m, k), b (k, n); none of them is a constant."""
    a, b, y = (shape(*s, kind=kind) for s in ((batch, m, k), (k, n), (batch, m, n)))
    integer = kind.startswith("i")
    zero = "0" if integer else "0.0"
    product = (
        f"%pq = arith.muli %p, %q : {kind}\n        %t = arith.addi %acc, %pq : {kind}"
        if integer
        else f"%t = math.fma %p, %q, %acc : {kind}"
    )
    return f"""
loop.kernel @matmul(%a: {a}, %b: {b}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant {zero} : {kind}
  %m = memref.dim %a, %c1 : {a}
  %n = memref.dim %b, %c1 : {b}
  %kk = memref.dim %b, %c0 : {b}
  loop.for "h" %h to {batch} {{
    loop.for "i" %i to {bound(m, "%m")} {{
      loop.for "j" %j to {bound(n, "%n")} {{
        %s = loop.for "k" %k to {bound(k, "%kk")} reduction carry(%acc = %zero : {kind} add) {{
          %p = loop.load %a (d0, d1, d2) -> (d0, d1, d2)(%h, %i, %k) : {a}, {kind}
          %q = loop.load %b (d0, d1) -> (d0, d1)(%k, %j) : {b}, {kind}
          {product}
          loop.yield %t : {kind}
        }}
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%h, %i, %j) : {kind}, {y}
      }}
    }}
  }}
}}"""


def softmax(m: Size, n: Size) -> str:
    """exp(x - max) / sum of each row of x, of shape (m, n)."""
    x = shape(m, n)
    return f"""
loop.kernel @softmax(%x: {x}) -> (%y: {x}) {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : {x}
  %n = memref.dim %x, %c1 : {x}
  loop.for "i" %i to {bound(m, "%m")} {{
    %max = loop.for "k" %k to {bound(n, "%n")} reduction carry(%acc = %low : f32 max) {{
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {x}, f32
      %t = arith.maximumf %acc, %p : f32
      loop.yield %t : f32
    }}
    %sum = loop.for "k1" %k to {bound(n, "%n")} reduction carry(%acc = %zero : f32 add) {{
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {x}, f32
      %d = arith.subf %p, %max : f32
      %e = math.exp %d : f32
      %t = arith.addf %acc, %e : f32
      loop.yield %t : f32
    }}
    loop.for "j" %j to {bound(n, "%n")} {{
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : {x}, f32
      %d = arith.subf %p, %max : f32
      %e = math.exp %d : f32
      %r = arith.divf %e, %sum : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {x}
    }}
  }}
}}"""


def spmm(features: Size, hidden: int | None = None) -> str:
    """relu(A x + b) for a CSR matrix A; with `hidden` the rows of that times w, (features, hidden).

    The second form stages a row in a local buffer, as a fused layer does.
    """
    x, b = shape(None, features), shape(features)
    y = shape(None, hidden or features)
    w = f", %w: {shape(features, hidden)} {{loop.constant}}" if hidden else ""
    if hidden:
        local = shape(features)
        begin, store = f"%h = loop.local : {local}", f"%r, %h (d0) -> (d0)(%j) : f32, {local}"
        rest = f"""
    loop.for "j1" %j to {hidden} {{
      %s = loop.for "k" %k to {features} reduction carry(%acc = %zero : f32 add) {{
        %p = loop.load %h (d0) -> (d0)(%k) : {local}, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : {shape(features, hidden)}, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }}
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {y}
    }}"""
    else:
        begin, store, rest = "", f"%r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {y}", ""
    return f"""
loop.kernel @spmm(%indptr: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf32>,
                  %x: {x}, %b: {b}{w}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %y, %c0 : {y}
  %f = memref.dim %b, %c0 : {b}
  loop.for "i" %i to %m {{
    {begin}
    loop.for "j" %j to {bound(features, "%f")} {{
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i)
          reduction carry(%acc = %zero : f32 add) : memref<?xi32>, memref<?xi32> {{
        %a = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %z = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : {x}, f32
        %t = math.fma %a, %z, %acc : f32
        loop.yield %t : f32
      }}
      %bias = loop.load %b (d0) -> (d0)(%j) : {b}, f32
      %w0 = arith.addf %s, %bias : f32
      %r = arith.maximumf %w0, %zero : f32
      loop.store {store}
    }}{rest}
  }}
}}"""


def blurred(rows: int, columns: int, width: int = 3) -> str:
    """The sums of `width` exponentials beside each other; they are in a local buffer first."""
    padded = columns + width - 1
    x, h, y = shape(rows, padded), shape(padded), shape(rows, columns)
    return f"""
loop.kernel @blurred(%x: {x}, %scale: memref<1xf32>) -> (%y: {y}) {{
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to {rows} {{
    %h = loop.local : {h}
    loop.for "a" %a to {padded} {{
      %s = loop.load %scale () -> (0)() : memref<1xf32>, f32
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : {x}, f32
      %q = arith.mulf %p, %s : f32
      %e = math.exp %q : f32
      loop.store %e, %h (d0) -> (d0)(%a) : f32, {h}
    }}
    loop.for "j" %j to {columns} {{
      %t = loop.for "k" %k to {width} reduction carry(%acc = %zero : f32 add) {{
        %v = loop.load %h (d0, d1) -> (d0 + d1)(%j, %k) : {h}, f32
        %u = arith.addf %acc, %v : f32
        loop.yield %u : f32
      }}
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {y}
    }}
  }}
}}"""


def centred(m: Size, n: int, k: Size, kind: str = "f32") -> str:
    """x W^T + b less the mean of each row, which is in a local buffer first: m rows of n."""
    x, w, b, y = (shape(*s, kind=kind) for s in ((m, k), (n, k), (n,), (m, n)))
    local = shape(n, kind=kind)
    return f"""
loop.kernel @centred(%x: {x}, %w: {w} {{loop.constant}}, %b: {b}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : {kind}
  %size = arith.constant {n}.0 : {kind}
  %m = memref.dim %x, %c0 : {x}
  loop.for "i" %i to {bound(m, "%m")} {{
    %h = loop.local : {local}
    loop.for "a" %j to {n} {{
      %b0 = loop.load %b (d0) -> (d0)(%j) : {b}, {kind}
      %s = loop.for "k" %k to {k} reduction carry(%acc = %b0 : {kind} add) {{
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {x}, {kind}
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : {w}, {kind}
        %t = math.fma %p, %q, %acc : {kind}
        loop.yield %t : {kind}
      }}
      loop.store %s, %h (d0) -> (d0)(%j) : {kind}, {local}
    }}
    %sum = loop.for "k1" %k to {n} reduction carry(%acc = %zero : {kind} add) {{
      %p = loop.load %h (d0) -> (d0)(%k) : {local}, {kind}
      %t = arith.addf %acc, %p : {kind}
      loop.yield %t : {kind}
    }}
    %mean = arith.divf %sum, %size : {kind}
    loop.for "j" %j to {n} {{
      %p = loop.load %h (d0) -> (d0)(%j) : {local}, {kind}
      %r = arith.subf %p, %mean : {kind}
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : {kind}, {y}
    }}
  }}
}}"""


def padded(rows: int, columns: int, low: int, high: int) -> str:
    """x with a border of -1, as `graph.pad` becomes a nest."""
    x, y = shape(rows, columns), shape(rows + low + high, columns + low + high)
    return f"""
loop.kernel @padded(%x: {x}) -> (%y: {y}) {{
  %border = arith.constant -1.0 : f32
  %zero = arith.constant 0 : index
  %low = arith.constant {low} : index
  %m = arith.constant {rows} : index
  %n = arith.constant {columns} : index
  %m1 = arith.constant {rows - 1} : index
  %n1 = arith.constant {columns - 1} : index
  loop.for "i" %i to {rows + low + high} {{
    %a = arith.subi %i, %low : index
    %ina = arith.cmpi ult, %a, %m : index
    %a1 = arith.minsi %a, %m1 : index
    %a2 = arith.maxsi %a1, %zero : index
    loop.for "j" %j to {columns + low + high} {{
      %b = arith.subi %j, %low : index
      %inb = arith.cmpi ult, %b, %n : index
      %in = arith.andi %ina, %inb : i1
      %b1 = arith.minsi %b, %n1 : index
      %b2 = arith.maxsi %b1, %zero : index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%a2, %b2) : {x}, f32
      %r = arith.select %in, %v, %border : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {y}
    }}
  }}
}}"""


@dataclass(frozen=True)
class Kernels:
    """The texts, as fixtures can give them."""

    dense: Callable[..., str] = dense
    matmul: Callable[..., str] = matmul
    softmax: Callable[..., str] = softmax
    spmm: Callable[..., str] = spmm
    blurred: Callable[..., str] = blurred
    centred: Callable[..., str] = centred
    padded: Callable[..., str] = padded


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    return Kernels()


def parse(text: str) -> KernelOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    return kernel


@pytest.fixture(scope="session")
def kernel_of() -> Callable[[str], KernelOp]:
    """The kernel of a text, in a module of its own."""
    return parse


Check = Callable[[str, Sequence[np.ndarray], Callable[[KernelOp], KernelOp]], KernelOp]


def run_both(
    text: str, inputs: Sequence[np.ndarray], schedule: Callable[[KernelOp], KernelOp]
) -> tuple[KernelOp, np.ndarray]:
    """Run a kernel before and after a schedule; the last array is the output's, and is compared.

    Returns the kernel after the schedule, and the output of the kernel before it.

    The order of additions changes, so that a result may be off by the roundings of a sum of a
    few hundred terms of size 1: 1e-4 relative and absolute. Integers are equal.
    """
    before = parse(text)
    expected = [array.copy() for array in inputs]
    run_kernel(before, expected)
    after = schedule(parse(text))
    module = after.parent_op()
    if not isinstance(module, ModuleOp):
        module = ModuleOp([after])
    module.verify()
    got = [array.copy() for array in inputs]
    for array in got[-1:]:
        array.fill(77)  # what is not written shows
    run_kernel(after, got)
    for left, right in zip(expected[:-1], got[:-1], strict=True):
        same(right, left, "an input was written to")
    close(got[-1], expected[-1], 1e-4)
    return after, expected[-1]


@pytest.fixture(scope="session")
def same_before_and_after() -> Check:
    """A function that compares a kernel with itself after a schedule, and returns the latter."""
    return lambda text, inputs, schedule: run_both(text, inputs, schedule)[0]


PIPELINE = pipeline()
KNOWN: dict[str, CompiledModule] = {}
"""The machine code of the last kernels, by their texts: tests run one on several arrays."""
MOST = 100


def known_code(kernel: KernelOp) -> CompiledModule:
    text = str(kernel)
    if text not in KNOWN:
        if len(KNOWN) == MOST:
            KNOWN.clear()
        KNOWN[text] = machine_code(kernel, PIPELINE, ())
    return KNOWN[text]


def run_compiled(
    kernel: KernelOp,
    arrays: Sequence[np.ndarray],
    texts: Mapping[str, str] = PIPELINE,
    hooks: Sequence[PassHook] = (),
) -> None:
    """Run a kernel of buffers as machine code, made by these passes; constants are packed."""
    name, words = kernel.sym_name.data, list[int]()
    kept: list[np.ndarray] = []
    for number, (array, arg) in enumerate(zip(arrays, kernel.body.block.args, strict=True)):
        shape = cast(MemRefType, arg.type).get_shape()
        packing = kernel.attrs_of(number).get("loop.packing")
        if packing is not None:
            packed = pack_array(array, cast(AffineMapAttr, packing).data, shape)
            array = np.ascontiguousarray(packed)
        kept.append(array)
        words.append(array.ctypes.data)
        words += [n for n, known in zip(array.shape, shape, strict=True) if known < 0]
    if texts is PIPELINE and not hooks:
        code = known_code(kernel)
    else:
        code = machine_code(kernel, texts, hooks)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))(code.address(name))(*words)


def machine_code(
    kernel: KernelOp, texts: Mapping[str, str], hooks: Sequence[PassHook]
) -> CompiledModule:
    ctx = make_context(target=named("host"))
    ctx.hooks += hooks
    module = ModuleOp([kernel.clone()])
    run_passes(ctx, module, texts["loops"])
    for function in module.ops:
        function.properties.pop("sym_visibility", None)
    run_passes(ctx, module, texts["llvm"])
    return compile_module(module, named("host"), Effort.LIGHT)


@pytest.fixture(scope="session")
def compiled_kernel() -> Callable[[KernelOp, Sequence[np.ndarray]], None]:
    return run_compiled


@pytest.fixture(scope="session")
def same_compiled() -> Check:
    """As `same_before_and_after`, and the machine code of the scheduled kernel as well."""

    def both(
        text: str, inputs: Sequence[np.ndarray], schedule: Callable[[KernelOp], KernelOp]
    ) -> KernelOp:
        after, expected = run_both(text, inputs, schedule)
        got = [a.copy() for a in inputs]
        got[-1].fill(77)
        run_compiled(after, got)
        close(got[-1], expected, 1e-4)
        return after

    return both


@pytest.fixture(scope="session")
def normal() -> Callable[..., np.ndarray]:
    """Normal numbers of a shape, the same ones in each session."""
    rng = np.random.default_rng(7)
    return lambda *sizes: rng.standard_normal(sizes).astype(np.float32)


@pytest.fixture(scope="session")
def csr() -> Callable[[Sequence[int], int], list[np.ndarray]]:
    """Row pointers, columns and values for rows of these lengths."""
    rng = np.random.default_rng(8)

    def make(lengths: Sequence[int], columns: int) -> list[np.ndarray]:
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        rows = [np.sort(rng.choice(columns, n, replace=False)) for n in lengths]
        indices = np.concatenate([*rows, []]).astype(np.int32)
        return [indptr, indices, rng.standard_normal(len(indices)).astype(np.float32)]

    return make
