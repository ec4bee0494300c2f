"""Recurrent layers: methods of `Builder`, made of a product and a loop over the steps.

The products of all steps with the weights of the input are one product in front of the loop, unless
the batch is large: then each step computes its own, which is still in a cache when it is read. A
step multiplies the state by the recurrent weights and computes the gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.ir.typed import tensor_type
from ..dialects.graph.ops.moves.select import WHOLE_END
from .cells import Activation, Cell, Gru, Lstm, Parameters, Rnn, columns
from .diagnostics import input_error
from .parts import BuilderPart
from .values import Operand, Value

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction that is computed, whether it begins with the last step."""

_MANY_ROWS = 16
"""From this batch on, a step is a product of enough rows. `graph-batch-slices` moves it in front of
the loop where its weights are too large for a cache."""

Sizes = tuple[int | None, ...]


class Recurrences(BuilderPart):
    """The part of a `Builder` that has recurrent layers.

    Operands and results have the shapes of ONNX: T steps, a batch of B, I inputs, H hidden units,
    D directions (2 if bidirectional, else 1), and G gates (LSTM 4, GRU 3, RNN 1).
    """

    def lstm(
        self,
        x: Value,
        w: Operand,
        r: Operand,
        bias: Operand | None = None,
        *,
        lengths: Operand | None = None,
        h: Operand | None = None,
        c: Operand | None = None,
        peepholes: Operand | None = None,
        direction: str = "forward",
        activations: Sequence[Activation] | None = None,
        clip: float | None = None,
        input_forget: bool = False,
        factor: Activation | None = None,
        name: str | None = None,
    ) -> tuple[Value, Value, Value]:
        """Long short-term memory, with the gates input, output, forget, cell in this order.

        Args:
            x: the input, TxBxI.
            w: the weights of the input, Dx4HxI.
            r: the recurrent weights, Dx4HxH.
            bias: the biases of w and those of r, Dx8H; by default 0.
            lengths: the steps of each sequence, B integers; by default T. Results of later steps
                are 0.
            h: the first hidden state, DxBxH; by default 0.
            c: the first cell state, DxBxH; by default 0.
            peepholes: the weights of the cell state in the gates input, output, forget, Dx3H.
            direction: forward, reverse, or bidirectional.
            activations: those of the gates, of the cell gate and of the cell state, for each
                direction; by default sigmoid, tanh, tanh.
            clip: limits the arguments of activations to [-clip, clip].
            input_forget: whether the forget gate is 1 - the input gate.
            factor: a function of each hidden state, 1xBxH, whose result is multiplied by r instead.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            The hidden states of all steps, TxDxBxH, and the last hidden and cell states, DxBxH.

        Raises:
            InputError: if shapes do not fit.
        """
        layer = _Layer(self, "lstm", Lstm, x, name)
        layer.weights(w, r, bias, peepholes)
        layer.sequences(direction, lengths, h, c)
        y, *last = layer.build(activations, clip, factor, input_forget=input_forget)
        return y, last[0], last[1]

    def gru(
        self,
        x: Value,
        w: Operand,
        r: Operand,
        bias: Operand | None = None,
        *,
        lengths: Operand | None = None,
        h: Operand | None = None,
        direction: str = "forward",
        activations: Sequence[Activation] | None = None,
        clip: float | None = None,
        linear_before_reset: bool = False,
        name: str | None = None,
    ) -> tuple[Value, Value]:
        """Gated recurrent units, with the gates update, reset, hidden in this order.

        The arguments are those of `lstm`, with 3 gates and the activations of the gates and of the
        hidden gate (by default sigmoid, tanh).

        Args:
            linear_before_reset: whether the reset gate is applied to the product with the recurrent
                weights, as in cuDNN and PyTorch, not to the state before it.

        Returns:
            The hidden states of all steps, TxDxBxH, and the last ones, DxBxH.

        Raises:
            InputError: if shapes do not fit.
        """
        layer = _Layer(self, "gru", Gru, x, name)
        layer.weights(w, r, bias)
        layer.sequences(direction, lengths, h)
        y, last = layer.build(activations, clip, linear_before_reset=linear_before_reset)
        return y, last

    def rnn(
        self,
        x: Value,
        w: Operand,
        r: Operand,
        bias: Operand | None = None,
        *,
        lengths: Operand | None = None,
        h: Operand | None = None,
        direction: str = "forward",
        activations: Sequence[Activation] | None = None,
        clip: float | None = None,
        name: str | None = None,
    ) -> tuple[Value, Value]:
        """A recurrent layer without gates: ``activation(x @ w.T + h @ r.T + bias)``.

        The arguments are those of `lstm`, with 1 gate and 1 activation (by default tanh).

        Returns:
            The hidden states of all steps, TxDxBxH, and the last ones, DxBxH.

        Raises:
            InputError: if shapes do not fit.
        """
        layer = _Layer(self, "rnn", Rnn, x, name)
        layer.weights(w, r, bias)
        layer.sequences(direction, lengths, h)
        y, last = layer.build(activations, clip)
        return y, last


class _Layer:
    """A recurrent layer under construction.

    Args:
        builder: the builder of the program.
        subject: the name of the layer in messages.
        kind: what a step computes.
        x: the input.
        name: the name of the model's node.
    """

    _w: Value
    _r: Value
    _bias: Value | None
    _peepholes: Value | None
    _lengths: Value | None
    _backward: tuple[bool, ...]
    _first: list[Value | None]
    _factor: Activation | None

    def __init__(
        self, builder: Any, subject: str, kind: type[Cell], x: Value, name: str | None
    ) -> None:
        self._b, self._subject, self._kind, self._name = builder, subject, kind, name
        self._location = builder._located(name)
        self._x = Value(builder, builder._own(x, subject))
        if len(self._x.shape) != 3:
            raise input_error(subject, "x has the wrong rank", 3, len(self._x.shape))
        self._batch = self._x.shape[1]

    def weights(
        self, w: Operand, r: Operand, bias: Operand | None, peepholes: Operand | None = None
    ) -> None:
        """The weights, which decide the number of hidden units."""
        self._w, self._r = self._given("w", w), self._given("r", r)
        shape = self._r.shape
        if len(shape) != 3 or shape[0] is None or shape[2] is None:
            raise input_error(self._subject, "r has the wrong shape", "3 static sizes", shape)
        directions, self._hidden = shape[0], shape[2]
        rows = self._kind.GATES * self._hidden
        self._check("r", self._r, (directions, rows, self._hidden))
        self._check("w", self._w, (directions, rows, self._x.shape[2]))
        self._bias = self._optional("bias", bias, (directions, 2 * rows))
        self._peepholes = self._optional("peepholes", peepholes, (directions, 3 * self._hidden))

    def sequences(self, direction: str, lengths: Operand | None, *states: Operand | None) -> None:
        """The order of the steps, the steps of each sequence, and the states before the first."""
        if direction not in _DIRECTIONS:
            fact = "unknown direction"
            raise input_error(self._subject, fact, ", ".join(_DIRECTIONS), repr(direction))
        self._backward = _DIRECTIONS[direction]
        self._check("r", self._r, (len(self._backward), *self._r.shape[1:]))
        self._lengths = None if lengths is None else self._given("lengths", lengths, None)
        if self._lengths is not None:
            self._check("lengths", self._lengths, (self._batch,))
        shape = (len(self._backward), self._batch, self._hidden)
        names = ("h", "c")
        self._first = [
            self._optional(name, state, shape) for name, state in zip(names, states, strict=False)
        ]
        sizes = [state.shape[1] for state in self._first if state is not None]
        if self._lengths is not None:
            sizes.append(self._lengths.shape[0])
        fixed = next((size for size in sizes if size is not None), None)
        if self._batch is None and fixed is not None:
            fact = "the batch of x is symbolic, that of lengths or states is not"
            raise input_error(self._subject, fact, fixed, "a symbolic size")

    def build(
        self,
        activations: Sequence[Activation] | None,
        clip: float | None,
        factor: Activation | None = None,
        **options: bool,
    ) -> list[Value]:
        """Add the layer; returns all hidden states and the last ones of each state."""
        b, each = self._b, self._kind.defaults(self._b)
        count = len(each) * len(self._backward)
        chosen = each * len(self._backward) if activations is None else list(activations)
        if len(chosen) != count:
            fact = "wrong number of activations"
            raise input_error(self._subject, fact, count, len(chosen))
        self._factor = factor
        with self._located():
            results = list[list[Value]]()
            running = None if self._lengths is None else self._running(self._lengths)
            for number, backward in enumerate(self._backward):
                own = chosen[number * len(each) : (number + 1) * len(each)]
                cell = self._kind(b, self._parameters(number), own, clip, **options)
                results.append(self._direction(number, backward, cell, running))
            axes = [1, *([0] * len(self._first))]
            return [
                parts[0] if len(parts) == 1 else b.concat(list(parts), axis=axis)
                for axis, parts in zip(axes, zip(*results, strict=True), strict=True)
            ]

    def _direction(
        self, number: int, backward: bool, cell: Cell, running: Value | None
    ) -> list[Value]:
        """One direction: all hidden states, Tx1xBxH, and the last ones of each state, 1xBxH."""
        b = self._b
        weights = b.transpose(self._part(self._w, number), [1, 0])
        in_steps = self._batch is not None and self._batch >= _MANY_ROWS
        product = self._x if in_steps else self._input_product(self._x, weights, cell)
        state = tuple(self._initial(number, first) for first in self._first)

        def step(state: tuple[Value, ...], slices: tuple[Value, ...]) -> Any:
            given = slices[0]
            if in_steps:
                given = self._input_product(given, weights, cell)
            after = cell.step(given, *state)
            if running is None:
                return after, after[0]
            goes_on = b.reshape(slices[1], shape=[1, -1, 1])
            kept = (b.where(goes_on, *pair) for pair in zip(after, state, strict=True))
            return tuple(kept), b.where(goes_on, after[0], 0.0)

        slices = (product,) if running is None else (product, running)
        last, y = b.scan(step, state, slices, reverse=backward)
        return [y, *last]

    @property
    def _size(self) -> int:
        """The size of the batch in a shape of `graph.reshape`."""
        return -1 if self._batch is None else self._batch

    def _input_product(self, x: Value, weights: Value, cell: Cell) -> Value:
        """The part of the gates that depends on the input and on the biases only, BxGH or TxBxGH.

        Args:
            x: the input of one step, BxI, or of all, TxBxI.
            weights: those of the input, transposed, IxGH.
            cell: has the biases.
        """
        product, bias = self._b.matmul(x, weights), cell.input_bias()
        return product if bias is None else product + bias

    def _parameters(self, number: int) -> Parameters:
        b, rows = self._b, self._kind.GATES * self._hidden
        recurrent = b.transpose(self._part(self._r, number), [1, 0])
        parameters = Parameters(self._hidden, recurrent, factor=self._factor)
        if self._bias is not None:
            bias = self._part(self._bias, number)
            parameters.w_bias, parameters.r_bias = (
                b.slice(bias, starts=[start], ends=[start + rows]) for start in (0, rows)
            )
        if self._peepholes is not None:
            parameters.peepholes = columns(b, self._part(self._peepholes, number), 3)
        return parameters

    def _part(self, value: Value, number: int) -> Value:
        """The part of a direction."""
        value = self._of_direction(value, number)
        return self._b.reshape(value, shape=[-1 if n is None else n for n in value.shape[1:]])

    def _of_direction(self, value: Value, number: int) -> Value:
        """The part of a direction, in front of which there is a dimension of size 1."""
        if len(self._backward) == 1:
            return value
        rest = [WHOLE_END if n is None else n for n in value.shape[1:]]
        return self._b.slice(value, starts=[number] + [0] * len(rest), ends=[number + 1, *rest])

    def _initial(self, number: int, first: Value | None) -> Value:
        """The state before the first step, 1xBxH."""
        b = self._b
        if first is not None:
            state = self._of_direction(first, number)
            if state.shape[1] == self._batch:
                return state
            return b.reshape(state, shape=[1, self._size, self._hidden])
        zeros = b.reshape(self._zeros([0, 2], self._batch), shape=[1, self._size, 1])
        return b.broadcast_to(zeros, shape=[1, -1, self._hidden])

    def _running(self, lengths: Value) -> Value:
        """Whether a step is one of a sequence, TxB."""
        b, steps = self._b, self._x.shape[0]
        ones = b.cast(self._zeros([1, 2], steps), self._element(lengths)) + 1
        numbers = b.cumulative(ones, kind="sum", axis=0, exclusive=True)
        return b.less(b.reshape(numbers, shape=[-1, 1]), b.reshape(lengths, shape=[1, self._size]))

    def _zeros(self, axes: Sequence[int], size: int | None) -> Value:
        """A vector of zeros, as long as the other dimension of x: an empty sum is 0."""
        b, x = self._b, self._x
        if x.shape[2] is None:
            x = b.reduce(x, "sum", axes=[2], keepdims=True)
        ends = [WHOLE_END if n is None else n for n in x.shape[:2]]
        return b.reduce(b.slice(x, starts=[0, 0, 0], ends=[*ends, 0]), "sum", axes=axes)

    # Operands

    @staticmethod
    def _element(value: Value) -> Any:
        return tensor_type(value.ssa).element_type

    def _given(self, what: str, operand: Operand, like: Any = ...) -> Value:
        kind = self._element(self._x) if like is ... else like
        label = f"{self._subject}_{what}"
        return Value(self._b, self._b._operand(operand, kind, label, self._location))

    def _optional(self, what: str, operand: Operand | None, shape: Sizes) -> Value | None:
        if operand is None:
            return None
        value = self._given(what, operand)
        self._check(what, value, shape)
        return value

    def _check(self, what: str, value: Value, shape: Sizes) -> None:
        pairs = zip(value.shape, shape, strict=False)
        if len(value.shape) != len(shape) or any(a != b for a, b in pairs if None not in (a, b)):
            raise input_error(self._subject, f"{what} has the wrong shape", shape, value.shape)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Give what is added within the context the location of the layer."""
        before = self._b._block.last_op
        yield
        op = self._b._block.first_op if before is None else before.next_op
        while op is not None:
            for inner in op.walk():
                inner.location = self._location
            op = op.next_op
