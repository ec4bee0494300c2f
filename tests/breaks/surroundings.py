"""Mistakes around the compiler: the call, importers, the interpreter, files, distribution."""

from __future__ import annotations

from .mistakes import Break

SURROUNDINGS = (
    Break(
        "an argument that is larger than its symbol or the program says is passed on",
        "backends/llvm/boundary/reader.ll",
        "%same = icmp eq i64 %wanted, %size",
        "%same = icmp sle i64 %wanted, %size",
        "tests/unit/test_call_boundary.py::test_other_matrices",
    ),
    Break(
        "a result that begins before an argument and ends in it counts as apart",
        "backends/llvm/boundary/results.ll",
        "%after = icmp ult i64 %other_start, %end",
        "%after = icmp ule i64 %other_start, %start",
        "tests/unit/test_call_boundary.py::test_out_may_be_an_argument",
    ),
    Break(
        "every result in the arena is read from its beginning",
        "backends/llvm/boundary/results.ll",
        "%from = getelementptr i8, ptr %arena, i64 %offset",
        "%from = getelementptr i8, ptr %arena, i64 0",
        "tests/unit/test_call_boundary.py::test_results_of_sizes_without_an_upper_bound",
    ),
    Break(
        "a matrix may have more column indices than values",
        "backends/llvm/boundary/arguments.ll",
        "%right_indices = icmp eq i64 %index_count, %entries",
        "%right_indices = icmp sge i64 %index_count, %entries",
        "tests/numeric/test_wrong_arguments.py::test_each_kind_of_arrays",
    ),
    Break(
        "an array in column-major order is passed on as it is",
        "core/arguments.py",
        "if flags.c_contiguous and flags.aligned:",
        "if flags.forc and flags.aligned:",
        "tests/numeric/test_bad_input.py::test_arrays_of_every_layout",
    ),
    Break(
        "an index that is too large for the narrower integers is cut",
        "core/arguments.py",
        "if low < limits.min or high > limits.max:",
        "if low < limits.min:",
        "tests/unit/test_arguments.py::test_refusals_of_three_arrays",
    ),
    Break(
        "a later argument may have a larger size of a symbol",
        "core/arguments.py",
        "if found.setdefault(name, size) != size:",
        "if found.setdefault(name, size) > size:",
        "tests/numeric/test_bad_input.py::test_symbols_that_disagree",
    ),
    Break(
        "sources and targets of an edge list are exchanged",
        "core/edge_index.py",
        "sources, targets = edges",
        "targets, sources = edges",
        "tests/unit/test_edge_index.py::test_an_edge_list_is_its_graph",
    ),
    Break(
        "an edge may end at the node after the last",
        "core/edge_index.py",
        "nodes.max() < count):",
        "nodes.max() <= count):",
        "tests/unit/test_edge_index.py::test_lists_that_do_not_fit",
    ),
    Break(
        "a result is written over an argument that lies in part of its memory",
        "runtime/results.py",
        "np.empty_like(one) if any(np.may_share_memory(one, other) for other in read) else one",
        "np.empty_like(one) if any(one is other for other in read) else one",
        "tests/unit/test_call_boundary.py::test_out_may_be_an_argument",
    ),
    Break(
        "a child of a fork counts the threads of its parent as its own",
        "backends/llvm/thread_pool.ll",
        "store i64 0, ptr @workers, align 8",
        "store i64 %ranges, ptr @workers, align 8",
        "tests/unit/test_thread_pool.py::test_child_of_a_fork_has_threads_of_its_own",
    ),
    Break(
        "a tile that has tiles skips the first of them",
        "backends/llvm/thread_pool.ll",
        "%done = phi i64 [ 0, %entry ], [ %following, %run ]",
        "%done = phi i64 [ 1, %entry ], [ %following, %run ]",
        "tests/unit/test_thread_pool.py::test_tiles_may_have_tiles",
    ),
    Break(
        "an attribute that a conversion does not read is dropped without a word",
        "frontends/onnx/nodes.py",
        'self._read = {"consumed_inputs"}',
        "self._read = set(attributes)",
        "tests/unit/test_onnx_import.py::test_everything_unsupported_is_reported_at_once",
    ),
    Break(
        "the padding at the end of an image is taken for that at its beginning",
        "frontends/onnx/ops_window.py",
        "return [replace(a, low=low, high=high) for",
        "return [replace(a, low=high, high=low) for",
        "tests/numeric/test_onnx_operators.py::test_conv",
    ),
)
