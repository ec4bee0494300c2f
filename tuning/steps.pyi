"""The primitives of schedules as methods; `make public` writes this file."""

from typing import Self

from ..dialects.loop.trace_text import Step

class Steps:
    """Each primitive as a method, which takes a step on the kernel: ``split("i", 8)``."""

    def take(self, step: str | Step) -> Self:
        """Take a step."""

    def balance(self, loop: str, entries: str, factor: int, weight: int = 1) -> Self:
        """Cut the loop over the rows of a sparse matrix into parts of about the same cost.

            for i to n: body(i)
            ->  for i0 to n ceildiv f:
                    a, b = partition_point(i0), partition_point(i0 + 1)
                    for i1 to b - a: body(a + i1)

        There are as many parts as `split` with tail "mask" makes, of `factor` rows on average. The
        kernel computes how many rows each has: an entry of the reduction `entries` costs 1, a row
        `weight`. A row is never cut.

        Args:
            loop: the loop over rows that is cut.
            entries: the reduction over the entries that are counted.
            factor: the average number of rows of a part.
            weight: the cost of a row apart from its entries, in entries.

        Raises:
            ScheduleError: if the loop is not a parallel one over the rows that `entries` reads.
        """

    def bind(self, *loops: str, level: str = "threads") -> Self:
        """Make each iteration of perfectly nested loops a thread of a device, or a block of threads.

            for i: for j: body  ->  for i threads: for j threads: body
            for i: for j: body  ->  for i blocks: for j threads: body     (i at level "blocks", then j)

        Neighbours of the innermost loop are neighbours in a warp: along it, accesses should go to the
        next element.

        Args:
            loops: the loops, outermost first.
            level: what an iteration becomes: `threads` or `blocks`.

        Raises:
            ScheduleError: if the loops are not perfectly nested, if their iterations are not
                independent, if the first one is in another loop than one of blocks, or if there is no
                such level.
        """

    def cascade(self, loop: str, factor: int) -> Self:
        """Accumulate chunks of `factor` iterations of a reduction on their own, and add up the chunks.

            s = reduce k to n: s + x[k]
            ->  s = reduce k0 to n ceildiv f:
                    t = reduce k1 to min(f, n - f * k0), from 0: t + x[f * k0 + k1]
                    s + t

        With a factor of 1 there is no inner loop: each iteration is a chunk, with the reductions in it.
        A loop over the entries of a row gets an attribute; its chunks are made when it is lowered.

        The rounding error of a sum grows like the square root of the number of terms that are added one
        after the other, of which there are f + n / f instead of n. (P. Blanchard, N. Higham and
        T. Mary, A Class of Fast and Accurate Summation Algorithms, 2020.)

        Args:
            loop: the reduction.
            factor: the iterations of a chunk.

        Raises:
            ScheduleError: if the loop is no reduction, or one with the combiner `custom`, for a factor
                of 1 if it is unrolled, and if it is over entries and a cascade already.
        """

    def compute_at(self, nest: str, loop: str) -> Self:
        """Move the nest that fills a local buffer into the loop that reads it.

            local h : n; for a to n: h[a] = f(a)
            for i to n: y[i] = h[i] + 1
            ->  for i to n: local h : 1; for a to 1: h[a] = f(i + a)
                            y[i] = h[0] + 1

        Each iteration computes only the part that it reads, into a buffer of only that size. The parts
        of several iterations may overlap, as those of windows do; each iteration then recomputes the
        overlap.

        Args:
            nest: the outermost loop of the nest that fills the buffer.
            loop: the loop that reads it.

        Raises:
            ScheduleError: if the nest does more than compute each element of one local buffer, if what
                it reads is written to afterwards, if the loop does not read a part of known size, or if
                something else reads the buffer.
        """

    def count_entries(self, loop: str) -> Self:
        """Make a loop over the entries of a row one over their number.

            s = reduce e in row r: s + v[e] * x[column of e]
            ->  b, n = indptr[r], indptr[r + 1] - indptr[r]
                s = reduce e to n: s + v[b + e] * x[indices[b + e]]

        So the threads of a block can share the entries of a row, and a row be cut into chunks.

        Args:
            loop: the loop.

        Raises:
            ScheduleError: if the loop is not over entries, or is a cascade.
        """

    def distribute(self, loop: str, after: str) -> Self:
        """Cut the body of a loop after one of its nests, and run a loop over each of the two parts.

            for i to 8: local h : n; for a to n: h[a] = f(i, a)
                        for j to n: y[i, j] = h[j] + 1
            ->  local h : 8 x n
                for ia to 8: for a to n: h[ia, a] = f(ia, a)
                for ib to 8: for j to n: y[ib, j] = h[ib, j] + 1

        The first part is the nest, the stores before it, and what these need. A local buffer that both
        parts use gets a dimension for the iterations. Scalars that both need are computed in both.

        Args:
            loop: the loop.
            after: the last nest of the first part.

        Raises:
            ScheduleError: if the loop is not parallel, if the nest is not in its body or is the last
                one there, if a buffer needs a limit of the iterations that is unknown, or if both parts
                need a value that cannot be recomputed.
        """

    def drop_unit_loops(self) -> Self:
        """Replace a loop that runs once by its body, and drop one that never runs.

        for i to 1: body(i)  ->  body(0)

        Loops on a device stay: they are what runs their bodies there.
        """

    def enclose(self, loop: str = "one") -> Self:
        """Put the body of a kernel into a loop of one iteration, which may be bound to a thread.

            body  ->  for one to 1: body

        Args:
            loop: the name of the loop.

        Raises:
            ScheduleError: if there is a loop of this name.
        """

    def fuse(self, outer: str, inner: str) -> Self:
        """Replace two perfectly nested loops by one, called `outer_inner`.

            for i to m: for j to n: body(i, j)
            ->  for i_j to m * n: body(i_j floordiv n, i_j mod n)

        Balances tiles among threads if neither loop has enough iterations, and lets vectors run across
        rows that follow each other in memory. The index of an outer loop that runs once is 0.

        Args:
            outer: the outer loop.
            inner: the inner loop, the whole body of the outer one.

        Raises:
            ScheduleError: if the loops are not perfectly nested, the size of the inner one is unknown,
                or one of them is neither parallel nor serial.
        """

    def hoist(self, loop: str) -> Self:
        """Hoist loop invariants out of a loop.

            for i to 8: s = a[0]; y[i] = x[i] * s  ->  s = a[0]; for i to 8: y[i] = x[i] * s

        Loads and divisions move only if the loop is known to run, and a load only if the loop does not
        write to its buffer.

        Args:
            loop: the loop that they are hoisted out of.

        Raises:
            ScheduleError: if there is nothing to hoist, with the obstacle of the first candidate.
        """

    def merge(self, first: str, second: str) -> Self:
        """Run two reductions, or two parallel loops, over the same range as one loop.

            s = reduce k: s + x[k] * v[k]; t = reduce l: t + x[l] * w[l]
            ->  s, t = reduce k: s + x[k] * v[k], t + x[k] * w[k]

            for i: y[i] = x[i]; for j: y[j] += u[j]
            ->  for i: y[i] = x[i]; y[i] += u[i]

        The loop keeps the name of the first one. What both reductions read is read once. Statements
        between the two precede the loop if the second one needs them, and may follow a reduction
        otherwise. The range of reductions may be the stored entries of a row.

        Args:
            first: the loop that comes first, whose name stays.
            second: the other loop.

        Raises:
            ScheduleError: if they are neither reductions nor parallel, if a reduction is unrolled or
                has effects, or statements between parallel loops have; if the two are not in one body,
                the first one first, or differ in range; if the second one needs the first one, or what
                is written between the two; if an iteration of a parallel one needs more than its own
                of the first one.
        """

    def own(self, loop: str, parts: int, chunk: int = 1) -> Self:
        """Divide the places that a serial loop writes to into parts, which are computed independently.

            for k to n serial: q = f(k); y[q] += u[k]
            ->  for k0 to min(parts, n ceildiv chunk): for k1 to n ceildiv 256 serial:
                    m = 0; for k2 to min(256, n - 256 * k1) serial:
                        mine[m] = k2; m += owned(f(256 * k1 + k2), k0)
                    for k3 to m serial: k = 256 * k1 + mine[k3]; q = f(k)
                        for k4 to owned(q, k0): y[q] += u[k]

        Each part computes all places, but updates only those that it owns, so that every place is
        updated in the same order as before: results are the same, whatever runs the parts. This is the
        owner-computes rule (Rogers and Pingali, "Process Decomposition Through Locality of Reference",
        1989). A part lists its iterations of a block first: whether a place is its own is random, and
        would be mispredicted as a branch. There are fewer parts for less than `parts * chunk`
        iterations.

        Args:
            loop: the serial loop.
            parts: the number of parts.
            chunk: there are no more parts than chunks of this many iterations.

        Raises:
            ScheduleError: if the loop is not serial, or not all accesses to what it writes are at one
                computed index.
        """

    def pack(self, argument: int, *loops: str) -> Self:
        """Give a constant argument one dimension for each of the loops that read it.

            for j0: reduce k: for j1: w[32 * j0 + j1, k]
            ->  the same with w[j0, k, j1], where loop.packing is (j0, k, j1) -> (32 * j0 + j1, k)

        Parts that are read together and are equally far apart, such as w[j, k] and w[j + 64, k], are
        interleaved: they have one more dimension, in front of that of the last loop.

        Elements of the new layout that are outside of the constant are 0, and each dimension has the
        size of a whole chunk of its loop, so that reading a chunk needs no mask, not even the last one.

        Args:
            argument: the number of the argument.
            loops: the loops, in the order of the dimensions of the new layout.

        Raises:
            ScheduleError: if the argument is not a constant, is packed already, or is not read by maps
                of exactly these loops that differ by multiples of a step; if the size of a loop is
                unknown.
        """

    def pad(self, loop: str, multiple: int) -> Self:
        """Round the row length of the local buffer that a loop fills up to a multiple of some elements.

            local h : 3x7; for i: for j to 7: h[i, j] = ...
            ->  local h : 3x8; for i: for j to 7: h[i, j] = ...

        The padding is never written, and no value read from it reaches a result. A vector of 8 lanes
        can read a row of 7 without a mask, and each row is aligned to vectors.

        Args:
            loop: the loop that fills the buffer.
            multiple: the length of a row becomes a multiple of this, in elements.

        Raises:
            ScheduleError: if the loop does not fill one local buffer, or its rows have such a length
            already.
        """

    def prefetch(self, argument: int, loop: str, ahead: int = 0) -> Self:
        """Prefetch the rows of an argument that a reduction reads.

            for j: for i to 2: reduce k to n: w[j, k, :]
            ->  for j: for i to 2: reduce k to n: prefetch w[j, n/2 + ahead] + (n * i + k) * half a row
                                                  w[j, k, :]

        Loops around the reduction may read the same rows again, and so may nests beside those. Their
        iterations divide the hints evenly, so that memory is prefetched at a constant rate: the rest of
        w[j] while the first of them reads it, then the beginning of w[j + 1]. If the number of
        repetitions is unknown, each one prefetches everything.

        A reduction along some rows of a block, w[8 * i + s, k], prefetches the rows after them. A loop
        that is not a reduction prefetches memory `ahead` of the blocks that an iteration reads, all of
        their rows:

            for j: y[16 * j + s] = exp x[16 * j + s]
            ->  for j: prefetch x[16 * j] + ahead
                       y[16 * j + s] = exp x[16 * j + s]

        Args:
            argument: the number of the argument.
            loop: the reduction or the loop that reads it.
            ahead: bytes by which hints are earlier than evenly spread ones, or than the reads of a
                loop.

        Raises:
            ScheduleError: if a reduction does not read rows of the argument one after the other, if
                another loop does not read it, or needs more than `MOST_HINTS`, or if a size is unknown.
        """

    def prefetch_entries(self, argument: int, loop: str, ahead: int) -> Self:
        """Prefetch what later entries of a matrix read of an argument at their columns.

            for p, c over the entries of row i: x[c, :]
            ->  for p, c over the entries of row i: q = min(p + ahead, number of entries - 1)
                                                    prefetch x[column of q, :]
                                                    x[c, :]

        An entry ahead may belong to one of the next rows, which are visited soon.

        Args:
            argument: the number of the argument.
            loop: the loop over entries that reads it.
            ahead: how many entries the hints are early.

        Raises:
            ScheduleError: if the loop is not over entries, does not read the argument at their
                columns, or needs more than `MOST_HINTS`.
        """

    def privatise(self, loop: str, parts: int, chunk: int = 1) -> Self:
        """Divide the iterations of a serial loop into parts that accumulate into copies of their own.

            for k to n serial: y[f(k)] += u[k]
            ->  for k0 to parts: { for k3 to size: c[k0, k3] = 0
                    for k1 to n ceildiv parts serial: k = k0 * (n ceildiv parts) + k1
                        c[k0, f(k)] += u[k] }
                for k4 to size: for k2 to parts serial: y[k4] += c[k2, k4]

        Results are the same, because only what has no order is accumulated so: integers, maxima and
        minima. There are fewer parts for less than `parts * chunk` iterations.

        Args:
            loop: the serial loop.
            parts: the number of parts.
            chunk: there are no more parts than chunks of this many iterations.

        Raises:
            ScheduleError: if the loop is not serial or is inside of another one, or does anything but
                accumulate into one buffer, or sums or products of floats.
        """

    def reorder(self, *loops: str) -> Self:
        """Nest perfectly nested loops in this order.

            for i: for j: body  ->  for j: for i: body

        Serial loops keep their order among each other. A parallel loop may leave a serial one if each
        of its iterations accesses places of its own, whatever the serial loop's: then every place is
        accessed in the same order as before.

            for k serial: for j: y[f(k, j), j] += x[k, j]
            ->  for j: for k serial: y[f(k, j), j] += x[k, j]

        Args:
            loops: the loops, outermost first.

        Raises:
            ScheduleError: if the loops are not perfectly nested, if the order of serial loops would
                change, if a loop leaves a serial one and its iterations may depend on one another, or
                if a bound would depend on an inner loop.
        """

    def share_rows(self, loop: str, threads: int) -> Self:
        """Run the body of a loop on the threads of a block, so that an iteration is a block.

            for i: { s = reduce k to n: s + x[i, k]; for j: y[i, j] = x[i, j] * s }
            ->  for i blocks: {
                    for t to 32 threads: p[t] = reduce k to (n - t) ceildiv 32: p[t] + x[i, 32 * k + t]
                    for t to 32 threads: q[t] = p[t] + p[(t + 16) mod 32]  (and 8, 4, 2, 1 further on)
                    s = s + q[0]
                    for j threads: y[i, j] = x[i, j] * s }

        Parallel loops, with those perfectly nested in them, become nests of threads. Local buffers are
        in shared memory, in rows of odd lengths, so that a column is in as many banks. Each thread
        computes the scalars. A reduction is one of each thread over every n-th iteration, n being
        `threads`, so that neighbours are of different threads. The threads of a warp join their partial
        results by shuffles, in a fixed order; those of several warps, and elements of other than 4 or 8
        bytes, are joined in shared memory.

        Args:
            loop: the loop; perfectly nested loops around it are loops of blocks as well.
            threads: the number of parts of a reduction.

        Raises:
            ScheduleError: if the loops around it have more in them, if a reduction in it cannot be
                divided, or if the body has a serial loop or a buffer of unknown size.
        """

    def sink(self, loop: str) -> Self:
        """Make a loop perfectly nested: statements before the inner loop move into it.

            for i: s = a[i]; for j: y[i, j] = x[i, j] * s
            ->  for i: for j: s = a[i]; y[i, j] = x[i, j] * s

        Args:
            loop: the outer loop.

        Raises:
            ScheduleError: if the body does not end with its only loop, or if something before it has
                side effects or reads a buffer that the loop writes to.
        """

    def split(
        self, loop: str, factor: int, tail: str = "peel", cases: int = 0, alone: int = 0
    ) -> Self:
        """Cut a loop into one over chunks of `factor` iterations and one inside of a chunk.

            for i to n: body(i)
            ->  for i0 to n floordiv f: for i1 to f: body(f * i0 + i1)
                for i1t to n mod f: body(f * (n floordiv f) + i1t)           (tail "peel")
            ->  for i0 to n ceildiv f: for i1 to min(f, n - f * i0): ...     (tail "mask")
            ->  for i0 to n floordiv f: for i1 to f: ...                     (tail "split")
                for i0t to (n mod f) ceildiv f: for i1t to min(f, n mod f): ...
            ->  for i0 to n floordiv f: for i1 to f: ...                     (tail "cases")
                for i0t to min(1, n mod f):
                    for i0t1 to (1 if n mod f == 1 else 0): for i1t1 to 1: ...
                    for i0t2 to (1 if n mod f == 2 else 0): for i1t2 to 2: ...     (up to f - 1)
            ->  for i0 to 2: for i1 to 6: body(6 * i0 + i1)               (tail "even", n = 32, f = 6)
                for i0t to 4: for i1t to 5: body(5 * i0t + i1t + 12)

        In these nests f is `factor`. The tail "split" keeps the chunks whole and handles the remainder
        in one masked chunk; its outer loop has at most one iteration. The tail "cases" has a nest for
        each possible remainder, of which one runs: as fast as for a known size, at the cost of the code
        of all of them. With `cases` above `f` there are also nests for f + 1 to `cases` iterations: a
        remainder of a few iterations runs together with the last chunk. With `alone` up to so many
        iterations have two nests, as those of such a remainder do in any case: one where they are all
        there are, and one where they remain, named after the smallest number for which it runs (f + 1,
        ...). If the bound is the smallest of several, "cases" computes it before the chunks. For a
        known size "cases" is "peel". The tail "even" has as many chunks as the others, whose sizes
        differ by at most one: `factor` is the largest size. If `factor` divides the size, there is no
        tail. As n mod f is above 0 for some negative n, the tail of a bound that may be negative is
        also bounded by n.

        Args:
            loop: the loop that is cut.
            factor: the iterations of a chunk.
            tail: how the remainder is handled: `peel`, `mask`, `split`, `cases` or `even`.
            cases: with `cases`, the most iterations that have their own nest; by default a chunk's - 1.
            alone: with `cases`, the most iterations that have another nest where they are alone.

        Raises:
            ScheduleError: for an entries loop, for a tail other than "peel" of a loop that carries
                values, for even chunks of an unknown size, for a number of cases that is neither
                f - 1 nor from f + 1 to 2 * f - 1, and for `alone` above f - 1.
        """

    def split_border(self, loop: str, before: int, after: int) -> Self:
        """Split off the first and the last iterations of a loop.

            for i to n: y[i] = 0 <= i - 1 < n - 2 ? x[i - 1] : 0
            ->  for ib to 1: y[0] = 0
                for i to n - 2: y[i + 1] = x[i]
                for ie to 1: y[n - 1] = 0

        Comparisons, minima and maxima of the index that have the same outcome in all iterations of a
        part are decided at compile time, and so are the selects that they control. In the interior a
        padded window becomes an ordinary one, with contiguous accesses.

        A symbolic size is at least that of the borders if it is theirs plus the size of a buffer.

        Args:
            loop: the loop that is cut.
            before: how many iterations are cut off at its beginning.
            after: how many at its end.

        Raises:
            ScheduleError: for a reduction, and for a loop that is shorter than its borders, or may be.
        """

    def stage(self, argument: int, loop: str) -> Self:
        """Copy the part of an argument that one iteration of a loop reads repeatedly.

            for j: for i: reduce k: y[k, 32 * j : 32 * j + 32]
            ->  for j: local p; for k: p[k] = y[k, 32 * j : 32 * j + 32]
                       for i: reduce k: p[k]

        Rows that are a multiple of 4 KB apart compete for the same lines of a cache, and each is on
        another page; the copy is contiguous.

        Args:
            argument: the number of the argument.
            loop: the loop, which makes a copy in each iteration.

        Raises:
            ScheduleError: if the argument is not read along reductions of one size, is read along other
                loops inside of the loop as well, or may be written by the loop.
        """

    def stage_columns(self, loop: str, size: int) -> Self:
        """Run the serial loop in each iteration of a loop on columns of local buffers.

            for i to 16: t = init; for k to n serial carry(t): t = f(t, x[i, k]); y[i, k] = t
            ->  for i0 to 16: c[i0] = init
                for k0 to n floordiv size serial:
                    for i1 to 16: for k2 to size: p[k2, i1] = x[i1, size * k0 + k2]
                    for i to 16: t = c[i]
                        for k1 to size serial carry(t): t = f(t, p[k1, i]); q[k1, i] = t
                        c[i] = t
                    for i2 to 16: for k3 to size: y[i2, size * k0 + k3] = q[k3, i2]
                (and the same for the remaining n mod size)

        Then `i` may become an axis whose lanes are contiguous, and the copies squares that are
        transposed in registers: the elements of several rows are computed at once, in the same order.
        If nothing is contiguous along `k`, all accesses stay where they are, and what is carried is in
        a buffer only: with `size` 1, the two loops change places.

        Args:
            loop: the loop over rows.
            size: how many columns are staged at a time.

        Raises:
            ScheduleError: if the size of the loop is unknown; if its body is not a serial loop that
                carries numbers, after what its initial values need; if a store of that is not
                contiguous along it; or if it reads what it writes.
        """

    def stage_panels(self, loop: str, part: int = 0, ahead: int = 0) -> Self:
        """Run a reduction of the threads of a block together, in panels that they copy for each other.

            for b blocks: for t threads: s = reduce k: s + x[b, t, k] * w[k]; y[b, t] = s
            ->  for b blocks: { for t threads: s[t] = 0
                    for k serial: { for c threads: p[c] = x[b, c, k]; q = w[k]
                        for t threads: s[t] = s[t] + p[t] * q }
                    for t threads: y[b, t] = s[t] }

        An input of which several threads read the same elements is copied to shared memory by all
        threads of the block, the part that one iteration of the reduction reads at a time. So the
        reduction is the outer one of two, and its iterations are panels. Each thread keeps its
        accumulators, one for each iteration of the loops between it and the reduction. Rows of a panel
        have an odd number of elements, or of vectors of 16 bytes, so that a column is in as many banks.
        A thread copies such a vector where the rows of an input and of a panel are made of them.

        What the inner reduction computes alike in all threads, such as the weights of entries and their
        columns, is computed once, an iteration by each thread:

            for t threads: s = reduce k0: reduce k1 to min(32, n - 32 * k0): s + exp(v[k]) * x[c[k], t]
            ->  for k0 serial: {
                    for k1 threads: { q[k1] = exp(v[32 * k0 + k1]); d[k1] = c[32 * k0 + k1] }
                    for t threads: s[t] = reduce k1: s[t] + q[k1] * x[d[k1], t] }

        With `part`, the threads run the inner reduction in parts of so many iterations: what they
        read for one part is in registers at a time.

        With `ahead`, each panel is copied asynchronously while the one before it is added, to the other
        one of two buffers, and threads wait for each other once for each panel:

            for b blocks: {
                copy 0 to p
                for k serial to (n - 1) / 2: {
                    copy 2 * k + 1 to q; add p; copy 2 * k + 2 to p; add q }
                add p }      (or, of an even number n: copy n - 1 to q; add p; add q)

        Args:
            loop: the reduction.
            part: the iterations of the only reduction in it that run at a time; 0 for all.
            ahead: 1 to copy panels one iteration ahead, 0 to wait for each of them.

        Raises:
            ScheduleError: if the reduction is not in the threads of a block, alone but for what it
                begins with and what uses its results, if threads have nothing in common in it, or if
                there is no inner reduction of a multiple of so many iterations. With `ahead`, if there
                are not two panels or more, of a known number, or if they are not copied by vectors.
        """

    def stage_terms(self, loop: str) -> Self:
        """Compute the scalars that a reduction over blocks combines in a loop of their own before it.

            s = reduce k: s + max(x[c, k] + z[k], 0) * w[k, 0 : 32]
            ->  local t : n; for k_: t[k_] = max(x[c, k_] + z[k_], 0)
                s = reduce k: s + t[k] * w[k, 0 : 32]

        The iterations of the new loop do not depend on one another, so that vectors compute them; the
        reduction loads one scalar for each.

        Args:
            loop: the reduction.

        Raises:
            ScheduleError: if the loop is no reduction of known size, or has other loops in it, or if
                it computes no scalar for its blocks.
        """

    def tensorize(self, loop: str, instruction: str) -> Self:
        """Compute a short reduction by an instruction of the processor.

            s = reduce k to 2: s + x[i, k] * w[j, k]  ->  s = s + vpmaddwd(x[i, 0 : 2], w[j, 0 : 2])

        The instruction is a row of `core/instructions.py`. It computes the same numbers: what it
        combines has to be extended, with or without a sign, from elements that its operands hold.
        A processor without it computes what its row says.

        Args:
            loop: the reduction.
            instruction: the name of the row.

        Raises:
            ScheduleError: if there is no such instruction, or none that combines groups; if the loop
                is no reduction of blocks by `add` of as many iterations as a group has elements, or if
                its body is another one.
        """

    def tiles(self, loop: str, order: str = "any") -> Self:
        """Turn the iterations of a loop into tiles that threads execute.

            for i: body  ->  for i tiles: body

        With the order `alternating` each call of the kernel runs the tiles in the opposite order of the
        call before, and each thread those that it ran then. So a call begins with what the caches still
        hold of an operand that is larger than they are.

        Args:
            loop: the loop whose iterations become tiles.
            order: whether the order of tiles is alternating: `any` or `alternating`.

        Raises:
            ScheduleError: if the iterations are not independent, if the loop is inside of a
                reduction, or inside of or around another loop of tiles, or if there is no such order.
        """

    def unroll(self, loop: str, factor: int | None = None) -> Self:
        """Give a reduction `factor` accumulators, or unroll another loop completely.

            s = reduce k: s + x[k]  ->  s = (reduce k in steps of 4: s0 + x[k], s1 + x[k + 1], ...)

        The accumulators are combined after the loop, which reorders the sum. Only an attribute changes:
        the copies are made when the loop is lowered.

        Args:
            loop: the loop that is unrolled.
            factor: the number of accumulators of a reduction; another loop is unrolled completely.

        Raises:
            ScheduleError: for a reduction with the combiner `custom`, and for another loop whose size
                is unknown or not `factor`.
        """

    def vectorize(self, *loops: str) -> Self:
        """Turn loops into axes of blocks, all those of a nest at once, the lanes last.

            for i1 to 12: for j1 to 32: s = reduce k: fma(x[i1, k], w[k, j1], acc); y[i1, j1] = s
            ->  s : 12x32 = reduce k: fma(x[s0, k] : 12x1, w[k, s1] : 1x32, acc); y[s0, s1] = s

        A loop bounded by a constant and something else gets that many lanes, of which only some are
        valid. The inner half of a split reduction becomes partial accumulators, which a `loop.fold`
        combines after the outer half.

        Loops that are not inside of one another, such as those of the nests that a split makes for
        what is left, become axes of different blocks. If another loop around them becomes an axis too,
        those of one length become one axis.

        Args:
            loops: the loops, in the order of the axes; the last one runs along the lanes.

        Raises:
            ScheduleError: naming the loop that cannot be an axis, and why.
        """
