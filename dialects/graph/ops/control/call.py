"""Calls in destination-passing style: of kernels, and of functions registered at run time."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from .....core.algebra.dims import Dim, Shape, size_of_argument
from .....core.errors import UnsupportedError, explain
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.provenance import origin
from .....core.ir.symbols import find_symbol
from ....loop.ops import KernelOp
from ....sparse_tensor import part_count
from ...attrs import ANY_TENSOR
from ...demands import DemandInterface, SizeResult
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    SparseResultInterface,
    declared_shape,
    element_type,
    tensor_type,
    unknown_sizes,
)
from ...nests import scalars
from ...nests.flops import kernel_flops
from ...nests.sizes import NoValueError
from ...nests.values import KernelValues
from ...sizes.computed import SizeAttr
from ...traits import Discontinuous

if TYPE_CHECKING:
    from ...interfaces import Array

ResultDims = Sequence[Sequence[str]]
"""The names of the dimensions of each result, "" for those that are static in its type."""


class CallLikeOp(GraphOp, DemandInterface, SparseResultInterface, ABC):
    """A call with value semantics: its results are the buffers that it writes.

    `result_dims` gives the sizes of the ``?`` in result types, in symbols of the enclosing
    function: ``[["batch", ""]]``. `result_sizes` are symbols among them that scalars hold at run
    time, see `SizeAttr`. Where a result holds one, the buffers of the others are passed with the
    upper bound, and the tensors are their beginnings.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE
    traits = traits_def(Discontinuous())
    """The callee is unknown."""
    NAMED: ClassVar[type[StringAttr | SymbolRefAttr]] = StringAttr
    """The attribute that names the callee."""

    arguments = var_operand_def(ANY_TENSOR)
    res = var_result_def(ANY_TENSOR)
    result_dims = opt_prop_def(ArrayAttr)
    result_sizes = opt_prop_def(ArrayAttr[SizeAttr])

    assembly_format = (
        "$callee `(` $arguments `)` (`dims` $result_dims^)? (`sizes` $result_sizes^)? attr-dict "
        "`:` functional-type($arguments, $res)"
    )

    def __init__(
        self,
        callee: str | Attribute,
        arguments: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        result_dims: ResultDims | None = None,
        result_sizes: Sequence[SizeAttr] = (),
    ) -> None:
        dims = None
        if isinstance(callee, str):
            callee = self.NAMED(callee)
        if result_dims is not None:
            dims = ArrayAttr([ArrayAttr([StringAttr(n) for n in names]) for names in result_dims])
        sizes = ArrayAttr(result_sizes) if result_sizes else None
        properties = {"callee": callee, "result_dims": dims, "result_sizes": sizes}
        IRDLOperation.__init__(
            self, operands=[arguments], properties=properties, result_types=[result_types]
        )

    @property
    def sizes(self) -> tuple[SizeAttr, ...]:
        """The sizes that arguments or results of the call hold."""
        return () if self.result_sizes is None else self.result_sizes.data

    @property
    def demands(self) -> tuple[SizeResult, ...]:
        return tuple(SizeResult(size.scalar(self)) for size in self.sizes if size.is_result)

    def verify_(self) -> None:
        facts = ShapeFacts(self, unknown_sizes())
        for size in self.sizes:
            count = len(self.results if size.is_result else self.operands)
            if size.number.data >= count:
                fact = f'there is no {size.holder.data} for size "{size.symbol.data}"'
                facts.fail(fact, f"below {count}", size.number.data)
            facts.size(size.scalar(self), size.upper)
        super().verify_()

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        if self.result_dims is None:
            return [declared_shape(result, facts.fresh) for result in self.results]
        names = self._names(facts)
        return [
            tuple(
                Dim.of(size) if size != DYNAMIC_INDEX else self._dim(name, facts)
                for size, name in zip(tensor_type(result).get_shape(), row, strict=True)
            )
            for result, row in zip(self.results, names, strict=True)
        ]

    def state_dims(self, shapes: Sequence[Shape]) -> None:
        """State the sizes that are dynamic in the types of the results.

        Args:
            shapes: the shape of each result, in symbols of the enclosing function.
        """
        rows = [
            [
                str(dim) if size == DYNAMIC_INDEX else ""
                for dim, size in zip(shape, sizes, strict=True)
            ]
            for shape, sizes in zip(
                shapes, (tensor_type(result).get_shape() for result in self.results), strict=True
            )
        ]
        known = ArrayAttr([ArrayAttr([StringAttr(name) for name in names]) for names in rows])
        self.result_dims = known if any(name for names in rows for name in names) else None

    def _names(self, facts: ShapeFacts) -> list[list[str]]:
        rows = self.result_dims.data if self.result_dims is not None else ()
        texts = [row.data if isinstance(row, ArrayAttr) else () for row in rows]
        names = [[n.data for n in row if isinstance(n, StringAttr)] for row in texts]
        ranks = [tensor_type(result).get_num_dims() for result in self.results]
        if [len(row) for row in names] != ranks:
            facts.fail("result_dims do not fit the results", f"{ranks} names", self.result_dims)
        return names

    def _dim(self, name: str, facts: ShapeFacts) -> Dim:
        if not name:
            return facts.fresh()
        try:
            return Dim.parse(name)
        except ValueError:
            facts.fail("result_dims has a text that is not a size", "a size", f'"{name}"')

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(result) for result in self.results]

    def infer_encodings(self) -> list[Attribute]:
        return [tensor_type(result).encoding for result in self.results]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        raise UnsupportedError(
            explain(self.name, "the meaning of a call is that of its callee", origin=origin(self))
        )


class KernelExists(SymbolUserOpInterface):
    """The callee of a `graph.call_dps` is a function or a kernel of the module."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallDpsOp)
        if find_symbol(op, op.callee) is None:
            fact = f"the module has no kernel {op.callee}"
            raise VerifyException(explain(op.name, fact, origin=origin(op)))


@irdl_op_definition
class CallDpsOp(CallLikeOp):
    """Call a kernel of the module: its last parameters are the buffers of the results.

    %y = graph.call_dps @kernel(%x, %w) dims [["batch", ""]]
        : (tensor<?x784xf32>, tensor<128x784xf32>) -> tensor<?x128xf32>

    In a program:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %w = arith.maximumf %v, %zero : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "graph.call_dps"

    callee = prop_def(SymbolRefAttr)

    NAMED: ClassVar[type[StringAttr | SymbolRefAttr]] = SymbolRefAttr
    traits = traits_def(KernelExists())

    @property
    def places(self) -> list[int]:
        """The number of the first parameter of the kernel for each argument, and for the results.

        A sparse matrix is several parameters.
        """
        return list(accumulate((part_count(a.type) for a in self.arguments), initial=0))

    @property
    def values(self) -> KernelValues:
        """The values of the kernel's results at an index.

        Raises:
            NoValueError: if it has no such values, with the reason.
        """
        try:
            kernel = find_symbol(self, self.callee)
        except ValueError as error:
            raise NoValueError("it is not in a module") from error
        if self.sizes:
            raise NoValueError("it computes a size")
        if not isinstance(kernel, KernelOp):
            raise NoValueError("it is not a kernel")
        return KernelValues(kernel, self.arguments)

    @property
    def refusal(self) -> str | None:
        """Why the kernel has no value at an index; None if it has one."""
        try:
            _ = self.values
        except NoValueError as error:
            return f"{self.callee} has no value at an index: {error}"
        return None

    @property
    def fusion(self) -> FusionKind:
        try:
            return self.values.fusion
        except NoValueError:
            return FusionKind.OPAQUE

    def flops(self, sizes: Sizes) -> Dim | None:
        kernel = self.own_kernel
        if kernel is None:
            return None
        counted = kernel_flops(kernel, [tensor_type(value) for value in self.arguments])
        if counted is None:
            return None
        known: dict[str, Dim] = {}
        for number, value in enumerate(self.arguments):
            known |= {size_of_argument(number, n): d for n, d in enumerate(sizes.shape(value))}
            if (entries := sizes.nnz(value)) is not None:
                known[size_of_argument(number, "nnz")] = entries
        return counted.substitute(known) if known.keys() >= set(counted.symbols) else None

    @property
    def own_kernel(self) -> KernelOp | None:
        """The kernel of the module that it calls; None if it is in none."""
        try:
            kernel = find_symbol(self, self.callee)
        except ValueError:
            return None
        return kernel if isinstance(kernel, KernelOp) else None

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        try:
            stored = self.values.value_at(nest, index, result)
        except NoValueError as error:
            fact = f"{self.callee} has no value at an index: {error}"
            raise UnsupportedError(explain(self.name, fact, origin=origin(self))) from error
        return scalars.computed(nest, stored, element_type(self.results[result]))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        symbolic = any(not tensor_type(result).has_static_shape() for result in self.results)
        if self.result_dims is None and symbolic and self.refusal is None:
            return self.values.shapes(shapes)
        return super().infer_shapes(shapes, facts)


@irdl_op_definition
class CallPackedOp(CallLikeOp):
    """Call a function that is registered at run time; it fills the buffers of the results.

    It may be random or stateful, or write elsewhere: every call is executed, in program order,
    even if its results are unused.

    %y = graph.call_packed "env.linear"(%x) dims [["batch", ""]]
        : (tensor<?x784xf32>) -> tensor<?x128xf32>

    In a program, with a registered function that doubles:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_packed "env.double"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```
    """

    name = "graph.call_packed"

    callee = prop_def(StringAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
