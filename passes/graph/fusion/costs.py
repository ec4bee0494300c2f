"""Whether it pays to merge two groups: what may be gained, and what speaks against it."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from ....dialects.graph.interfaces import FusionKind, GraphOp, tensor_type
from ....dialects.graph.nests.recording import is_reshape
from ....dialects.graph.plan.nest_plan import NestPlan
from ....dialects.graph.plan.uses import Uses
from .groups import Gain, Group, Proposal, users_of

_LONGEST_STAGED_ROW = 1024
# What has a value for each entry is computed once for a few vectors of a row, not once for all
# of it. Softmaxes of several heads cost more than to write and read them.
_LONGEST_ROW_OF_ENTRY = 128
_FEWEST_MESSAGE_COLUMNS = 16
"""A product of each entry with fewer columns is faster in a register tile of many entries."""

_MANY_TIMES = "a contraction reads each element many times and would compute it each time"
_GATHERED = "windows would gather each element many times"
MOST_PARTS = 4
"""Parts of a product that are computed together: each has accumulators of its own."""

ELSEWHERE = "it is needed outside of that kernel as well"
_OWN_INDEX = "only operators that read it at their own index can follow a contraction in its loops"
_OTHER_ROWS = "the kernel that reads it has other rows"


class MergeCosts:
    """What merging two groups costs, from what their operators read.

    Args:
        uses: how operators use their operands.
        max_width: the largest width of a dense product that goes into a sparse one's kernel, or
            into that of a consumer that reads its rows again.
    """

    def __init__(self, uses: Uses, max_width: int) -> None:
        self.uses, self.max_width = uses, max_width

    def gains(self, maker: Group, reader: Group, value: SSAValue) -> list[Gain]:
        """What could be gained where the kernel of `reader` computes `value`, which it reads."""
        found = [Gain.USER] if maker.anchor is None else []
        users = [op for op in reader.ops if value in op.operands]
        if self._is_row_of_product(maker, reader, value):
            return [*found, Gain.PRODUCT]
        if self._has_common_reduction(maker, reader):
            return [*found, Gain.COMMON_REDUCTION]
        if all(value in self.uses.entries(user) for user in users):
            return [*found, Gain.ENTRIES]
        if self._is_reread(maker, reader):
            return [Gain.REREAD]
        if reader.anchor is None and maker.is_of(FusionKind.CONTRACTION):
            return [Gain.PARTS]
        if reader.anchor is None and maker.anchor is None:
            shared = any(user not in reader.ops for user in users_of(maker.results))
            return [Gain.STORED] if shared else found
        return found or [Gain.ROWS]

    def objection(self, proposal: Proposal) -> str | None:
        """What speaks against a merge before its plan is made; None where nothing does."""
        maker, reader = proposal.maker, proposal.reader
        for op in (*maker.ops, *proposal.users):
            if isinstance(op, GraphOp) and op.fusion == FusionKind.OPAQUE:
                return f"{op.name} is opaque: it cannot be part of a kernel"
        if Gain.FRAME in maker.gains:
            return "what reads a padded tensor reads it from memory"
        match proposal.gain:
            case Gain.USER:
                return self._against_repetition(proposal)
            case Gain.STORED:
                # c = f * u is a result, and o * tanh(c) reads it at its own index
                value, users = proposal.value, proposal.users
                own = all(self.uses.at_own_index(user, value) for user in users)
                return None if own else ELSEWHERE
            case Gain.PARTS:
                return self._against_parts(proposal)
            case Gain.PRODUCT:
                return self._against_product(maker, reader, proposal.value)
            case Gain.ENTRIES:
                return self._against_entries(proposal)
            case Gain.REREAD:
                return self._against_reread(maker, reader, proposal.value)
            case Gain.ROWS:
                return self._against_rows(proposal)
            case _:
                return None

    def objection_to(self, plan: NestPlan, proposal: Proposal) -> str | None:
        """What speaks against the plan of a merged group; None where nothing does."""
        if proposal.gain in (Gain.STORED, Gain.PARTS):
            made = (value for op in proposal.maker.ops for value in op.results)
            again = any(value in plan.repeated or value in plan.staged for value in made)
            return "it would be computed more than once" if again else None
        if proposal.gain not in (Gain.USER, Gain.ROWS, Gain.COMMON_REDUCTION, Gain.REREAD):
            return None
        reordered = any(nest.reordered for nest in plan.nests)
        kept = [v for op in proposal.maker.ops for v in op.results if v in plan.staged]
        by_row = not reordered and (plan.repeated | plan.hoisted).isdisjoint(kept)
        by_row &= all(plan.staged[v] == tensor_type(v).get_num_dims() - 1 for v in kept)
        if proposal.gain == Gain.REREAD and not (by_row and proposal.value in kept):
            return "the kernel that reads it does not read its rows one after the other"
        if reordered and proposal.gain != Gain.USER:
            return "the inner loop of the kernel would no longer run along memory"
        if not by_row and (kept or proposal.value in plan.staged):
            return "it would need a local buffer for more than a row"
        again = [op for op in proposal.maker.ops if not plan.repeated.isdisjoint(op.results)]
        if proposal.value in plan.repeated and not all(map(self.uses.is_cheap, again)):
            return "it would be computed more than once"
        return None

    def repeats(self, proposal: Proposal) -> bool:
        """Whether a value may be computed more often than it has elements, without a buffer."""
        users, value = proposal.users, proposal.value
        if len(users) > 1 and not all(self.uses.at_own_index(user, value) for user in users):
            return True
        return any(u in proposal.reader.repeated or self.uses.repeats(u, value) for u in users)

    def _against_repetition(self, proposal: Proposal) -> str | None:
        """A contraction reads an element again for each register tile: not even cheap ones pay.

        Nor does what windows would gather.
        """
        anchor = proposal.reader.anchor
        products = [user for user in proposal.users if _is_contraction(user)]
        if anchor is not None and self.uses.walked(anchor):
            # Products of the entries need it once for some vectors of columns; the walk itself, for
            # each of them.
            products = [user for user in products if user is anchor]
        if any(self.uses.repeats(user, proposal.value) for user in products):
            return _MANY_TIMES
        return _GATHERED if self._is_gathered_by_windows(proposal) else None

    def _is_gathered_by_windows(self, proposal: Proposal) -> bool:
        """Whether windows, which overlap, would read elements that are not adjacent in memory."""
        anchor = proposal.reader.anchor
        if anchor is None or not self.uses.slides(anchor) or not self.repeats(proposal):
            return False
        return any(map(self.uses.gathers, proposal.maker.ops))

    # What several operators read.

    def _against_parts(self, proposal: Proposal) -> str | None:
        # sigmoid(dense(x, w)[:, :n]) * tanh(dense(x, w)[:, n:]) needs two sums for each element
        product, reader, value = proposal.maker.anchor, proposal.reader, proposal.value
        assert product is not None
        if self.uses.walked(product) or self.uses.of_entries(product):
            return _OWN_INDEX
        made, starts = {value}, set[int | None]()
        for op in reader.ops:
            if value in op.operands:
                starts.add(self.uses.start_of_part(op, value))
            elif not all(self.uses.at_own_index(op, o) for o in op.operands if o in made):
                return _OWN_INDEX
            if not made.isdisjoint(op.operands):
                made.update(op.results)
        if None in starts or not self.uses.is_tileable(product):
            return _OWN_INDEX
        if len(starts) > MOST_PARTS:
            return f"a product computes at most {MOST_PARTS} of its parts together"
        return None

    # The rows that a dense product reads.

    def _is_row_of_product(self, maker: Group, reader: Group, value: SSAValue) -> bool:
        """Whether a dense product reads rows that a sparse one makes."""
        # dense(relu(spmm(a, x) + b), w)[i] needs the row relu(spmm(a, x) + b)[i] only
        product = reader.anchor
        if product is None or not reader.is_of(FusionKind.CONTRACTION) or maker.anchor is None:
            return False
        if self.uses.walked(product) or product.operands[0] is not value:
            return False
        # Not measured: whether a plain sum over neighbours gains, too.
        return self.uses.reads_values(maker.anchor) and self.uses.reads_row(product, value)

    def _against_product(self, maker: Group, reader: Group, value: SSAValue) -> str | None:
        assert reader.anchor is not None
        if not value.has_one_use():
            return "several operators read it, at different indices"
        if not 0 < _width(reader.anchor.results[0]) <= self.max_width:
            return f"the product that reads it may have more than {self.max_width} columns"
        if not 0 < _width(value) <= _LONGEST_STAGED_ROW:
            return f"a row of it may have more than {_LONGEST_STAGED_ROW} values"
        dense = (op for op in maker.ops if op.fusion == FusionKind.CONTRACTION)
        if not all(self.uses.walked(op) for op in dense):
            return "a kernel has at most one dense product"
        return None

    # What reads the rows of a product again.

    def _is_reread(self, maker: Group, reader: Group) -> bool:
        """Whether a group with reductions reads what a contraction over a bound makes."""
        product = maker.anchor
        if product is None or not _is_contraction(product) or self.uses.of_entries(product):
            return False
        if self.uses.walked(product):
            return False
        return any(op.fusion == FusionKind.REDUCTION for op in reader.ops)

    def _against_reread(self, maker: Group, reader: Group, value: SSAValue) -> str | None:
        # softmax(dense(x, w))[i] reads the row dense(x, w)[i] three times: the rows of some
        # register tiles are computed, then read while they are in the first-level cache
        if any(map(_is_contraction, reader.ops)):
            return "a kernel has at most one dense product"
        if any(map(self.uses.walked, reader.ops)):
            return "the entries of the rows of a matrix are visited by a kernel of their own"
        if not 1 < tensor_type(value).get_shape()[-1] <= self.max_width:
            return f"only rows of 2 to {self.max_width} columns are read again beside their product"
        if maker.anchor is None or not self.uses.is_tileable(maker.anchor):
            return "the contraction has no register tile of rows and columns"
        return None if self._keeps_rows(reader, value) else _OTHER_ROWS

    # The entries of a row of a sparse matrix.

    def _has_common_reduction(self, maker: Group, reader: Group) -> bool:
        """Whether a group reduces the same rows of entries as an operator of another one."""
        # the maximum and the sum of a row are the same for the softmax of its entries and for
        # the weight of its self loop
        op = maker.anchor
        if op is None or not (entries := self.uses.entries(op)):
            return False
        return any(
            self.uses.entries(part) == entries and list(part.operands) == list(op.operands)
            for part in reader.ops
        )

    def _against_entries(self, proposal: Proposal) -> str | None:
        # edge_softmax(a, e)[p] for the entries p of a row needs the scores of that row only
        user, value = proposal.users[0], proposal.value
        matrix = self.uses.entries(user)[value]
        heads = tensor_type(value).get_shape()[1:]
        own = tensor_type(user.results[0]).get_shape()[len(heads) + 1 :]
        if DYNAMIC_INDEX in own or math.prod(own) > _LONGEST_ROW_OF_ENTRY:
            return f"each is read for more than {_LONGEST_ROW_OF_ENTRY} values, or for any number"
        if heads.count(1) < len(heads) and math.prod(own) > 1 and self._is_alone(proposal.maker):
            return f"it would be computed again for parts of the {math.prod(own)} values"
        matrices: set[SSAValue] = set()
        for op in proposal.maker.ops:
            of_entries = self.uses.of_entries(op)
            matrices |= of_entries | set(self.uses.entries(op).values())
            if op.fusion == FusionKind.CONTRACTION and not of_entries:
                if not self._is_message(op, user, value):
                    return "it has more than the values of the entries of a matrix"
                matrices.add(matrix)
            elif self.uses.longest_loop(op) > 1:
                # A dot product has lanes in a kernel of its own, and none beside the entries.
                return f"{op.name} costs too much to be computed for each of its readers"
        return None if matrices == {matrix} else "it has values of the entries of another matrix"

    def _is_message(self, product: GraphOp, user: Operation, value: SSAValue) -> bool:
        """Whether a dense product gives a row for each entry, which is combined where it is made.

        Its columns are the lanes. A reduction that needs the messages of a row again would compute
        the product again.
        """
        # max over the entries p of row i of dense(relu(x[i] + y[column(p)]), w)[p]
        if not self.uses.is_tileable(product) or not self.uses.combines_entries(user, value):
            return False
        return _width(product.results[0]) >= _FEWEST_MESSAGE_COLUMNS

    def _is_alone(self, group: Group) -> bool:
        """Whether a group reduces entries of rows as no other operator does.

        Where one does, such as the weight of a self loop, they are computed together in the kernel
        that reads both.
        """
        op = group.anchor
        if op is None or op.fusion != FusionKind.REDUCTION:
            return False
        entries, operands = self.uses.entries(op), list(op.operands)
        return not any(
            isinstance(other, GraphOp)
            and other is not op
            and list(other.operands) == operands
            and self.uses.entries(other) == entries
            for other in users_of(operands)
        )

    # What a row needs of itself.

    def _against_rows(self, proposal: Proposal) -> str | None:
        # (x - mean(x))[i, j] needs mean(x)[i] only, which is computed before j begins
        maker, reader, value = proposal.maker, proposal.reader, proposal.value
        if (why := self._against_repetition(proposal)) is not None:
            return why
        if maker.is_of(FusionKind.NEST) or reader.is_of(FusionKind.NEST):
            # The plan says what its loops can take in.
            return None
        if maker.is_of(FusionKind.CONTRACTION):
            return _OWN_INDEX
        if reader.is_of(FusionKind.CONTRACTION):
            return "no other reduction can be in the loops of a contraction"
        if any(group.anchor and self.uses.walked(group.anchor) for group in (maker, reader)):
            return "the entries of the rows of a matrix are visited by a kernel of their own"
        if any(map(_is_contraction, reader.ops)):
            return "a reduction before a contraction is in another kernel"
        return None if self._keeps_rows(reader, value) else _OTHER_ROWS

    def _keeps_rows(self, reader: Group, value: SSAValue) -> bool:
        """Whether what a group makes of a value has its rows, but for a last reshape."""
        made = {value}
        for op in reader.ops:
            if made.isdisjoint(op.operands):
                continue
            reshaped = is_reshape(op) and value not in op.operands
            if op.fusion not in (FusionKind.ELEMENTWISE, FusionKind.REDUCTION) and not reshaped:
                return False
            made.update(op.results)
        return True


def _is_contraction(op: Operation) -> bool:
    return isinstance(op, GraphOp) and op.fusion == FusionKind.CONTRACTION


def _width(value: SSAValue) -> int:
    """The number of columns of a matrix; 0 if unknown, or for other values."""
    shape = tensor_type(value).get_shape()
    return shape[1] if len(shape) == 2 and shape[1] != DYNAMIC_INDEX else 0
