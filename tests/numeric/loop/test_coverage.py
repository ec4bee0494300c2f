"""What is proved to be stored is stored, in all calls: random nests, run element by element."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import affine, memref
from xdsl.ir import Block, SSAValue

from stepwell.core.algebra.dims import Dim
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.registry import make_context
from stepwell.dialects.loop.ops import ForOp, KernelOp, StoreOp
from stepwell.dialects.loop.ops_values import block_shape
from stepwell.dialects.loop.proofs.bounds import constant_index
from stepwell.dialects.loop.proofs.coverage import is_covered
from stepwell.dialects.loop.proofs.indices import Known

KERNEL = """loop.kernel @k(%x: memref<?x?xf32>) -> (%y: memref<{type}xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %v = vector.broadcast %f : f32 to vector<4xf32>
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
{body}
}}"""
SIZES = {
    "?": "d0",
    "3x?": "3, d0",
    "?x6": "d0, 6",
    "?x?": "d0, d1",
    "?x?x4": "d0, d1, 4",
    "?x2x3": "d0, 2, 3",
    "12": "12",
}
"""Types of results, and their shapes where d0 is n and d1 is m."""

FUSED = {
    "?x6": [["e floordiv 6", "e mod 6"]],
    "?x2x3": [
        ["(e floordiv 3) floordiv 2", "(e floordiv 3) mod 2", "e mod 3"],
        ["e floordiv 6", "(e mod 6) floordiv 3", "(e mod 6) mod 3"],
    ],
}
"""Ways to compute the place of element number e."""

NUMBERS = range(14)


def parsed(text: str) -> KernelOp:
    (kernel,) = MlirParser(make_context(), text, "text").parse_module().ops
    assert isinstance(kernel, KernelOp)
    return kernel


def proved(kernel: KernelOp, sizes: list[Dim]) -> bool:
    (x,), (y,) = kernel.inputs, kernel.outputs
    known = Known({x: [Dim.symbol("n"), Dim.symbol("m")], y: sizes})
    return is_covered(known, y)


def stored(kernel: KernelOp, sizes: Mapping[int, int]) -> set[tuple[int, ...]]:
    """The elements that a kernel stores where its operand has these sizes."""
    found: set[tuple[int, ...]] = set()
    values: dict[SSAValue, int] = {}

    def number(value: SSAValue) -> int:
        if (constant := constant_index(value)) is not None:
            return constant
        if isinstance(value.owner, memref.DimOp):
            axis = constant_index(value.owner.index)
            assert axis is not None
            return sizes[axis]
        if isinstance(value.owner, affine.MinOp):
            return min(value.owner.map.data.eval([number(v) for v in value.owner.operands], []))
        return values[value]

    def lanes(op: StoreOp) -> Iterator[tuple[int, ...]]:
        counts = list(block_shape(op.value.type))
        for axis, limit in zip(op.limited.get_values(), op.limits, strict=True):
            counts[axis] = min(counts[axis], number(limit))
        return itertools.product(*map(range, counts))

    def run(block: Block) -> None:
        for op in block.ops:
            if isinstance(op, ForOp):
                for i in range(min(op.bound.data.eval([number(v) for v in op.bounds], []))):
                    values[op.variable] = i
                    run(op.body.block)
            elif isinstance(op, StoreOp):
                indices = [number(v) for v in op.indices]
                found.update(tuple(op.map.data.eval(indices, list(at))) for at in lanes(op))

    run(kernel.body.block)
    return found


Part = tuple[list[tuple[str, list[str]]], list[str], str]
"""Loops (a variable and its bounds), the indices in them, and what lanes are below, if any."""


def parts_of(draw: Any, size: str, name: str, vector: bool) -> list[Part]:
    """Loops that cover a dimension together, as schedules make them."""
    ways = ["plain", "reversed", "masked", "peeled", "split", "cases", *(["lanes"] * vector)]
    return made_parts(draw(st.sampled_from(ways)), size, name, draw(st.sampled_from([2, 4, 5])))


def made_parts(way: str, size: str, name: str, f: int) -> list[Part]:
    """The loops that one way makes, in chunks of f if it cuts."""
    i, j = f"{name}0", f"{name}1"
    match way:
        case "plain":
            return [([(i, [size])], [i], "")]
        case "reversed":
            return [([(i, [size])], [f"{size} - 1 - {i}"], "")]
        case "masked":
            loops = [(i, [f"({size}) ceildiv {f}"]), (j, [str(f), f"{size} - {i} * {f}"])]
            return [(loops, [f"{i} * {f} + {j}"], "")]
        case "lanes":
            return [([(i, [f"({size}) ceildiv 4"])], [f"{i} * 4 + s0"], f"{size} - {i} * 4")]
        case "peeled":
            rest = [(f"{name}t", [f"({size}) mod {f}"])]
            place = f"(({size}) floordiv {f}) * {f} + {name}t"
            return [whole(size, name, f), (rest, [place], "")]
        case "split":
            rest = f"({size}) mod {f}"
            loops = [(f"{name}t", [f"({rest}) ceildiv {f}"]), (f"{name}u", [str(f), rest])]
            place = f"(({size}) floordiv {f}) * {f} + {name}u"
            return [whole(size, name, f), (loops, [place], "")]
        case _:
            tails: list[Part] = []
            for rest in range(1, f):
                runs = (
                    f"({size} + {f - rest}) floordiv {f} - ({size} + {f - rest - 1}) floordiv {f}"
                )
                loops = [(f"{name}t{rest}", ["1", runs]), (f"{name}u{rest}", [str(rest)])]
                tails.append((loops, [f"{size} - {rest} + {name}u{rest}"], ""))
            return [whole(size, name, f), *tails]


def whole(size: str, name: str, f: int) -> Part:
    """The chunks of f of a loop."""
    loops = [(f"{name}0", [f"({size}) floordiv {f}"]), (f"{name}1", [str(f)])]
    return loops, [f"{name}0 * {f} + {name}1"], ""


def in_order(draw: Any, chains: list[list[tuple[str, list[str]]]]) -> list[tuple[str, list[str]]]:
    """Loops of several dimensions in one nest, in some order that keeps that of each."""
    chains, found = [list(chain) for chain in chains if chain], []
    while chains:
        chain = draw(st.sampled_from(chains))
        found.append(chain.pop(0))
        chains = [chain for chain in chains if chain]
    return found


def nest(kind: str, part: Part, number: int) -> list[str]:
    """The text of loops around one store."""
    loops, index, limit = part
    names, values, lines = ["n", "m"], ["%n", "%m"], list[str]()

    def applied(exprs: list[str]) -> str:
        text = ", ".join(exprs)
        for place, name in enumerate(names):
            text = re.sub(rf"\b{name}\b", f"d{place}", text)
        return f"({', '.join(f'd{n}' for n in range(len(names)))}){{}} -> ({text})"

    for name, bounds in loops:
        where = applied(bounds).format("")
        over = ", ".join(values)
        lines.append(
            f'loop.for "{name}_{number}" %{name}_{number} to min {where}({over}) serial {{'
        )
        names.append(name)
        values.append(f"%{name}_{number}")
    over, value, valid, type = ", ".join(values), "%f", "", "f32"
    if limit:
        value, valid, type = "%v", f" valid(0 : %l{number})", "vector<4xf32>"
        where = applied(["4", limit]).format("")
        lines.append(f"%l{number} = affine.min affine_map<{where}>({over})")
    where = applied(index).format("[s0]" if limit else "")
    lines.append(f"loop.store {value}, %y {where}({over}){valid} : {type}, memref<{kind}xf32>")
    return [*lines, *(["}"] * len(loops))]


QUOTIENT = ["e floordiv 3", "e mod 3"]
OF_PAIRS, OF_ROWS = FUSED["?x2x3"]


PLACES = [
    ("?x3", "n * 3", QUOTIENT),
    ("11x3", "33", QUOTIENT),
    ("?x1", "n", ["e", "0"]),
    ("1x3", "3", ["0", "e"]),
    ("1x3", "3", QUOTIENT),
    ("?x2x3", "n * 6", OF_PAIRS),
    ("?x2x3", "n * 6", OF_ROWS),
    ("?x1x3", "n * 3", ["e floordiv 3", "0", "e mod 3"]),
]
WAYS = ["plain", "reversed", "masked", "lanes", "peeled", "split", "cases"]
USUAL = [
    (place, way)
    for place, way in itertools.product(PLACES, WAYS)
    if place in (PLACES[0], PLACES[6]) or way in ("plain", "lanes", "peeled")
]
"""Two places in all ways, and all of them in three."""


@pytest.mark.parametrize(
    ("place", "way"),
    [
        pytest.param(*case, marks=() if case in USUAL else pytest.mark.slow)
        for case in itertools.product(PLACES, WAYS)
    ],
)
def test_loops_that_are_fused(place: tuple[str, str, list[str]], way: str) -> None:
    kind, size, indices = place
    assert is_proved(kind, fused(kind, size, indices, way))


@pytest.mark.parametrize("way", ["plain", "lanes", "split"])
@pytest.mark.parametrize(
    ("kind", "size", "place"),
    [
        ("?x3", "n * 3 - 1", QUOTIENT),
        ("?x3", "n * 2", QUOTIENT),
        ("?x3", "n", QUOTIENT),
        ("11x3", "32", QUOTIENT),
        ("?x3", "n * 3", ["e floordiv 4", "e mod 4"]),
        ("?x3", "n * 3", ["e floordiv 2", "e mod 2"]),
        ("?x3", "n * 3", ["e floordiv 4", "e mod 3"]),
        ("?x3", "n * 3", ["e floordiv 3", "e mod 2"]),
        ("?x3", "n * 3", ["e floordiv 2", "e mod 3"]),
        ("?x3", "n * 3", ["e mod 3", "e floordiv 3"]),
        ("3x3", "9", ["e floordiv 3", "e floordiv 3"]),
        ("?x3", "n * 3", ["(e + 1) floordiv 3", "(e + 1) mod 3"]),
        ("?x3", "n * 3", ["e floordiv 3", "(e + 1) mod 3 + 1"]),
        ("?x6", "n * 3", ["(2 * e) floordiv 6", "(2 * e) mod 6"]),
        ("?x2x3", "n * 6", ["e floordiv 6", "0", "e mod 3"]),
        ("?x2x3", "n * 6", ["e floordiv 6", "0", "e mod 6"]),
        ("?x2x3", "n * 6", ["(e floordiv 2) floordiv 2", "(e floordiv 2) mod 2", "e mod 3"]),
    ],
)
def test_loops_that_do_not_reach_all(kind: str, size: str, place: list[str], way: str) -> None:
    assert not is_proved(kind, fused(kind, size, place, way))


def fused(kind: str, size: str, place: list[str], way: str) -> str:
    """A kernel that stores element number e of a result for all e below a size."""
    lines: list[str] = []
    for number, (loops, (element,), limit) in enumerate(made_parts(way, size, "f", 4)):
        index = [expr.replace("e", f"({element})") for expr in place]
        lines += nest(kind, (loops, index, limit), number)
    return KERNEL.format(type=kind, body="\n".join(lines))


@st.composite
def nests(draw: Any) -> tuple[str, str]:
    """A type of a result, and the loops of a kernel that stores to it, perhaps to all of it."""
    kind = draw(st.sampled_from(list(SIZES)))
    sizes = [{"d0": "n", "d1": "m"}.get(size, size) for size in SIZES[kind].split(", ")]
    dims: list[list[Part]] = []
    if kind in FUSED and draw(st.booleans()):
        ways = draw(st.sampled_from(FUSED[kind]))
        flat = parts_of(draw, "n * 6", "f", True)
        dims = [[(loops, [w.replace("e", f"({e})") for w in ways], n) for loops, (e,), n in flat]]
    else:
        lanes = draw(st.integers(0, len(sizes)))
        dims = [parts_of(draw, size, f"i{n}", n == lanes) for n, size in enumerate(sizes)]
    lines: list[str] = []
    for number, parts in enumerate(itertools.product(*dims)):
        order = in_order(draw, [loops for loops, _, _ in parts])
        index = [expr for _, exprs, _ in parts for expr in exprs]
        lines += nest(kind, (order, index, "".join(limit for *_, limit in parts)), number)
    for _ in range(draw(st.integers(0, 2))):
        lines = changed(draw, lines)
    return kind, KERNEL.format(type=kind, body="\n".join(lines))


def changed(draw: Any, lines: list[str]) -> list[str]:
    """Lines of which one is another."""
    number = draw(st.integers(0, len(lines) - 1))
    line = lines[number]
    changing = r"(?<=[ (])(\d+|ceildiv|floordiv|mod|d0|d1|\+|-)(?=[ ,)])(?! :)"
    places = list(re.finditer(changing, line))
    head = line.find("->")
    places = [place for place in places if place.start() > head]
    if "loop.store" in line and draw(st.integers(0, 5)) == 0:
        return [*lines[:number], *lines[number + 1 :]]
    if head < 0 or not places:
        return lines
    place = draw(st.sampled_from(places))
    others = {"ceildiv": "floordiv", "floordiv": "ceildiv", "mod": "floordiv", "d0": "d1"}
    others |= {"d1": "d0", "+": "-", "-": "+"}
    old = place[0]
    new = others.get(old) or str(max(1, int(old) + draw(st.sampled_from([-1, 1]))))
    return [
        *lines[:number],
        line[: place.start()] + new + line[place.end() :],
        *lines[number + 1 :],
    ]


def is_proved(kind: str, text: str) -> bool:
    """Whether a kernel is proved to store all; then it does."""
    kernel = parsed(text)
    names = {"d0": "n", "d1": "m"}
    texts = SIZES[kind].split(", ") if kind in SIZES else kind.replace("?", "d0").split("x")
    if not proved(kernel, [Dim.parse(names.get(size, size)) for size in texts]):
        return False
    for n, m in itertools.product(NUMBERS, (0, 1, 2, 5)):
        shape = [eval(size, {"d0": n, "d1": m}) for size in texts]
        everything = set(itertools.product(*map(range, shape)))
        assert everything <= stored(kernel, {0: n, 1: m}), (n, m, text)
    return True


@settings(max_examples=settings().max_examples * 25 // 100, deadline=None)
@given(nests())
def test_what_is_proved_is_stored(made: tuple[str, str]) -> None:
    is_proved(*made)
