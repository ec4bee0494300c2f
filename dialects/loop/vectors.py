"""The machine vectors of a kernel: `#loop.vectors`, see `loop-legalize-vectors`.

A vector of the loop dialect has as many lanes as the loops it was made from had iterations. Its
last axis is cut into chunks, each of which is a machine vector, or a scalar where it has one lane.
The other axes number its rows, which are all cut in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...core.errors import explain

VECTORS = "loop.vectors"
"""The attribute of a kernel with the machine vectors that its vectors consist of."""
INTERLEAVE = "loop.interleave"
"""The attribute of an operation with the number of machine vectors of a row that it interleaves."""
INTRINSICS = "loop.intrinsics"
"""The attribute of an instruction with LLVM's names of it, by the number of lanes of the result."""
BRANCH = "loop.branch"
"""The attribute of a store that uses a mask only where some of its lanes are not valid."""

Shape = tuple[int, ...]
Row = tuple[int, ...]
"""The position of a row: an index for each axis except those inside of a machine vector."""


@dataclass(frozen=True)
class Chunk:
    """Lanes `offset` to `offset + lanes` of a row, in a machine vector of `width` lanes."""

    offset: int
    lanes: int
    width: int

    def __str__(self) -> str:
        return f"{self.width}" if self.lanes == self.width else f"{self.lanes} of {self.width}"


@dataclass(frozen=True)
class RowCut:
    """How rows of `lanes` lanes are cut."""

    lanes: int
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(cls, lanes: int, chunks: Iterable[tuple[int, int]]) -> RowCut:
        """A row cut into chunks of these numbers of lanes and widths, one after another."""
        found: list[Chunk] = []
        for number, width in chunks:
            found.append(Chunk(sum(chunk.lanes for chunk in found), number, width))
        return cls(lanes, tuple(found))

    def in_groups(self, depth: int) -> RowCut:
        """The cut of rows with a group of elements for each lane."""
        return RowCut.of(
            self.lanes * depth, [(part.lanes * depth, part.width * depth) for part in self.chunks]
        )

    def __str__(self) -> str:
        return f"{self.lanes} = [{', '.join(map(str, self.chunks))}]"


_SCALAR = (Chunk(0, 1, 1),)


@dataclass(frozen=True)
class VectorLayout:
    """How vectors of a shape are cut: each row into the same chunks.

    `merged` axes at the end share one machine vector: 1, or 2 for two small ones, or a column.
    """

    shape: Shape
    chunks: tuple[Chunk, ...]
    merged: int = 1

    @property
    def rows(self) -> list[Row]:
        """The rows, in order."""
        return list(product(*(range(n) for n in self.shape[: len(self.shape) - self.merged])))

    def places(self) -> list[tuple[Row, int]]:
        """Every row with the number of each chunk, in order."""
        return [(row, chunk) for row in self.rows for chunk in range(len(self.chunks))]

    def position(self, row: Row, lane: int) -> Row:
        """The position in the vector of a lane of a row."""
        if self.merged == 1:
            return (*row, lane)
        return (*row, *divmod(lane, self.shape[-1]))


@dataclass(frozen=True)
class Vectors:
    """The machine vectors of a kernel, and how many registers are left for hoisted loads.

    Up to `hoisted` loads may be hoisted out of the loops of a function or a tile. `cuts` are for
    rows of two or more lanes; vectors of the shapes in `merged` have their last two axes in one
    machine vector instead.
    """

    hoisted: int
    cuts: tuple[RowCut, ...]
    merged: tuple[Shape, ...] = ()

    def layout(self, shape: Shape) -> VectorLayout | None:
        """How vectors of a shape are cut, None if that is unknown."""
        if shape in self.merged:
            lanes = shape[-2] * shape[-1]
            return VectorLayout(shape, (Chunk(0, lanes, lanes),), 2)
        if shape[-1:] == (1,):
            return VectorLayout(shape, _SCALAR)
        found = (cut.chunks for cut in self.cuts if (cut.lanes,) == shape[-1:])
        return next((VectorLayout(shape, chunks) for chunks in found), None)


@irdl_attr_definition
class VectorsAttr(Data[Vectors]):
    """The machine vectors of a kernel's vectors, by the number of lanes along their last axis.

    ```mlir
    #loop.vectors<hoist 16, 48 = [16, 16, 16], 23 = [16, 7 of 8], merged [2, 4]>
    ```

    A row of 48 lanes is three machine vectors of 16. One of 23 is one of 16 and one of 8, in which
    7 lanes are valid: its loads and stores are masked. A row of one lane is a scalar. Both axes of
    a `vector<2x4xf32>` share a machine vector. Up to 16 loads may be hoisted out of the loops of a
    function or a tile.
    """

    name = VECTORS

    def verify(self) -> None:
        for number, cut in enumerate(self.data.cuts):
            if any(cut.lanes == other.lanes for other in self.data.cuts[:number]):
                _refuse("rows are cut twice", got=cut)
            if any(chunk.width < 1 or chunk.width & (chunk.width - 1) for chunk in cut.chunks):
                _refuse("the width of a chunk is not a power of 2", got=cut)
            if any(not 0 < chunk.lanes <= chunk.width for chunk in cut.chunks):
                _refuse("a chunk has no lanes or more than its width", got=cut)
            if (covered := sum(chunk.lanes for chunk in cut.chunks)) != cut.lanes:
                _refuse(
                    "the chunks do not cover a row", f"{cut.lanes} lanes", f"{covered} in {cut}"
                )
        for shape in self.data.merged:
            lanes = prod(shape[-2:])
            if len(shape) < 2 or lanes < 1 or lanes & (lanes - 1):
                expected = "two axes or more, the last two with a power of 2 lanes"
                _refuse("axes cannot be merged", expected, list(shape))

    def print_parameter(self, printer: Printer) -> None:
        vectors = self.data
        merged = [f"merged {list(shape)}" for shape in vectors.merged]
        texts = (f"hoist {vectors.hoisted}", *map(str, vectors.cuts), *merged)
        printer.print_string(f"<{', '.join(texts)}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Vectors:
        square = parser.Delimiter.SQUARE

        def number() -> int:
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

        def chunk() -> tuple[int, int]:
            lanes = number()
            return lanes, number() if parser.parse_optional_keyword("of") else lanes

        cuts: list[RowCut] = []
        merged: list[Shape] = []
        with parser.in_angle_brackets():
            parser.parse_keyword("hoist")
            hoisted = number()
            while parser.parse_optional_punctuation(","):
                if parser.parse_optional_keyword("merged"):
                    merged.append(tuple(parser.parse_comma_separated_list(square, number)))
                    continue
                lanes = number()
                parser.parse_punctuation("=")
                cuts.append(RowCut.of(lanes, parser.parse_comma_separated_list(square, chunk)))
        return Vectors(hoisted, tuple(cuts), tuple(merged))


def _refuse(fact: str, expected: object = None, got: object = None) -> None:
    raise VerifyException(explain(f"#{VECTORS}", fact, expected=expected, got=got))
