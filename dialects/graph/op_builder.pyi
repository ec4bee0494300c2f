"""The operators of a builder; `make public` writes this file."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Attribute, Dialect, Operation, SSAValue

from ...core.ir.weights import WeightStore
from .interfaces import GraphOp

Operand = Any
V = TypeVar("V")

class OperatorParameters(NamedTuple):
    """The parameters of the constructor of an operator, and those that are operands."""

    signature: inspect.Signature
    operands: tuple[str, ...]
    optional: frozenset[str]
    variadic: frozenset[str]
    own_types: Mapping[str, Attribute]

    def bind(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments: ...
    def bind_term(
        self, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> inspect.BoundArguments: ...

def parameters_of(operator: type[GraphOp]) -> OperatorParameters: ...
def operators_of(dialect: Dialect) -> dict[str, type[GraphOp]]: ...
def signature_of(operator: type[GraphOp]) -> inspect.Signature: ...
def graph_operators() -> Mapping[str, type[GraphOp]]: ...

class Arguments:
    """The arguments of the constructor of an operator, whose operands are not IR values yet."""

    def __init__(
        self, operator: type[GraphOp], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> None: ...
    @property
    def operands(self) -> list[Any]: ...
    @property
    def typed(self) -> list[Any]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    def convert(self, function: Callable[[Any, str, Attribute | None], Any]) -> None: ...
    def build(self, value_of: Callable[[Any], SSAValue]) -> GraphOp: ...

class DialectOperators:
    """The dialects that are installed, each with its operators as functions."""

    def __getattr__(self, name: str) -> OperatorsOf: ...

class OperatorsOf:
    """The operators of a dialect that a builder can apply."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...

class InsertingBuilder(OpBuilder[SSAValue]):
    """Inserts operators into IR, such as those that a rewrite replaces others by."""

    def __init__(
        self,
        builder: Builder,
        sources: Iterable[Operation],
        weights: WeightStore | None = None,
    ) -> None: ...
    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any: ...
    def insert(self, op: GraphOp, sources: Iterable[Operation] | None = None) -> SSAValue: ...
    def constant(self, array: np.ndarray, name: str = "constant") -> SSAValue: ...

class OpBuilder(ABC, Generic[V]):
    """Adds operators where they are needed."""

    @abstractmethod
    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Add an operator, such as one of a plug-in, with the arguments of its constructor."""

    @property
    def op(self) -> DialectOperators:
        """The operators of other dialects: ``b.op.row.normalize(x)`` is `row.normalize`."""

    def abs(self, x: Operand, *, name: str | None = None) -> V:
        """The absolute value; the smallest integer, whose negation overflows, is unchanged.

        %y = graph.abs %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def acos(self, x: Operand, *, name: str | None = None) -> V:
        """The angle between 0 and pi whose cosine is x; NaN outside of [-1, 1].

        %y = graph.acos %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def acosh(self, x: Operand, *, name: str | None = None) -> V:
        """The number of 0 or more whose hyperbolic cosine is x; NaN below 1.

        %y = graph.acosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def add(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a + b.

        %y = graph.add %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def aggregate(
        self,
        a: Operand,
        x: Operand,
        weights: Operand = None,
        kind: str = "sum",
        *,
        name: str | None = None,
    ) -> V:
        """Combine, for each row, the rows of x at the columns of its stored entries.

        `sum`, `mean`, `max`, `min`, `prod`, `var` or `std`; a row without entries yields 0 (1 for
        `prod`). With `weights` the row of x is multiplied by the weight of the entry first: weights of
        shape [E, H] belong to x of shape [N, H, ...]. For `softmax` weights are scores, and the result
        is the sum of the rows of x weighted by the softmax of the scores of the row. The stored values
        of the matrix are ignored; `graph.entries` returns them.

        %y = graph.aggregate sum %a, %x weights %p
            : (tensor<?x?xf32, #csr>, tensor<?x2x3xf32>, tensor<?x2xf32>) -> tensor<?x2x3xf32>
        """

    def aggregate_dense(
        self, a: Operand, x: Operand, w: Operand, kind: str = "sum", *, name: str | None = None
    ) -> V:
        """The messages of each node and part, combined, times the weights of the part, summed.

        `w` is [P, K, F]: P parts, such as the relations of a graph, each with weights of its own. The
        matrix has the rows of N nodes for each part, one part after the other, and x is [M, K].
        Node i has

            y[i] = sum of aggregate(a, x)[N * p + i] w[p]  over the parts p

        A row of `a` without entries contributes nothing, whatever the weights are, and is not
        multiplied. `sum`, `mean`, `max`, `min`, `var` or `std`; stored values of the matrix are
        ignored. Sums of f16 are computed in f32.

        %y = graph.aggregate_dense mean %a, %x, %w
            : (tensor<4x?xf32, #csr>, tensor<?x3xf32>, tensor<2x3x2xf32>) -> tensor<2x2xf32>
        """

    def arange(self, count: Operand, at_most: int | None = None, *, name: str | None = None) -> V:
        """The numbers from 0 to below `count`, which is a size that a scalar holds at run time.

        Where the scalar is a count that another operator returned, the size is the same. Another
        one that is negative or more than `at_most` is an error. Without `at_most`, memory is allocated
        once the size is known.

        %y = graph.arange %count at_most = 100 : (tensor<i64>) -> tensor<?xi64>
        """

    def arg_reduce(
        self,
        x: Operand,
        kind: str,
        axis: int = -1,
        keepdims: bool = False,
        last: bool = False,
        *,
        name: str | None = None,
    ) -> V:
        """The place of the maximum or minimum along an axis, an i64.

        Of several places the first one, with `last` the last one; a NaN counts as the extremum, as in
        NumPy. An empty axis is an error.

        %y = graph.arg_reduce max %x axis = 1 keepdims = false last = false
            : (tensor<4x3xf32>) -> tensor<4xi64>
        """

    def asin(self, x: Operand, *, name: str | None = None) -> V:
        """The angle between -pi/2 and pi/2 whose sine is x; NaN outside of [-1, 1].

        %y = graph.asin %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def asinh(self, x: Operand, *, name: str | None = None) -> V:
        """The number whose hyperbolic sine is x.

        %y = graph.asinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def assemble(
        self,
        indptr: Operand,
        indices: Operand,
        values: Operand,
        sources: Operand,
        *,
        name: str | None = None,
    ) -> V:
        """The CSR matrix of row pointers, column indices and values, which are not copied.

        It has as many columns as the first dimension of `sources` has elements. In each call the row
        pointers are checked to begin with 0, to never decrease and to end with the number of entries,
        and the column indices to be in [0, columns).

        %a = graph.assemble %p, %j, %values of %x
            : (tensor<4xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?x2xf32>) -> tensor<3x?xf32, #csr>
        """

    def at_entries(self, a: Operand, x: Operand, axis: int, *, name: str | None = None) -> V:
        """The slice of x for the row (axis 0) or the column (axis 1) of each stored entry.

        %e = graph.at_entries %a, %x axis = 0
            : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
        """

    def atan(self, x: Operand, *, name: str | None = None) -> V:
        """The angle between -pi/2 and pi/2 whose tangent is x.

        %y = graph.atan %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def atanh(self, x: Operand, *, name: str | None = None) -> V:
        """The number whose hyperbolic tangent is x; NaN outside of [-1, 1].

        %y = graph.atanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def attention(
        self,
        q: Operand,
        k: Operand,
        v: Operand,
        mask: Operand = None,
        lengths: Operand = None,
        scale: float = 1.0,
        softcap: float = 0.0,
        left: int = -1,
        right: int = -1,
        at_end: bool = False,
        safe: bool = False,
        *,
        name: str | None = None,
    ) -> V:
        """softmax(scale * q k^T) v for each head, without a matrix of all scores.

        q has the shape [..., H, L, D], k [..., G, S, D] and v [..., G, S, E], where G divides H: heads
        of q that follow each other share one of k and v. The result has the shape [..., H, L, E].
        D and E are known, and so are H and G, or they are equal.

        A score s becomes softcap * tanh(s / softcap), unless softcap is 0. A mask, which broadcasts to
        [..., H, L, S], is added to the scores, or if it has truth values, leaves out the keys where it
        is false. Query i is at place i, or with `at_end` at place i + S - L, and is given the keys
        from `left` in front of its place up to `right` behind it; -1 stands for all of them. `lengths`,
        of shape [...], says how many of the S keys there are; `at_end` refers to these.

        A query whose scores are all -inf yields NaN, or with `safe` 0; one with a NaN or inf among its
        scores yields NaN; without any keys (S = 0) the result is 0. Elements of v are expected to be
        finite: where a key is left out, 0 times infinity is NaN or 0. Keys are read block by block, and
        sums are rescaled where the maximum has grown (Milakov and Gimelshein, 2018; Dao et al.,
        FlashAttention, 2022). f16 and bf16 are computed in f32, and exponentials below 2^-125 are 0.

        %y = graph.attention %q, %k, %v scale = 0.5 softcap = 0.0 left = -1 right = 0 at_end = false
            safe = true : (tensor<2x?x2xf32>, tensor<1x?x2xf32>, tensor<1x?x2xf32>)
            -> tensor<2x?x2xf32>
        """

    def batch_norm(
        self,
        x: Operand,
        scale: Operand,
        bias: Operand,
        mean: Operand,
        variance: Operand,
        epsilon: float = 1e-05,
        axis: int = 1,
        *,
        name: str | None = None,
    ) -> V:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias, with one of each per channel.

        `axis` is the dimension of the channels (Ioffe and Szegedy, 2015). Scale and bias may be
        missing.

        %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32>
            mean %m : tensor<3xf32> variance %v : tensor<3xf32> axis = 1 epsilon = 1.0e-05
            : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
        """

    def batch_norm_training(
        self,
        x: Operand,
        scale: Operand = None,
        bias: Operand = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        *,
        name: str | None = None,
    ) -> tuple[V, V, V]:
        """Standardize each channel over the whole batch, and return the means and variances.

        This is batch normalisation in training (Ioffe and Szegedy, 2015): `mean` and `variance` are
        those of x, one of each per channel. `axis` is the dimension of the channels.
        `graph.batch_norm` is the same with given statistics.

        %y, %mean, %variance = graph.batch_norm_training %x
            scale %s : tensor<3xf32> bias %b : tensor<3xf32> axis = 1 epsilon = 1.0e-05
            : (tensor<?x3x2xf32>) -> (tensor<?x3x2xf32>, tensor<3xf32>, tensor<3xf32>)
        """

    def bitcast(self, x: Operand, target: str | Attribute, *, name: str | None = None) -> V:
        """The bits of the elements as those of a type of the same width.

        A truth value is a byte: 0 or 1, and true for every byte that is not 0.

        %y = graph.bitcast %x : (tensor<4x3xf32>) -> tensor<4x3xi32>
        """

    def bitwise_and(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The bits that are set in both; for truth values, canonically `graph.logical_and`.

        %y = graph.bitwise_and %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
        """

    def bitwise_not(self, x: Operand, *, name: str | None = None) -> V:
        """The bits that are not set; for truth values, canonically `graph.logical_not`.

        %y = graph.bitwise_not %x : (tensor<4x3xi32>) -> tensor<4x3xi32>
        """

    def bitwise_or(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The bits that are set in one of them; for truth values, canonically `graph.logical_or`.

        %y = graph.bitwise_or %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
        """

    def bitwise_xor(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The bits that differ; for truth values, canonically `graph.logical_xor`.

        %y = graph.bitwise_xor %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
        """

    def blocked_conv(
        self,
        x: Operand,
        w: Operand,
        bias: Operand = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        block: int = 1,
        *,
        name: str | None = None,
    ) -> V:
        """`graph.conv` for x of shape [N, C/b, *sizes, b] and w of shape [M, C, *window].

        y[n, i, p, j] = bias[m] + sum over c, l, k of x[n, c, p * strides + k * dilations, l] *
        w[m, c * b + l, k]  for m = i * block + j; y has the shape [N, M/block, *places, block].

        The b channels of a block are adjacent in memory, so that a vector holds channels of one
        position for any strides and number of positions. Filters are as in `graph.conv`: constant
        ones are packed for the register tile when the kernel is scheduled. If they read fewer channels
        than x has, there are `groups`, whole blocks of the channels of x and of y, or single channels
        with a filter each, in the blocks of x: y[n, i, p, j] = bias[m] + sum over k of
        x[n, i, p * strides + k * dilations, j] * w[m, 0, k].

        %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 2
            : (tensor<1x1x3x4x2xf32>, tensor<4x2x2x2xf32>, tensor<4xf32>) -> tensor<1x2x1x2x2xf32>
        """

    def broadcast_to(self, x: Operand, shape: Sequence[int], *, name: str | None = None) -> V:
        """x repeated along dimensions of size 1 and along new leading ones, as in NumPy.

        In `shape` -1 keeps the size of that dimension of x (counted from the back).

        %y = graph.broadcast_to %x shape = [4, 3] : (tensor<3xf32>) -> tensor<4x3xf32>
        """

    def cast(self, x: Operand, target: str | Attribute, *, name: str | None = None) -> V:
        """The elements in another type.

        Floats are truncated toward zero to integers, integers keep their low bits, and i1 is
        true for all that is not 0. A float outside the range of i32 (of i64, if the target is that,
        ui32 or ui64) and NaN become its smallest integer first, as on x86. For ui64, 2 ** 63 is
        subtracted from numbers that are not less than it, and added to their integers.

        A low-bit float is the one nearest to the number in f32, ties to even. What is beyond the
        largest one by half of a unit or more becomes an infinity, NaN where there is none, and the
        largest one where there is neither, which is also where NaN becomes 0. A tie of f8E8M0FNU is
        the larger one, and what is nearest to none of its powers of two is NaN, as are 0 and negative
        numbers.

        %y = graph.cast %x : (tensor<4x3xi64>) -> tensor<4x3xf32>
        """

    def ceil(self, x: Operand, *, name: str | None = None) -> V:
        """The smallest whole number that is not below x.

        %y = graph.ceil %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def celu(self, x: Operand, alpha: float = 1.0, *, name: str | None = None) -> V:
        """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0) (Barron, 2017).

        %y = graph.celu %x alpha = 1.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def check(
        self,
        x: Operand,
        condition: Operand,
        details: Sequence[Operand] = (),
        message: str = "",
        *,
        name: str | None = None,
    ) -> V:
        """x, after a check: where `condition` is false, the call fails with a message.

        `{0}`, `{1}`, `{2}` in the message are details.

        %y = graph.check %x if %fits "the parts do not add up, expected {0}, got {1}" (%n, %sum)
            : (tensor<i64>, tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
        """

    def check_indices(
        self,
        indices: Operand,
        x: Operand = None,
        axis: int | None = None,
        subject: str | None = None,
        size: int | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """Indices, which are checked to be in [0, n).

        n is a number, or where it is symbolic the size of an axis of x, whose elements do not
        matter. No index counts from the back, unlike those of `graph.gather`: a negative one is an
        error. Errors begin with `subject`, or the place of the operator in the model.

        %c = graph.check_indices %i of %x axis = 0 "input \"edge_index\""
            : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?xi64>
        %d = graph.check_indices %i below 34 : (tensor<?xi64>) -> tensor<?xi64>
        """

    def clip(
        self,
        x: Operand,
        minimum: float | None = None,
        maximum: float | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """min(max(x, minimum), maximum), each where it is given; NaN stays NaN.

        Where minimum > maximum everything is maximum. Bounds are f64, or for integers i64, or
        ui64 for larger ones; they are cut to the range of the type.

        %y = graph.clip %x minimum = 0.0 : f64 maximum = 6.0 : f64 : (tensor<3xf32>) -> tensor<3xf32>
        """

    def combine(self, x: Operand, kind: str, *, name: str | None = None) -> V:
        """A result over all nodes of a graph, of those over the nodes of each part.

        The partial results of the parts are summed, multiplied or compared, or their mean is taken,
        weighted by the numbers of nodes. `stepwell.distributed` does that between two functions of a
        program; a call by itself has one part, so that the result is x.

        %y = graph.combine sum %x : (tensor<16xf32>) -> tensor<16xf32>
        """

    def concat(self, inputs: Sequence[Operand], axis: int, *, name: str | None = None) -> V:
        """The operands one after the other along one axis.

        %y = graph.concat %a, %b axis = 1 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x5xf32>
        """

    def conv(
        self,
        x: Operand,
        w: Operand,
        bias: Operand = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        groups: int = 1,
        *,
        name: str | None = None,
    ) -> V:
        """Windows of x times filters, for x of shape [N, C, *sizes] and w of [M, C/groups, *window].

        y[n, m, p] = bias[m] + sum over c, k of x[n, c, p * strides + k * dilations] * w[m, c, k]

        With groups, the channels of x and of y are split into that many parts, and a filter reads
        the channels of its own part. `sizes` are one or more dimensions. There is no padding: see
        `graph.pad`. Sums start at the bias and are those of `graph.dense`.

        %y = graph.conv %x, %w, %b strides = [2, 2] dilations = [1, 1] groups = 1
            : (tensor<1x2x3x4xf32>, tensor<3x2x2x2xf32>, tensor<3xf32>) -> tensor<1x3x1x2xf32>
        """

    def cos(self, x: Operand, *, name: str | None = None) -> V:
        """The cosine of an angle in radians.

        %y = graph.cos %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def cosh(self, x: Operand, *, name: str | None = None) -> V:
        """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

        %y = graph.cosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def cumulative(
        self,
        x: Operand,
        kind: str,
        axis: int = -1,
        exclusive: bool = False,
        reverse: bool = False,
        *,
        name: str | None = None,
    ) -> V:
        """The sum, product, maximum or minimum of all elements up to each one along an axis.

        With `exclusive` the element itself is left out, so that the first one is 0, 1, -inf or inf
        (the limits of integers); with `reverse` the axis is followed from its end. f16 is accumulated
        in f32, and integers wrap around.

        %y = graph.cumulative sum %x axis = 1 exclusive = false reverse = false
            : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def degree(
        self,
        a: Operand,
        self_loops: bool = False,
        power: float = 1.0,
        values: Operand = None,
        *,
        name: str | None = None,
    ) -> V:
        """The sum of the entries of each row, raised to a power; 0 where the sum is 0.

        For the power -1/2 that is 1 / sqrt(sum), NaN for any sum below 0, -infinity included.

        With `self_loops` each row of a square matrix has one self loop: see `MissingSelfLoopsOp`.

        %d = graph.degree %a self_loops = true power = -5.0e-01
            : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
        """

    def dense(self, x: Operand, w: Operand, bias: Operand = None, *, name: str | None = None) -> V:
        """x W^T + bias, for x of shape [..., K], w of shape [N, K] and bias of shape [N].

        The sum starts at the bias. f16 is summed in f32. Integers of 8 and 16 bits, whose types may
        differ, are summed in i32, which is then the type of the bias and of the result.

        %y = graph.dense %x, %w, %b
            : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<?x2xf32>
        """

    def dequantize(
        self,
        x: Operand,
        scale: Operand,
        zero_point: Operand,
        axis: int | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """(x - zero_point) * scale, in the element type of the scale.

        The difference is computed in i32, the product in f32.

        %x = graph.dequantize %q, %s, %z : (tensor<?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x8xf32>
        """

    def det(self, x: Operand, *, name: str | None = None) -> V:
        """The determinant of each matrix of the last two dimensions, which are equal; 1 without rows.

        Gaussian elimination with partial pivoting, in f32 for f16 and bf16: it is the product of the
        pivots, negated by each exchange of rows. It is NaN for a NaN, and 0 for a pivot of 0, even
        where the product of the others is infinite.

        %y = graph.det %x : (tensor<?x2x2xf32>) -> tensor<?xf32>
        """

    def dim(self, x: Operand, axis: int = 0, *, name: str | None = None) -> V:
        """The size of a dimension of x, as a number.

        %n = graph.dim %x axis = 0 : (tensor<?x4xf32>) -> tensor<i64>
        """

    def div(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a / b. Integers are truncated toward zero, as in C and ONNX; x / 0 is 0.

        %y = graph.div %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def dropout(self, x: Operand, ratio: float = 0.5, *, name: str | None = None) -> V:
        """Dropout at inference: the identity. `ratio` is kept for readers of the model.

        %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def dynamic_broadcast(
        self, x: Operand, sizes: Sequence[Operand], shape: Sequence[int], *, name: str | None = None
    ) -> V:
        """x repeated along dimensions of size 1 and along new leading ones, up to sizes of operands.

        In `shape` -1 is the size that the next operand holds. A dimension of x that is not 1 has the
        size of the result: another one is an error of the call.

        %y = graph.dynamic_broadcast %x to %n shape = [-1, 3]
            : (tensor<3xf32>, tensor<i64>) -> tensor<?x3xf32>
        """

    def dynamic_reshape(
        self, x: Operand, sizes: Sequence[Operand], shape: Sequence[int], *, name: str | None = None
    ) -> V:
        """The same elements, in row-major order, with a shape of which operands hold some sizes.

        In `shape` -1 is the size that the next operand holds. Sizes that do not have as many elements
        as x are an error of the call. One of several sizes has no upper bound of its own.

        %y = graph.dynamic_reshape %x to %n, %m shape = [-1, 4, -1]
            : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4x?xf32>
        """

    def dynamic_slice(
        self,
        x: Operand,
        start: Operand,
        step: Operand,
        count: Operand,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> V:
        """`count` elements of an axis of x: at start, start + step, ...

        There are at most as many as the axis has, which is checked. A place outside of the axis means
        its nearest end; with a step of 1 the first one is moved so that none is outside.

        %y = graph.dynamic_slice %x from %start by %step take %count axis = 0
            : (tensor<?x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
        """

    def edge_softmax(
        self, a: Operand, scores: Operand, own: Operand = None, *, name: str | None = None
    ) -> V:
        """exp(score - max) / sum(exp(score - max)) over the stored entries of each row.

        With `own` each row has the score of one self loop, which takes part in the maximum and in the
        sum; stored ones are ignored and have weight 0. `graph.own_softmax` returns its weight.

        %p = graph.edge_softmax %a, %e
            : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
        """

    def elu(self, x: Operand, alpha: float = 1.0, *, name: str | None = None) -> V:
        """x, and alpha * (exp(x) - 1) for negative x (Clevert et al., 2015).

        %y = graph.elu %x alpha = 1.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def entries(self, a: Operand, *, name: str | None = None) -> V:
        """The values that a matrix stores, in the order in which they are stored.

        %e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
        """

    def equal(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a == b, for truth values as well.

        %y = graph.equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
        """

    def erf(self, x: Operand, *, name: str | None = None) -> V:
        """The error function.

        %y = graph.erf %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def exchange(self, a: Operand, x: Operand, *, name: str | None = None) -> V:
        """The rows of x for all columns of a: those of this part, then those of others.

        A part of a graph has rows for the nodes that it owns, which are its first columns as well. Its
        other columns, the halo, are nodes of other parts, which compute their rows of x and send them.
        `stepwell.distributed` does that between two functions of a program; a call by itself has one
        part, which owns all nodes, so that the result is x.

        %h = graph.exchange %a, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
        """

    def exp(self, x: Operand, *, name: str | None = None) -> V:
        """e to the power of x.

        %y = graph.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def expm1(self, x: Operand, *, name: str | None = None) -> V:
        """exp(x) - 1, precise near 0.

        %y = graph.expm1 %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def floor(self, x: Operand, *, name: str | None = None) -> V:
        """The largest whole number that is not above x.

        %y = graph.floor %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def fma(self, a: Operand, b: Operand, c: Operand, *, name: str | None = None) -> V:
        """a * b + c, rounded once, in f32 for 16 bits; the three are broadcast as in NumPy.

        %y = graph.fma %a, %b, %c
            : (tensor<4x3xf32>, tensor<3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
        """

    def fmod(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The remainder of a / b rounded toward zero, without a rounding; it has the sign of a.

        It is a for an infinite b, and NaN for an infinite a and for b = 0.

        %y = graph.fmod %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def gather(self, x: Operand, indices: Operand, axis: int = 0, *, name: str | None = None) -> V:
        """Slices of x at indices along one axis; a negative index counts from the back.

        The shape of `indices` replaces the axis. An index out of range is an error.

        %y = graph.gather %x, %i axis = 0 : (tensor<10x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
        """

    def gather_elements(
        self, x: Operand, indices: Operand, axis: int = 0, *, name: str | None = None
    ) -> V:
        """For each index the element at that place along one axis, and at its own along the others.

        `y[i, j] = x[indices[i, j], j]` for axis 0. A negative index counts from the back, one out of
        range is an error. Other axes of `indices` are at most as long as those of x; where the size
        of one is symbolic, they are equally long.

        %y = graph.gather_elements %x, %i axis = 0
            : (tensor<10x4xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>
        """

    def gather_nd(self, x: Operand, indices: Sequence[Operand], *, name: str | None = None) -> V:
        """Elements or slices of x at places with an index for each of its first dimensions.

        There is one tensor of indices for each of these dimensions, all of one shape; it replaces
        them. A negative index counts from the back, one out of range is an error.

        %y = graph.gather_nd %x at %i, %j
            : (tensor<3x4x2xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<3x2xf32>
        """

    def gelu(self, x: Operand, approximate: str = "none", *, name: str | None = None) -> V:
        """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

        `none` is x / 2 * (1 + erf(x / sqrt(2))), `tanh` is
        x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).

        %y = graph.gelu %x approximate = none : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def greater(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a > b; canonically b < a.

        %y = graph.greater %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
        """

    def greater_equal(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a >= b; canonically b <= a.

        %y = graph.greater_equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
        """

    def group_norm(
        self,
        x: Operand,
        groups: int,
        scale: Operand = None,
        bias: Operand = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        *,
        name: str | None = None,
    ) -> V:
        """Standardize each of `groups` runs of channels of an element of the batch (Wu, He, 2018).

        Dimension 0 is that of the batch, `axis` that of the channels, whose number is known.
        Scale and bias have a number for each channel and may be missing.

        %y = graph.group_norm %x scale %s : tensor<4xf32> bias %b : tensor<4xf32>
            groups = 2 axis = 1 epsilon = 1.0e-05 : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
        """

    def hard_sigmoid(
        self,
        x: Operand,
        alpha: float = 0.16666666666666666,
        beta: float = 0.5,
        *,
        name: str | None = None,
    ) -> V:
        """min(max(alpha * x + beta, 0), 1).

        %y = graph.hard_sigmoid %x alpha = 0.2 beta = 0.5 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def hard_swish(self, x: Operand, *, name: str | None = None) -> V:
        """x * min(max(x / 6 + 1/2, 0), 1) (Howard et al., 2019).

        %y = graph.hard_swish %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def histogram(
        self, x: Operand, bins: int, weights: Operand = None, *, name: str | None = None
    ) -> V:
        """How often each number from 0 up to `bins` is an element of x, or the sum of their weights.

        Counts are i64, sums have the type of the weights, whose shape is that of x. Weights are added
        in the order of the elements. x is any tensor of indices of bins: as elsewhere a negative one
        counts from the back, and one out of range is an error.

        %y = graph.histogram %x bins = 10 : (tensor<4x?xi64>) -> tensor<10xi64>

        %z = graph.histogram %x weights %w bins = 10 : (tensor<4xi64>, tensor<4xf32>) -> tensor<10xf32>
        """

    def instance_norm(
        self,
        x: Operand,
        scale: Operand = None,
        bias: Operand = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        *,
        name: str | None = None,
    ) -> V:
        """Standardize each channel of each element of the batch (Ulyanov et al., 2016).

        Dimension 0 is that of the batch, `axis` that of the channels. Scale and bias have a
        number for each channel and may be missing.

        %y = graph.instance_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32>
            axis = 1 epsilon = 1.0e-05 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
        """

    def l2_normalize(
        self,
        x: Operand,
        axes: Sequence[int] = (-1,),
        epsilon: float = 1e-12,
        *,
        name: str | None = None,
    ) -> V:
        """x / sqrt(max(sum(x^2), epsilon)), the sum along `axes`.

        With an epsilon above 0, slices of zeros along the axes stay 0.

        %y = graph.l2_normalize %x axes = [-1] epsilon = 1.0e-12
            : (tensor<?x4xf32>) -> tensor<?x4xf32>
        """

    def layer_norm(
        self,
        x: Operand,
        scale: Operand = None,
        bias: Operand = None,
        axis: int = -1,
        epsilon: float = 1e-05,
        *,
        name: str | None = None,
    ) -> V:
        """Standardize along `axis` and the axes after it (Ba, Kiros and Hinton, 2016).

        (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias, which may be
        missing, broadcast to x.

        %y = graph.layer_norm %x scale %s : tensor<4xf32> bias %b : tensor<4xf32>
            axis = -1 epsilon = 1.0e-05 : (tensor<?x4xf32>) -> tensor<?x4xf32>
        """

    def leaky_relu(self, x: Operand, alpha: float = 0.01, *, name: str | None = None) -> V:
        """x, and alpha * x for negative x.

        %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def less(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a < b.

        %y = graph.less %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
        """

    def less_equal(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a <= b.

        %y = graph.less_equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
        """

    def log(self, x: Operand, *, name: str | None = None) -> V:
        """The natural logarithm; NaN for negative x, -inf for 0.

        %y = graph.log %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def log1p(self, x: Operand, *, name: str | None = None) -> V:
        """log(1 + x), precise near 0; NaN below -1, -inf for -1.

        %y = graph.log1p %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def log_sigmoid(self, x: Operand, *, name: str | None = None) -> V:
        """log(sigmoid(x)).

        %y = graph.log_sigmoid %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def log_softmax(self, x: Operand, axis: int = -1, *, name: str | None = None) -> V:
        """x - max - log(sum(exp(x - max))) along one axis.

        %y = graph.log_softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def logical_and(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """Whether both are true.

        %y = graph.logical_and %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
        """

    def logical_not(self, x: Operand, *, name: str | None = None) -> V:
        """Whether x is false.

        %y = graph.logical_not %x : (tensor<4x3xi1>) -> tensor<4x3xi1>
        """

    def logical_or(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """Whether one of them is true.

        %y = graph.logical_or %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
        """

    def logical_xor(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """Whether they differ.

        %y = graph.logical_xor %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
        """

    def matmul(self, a: Operand, b: Operand, *, name: str | None = None) -> V:
        """The matrix product of the last two dimensions; the others are broadcast as in NumPy.

        Sums are those of `graph.dense`.

        %y = graph.matmul %a, %b : (tensor<2x4x3xf32>, tensor<3x2xf32>) -> tensor<2x4x2xf32>
        """

    def max(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The larger of a and b; NaN if one of them is.

        %y = graph.max %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def min(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """The smaller of a and b; NaN if one of them is.

        %y = graph.min %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def mish(self, x: Operand, *, name: str | None = None) -> V:
        """x * tanh(softplus(x)) (Misra, 2019).

        %y = graph.mish %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def missing_self_loops(
        self, a: Operand, values: Operand = None, halo: bool = False, *, name: str | None = None
    ) -> V:
        """The number to add to the diagonal of each row so that it has one self loop.

        1 where a row stores no diagonal entry. Of several the last one counts, and the others are
        subtracted, as in torch-geometric's `add_remaining_self_loops`.

        %m = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
        """

    def mul(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a * b.

        %y = graph.mul %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def neg(self, x: Operand, *, name: str | None = None) -> V:
        """-x.

        %y = graph.neg %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def nonzero(self, x: Operand, *, name: str | None = None) -> Any:
        """The places of the elements of x that are not zero, in row-major order, and their number.

        There is one tensor of indices for each dimension of x, as `graph.gather_nd` takes them; all
        have the size that the last result holds. NaN is not zero, -0.0 is.

        %i, %j, %count = graph.nonzero %x
            : (tensor<4x5xf32>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>)
        """

    def normalize(
        self,
        a: Operand,
        kind: str = "symmetric",
        self_loops: bool = True,
        *,
        name: str | None = None,
    ) -> V:
        """D^-1/2 (A + I) D^-1/2 (symmetric) or D^-1 (A + I) (row), D the row sums of A + I.

        I is added only with `self_loops`, in rows without a stored diagonal entry; of several stored
        ones the last one counts, as in torch-geometric's `gcn_norm` with
        `add_remaining_self_loops` (Kipf and Welling, 2017). D^-1 A may be of any shape.
        Opaque: a constant one is folded, any other is decomposed around the product that uses it.

        %b = graph.normalize symmetric %a self_loops = true
            : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
        """

    def one_hot(
        self,
        indices: Operand,
        values: Operand,
        depth: int,
        axis: int = -1,
        *,
        name: str | None = None,
    ) -> V:
        """`values[1]` at the place of each index along a new axis of `depth` places, else `values[0]`.

        A negative index counts from the back; one out of range has no place, and all of its elements
        are `values[0]`.

        %y = graph.one_hot %indices, %values axis = -1 depth = 10
            : (tensor<4xi64>, tensor<2xf32>) -> tensor<4x10xf32>
        """

    def own_softmax(
        self, a: Operand, scores: Operand, own: Operand, *, name: str | None = None
    ) -> V:
        """The weight of the self loop of each row, which is no stored entry; see `EdgeSoftmaxOp`.

        %q = graph.own_softmax %a, %e own %s
            : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
        """

    def pad(
        self,
        x: Operand,
        low: Sequence[int],
        high: Sequence[int],
        value: float = 0,
        mode: str = "constant",
        *,
        name: str | None = None,
    ) -> V:
        """x with `low` elements before and `high` elements after it in every dimension.

        They are `value` in the mode `constant`. The mode `edge` repeats the first and the last
        element, `reflect` mirrors x at them without repeating them, and `wrap` continues at the
        other side; these three need a static size in each dimension that they pad.

        %y = graph.pad constant %x low = [0, 1] high = [0, 2] value = 0.0 : f64
            : (tensor<?x3xf32>) -> tensor<?x6xf32>
        """

    def pad_same(
        self,
        x: Operand,
        extents: Sequence[int],
        strides: Sequence[int],
        more_after: bool = True,
        value: float = 0,
        *,
        name: str | None = None,
    ) -> V:
        """x, padded on its trailing dimensions so that ceil(size / stride) windows fit.

        A window spans `extents` elements. Half of the padding is before x and half after it; of an odd
        number one more is after it if `more_after` is true, else before it. It depends on the sizes of
        x: `graph.pad` is for those that are known.

        %y = graph.pad_same %x extents = [3] strides = [2] more_after = true value = 0.0 : f64
            : (tensor<4x?xf32>) -> tensor<4x?xf32>
        """

    def pool(
        self,
        x: Operand,
        kind: str,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """The sum, mean, max, min or product of each window on the trailing dimensions.

        Every window lies inside x: there is no padding, see `graph.pad`. Elements are combined as
        in `graph.reduce`.

        %y = graph.pool max %x window = [2, 2] strides = [2, 2] dilations = [1, 1]
            : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
        """

    def pow(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a to the power of b.

        An integer to a negative power is truncated toward zero: 1 ** -n is 1, (-1) ** -n is
        1 or -1, and everything else is 0 (NumPy raises an error there).

        %y = graph.pow %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def prelu(self, x: Operand, slope: Operand, *, name: str | None = None) -> V:
        """x, and slope * x for negative x (He et al., 2015); the two are broadcast as in NumPy.

        %y = graph.prelu %x, %slope : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def quantize(
        self,
        x: Operand,
        scale: Operand,
        zero_point: Operand,
        axis: int | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """saturate(round(x / scale) + zero_point), in the element type of the zero point.

        Ties are rounded to even; f16 is computed in f32.

        %q = graph.quantize %x, %s, %z axis = 1
            : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xui8>) -> tensor<?x3xui8>
        """

    def quantized_conv(
        self,
        x: Operand,
        x_scale: Operand,
        x_zero_point: Operand,
        w: Operand,
        w_scale: Operand,
        w_zero_point: Operand,
        y_scale: Operand,
        y_zero_point: Operand,
        bias: Operand = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        groups: int = 1,
        *,
        name: str | None = None,
    ) -> V:
        """`graph.conv` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

        There is no padding: the caller pads x with its zero point, which represents 0.

        %y = graph.quantized_conv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b
            strides = [2, 2] dilations = [1, 1] groups = 1
            : (tensor<1x2x3x4xui8>, tensor<f32>, tensor<ui8>, tensor<3x2x2x2xi8>, tensor<3xf32>,
               tensor<3xi8>, tensor<f32>, tensor<ui8>, tensor<3xi32>) -> tensor<1x3x1x2xui8>
        """

    def quantized_dense(
        self,
        x: Operand,
        x_scale: Operand,
        x_zero_point: Operand,
        w: Operand,
        w_scale: Operand,
        w_zero_point: Operand,
        y_scale: Operand,
        y_zero_point: Operand,
        bias: Operand = None,
        *,
        name: str | None = None,
    ) -> V:
        """`graph.dense` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

        %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b
            : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>,
               tensor<f32>, tensor<ui8>, tensor<4xi32>) -> tensor<?x4xui8>
        """

    def quantized_matmul(
        self,
        x: Operand,
        x_scale: Operand,
        x_zero_point: Operand,
        w: Operand,
        w_scale: Operand,
        w_zero_point: Operand,
        y_scale: Operand,
        y_zero_point: Operand,
        bias: Operand = None,
        *,
        name: str | None = None,
    ) -> V:
        """`graph.matmul` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

        The channels are the columns.

        %y = graph.quantized_matmul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz
            : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>,
               tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
        """

    def random_uniform(self, seeds: Operand, *, name: str | None = None) -> V:
        """Uniform random numbers in [0, 1): element i in row-major order is number i for its seed.

        They are the upper 24 bits of the first word of Threefry-2x32 (`threefry.py`), of which the seed
        is the key and i the counter. So equal seeds give equal numbers, in each call.

        %y = graph.random_uniform %seeds : (tensor<4x3xi64>) -> tensor<4x3xf32>
        """

    def reduce(
        self,
        x: Operand,
        kind: str,
        axes: Sequence[int],
        keepdims: bool = False,
        neutral: bool = False,
        *,
        name: str | None = None,
    ) -> V:
        """The sum, mean, max, min or product over some axes; maxnum is a max that ignores NaN.

        Integers wrap around, and their mean is truncated toward zero. An empty reduction yields 0
        for sum, 1 for prod, NaN for mean (0 for integers) and -inf for maxnum (the least integer);
        for max and min it is an error, or with `neutral` yields -inf and inf (the limits of
        integers). f16 is reduced in f32. Without axes the result is the operand.

        %y = graph.reduce mean %x axes = [1] keepdims = false : (tensor<4x3xf32>) -> tensor<4xf32>
        """

    def reduce_entries(
        self, a: Operand, x: Operand, kind: str = "sum", *, name: str | None = None
    ) -> V:
        """Combine, for each row, the slices of x that belong to its stored entries.

        `sum`, `mean`, `max`, `min`, `prod`, `var` or `std`; a row without entries yields 0 (1 for
        `prod`). The first dimension of x runs over the entries.

        %y = graph.reduce_entries sum %a, %e
            : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
        """

    def relu(self, x: Operand, *, name: str | None = None) -> V:
        """The larger of x and 0; NaN stays NaN.

        %y = graph.relu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def requantize(
        self,
        x: Operand,
        scale: Operand,
        zero_point: Operand,
        axis: int | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """saturate(round(x * scale) + zero_point) of sums x, in the element type of the zero point.

        %q = graph.requantize %x, %s, %z axis = 1
            : (tensor<?x8xi32>, tensor<8xf32>, tensor<8xui8>) -> tensor<?x8xui8>
        """

    def reshape(self, x: Operand, shape: Sequence[int], *, name: str | None = None) -> V:
        """The same elements, in row-major order, with another shape.

        In `shape` 0 copies the size of that dimension of x, and at most one -1 is inferred, as in
        ONNX.

        %y = graph.reshape %x shape = [0, -1] : (tensor<?x2x3xf32>) -> tensor<?x6xf32>
        """

    def rms_norm(
        self,
        x: Operand,
        scale: Operand = None,
        axis: int = -1,
        epsilon: float = 1e-05,
        *,
        name: str | None = None,
    ) -> V:
        """x / sqrt(mean(x^2) + epsilon) * scale, the mean along `axis` and the axes after it.

        The scale, which may be missing, broadcasts to x (Zhang and Sennrich, 2019).

        %y = graph.rms_norm %x scale %s : tensor<4xf32> axis = -1 epsilon = 1.0e-05
            : (tensor<?x4xf32>) -> tensor<?x4xf32>
        """

    def round(self, x: Operand, *, name: str | None = None) -> V:
        """The nearest whole number, ties to even.

        %y = graph.round %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def rsqrt(self, x: Operand, *, name: str | None = None) -> V:
        """One over the square root; inf for 0.

        %y = graph.rsqrt %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def scatter_elements(
        self,
        x: Operand,
        indices: Operand,
        updates: Operand,
        axis: int = 0,
        kind: str = "none",
        *,
        name: str | None = None,
    ) -> V:
        """x with each update at the place of its index along one axis, and its own along the others.

        `y[indices[i, j], j] = updates[i, j]` for axis 0, and y is x elsewhere. Indices are those of
        `graph.gather_elements`.

        %y = graph.scatter_elements add %x, %i, %u axis = 0
            : (tensor<5x2xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
        """

    def scatter_nd(
        self,
        x: Operand,
        updates: Operand,
        indices: Sequence[Operand],
        kind: str = "none",
        *,
        name: str | None = None,
    ) -> V:
        """x with updates at places with an index for each of its first dimensions.

        There is one tensor of indices for each of these dimensions, all of one shape; the updates
        have that shape, then the other dimensions of x. Indices are those of `graph.gather_nd`.

        %y = graph.scatter_nd add %x, %u at %i
            : (tensor<5x2xf32>, tensor<3x2xf32>, tensor<3xi64>) -> tensor<5x2xf32>
        """

    def sddmm(
        self, a: Operand, x: Operand, y: Operand, kind: str = "dot", *, name: str | None = None
    ) -> V:
        """A function of the two ends of each stored entry: of row i of x and row j of y.

        `dot` sums up the products along the last dimension (a product of two dense matrices that
        is sampled at the pattern of a third one); `add`, `sub` and `mul` go element by element.

        %e = graph.sddmm dot %a, %x, %y
            : (tensor<?x?xf32, #csr>, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?xf32>
        """

    def searchsorted(
        self, sorted: Operand, values: Operand, right: bool = False, *, name: str | None = None
    ) -> V:
        """Where each value would be inserted into a sorted row: the number of elements before it.

        These are the elements that are less than the value or, with `right`, not greater. Either
        `sorted` is one row for values of any shape, or it has a row for each row of the values, and all
        dimensions but the last one are the same. As in NumPy, NaNs are equal and greater than all other
        numbers. Results are i64. Rows are in ascending order, which is not checked: in another row a
        place from 0 up to its length is found.

        %p = graph.searchsorted %sorted, %values right = false
            : (tensor<9xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
        """

    def segment_reduce(
        self, x: Operand, offsets: Operand, kind: str = "sum", *, name: str | None = None
    ) -> V:
        """The sum, mean, max, min or product of each segment of the slices of x along its first axis.

        Segment i has the slices from `offsets[i]` up to `offsets[i + 1]`: there is one segment less
        than there are offsets. Offsets never decrease, from 0 up to the number of slices, which is
        checked in each call; slices before the first one and from the last one on are in no segment. An
        empty segment yields 0 for sum, 1 for prod, NaN for mean (0 for integers), -inf for max and inf
        for min (the limits of integers). f16 is reduced in f32, and integers wrap around.

        %y = graph.segment_reduce sum %x, %offsets
            : (tensor<?x2xf32>, tensor<4xi64>) -> tensor<3x2xf32>
        """

    def selu(
        self,
        x: Operand,
        alpha: float = 1.6732631921768188,
        gamma: float = 1.0507010221481323,
        *,
        name: str | None = None,
    ) -> V:
        """gamma * elu(x, alpha), whose results stay standardised (Klambauer et al., 2017).

        %y = graph.selu %x alpha = 1.67 gamma = 1.05 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def shift_left(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a * 2 ** b, of which the low bits are kept; 0 for b < 0 and for b not below the width.

        %y = graph.shift_left %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
        """

    def shift_right(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a / 2 ** b, rounded down; for b < 0 and for b not below the width, 0 or -1 with a's sign.

        %y = graph.shift_right %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
        """

    def sigmoid(self, x: Operand, *, name: str | None = None) -> V:
        """1 / (1 + exp(-x)).

        %y = graph.sigmoid %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def sign(self, x: Operand, *, name: str | None = None) -> V:
        """1 for positive x, -1 for negative x, 0 for 0 of either sign; NaN stays NaN.

        %y = graph.sign %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def silu(self, x: Operand, *, name: str | None = None) -> V:
        """x * sigmoid(x), also called swish (Elfwing et al., 2017).

        %y = graph.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def sin(self, x: Operand, *, name: str | None = None) -> V:
        """The sine of an angle in radians.

        %y = graph.sin %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def sinh(self, x: Operand, *, name: str | None = None) -> V:
        """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

        %y = graph.sinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def slice(
        self,
        x: Operand,
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> V:
        """Elements start, start + step, ... up to but excluding end of every axis.

        There is an entry for each axis, already clamped to its size; with a negative step, a slice
        down to the first element ends at -1. A symbolic axis can only be taken whole, from 0 to
        9223372036854775807 by 1.

        %y = graph.slice %x starts = [1, 9] ends = [4, -1] steps = [1, -3]
            : (tensor<4x10xf32>) -> tensor<3x4xf32>
        """

    def slice_rows(self, a: Operand, start: int, end: int, *, name: str | None = None) -> V:
        """The rows from `start` up to but excluding `end` of a matrix, which stay sparse.

        Opaque: `graph-decompose-sparse` lets its users compute these rows only.

        %b = graph.slice_rows %a start = 2 end = 5
            : (tensor<9x?xf32, #csr>) -> tensor<3x?xf32, #csr>
        """

    def softmax(self, x: Operand, axis: int = -1, *, name: str | None = None) -> V:
        """exp(x - max) / sum(exp(x - max)) along one axis.

        %y = graph.softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def softplus(self, x: Operand, *, name: str | None = None) -> V:
        """log(1 + exp(x)).

        %y = graph.softplus %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def softsign(self, x: Operand, *, name: str | None = None) -> V:
        """x / (1 + |x|).

        %y = graph.softsign %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def sort(
        self, x: Operand, axis: int = -1, descending: bool = False, *, name: str | None = None
    ) -> tuple[V, V]:
        """The elements along an axis in ascending or descending order, and where each comes from.

        Equal elements keep their order, in both directions; -0.0 and 0.0 are equal. NaNs come last in
        ascending order, as in NumPy, and first in descending order, as in PyTorch. Indices are i64, and
        the axis has less than 2 ** 31 elements.

        %y, %p = graph.sort %x axis = 1 descending = false
            : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
        """

    def sort_edges(
        self,
        rows: Operand,
        columns: Operand,
        targets: Operand,
        sources: Operand,
        *,
        name: str | None = None,
    ) -> tuple[V, V, V]:
        """The edges of an edge list in the order of their rows, as compressed rows.

        Edge e is in row `rows[e]` and column `columns[e]`; a negative index counts from the back, one
        out of range is an error. There are as many rows and columns as the first dimensions of
        `targets` and `sources` have elements; what these hold does not matter. The results are the row
        pointers, the column of each sorted edge, and its number in the list: edges of one row keep
        their order. There are less than 2 ** 31 edges and at most 2 ** 31 columns.

        %p, %j, %order = graph.sort_edges %rows, %columns of %y, %x
            : (tensor<?xi64>, tensor<?xi64>, tensor<3x2xf32>, tensor<?x2xf32>)
            -> (tensor<4xi32>, tensor<?xi32>, tensor<?xi32>)
        """

    def sort_edges_with_loops(
        self, rows: Operand, columns: Operand, nodes: Operand, *, name: str | None = None
    ) -> tuple[V, V, V]:
        """The edges of a list but its self loops, and a self loop of each node, as compressed rows.

        Edge e is in row `rows[e]` and column `columns[e]`, and left out where these numbers are equal.
        A negative index counts from the back, one out of range is an error. There are as many nodes as
        the first dimension of `nodes` has elements. The results are the row pointers, the column of
        each entry, and how many entries there are. The self loop of a row comes first, its other
        entries in the order of the list. There are at most 2 ** 30 edges and as many nodes.

        %p, %j, %count = graph.sort_edges_with_loops %rows, %columns of %x
            : (tensor<?xi64>, tensor<?xi64>, tensor<3x2xf32>)
            -> (tensor<4xi32>, tensor<?xi32>, tensor<i64>)
        """

    def spmm(self, a: Operand, x: Operand, *, name: str | None = None) -> V:
        """The product of a sparse and a dense matrix.

        %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
        """

    def sqrt(self, x: Operand, *, name: str | None = None) -> V:
        """The square root; NaN for negative x.

        %y = graph.sqrt %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def sub(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> V:
        """a - b.

        %y = graph.sub %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def suppress_boxes(
        self,
        boxes: Operand,
        scores: Operand,
        most: Operand,
        overlap: Operand,
        least: Operand,
        *,
        name: str | None = None,
    ) -> V:
        """The boxes of each class that are chosen by non-maximum suppression, best first.

        The box with the highest score is chosen, those that overlap it are dropped, and so on: as
        long as there are boxes, and at most `most` times. Of equal scores the first comes first. Two
        boxes overlap if the area of their intersection is more than `overlap` times that of their
        union. Only scores above `least` take part; all do if it is NaN, and no score that is NaN.

        Boxes are (batch, n, 4): low corner, high corner. Scores are (batch, classes, n), and so are
        the results: indices of boxes in the order in which they are chosen, then -1.

        %s = graph.suppress_boxes %boxes, %scores, %most, %overlap, %least
            : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>)
            -> tensor<1x3x9xi64>
        """

    def tan(self, x: Operand, *, name: str | None = None) -> V:
        """The tangent of an angle in radians.

        %y = graph.tan %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def tanh(self, x: Operand, *, name: str | None = None) -> V:
        """The hyperbolic tangent.

        %y = graph.tanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
        """

    def to_dense(self, a: Operand, values: Operand = None, *, name: str | None = None) -> V:
        """A sparse matrix as a dense one, with 0 for elements that are not stored.

        `values`, if given, take the place of the stored values. Duplicate entries are summed.

        %y = graph.to_dense %a : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32>
        """

    def top_k(
        self, x: Operand, k: int, axis: int = -1, largest: bool = True, *, name: str | None = None
    ) -> tuple[V, V]:
        """The k largest or smallest elements along an axis, in their order, and where they come from.

        Of equal elements that with the lower index comes first; NaNs count as the largest, -0.0 and 0.0
        are equal. Indices are i64. The axis has less than 2 ** 31 elements; less than k are an error.

        %y, %p = graph.top_k %x axis = 1 k = 2 largest = true
            : (tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
        """

    def transpose(self, x: Operand, permutation: Sequence[int], *, name: str | None = None) -> V:
        """Dimension i of the result is dimension permutation[i] of x.

        %y = graph.transpose %x permutation = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
        """

    def tree_ensemble(
        self,
        x: Operand,
        threshold: Operand,
        feature: Operand,
        next: Operand,
        leaf: Operand,
        values: Operand,
        root: Operand,
        depth: Operand,
        kind: str = "sum",
        *,
        name: str | None = None,
    ) -> V:
        """The values of the leaves that rows of x reach in each tree, combined over all trees.

        A row goes from node n to `next[n, 0]` if its element `feature[n]` is at most `threshold[n]`,
        and else, or if that is NaN, to `next[n, 1]`. It begins at the root of a tree and takes as many
        steps as the tree is deep: a leaf is followed by itself. The node n that it reaches has the
        values `values[leaf[n], :]`, which are combined as `kind` says: sum, prod, max or min. Indices
        are those of `graph.gather`.

        x is (rows, features), `threshold`, `feature` and `leaf` (nodes), `next` (nodes, 2),
        `root` and `depth` (trees), and the result (rows, columns of values), of the type of `values`.

        %y = graph.tree_ensemble sum %x, %threshold, %feature, %next, %leaf, %values, %root, %depth
            : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>,
               tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
        """

    def unique(
        self, x: Operand, sorted: bool = True, *, name: str | None = None
    ) -> tuple[V, V, V, V, V]:
        """The different elements of a vector, in ascending order or in that of their first places.

        With them come the first place and the count of each, the number of the element that each one
        of x is equal to, and how many there are. Zeros are equal, and so are NaNs, which come last in
        ascending order. The vector has less than 2 ** 31 elements.

        %y, %first, %inverse, %counts, %count = graph.unique %x sorted = true
            : (tensor<9xf32>)
            -> (tensor<?xf32>, tensor<?xi64>, tensor<9xi64>, tensor<?xi64>, tensor<i64>)
        """

    def where(self, condition: Operand, a: Operand, b: Operand, *, name: str | None = None) -> V:
        """a where the condition holds, else b; the three are broadcast as in NumPy.

        Both are computed everywhere, and one is discarded.

        %y = graph.where %c, %a, %b
            : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
        """

    def winograd_conv(
        self,
        x: Operand,
        u: Operand,
        tile: int,
        block: int,
        bias: Operand = None,
        *,
        name: str | None = None,
    ) -> V:
        """`graph.blocked_conv` without strides and dilations, by Winograd's minimal filtering.

        x has the shape [N, C/b, H, W, b], the result [N, M/block, H - r + 1, W - r + 1, block]. Windows
        of r x r at `tile` x `tile` places are computed from n x n products for each channel and
        filter, n = tile + r - 1, instead of tile * tile * r * r. u has the shape [n * n, C, M], as
        `graph.winograd_filter` makes it of the filters. If C is less than x has, there are groups.

        All sizes but N are numbers. A NaN or an infinity in x makes results of its tile NaN that do not
        depend on it. Rounding errors are up to twice those of `graph.blocked_conv` for n = 4, and 5 to
        16 times as large for n = 6.

        %y = graph.winograd_conv %x, %u, %b tile = 2 block = 2
            : (tensor<1x1x6x4x2xf32>, tensor<16x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4x2x2xf32>
        """

    def winograd_filter(self, w: Operand, tile: int, *, name: str | None = None) -> V:
        """The filters of `graph.winograd_conv` for w of shape [M, C, r, r]: u of [n * n, C, M].

        u[i * n + j, c, m] = sum over a, b of G[i, a] * w[m, c, a, b] * G[j, b]

        n is tile + r - 1, and G the matrix of filters of `minimal_filtering`. It is computed in f64. A
        NaN or an infinity in w may make elements of its channel NaN that do not depend on it.

        %u = graph.winograd_filter %w tile = 2 : (tensor<4x2x3x3xf32>) -> tensor<16x2x4xf32>
        """

    def with_entries(self, a: Operand, values: Operand, *, name: str | None = None) -> V:
        """The matrix with the pattern of another one, and these values of its stored entries.

        Opaque: `graph-decompose-sparse` lets its users read the pattern and the values.

        %b = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32, #csr>
        """
