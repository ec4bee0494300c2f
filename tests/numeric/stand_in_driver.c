/* A stand-in for NVIDIA's driver: the functions that Stepwell calls, over memory of the host.

   Addresses on the device are not those of the host, memory begins with rubbish, and errors of
   kernels are reported when somebody waits for them, after which the device is lost: as by a real
   driver. Kernels are executed by a function that the test gives. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef CUDA_HEADER
#include <cuda.h>
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option;
typedef uint64_t CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream;
#define CUDAAPI
#endif

enum { MOST = 64, FIRST = 0x70 };
typedef struct { uint64_t device; char *host; size_t size; } Allocation;
typedef struct { char *text; int loaded; } Module;
typedef struct { Module *module; char *name; } Function;
typedef int (*Launch)(const char *, const char *, const unsigned *, unsigned, void **);

static struct {
    Allocation allocations[MOST];
    uint64_t next;
    long live, modules, room, allocated, copies_in, copies_back, copied_in, copied_back;
    int capability, most_blocks, lost, pending, code;
    char failing[64];
    Launch launch;
} state;
static __thread int depth;

/* One thread at a time is in the driver, also while a kernel runs. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void release(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
#define ALONE \
    __attribute__((cleanup(release))) pthread_mutex_t *held = &mutex; \
    pthread_mutex_lock(held)

void stand_in_reset(Launch launch) {
    memset(&state, 0, sizeof state);
    state.next = (uint64_t)FIRST << 32;
    state.room = 1L << 40;
    state.capability = 90;
    state.most_blocks = 1 << 30;
    state.launch = launch;
}
void stand_in_device(int capability, int most_blocks, long room) {
    state.capability = capability;
    state.most_blocks = most_blocks;
    state.room = room;
}
void stand_in_fail(const char *function, int code) {
    strncpy(state.failing, function, sizeof state.failing - 1);
    state.code = code;
}
long stand_in_live(void) { return state.live; }
long stand_in_modules(void) { return state.modules; }
long stand_in_allocated(void) { return state.allocated; }
long stand_in_copies_in(void) { return state.copies_in; }
long stand_in_copies_back(void) { return state.copies_back; }
long stand_in_copied_in(void) { return state.copied_in; }
long stand_in_copied_back(void) { return state.copied_back; }
int stand_in_depth(void) { return depth; }
int stand_in_allocation(int n, uint64_t *device, char **host, size_t *size) {
    *device = state.allocations[n].device;
    *host = state.allocations[n].host;
    *size = state.allocations[n].size;
    return n < MOST - 1;
}

static int failed(const char *function, int needs_context) {
    if (state.lost) return state.lost;
    if (strcmp(function, state.failing) == 0) {
        if (state.code >= 700 && state.code < 720 && state.code != 701) state.lost = state.code;
        return state.code;
    }
    return needs_context && depth == 0 ? 201 : 0;
}
#define CHECK(needs_context) \
    do { int code = failed(__func__, needs_context); if (code) return code; } while (0)

static char *host_of(CUdeviceptr device, size_t size) {
    for (int n = 0; n < MOST; n++) {
        Allocation *one = &state.allocations[n];
        if (one->host && device >= one->device && device + size <= one->device + one->size)
            return one->host + (device - one->device);
    }
    return NULL;
}

CUresult CUDAAPI cuInit(unsigned int flags) { CHECK(0); return flags; }
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text) {
    *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_TEST";
    return error == 999 ? 1 : 0;
}
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text) {
    *text = error == 2 ? "out of memory" : "something went wrong";
    return error == 999 ? 1 : 0;
}
CUresult CUDAAPI cuDeviceGetCount(int *count) { CHECK(0); *count = 1; return 0; }
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    CHECK(0);
    *device = 7;
    return ordinal == 0 ? 0 : 101;
}
CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device) {
    CHECK(0);
    strncpy(name, "Stand-in", length);
    return device == 7 ? 0 : 101;
}
CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    CHECK(0);
    if (device != 7) return 101;
    if (attribute == 5) *value = state.most_blocks;
    else if (attribute == 75) *value = state.capability / 10;
    else if (attribute == 76) *value = state.capability % 10;
    else return 1;
    return 0;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CHECK(0);
    *context = (CUcontext)&state;
    return device == 7 ? 0 : 101;
}
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
    CHECK(0);
    if (context != (CUcontext)&state) return 201;
    depth++;
    return 0;
}
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context) {
    *context = (CUcontext)&state;
    depth--;
    return state.lost;
}
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                    CUjit_option *options, void **values) {
    ALONE;
    char *log = NULL;
    for (unsigned n = 0; n < count; n++)
        if (options[n] == 5) log = values[n];
    if (failed(__func__, 1) && log) strcpy(log, "ptxas said why\nat length");
    CHECK(1);
    Module *made = malloc(sizeof *made);
    made->text = strdup(image);
    *module = (CUmodule)made;
    state.modules++;
    return 0;
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    ALONE;
    CHECK(1);
    free(((Module *)module)->text);
    free(module);
    state.modules--;
    return 0;
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CHECK(1);
    if (!strstr(((Module *)module)->text, name)) return 500;
    Function *made = malloc(sizeof *made); /* Real ones are freed with their modules. */
    made->module = (Module *)module;
    made->name = strdup(name);
    *function = (CUfunction)made;
    return 0;
}
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *device, size_t size) {
    ALONE;
    CHECK(1);
    if (size == 0) return 1;
    if ((long)size > state.room) return 2;
    for (int n = 0; n < MOST; n++) {
        Allocation *one = &state.allocations[n];
        if (one->host) continue;
        one->device = state.next;
        one->size = size;
        one->host = aligned_alloc(256, (size + 255) / 256 * 256);
        memset(one->host, 0xA5, size);
        state.next += (size + 511) / 256 * 256;
        state.room -= size;
        state.live++;
        state.allocated++;
        *device = one->device;
        return 0;
    }
    return 2;
}
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr device) {
    ALONE;
    for (int n = 0; n < MOST; n++) {
        Allocation *one = &state.allocations[n];
        if (!one->host || one->device != device) continue;
        free(one->host);
        one->host = NULL;
        state.room += one->size;
        state.live--;
        return state.lost;
    }
    return 1;
}
CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    ALONE;
    CHECK(1);
    char *host = host_of(to, size);
    if (!host) return 1;
    memcpy(host, from, size);
    state.copies_in++;
    state.copied_in += size;
    return 0;
}
CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    ALONE;
    CHECK(1);
    if (state.pending) return state.lost = state.pending;
    char *host = host_of(from, size);
    if (!host) return 1;
    memcpy(to, host, size);
    state.copies_back++;
    state.copied_back += size;
    return 0;
}
CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                unsigned int gz, unsigned int bx, unsigned int by,
                                unsigned int bz, unsigned int shared, CUstream stream,
                                void **parameters, void **extra) {
    ALONE;
    CHECK(1);
    if (stream || extra || (int)gx > state.most_blocks) return 1;
    unsigned shape[6] = {gx, gy, gz, bx, by, bz};
    Function *called = (Function *)function;
    if (!state.pending)
        state.pending = state.launch(called->module->text, called->name, shape, shared, parameters);
    return 0;
}
CUresult CUDAAPI cuCtxSynchronize(void) {
    ALONE;
    int code = failed(__func__, 1);
    return code ? code : (state.lost = state.pending);
}
