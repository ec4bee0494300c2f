"""Methods of `Builder` that call functions from outside and kernels written in Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..core.algebra.dims import Dim, Shape, size_of_argument
from ..core.boundary.specs import TensorSpec
from ..core.ir.typed import tensor_type
from ..dialects.graph.nests.kernels import Kernel
from ..dialects.graph.ops.control.call import CallDpsOp, CallPackedOp
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..dialects.loop.ops import KernelOp
from .diagnostics import input_error, reworded
from .parts import BuilderPart
from .specs import result_type
from .values import Operand, Value

Result = TensorSpec | Value
"""A result of a call: a shape and an element type, or a value that has them too."""


class CallMethods(BuilderPart):
    """The part of a `Builder` that calls what is not an operator."""

    _kernels: dict[tuple[Any, ...], KernelOp]
    """The kernels that are called, by what they are built for."""

    def call_packed(
        self,
        callee: str,
        *args: Operand,
        results: Result | Sequence[Result],
        name: str | None = None,
    ) -> Any:
        """Call the function that is registered as `callee` when the program is compiled.

        Args:
            callee: its name; see `stepwell.register_function`.
            args: values, arrays or numbers.
            results: the results. Sizes are numbers, or texts in the symbols of the inputs. A value
                stands for a result of its shape and element type.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            Its result, or a tuple of results if `results` is a sequence.

        Raises:
            InputError: if a size of a result is invalid, or an argument is not a tensor.
        """
        return self._call(CallPackedOp, callee, args, results, name)

    def call_kernel(
        self,
        kernel: Kernel,
        *args: Operand,
        results: Result | Sequence[Result],
        name: str | None = None,
    ) -> Any:
        """Call a kernel written in Python; see `stepwell.kernel`.

        Args:
            kernel: the kernel; it is built for the types of the arguments.
            args: values, arrays or numbers.
            results: the results. Sizes are numbers, or texts in the symbols of the inputs. A value
                stands for a result of its shape and element type.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            Its result, or a tuple of results if `results` is a sequence.

        Raises:
            InputError: if it is not a kernel, a size of a result is invalid, or an argument is not
                a tensor.
            CompileError: if the body of the kernel is invalid.
        """
        if not isinstance(kernel, Kernel):
            got = type(kernel).__name__
            raise input_error("call_kernel", "not a kernel", "stepwell.kernel", got)
        return self._call(CallDpsOp, kernel, args, results, name)

    def _shapes_of(self, operands: Sequence[SSAValue], subject: str) -> list[Shape]:
        """The shapes of the operands of a call, or of values like its results."""
        kinds = [tensor_type(value) for value in operands]
        if all(kind.has_static_shape() for kind in kinds):
            return [tuple(map(Dim.of, kind.get_shape())) for kind in kinds]
        if self._block is not self._region.block:
            fact = "operands of symbolic sizes in the body of a loop or condition"
            raise input_error(subject, fact, "sizes that are numbers")
        region, copies = Region(), dict[SSAValue, SSAValue]()
        self._region.clone_into(region, 0, copies)
        shapes = SymbolicShapes(self._function(region, [copies[value] for value in operands]))
        return [shapes.shape(copies[value]) for value in operands]

    def _symbol_of(
        self,
        kernel: Kernel,
        operands: Sequence[SSAValue],
        types: Sequence[TensorType],
        dims: list[list[str]],
    ) -> str:
        """The name of the kernel for these operands and results, which equal calls have in
        common."""
        own: dict[str, Dim] = {}
        given = self._shapes_of(operands, f'call of "{kernel.name}"')
        for number, shape in enumerate(given):
            for axis, dim in enumerate(shape):
                if not dim.is_static:
                    own.setdefault(str(dim), Dim.symbol(size_of_argument(number, axis)))
        shapes = [tuple(own.get(str(dim), dim) for dim in shape) for shape in given]
        sizes = [
            tuple(
                own.get(text, Dim.parse(text).substitute(own)) if text else Dim.of(n)
                for text, n in zip(row, kind.get_shape(), strict=True)
            )
            for row, kind in zip(dims, types, strict=True)
        ]
        kinds = *(v.type for v in operands), *types
        key = kernel, kinds, tuple(shapes), tuple(sizes)
        if key not in self._kernels:
            count = sum(known[0].name == kernel.name for known in self._kernels)
            symbol = f"{kernel.name}_{count}" if count else kernel.name
            self._kernels[key] = kernel.of_call(symbol, operands, shapes, types, sizes)
        return self._kernels[key].sym_name.data

    def _call(
        self,
        kind: type[CallPackedOp | CallDpsOp],
        callee: str | Kernel,
        args: Sequence[Operand],
        results: Result | Sequence[Result],
        name: str | None,
    ) -> Any:
        location = self._located(name)
        label = callee.name if isinstance(callee, Kernel) else callee
        subject = f'call of "{label}"'
        given = [results] if isinstance(results, Result) else list(results)
        specs = [self._spec_of(result, subject) for result in given]
        types = [result_type(subject, spec) for spec in specs]
        dims = [[size if isinstance(size, str) else "" for size in spec.shape] for spec in specs]
        label = re.sub(r"\W", "_", label)
        operands = [self._operand(a, None, f"{label}_{n}", location) for n, a in enumerate(args)]
        symbolic = any(size for row in dims for size in row)
        try:
            if isinstance(callee, Kernel):
                callee = self._symbol_of(callee, operands, types, dims)
            op = kind(callee, operands, types, dims if symbolic else None)
            op.location = location
            if isinstance(op, CallPackedOp):
                op.verify()  # `CallDpsOp` looks up its kernel, which is not in a module yet
        except (VerifyException, ValueError) as error:
            raise reworded(error, kind, location) from error
        self._block.add_op(op)
        values = tuple(Value(self, result) for result in op.results)
        return values[0] if isinstance(results, Result) else values

    def _spec_of(self, result: Result, subject: str) -> TensorSpec:
        if not isinstance(result, Value):
            return result
        (shape,) = self._shapes_of([result.ssa], subject)
        sizes = tuple(dim.value if dim.is_static else str(dim) for dim in shape)
        return TensorSpec(sizes, result.dtype)
