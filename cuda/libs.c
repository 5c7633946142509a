/* NVIDIA's libraries, looked for with dlopen: see libs.h. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "libs_internal.h"

enum { WORKSPACE = 32 << 20 };

static bool find(void *file, const char *name, void *field) {
    void *f = dlsym(file, name);
    if (f) memcpy(field, &f, sizeof f);
    return f != NULL;
}

static void open_lt(rl_libs *l) {
    bool all = true;
    l->lt_file = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!l->lt_file) l->lt_file = dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!l->lt_file) return;
#define F(name) all = find(l->lt_file, #name, &l->name) && all;
    RL_LT_FUNCTIONS(F)
#undef F
    if (!all || l->cublasLtCreate(&l->lt) != CUBLAS_STATUS_SUCCESS) l->lt = NULL;
}

static void open_dnn(rl_libs *l) {
    bool all = true;
    l->dnn_file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!l->dnn_file) return;
#define F(name) all = find(l->dnn_file, #name, &l->name) && all;
    RL_DNN_FUNCTIONS(F)
#undef F
    if (!all || l->cudnnCreate(&l->dnn) != CUDNN_STATUS_SUCCESS) l->dnn = NULL;
    if (l->dnn && l->cudnnSetStream(l->dnn, rl_gpu_stream(l->g)) != CUDNN_STATUS_SUCCESS) {
        l->cudnnDestroy(l->dnn);
        l->dnn = NULL;
    }
}

rl_libs *rl_libs_open(rl_gpu *g) {
    rl_libs *l = calloc(1, sizeof *l);
    const char *tf32 = getenv("RELAYOUT_TF32");
    if (!l) return NULL;
    l->g = g;
    l->tf32 = tf32 && strcmp(tf32, "1") == 0;
    l->workspace = rl_gpu_alloc(g, WORKSPACE);
    l->nworkspace = l->workspace ? WORKSPACE : 0;
    open_lt(l);
    open_dnn(l);
    return l;
}

void rl_libs_close(rl_libs *l) {
    if (!l) return;
    rl_dnn_forget(l);
    if (l->dnn) l->cudnnDestroy(l->dnn);
    if (l->lt) l->cublasLtDestroy(l->lt);
    if (l->workspace) rl_gpu_free(l->g, l->workspace, WORKSPACE);
    if (l->dnn_file) dlclose(l->dnn_file);
    if (l->lt_file) dlclose(l->lt_file);
    free(l);
}
