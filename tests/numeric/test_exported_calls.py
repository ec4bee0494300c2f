"""Calls of exported models from C: whatever is wrong is an error code and a message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stepwell as sw

from .c_programs import HERE, compiled_c, needs_compiler
from .exported_models import gcn


@pytest.fixture(scope="module")
def gcn_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sw.export(gcn(), tmp_path_factory.mktemp("gcn"), name="gcn").folder


BEGINNING = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcn.h"

static int32_t indptr[] = {0, 1, 2, 3}, indices[] = {0, 1, 2};
static float values[3] = {1, 2, 3}, x[3 * 13 + 1], y[3 * 7 + 1];
static gcn_inputs inputs;
static gcn_outputs outputs;

static void begin(void) {
  inputs = (gcn_inputs){{indptr, indices, values, {3, 3}, 3}, {x, {3, 13}}};
  outputs = (gcn_outputs){{y, {3, 7}}};
  indptr[0] = 0; indptr[1] = 1; indices[2] = 2;
}

static int64_t held;
static void *allocate(void *state, uint64_t alignment, uint64_t bytes) {
  int64_t *left = state;
  if ((*left)-- <= 0) return NULL;
  held += bytes;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void release(void *state, void *memory, uint64_t bytes) {
  (void)state;
  held -= bytes;
  free(memory);
}
static void *crooked(void *state, uint64_t alignment, uint64_t bytes) {
  (void)state;
  return (char *)malloc(bytes + alignment) + 1;
}
static void lost(void *state, void *memory, uint64_t bytes) {
  (void)state; (void)memory; (void)bytes;
}

static void say(int32_t code) { printf("%d %s\\n", code, code ? gcn_last_error() : ""); }
#define CASE(change) begin(); change; say(gcn_run(program, &inputs, &outputs));
"""

CASES = {
    "": "0 ",
    "inputs.graph.indptr = NULL": '1 input "graph", indptr: is null',
    "inputs.features.data = NULL": '1 input "features": is null',
    "outputs.output.data = NULL": '1 output "output": is null',
    "inputs.features.shape[0] = 4": '2 input "features": dimension "nodes" differs from that of '
    '"graph", expected 3, got 4',
    "inputs.graph.shape[1] = 4": '2 input "graph": dimension "nodes" differs from that of "graph", '
    "expected 3, got 4",
    "inputs.features.shape[1] = 12": '2 input "features": wrong size of dimension 1, expected 13, '
    "got 12",
    "inputs.graph.shape[0] = -1": '2 input "graph": wrong size of dimension 0, expected 0 to '
    "140737488355328, got -1",
    "inputs.graph.entries = INT64_MAX": '2 input "graph": wrong number of stored entries, expected '
    "0 to 140737488355328, got 9223372036854775807",
    "inputs.graph.entries = 4": '6 input "graph": indptr does not end at the number of entries, '
    "expected 4, got 3",
    "indices[2] = 3": '6 input "graph": column index out of range at entry 2, got 3',
    "indices[2] = -1": '6 input "graph": column index out of range at entry 2, got -1',
    "indptr[0] = 1": '6 input "graph": indptr does not start at 0, got 1',
    "indptr[1] = 3": '6 input "graph": indptr decreases after row 1, got 3',
    "outputs.output.shape[0] = 2": '2 output "output": wrong size of dimension 0, expected 3, '
    "got 2",
    "outputs.output.data = x": '4 output "output": overlaps input "features"',
    "outputs.output.data = values": '4 output "output": overlaps input "graph", values',
    "inputs.features.data = (float *)((char *)x + 1)": '3 input "features": is not aligned to 4 '
    "bytes",
    "outputs.output.data = (float *)((char *)y + 2)": '3 output "output": is not aligned to 4 '
    "bytes",
}


def messages() -> str:
    """The part of a program that makes all calls in `CASES`, and some without buffers."""
    cases = "\n  ".join(f"CASE({change})" for change in CASES)
    return f"""
int main(void) {{
  gcn *program = gcn_create(NULL);
  {cases}
  begin();
  say(gcn_run(NULL, &inputs, &outputs));
  say(gcn_run(program, NULL, &outputs));
  say(gcn_run(program, &inputs, NULL));
  say(gcn_shapes(NULL, &outputs));
  say(gcn_shapes(&inputs, NULL));
  inputs.graph.shape[0] = 5;
  say(gcn_shapes(&inputs, &outputs));
  memset(&inputs, 0, sizeof inputs);
  inputs.features.shape[1] = 13;
  say(gcn_shapes(&inputs, &outputs));
  printf("%d %d\\n", (int)outputs.output.shape[0], (int)outputs.output.shape[1]);
  gcn_destroy(program);
  gcn_destroy(NULL);
  return 0;
}}
"""


@needs_compiler
def test_bad_calls_have_codes_and_messages(gcn_folder: Path) -> None:
    found = HERE.run(compiled_c(gcn_folder, BEGINNING + messages())).splitlines()
    assert found[: len(CASES)] == list(CASES.values())
    assert found[len(CASES) :] == [
        "1 program: is null",
        *("1 inputs: is null", "1 outputs: is null") * 2,
        '2 input "graph": dimension "nodes" differs from that of "graph", expected 5, got 3',
        "0 ",
        "0 7",
    ]


@needs_compiler
def test_memory_comes_from_the_hooks_of_the_caller(gcn_folder: Path) -> None:
    """The allocator fails at each of its calls in turn, or returns unaligned memory."""
    main = """
int main(void) {
  int64_t left;
  gcn_allocator own = {allocate, release, &left}, wrong = {crooked, lost, NULL}, none = {0};
  for (int64_t most = 0; most < 4; most++) {
    left = most;
    gcn *program = gcn_create(&own);
    if (!program) { say(-1); continue; }
    CASE(;)
    left = 8;
    CASE(;)
    gcn_destroy(program);
    printf("%d %d\\n", (int)(8 - left), (int)held);
  }
  if (!gcn_create(&wrong)) say(-1);
  if (!gcn_create(&none)) say(-1);
  return 0;
}
"""
    found = HERE.run(compiled_c(gcn_folder, BEGINNING + main)).splitlines()
    arena = next(line for line in found if "arena" in line)
    assert re.fullmatch(r"5 call: not enough memory for an arena of \d+ bytes", arena)
    assert found == [
        "-1 create: not enough memory",
        *("5 call: not enough memory", "0 ", "2 0"),
        *(arena, "0 ", "1 0"),
        *("0 ", "0 ", "0 0"),
        "-1 create: not enough memory",
        "-1 allocator: a function is null",
    ]


@needs_compiler
def test_threads_may_call_one_program(gcn_folder: Path) -> None:
    main = """
#include <pthread.h>
static gcn *program;

static void *work(void *number) {
  float table[3 * 13], own[3 * 7], first[3 * 7];
  for (int i = 0; i < 3 * 13; i++) table[i] = (float)(i % 5) + *(int *)number;
  for (int i = 0; i < 200000; i++) {
    gcn_inputs in = {{indptr, indices, values, {3, 3}, 3}, {table, {3, 13}}};
    gcn_outputs out = {{own, {3, 7}}};
    int wrong = 10 * i + *(int *)number;
    if (i % 3) in.features.shape[0] = wrong;
    int32_t code = gcn_run(program, &in, &out);
    char text[200];
    sprintf(text, "input \\"features\\": dimension \\"nodes\\" differs from that of \\"graph\\", "
                  "expected 3, got %d", wrong);
    if (i % 3 ? code != 2 || strcmp(text, gcn_last_error()) : code != 0) return number;
    if (!i) memcpy(first, own, sizeof own);
    if (memcmp(first, own, sizeof own)) return number;
  }
  return NULL;
}

int main(void) {
  program = gcn_create(NULL);
  begin();
  pthread_t threads[4];
  int numbers[] = {0, 1, 2, 4};
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &numbers[i]);
  void *failed = NULL, *result;
  for (int i = 0; i < 4; i++) { pthread_join(threads[i], &result); if (result) failed = result; }
  gcn_destroy(program);
  return failed != NULL;
}
"""
    HERE.run(compiled_c(gcn_folder, "#define _DEFAULT_SOURCE\n" + BEGINNING + main, "-pthread"))
