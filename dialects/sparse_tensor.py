"""The `sparse_tensor` encoding of upstream MLIR: how the entries of a sparse tensor are stored.

Upstream defines the attribute in C++ only, so it is defined here once more, with upstream's own
text form: `mlir-opt` reads what this prints and the other way round. A sparse tensor is an
ordinary `tensor` type that carries the encoding. Level maps are permutations of the dimensions;
blocked formats (`d0 floordiv 4`) are refused.

    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    tensor<2708x1433xf32, #csr>

Operators of the `graph` dialect use it; `convert-graph-to-loop` turns a sparse operand into the
arrays that the encoding stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_LEVELS = ("dense", "compressed", "loose_compressed", "singleton", "batch")
_PROPERTIES = ("nonunique", "nonordered", "soa")
_WIDTHS = (0, 8, 16, 32, 64)

Format = Literal["csr", "csc", "coo"]

_FORMATS: dict[tuple[tuple[int, ...], tuple[str, ...]], Format] = {
    ((0, 1), ("dense", "compressed")): "csr",
    ((1, 0), ("dense", "compressed")): "csc",
    ((0, 1), ("compressed(nonunique)", "singleton")): "coo",
}
"""Formats by the order of dimensions and the types of levels."""


@irdl_attr_definition
class EncodingAttr(ParametrizedAttribute):
    """How a sparse tensor is stored, level by level, and how wide its integers are.

    `map` says which dimension each level stores; `levels` are level types as upstream writes
    them, such as ``compressed(nonunique)``; widths are bits of positions (`indptr`) and
    coordinates (`indices`), 0 for those of `index`.
    """

    name = "sparse_tensor.encoding"

    map: AffineMapAttr
    levels: ArrayAttr[StringAttr]
    pos_width: IntAttr
    crd_width: IntAttr

    @staticmethod
    def get(
        order: Sequence[int], levels: Sequence[str], pos: int = 0, crd: int = 0
    ) -> EncodingAttr:
        """The encoding that stores dimension ``order[l]`` at level ``l`` as ``levels[l]``."""
        rank = len(order)
        expressions = tuple(AffineExpr.dimension(d) for d in order)
        return EncodingAttr(
            AffineMapAttr(AffineMap(rank, 0, expressions)),
            ArrayAttr([StringAttr(level) for level in levels]),
            IntAttr(pos),
            IntAttr(crd),
        )

    @property
    def alias(self) -> str | None:
        """What printed text calls the encoding: the name of its format, or None."""
        return _FORMATS.get((self.order, self.level_types))

    @property
    def rank(self) -> int:
        """The number of dimensions of a tensor with this encoding."""
        return self.map.data.num_dims

    @property
    def order(self) -> tuple[int, ...]:
        """The dimension that each level stores."""
        return tuple(cast(AffineDimExpr, e).position for e in self.map.data.results)

    @property
    def level_types(self) -> tuple[str, ...]:
        """The level types as upstream writes them."""
        return tuple(level.data for level in self.levels)

    def verify(self) -> None:
        results = self.map.data.results
        positions = sorted(e.position if isinstance(e, AffineDimExpr) else -1 for e in results)
        if positions != list(range(self.rank)):
            raise VerifyException(
                f"{self.name}: map is not a permutation, expected each of {self.rank} dimensions "
                f"once, got {self.map.data}"
            )
        if len(self.levels) != len(results):
            raise VerifyException(
                f"{self.name}: wrong number of level types, expected {len(results)}, "
                f"got {len(self.levels)}"
            )
        for level in self.level_types:
            _verify_level(self.name, level)
        for what, width in (("posWidth", self.pos_width), ("crdWidth", self.crd_width)):
            if width.data not in _WIDTHS:
                raise VerifyException(
                    f"{self.name}: {what} not supported, expected one of "
                    f"{', '.join(map(str, _WIDTHS))}, got {width.data}"
                )

    def print_parameters(self, printer: Printer) -> None:
        # The declarative format cannot pair the results of a map with level types.
        dims = ", ".join(f"d{i}" for i in range(self.rank))
        levels = ", ".join(f"d{d} : {t}" for d, t in zip(self.order, self.level_types, strict=True))
        text = f"map = ({dims}) -> ({levels})"
        if self.pos_width.data:
            text += f", posWidth = {self.pos_width.data}"
        if self.crd_width.data:
            text += f", crdWidth = {self.crd_width.data}"
        printer.print_string(f"<{{ {text} }}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        order: list[int] | None = None
        levels: list[str] = []
        widths = {"posWidth": 0, "crdWidth": 0}

        def item() -> None:
            nonlocal order, levels
            key = parser.parse_identifier()
            if key != "map" and key not in widths:
                parser.raise_error(f"expected map, posWidth or crdWidth, got {key}")
            parser.parse_punctuation("=")
            if key == "map":
                order, levels = _parse_map(parser)
            else:
                widths[key] = parser.parse_integer(allow_boolean=False, allow_negative=False)

        with parser.in_angle_brackets():
            parser.parse_comma_separated_list(parser.Delimiter.BRACES, item)
        if order is None:
            parser.raise_error("the encoding has no map")
        attr = EncodingAttr.get(order, levels, widths["posWidth"], widths["crdWidth"])
        return attr.parameters


def _verify_level(name: str, text: str) -> None:
    kind, _, rest = text.partition("(")
    properties = rest.removesuffix(")").split(", ") if rest else []
    if kind not in _LEVELS:
        raise VerifyException(
            f"{name}: unknown level type, expected one of {', '.join(_LEVELS)}, got {kind}"
        )
    for item in properties:
        if item not in _PROPERTIES:
            raise VerifyException(
                f"{name}: unknown level property, expected one of {', '.join(_PROPERTIES)}, "
                f"got {item}"
            )


def _parse_map(parser: AttrParser) -> tuple[list[int], list[str]]:
    """Parse ``(i, j) -> (i : dense, j : compressed)``."""
    paren = parser.Delimiter.PAREN
    dims = parser.parse_comma_separated_list(paren, parser.parse_identifier)
    parser.parse_punctuation("->")

    def level() -> tuple[int, str]:
        dim = parser.parse_identifier()
        if dim not in dims:
            parser.raise_error(f"expected a dimension of {', '.join(dims)}, got {dim}")
        parser.parse_punctuation(":")
        text = parser.parse_identifier()
        properties = parser.parse_optional_comma_separated_list(paren, parser.parse_identifier)
        if properties:
            text += f"({', '.join(properties)})"
        return dims.index(dim), text

    levels = parser.parse_comma_separated_list(paren, level)
    return [dim for dim, _ in levels], [text for _, text in levels]


def csr(pos: int = 32, crd: int = 32) -> EncodingAttr:
    """Compressed sparse rows, with positions and coordinates of these widths in bits."""
    return EncodingAttr.get((0, 1), ("dense", "compressed"), pos, crd)


def csc(pos: int = 32, crd: int = 32) -> EncodingAttr:
    """Compressed sparse columns."""
    return EncodingAttr.get((1, 0), ("dense", "compressed"), pos, crd)


def coo(pos: int = 32, crd: int = 32) -> EncodingAttr:
    """Sorted coordinates."""
    return EncodingAttr.get((0, 1), ("compressed(nonunique)", "singleton"), pos, crd)


def is_sparse(type: Attribute) -> bool:
    """Whether the type is a tensor with a sparse encoding."""
    # Attributes derive from an ABC, for which isinstance is slow.
    return isinstance(type, TensorType) and type.encoding.__class__ is EncodingAttr


def part_count(type: Attribute) -> int:
    """How many buffers and sizes stand for a tensor: one, or the parts of a CSR matrix."""
    if not is_sparse(type):
        return 1
    # Row pointers, column indices, values; the number of columns where the type lacks it.
    return 4 if cast(TensorType, type).get_shape()[1] == DYNAMIC_INDEX else 3


def encoding_of(type: Attribute) -> EncodingAttr:
    """The encoding of a sparse tensor type.

    Raises:
        TypeError: if the type is not sparse.
    """
    if isinstance(type, TensorType) and isinstance(type.encoding, EncodingAttr):
        return type.encoding
    raise TypeError(f"not a sparse tensor type: {type}")


def format_of(type: Attribute) -> Format | None:
    """The name of the storage format of a type, None where it is dense or has no name here."""
    if not is_sparse(type):
        return None
    encoding = encoding_of(type)
    return _FORMATS.get((encoding.order, encoding.level_types))


def index_type(type: Attribute) -> IntegerType | IndexType:
    """The integer type of the coordinates (`indices`) of a sparse tensor type."""
    return _integer(encoding_of(type).crd_width.data)


def position_type(type: Attribute) -> IntegerType | IndexType:
    """The integer type of the positions (`indptr`) of a sparse tensor type."""
    return _integer(encoding_of(type).pos_width.data)


def _integer(width: int) -> IntegerType | IndexType:
    return IntegerType(width) if width else IndexType()


SparseTensor = Dialect("sparse_tensor", [], [EncodingAttr])
