"""Local buffers of kernels of exported models: memory from the hooks of the caller, or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import floats, same
from .c_programs import HERE, compiled_c, needs_compiler, results

MESSAGE = "5 call: not enough memory for a local array of a kernel"


@sw.kernel
def there_and_back(k: Any, x: Any, y: Any) -> None:
    """Each row reversed, by two buffers whose size is known in the call."""
    n = x.shape[1]
    with k.loops(x.shape[0]) as i:
        row = k.local(n, "f32")
        with k.loops(n) as j:
            row[j] = x[i, j] * 2
        with k.serial(2):
            copy = k.local(n, "f32")
            with k.loops(n) as j:
                copy[j] = row[n - 1 - j]
            with k.loops(n) as j:
                y[i, j] = copy[j] + 1.0


def rows() -> sw.Module:
    b = sw.Builder("rows")
    x = b.input("x", ("n", "m"), "f32")
    (y,) = b.call_kernel(there_and_back, x, results=[sw.TensorSpec(("n", "m"))])
    b.output(y, name="y")
    return b.module()


def expected(x: np.ndarray) -> np.ndarray:
    return 2 * x[:, ::-1] + 1


BEGINNING = """\
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rows.h"

enum { N = 40, M = 300 };
static float x[N * M];
static atomic_long left, held, calls;

static void *allocate(void *state, uint64_t alignment, uint64_t bytes) {
  (void)state;
  if (atomic_fetch_sub(&left, 1) <= 0) return NULL;
  atomic_fetch_add(&calls, 1);
  atomic_fetch_add(&held, (long)bytes);
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void release(void *state, void *memory, uint64_t bytes) {
  (void)state;
  atomic_fetch_sub(&held, (long)bytes);
  free(memory);
}
static rows_allocator own = {allocate, release, NULL};

static int32_t run(rows *program, float *y) {
  rows_inputs inputs = {{x, {N, M}}};
  rows_outputs outputs = {{y, {N, M}}};
  return rows_run(program, &inputs, &outputs);
}
static int is_right(const float *y) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++)
      if (y[i * M + j] != 2 * x[i * M + M - 1 - j] + 1) return 0;
  return 1;
}
static void begin(void) { for (int i = 0; i < N * M; i++) x[i] = (float)(i % 97); }
"""


TURNS = """
int main(void) {
  static float y[N * M];
  begin();
  left = 1000000;
  rows *program = rows_create(&own);
  if (run(program, y) || !is_right(y)) return 1;
  long kept = held, first = calls;
  if (run(program, y)) return 2;
  long of_a_call = calls - first;
  printf("%d\\n", of_a_call >= 2 * N);
  for (long most = 0; most <= of_a_call; most += most < 8 ? 1 : 7) {
    left = most;
    int32_t code = run(program, y);
    if (code != (most < of_a_call ? 5 : 0)) { printf("%ld %d\\n", most, code); return 3; }
    if (code && !most) printf("%d %s\\n", code, rows_last_error());
    if (held != kept) return 4;
    left = 1000000;
    memset(y, 0, sizeof y);
    if (run(program, y) || !is_right(y) || held != kept) return 5;
  }
  rows_destroy(program);
  printf("%ld\\n", held);
  return 0;
}
"""
"""The allocator has no memory at each call of a kernel in turn; after that, a call succeeds."""


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "threads"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    return sw.export(rows(), made, threads=request.param).folder


@needs_compiler
def test_results_are_those_in_python(folder: Path) -> None:
    x = floats(33, 70)
    (found,) = results(folder, rows(), [x], [expected(x)], HERE, "-pthread")
    same(found, expected(x))


@needs_compiler
def test_kernels_take_memory_from_the_hooks(folder: Path) -> None:
    program = compiled_c(folder, BEGINNING + TURNS, "-pthread")
    assert HERE.run(program).splitlines() == ["1", MESSAGE, "0"]


@needs_compiler
def test_calls_at_the_same_time_have_memory_of_their_own(folder: Path) -> None:
    """Of programs with hooks and without, on threads of the caller: some calls have no memory."""
    main = """
static rows *programs[2];
static atomic_int failures;

static void *work(void *given) {
  int *number = given;
  float *y = malloc(sizeof(float) * N * M);
  for (int i = 0; i < 300; i++) {
    int32_t code = run(programs[*number % 2], y);
    if (code == 5 && *number % 2 == 0) failures++;
    else if (code || !is_right(y)) return number;
    if (*number == 0 && i % 10 == 0) left = 3000;
  }
  free(y);
  return NULL;
}

int main(void) {
  begin();
  left = 3000;
  programs[0] = rows_create(&own);
  programs[1] = rows_create(NULL);
  pthread_t threads[4];
  int numbers[] = {0, 1, 2, 3};
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &numbers[i]);
  void *wrong = NULL, *result;
  for (int i = 0; i < 4; i++) { pthread_join(threads[i], &result); if (result) wrong = result; }
  for (int i = 0; i < 2; i++) rows_destroy(programs[i]);
  printf("%d %ld\\n", failures > 0, held);
  return wrong != NULL;
}
"""
    program = compiled_c(folder, BEGINNING + main, "-pthread")
    assert HERE.run(program) == "1 0\n"


@needs_compiler
def test_no_memory_is_an_error_without_hooks(folder: Path) -> None:
    """The addresses of a process are fewer than the bytes of a buffer."""
    main = """
int main(void) {
  rows *program = rows_create(NULL);
  rows_inputs inputs = {{x, {1, 1}}};
  rows_outputs outputs = {{NULL, {1, 1}}};
  inputs.x.shape[1] = (int64_t)1 << 45;
  outputs.y.shape[1] = (int64_t)1 << 45;
  outputs.y.data = (float *)((uintptr_t)1 << 62);
  int32_t code = rows_run(program, &inputs, &outputs);
  printf("%d %s\\n", code, code ? rows_last_error() : "");
  return 0;
}
"""
    program = compiled_c(folder, BEGINNING + main, "-pthread", "-Wno-unused-variable")
    assert HERE.run(program).splitlines() == [MESSAGE]
