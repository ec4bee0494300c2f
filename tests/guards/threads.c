/* Threads that run tiles and claim frames, to be built with the thread sanitizer.
 *
 * Cells and frames are written without atomics: the pool and the list of frames order all accesses.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100, ROUNDS = 300, CALLERS = 4, FRAMES = 3, WORDS = 8 };

typedef void (*Body)(void *context, long tile);

void stepwell_parallel_tiles(Body body, void *context, long tiles, long threads, long order);
long *stepwell_frame(long **head);
void give_back(long *frame);

extern const long busy_word, next_word;

typedef struct {
  long inner, threads, order, cells[MOST];
} Job;

static void fail(const char *what) {
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

static void count(void *context, long tile) { ((Job *)context)->cells[tile] += 1; }

static void count_all(void *context, long tile) {
  Job *outer = context, inner = {.inner = 0, .threads = outer->threads, .order = outer->order};
  stepwell_parallel_tiles(count, &inner, outer->inner, inner.threads, inner.order);
  for (long n = 0; n < outer->inner; ++n) outer->cells[tile] += inner.cells[n];
}

static void run(Body body, long inner) {
  static const long sizes[] = {2, 3, 17, MOST};
  for (int round = 0; round < ROUNDS; ++round) {
    long tiles = sizes[round % 4], each = inner ? inner : 1;
    Job job = {.inner = inner, .threads = 1 + round % 5, .order = round % 3};
    for (long times = 1; times <= 3; ++times) {
      stepwell_parallel_tiles(body, &job, tiles, job.threads, job.order);
      for (long n = 0; n < tiles; ++n)
        if (job.cells[n] != times * each) fail("a tile did not run once");
    }
  }
}

static long *first;

static void add_frame(void) {
  long *frame = calloc(WORDS, sizeof(long));
  frame[next_word] = (long)__atomic_load_n(&first, __ATOMIC_RELAXED);
  __atomic_store_n(&first, frame, __ATOMIC_RELEASE);
}

static void claim(void) {
  for (int round = 0; round < 20 * ROUNDS; ++round) {
    long *frame = stepwell_frame(&first);
    if (!frame) continue;
    frame[WORDS - 1] += 1;
    give_back(frame);
  }
}

static void *caller(void *argument) {
  (void)argument;
  run(count, 0);
  run(count_all, 7);
  claim();
  return NULL;
}

int main(void) {
  pthread_t callers[CALLERS];
  run(count, 0);
  run(count_all, 7);
  for (int n = 0; n < CALLERS; ++n) pthread_create(&callers[n], NULL, caller, NULL);
  for (int n = 0; n < FRAMES; ++n) add_frame();
  for (int n = 0; n < CALLERS; ++n) pthread_join(callers[n], NULL);
  for (long *frame = first; frame; frame = (long *)frame[next_word])
    if (frame[busy_word]) fail("a frame was not given back");
  puts("done");
  return 0;
}
