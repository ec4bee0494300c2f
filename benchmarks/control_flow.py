"""A condition and loops of 1,000 iterations around small kernels, beside onnxruntime and PyTorch.

What control flow costs above the kernels is the difference to a program of one iteration alone. A
loop in machine code calls both; these are minima, since the difference is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from call_boundary import kernels
from harness import Case, Row, Table, timed
from onnx import ModelProto, parser

import stepwell as sw
from stepwell.tools.timing import ROUNDS, measure

ITERATIONS = 1000
REPEAT = 5000
"""How many times machine code runs the kernels for each measurement, in iterations."""
ADD = "a = Mul(h, w) k = Add(a, x)"
PRODUCT = "a = MatMul(h, w) c = Add(a, x) k = Tanh(c)"
IF = (
    f"k = If<then_branch = b () => (float[64] k) {{ {ADD} }}, "
    "else_branch = b () => (float[64] k) { k = Sub(h, w) }>(p)"
)
FLAG = (
    "f = CastLike(n, x) z = Constant<value_ints = [0]>() e = Gather(k, z) l = Less(e, f) "
    "again = Squeeze(l)"
)
"""Whether an element is below n."""


class Flow(NamedTuple):
    """A program with control flow: x is carried, and each iteration computes k from h.

    Attributes:
        nodes: an iteration in ONNX, without a branch.
        step: an iteration in PyTorch, of h, x, w and p.
        carried: the shape of x.
        weight: that of w.
        flag: what says whether there is another iteration, if anything does.
        branches: whether an iteration has a branch, `IF`, of which those nodes are one side.
        stacks: whether all h are a second result.
        loops: whether there is more than one iteration.
    """

    nodes: str
    step: Callable[..., Any]
    carried: str = "64"
    weight: str = "64"
    flag: str = ""
    branches: bool = False
    stacks: bool = False
    loops: bool = True

    def graph(self, result: str, nodes: str) -> ModelProto:
        inputs = f"float[{self.carried}] x, float[{self.weight}] w, bool p, int64 n"
        header = '<ir_version: 9, opset_import: ["" : 18]> agraph'
        return parser.parse_model(f"{header} ({inputs}) => ({result}) {{ {nodes} }}")

    def one(self, nodes: str) -> ModelProto:
        result = f"float[{self.carried}] k" + (", bool again" if self.flag else "")
        return self.graph(result, f"h = Identity(x) {nodes} {self.flag}")

    def whole(self) -> ModelProto:
        nodes = IF if self.branches else self.nodes
        if not self.loops:
            return self.one(nodes)
        kind = f"float[{self.carried}]"
        again = self.flag or "again = Identity(more)"
        row, rows = ("r = Identity(h)", ", float[64] r") if self.stacks else ("", "")
        body = f"(int64 i, bool more, {kind} h) => (bool again, {kind} k{rows})"
        body = f"body = step {body} {{ {nodes} {again} {row} }}"
        most = f"most = Constant<value = int64 {{{ITERATIONS}}}>()"
        yes = "yes = Constant<value = bool {1}>()"
        names, result = ("y, s", f"{kind} y, float[m,64] s") if self.stacks else ("y", f"{kind} y")
        return self.graph(result, f"{most} {yes} {names} = Loop<{body}>(most, yes, x)")

    def in_torch(self, t: Any, x: Any, w: Any, p: Any, n: Any) -> Any:
        h, rows = x, list[Any]()
        for _ in range(ITERATIONS if self.loops else 1):
            if self.flag and not bool(h[0] < n):
                break
            if self.stacks:
                rows.append(h)
            h = self.step(h, x, w, p)
        return (h, t.stack(rows)) if self.stacks else h

    def case(self) -> Case:
        """The program on inputs so small that iterations contract, and roundings do not grow."""
        rng = np.random.default_rng(0)
        shapes = (tuple(map(int, text.split(","))) for text in (self.carried, self.weight))
        x = rng.standard_normal(next(shapes), np.float32)
        bound = 0.5 if self.weight == "64" else 0.1
        w = rng.uniform(-bound, bound, next(shapes)).astype(np.float32)
        arrays = [x, w, np.array(True), np.array(3 * ITERATIONS)]
        return Case(arrays, self.whole(), torch=self.in_torch)


def add(h: Any, x: Any, w: Any, p: Any) -> Any:
    return h * w + x


def chosen(h: Any, x: Any, w: Any, p: Any) -> Any:
    return h * w + x if bool(p) else h - w


FLOWS = {
    "if, 64 numbers": Flow(ADD, chosen, branches=True, loops=False),
    "loop, 64 numbers": Flow(ADD, add),
    "loop, 1 x 128 by 128 x 128": Flow(
        PRODUCT, lambda h, x, w, p: (h @ w + x).tanh(), "1,128", "128,128"
    ),
    "loop with a condition, 64 numbers": Flow(ADD, add, flag=FLAG),
    "loop that stacks, 64 numbers": Flow(ADD, add, stacks=True),
    "if in a loop, 64 numbers": Flow(ADD, chosen, branches=True),
}


def run(name: str, flow: Flow, *, threads: int = 1, rounds: int = ROUNDS) -> Row:
    case = flow.case()
    result = timed(name, case, threads, rounds)
    step = sw.compile(sw.from_onnx(flow.one(flow.nodes)), threads=threads)
    iterations = ITERATIONS if flow.loops else 1
    count = max(1, REPEAT // iterations)
    # The kernels write to the results of the last calls, which have to be there still.
    results = result.exe(*case.arrays), step(*case.arrays)
    calls = {"whole": kernels(result.exe, count), "step": kernels(step, REPEAT)}
    found = measure(calls, rounds=rounds)
    del results
    whole, kernel = found["whole"].minimum / count / iterations, found["step"].minimum / REPEAT
    seconds = {"iteration": whole, "kernels": kernel, "above": whole - kernel}
    facts = {title: f"{value * 1e9:.0f} ns" for title, value in seconds.items()}
    return result.row(facts, goal=None)


TABLES = [Table("case", FLOWS, run)]
