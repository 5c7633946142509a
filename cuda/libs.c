/* NVIDIA's libraries, looked for with dlopen: see libs.h. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libs_internal.h"

/* Adds to what rl_libs_say says. */
__attribute__((format(printf, 2, 3))) static void say(rl_libs *l, const char *fmt, ...) {
    size_t n = strlen(l->said);
    va_list ap;
    if (n) n += (size_t)snprintf(l->said + n, sizeof l->said - n, ", ");
    if (n >= sizeof l->said) return;
    va_start(ap, fmt);
    vsnprintf(l->said + n, sizeof l->said - n, fmt, ap);
    va_end(ap);
}

static bool find(void *file, const char *name, void *field) {
    void *f = dlsym(file, name);
    if (f) memcpy(field, &f, sizeof f);
    return f != NULL;
}

/* Stays loaded until the program ends: what these libraries do at their end wants them there. NULL: why is said. */
static void *open_file(rl_libs *l, const char *name) {
    void *file = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *why = file ? NULL : dlerror();
    if (!file) say(l, "no %s", why ? why : name);
    return file;
}

/* Why a file that was opened does not serve; NULL: it does. */
static const char *start_lt(rl_libs *l) {
    bool all = true;
#define F(name) all = find(l->lt_file, #name, &l->name) && all;
    RL_LT_FUNCTIONS(F)
#undef F
    if (!all) return "it lacks a function";
    cublasStatus_t s = l->cublasLtCreate(&l->lt);
    if (s == CUBLAS_STATUS_SUCCESS) return NULL;
    l->lt = NULL;
    return l->cublasLtGetStatusString(s);
}

/* The newest that serves: one that is newer than the driver may open, and then not start. */
static void open_lt(rl_libs *l) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    const char *why = NULL;
    for (size_t i = 0; i < RL_LEN(names) && !l->lt; i++) {
        void *file = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!file) continue;
        if (l->lt_file) dlclose(l->lt_file);
        l->lt_file = file;
        why = start_lt(l);
    }
    if (l->lt) say(l, "cuBLASLt %zu", l->cublasLtGetVersion());
    else if (why) say(l, "no cuBLASLt: %s", why);
    else l->lt_file = open_file(l, names[RL_LEN(names) - 1]); /* which says why there is none */
}

static void open_dnn(rl_libs *l) {
    bool all = true;
    l->dnn_file = open_file(l, "libcudnn.so.9");
    if (!l->dnn_file) return;
#define F(name) all = find(l->dnn_file, #name, &l->name) && all;
    RL_DNN_FUNCTIONS(F)
#undef F
#define F(name) find(l->dnn_file, #name, &l->name);
    RL_DNN_TRANSFORM_FUNCTIONS(F)
#undef F
    if (!all) {
        say(l, "cuDNN lacks a function");
        return;
    }
    cudnnStatus_t s = l->cudnnCreate(&l->dnn);
    if (s != CUDNN_STATUS_SUCCESS) l->dnn = NULL;
    else if ((s = l->cudnnSetStream(l->dnn, rl_gpu_stream(l->g))) != CUDNN_STATUS_SUCCESS) {
        l->cudnnDestroy(l->dnn);
        l->dnn = NULL;
    }
    if (l->dnn) say(l, "cuDNN %zu", l->cudnnGetVersion());
    else say(l, "no cuDNN: %s", l->cudnnGetErrorString(s));
}

const char *rl_libs_say(const rl_libs *l) {
    return l ? l->said : "no memory for cuBLASLt and cuDNN";
}

rl_libs *rl_libs_open(rl_gpu *g) {
    rl_libs *l = calloc(1, sizeof *l);
    const char *tf32 = getenv("RELAYOUT_TF32");
    if (!l) return NULL;
    l->g = g;
    const char *wanted = getenv("RELAYOUT_CUDA_LIBRARIES");
    if (wanted && strcmp(wanted, "0") == 0) {
        say(l, "own kernels only, as RELAYOUT_CUDA_LIBRARIES=0 says");
        return l;
    }
    l->tf32 = tf32 && strcmp(tf32, "1") == 0;
    open_lt(l);
    open_dnn(l);
    return l;
}

void rl_libs_close(rl_libs *l) {
    if (!l) return;
    rl_dnn_forget(l);
    rl_lt_forget(l);
    if (l->pretended) l->cudnnBackendDestroyDescriptor(l->pretended);
    if (l->dnn) l->cudnnDestroy(l->dnn);
    if (l->lt) l->cublasLtDestroy(l->lt);
    if (l->dnn_file) dlclose(l->dnn_file);
    if (l->lt_file) dlclose(l->lt_file);
    free(l);
}
