/* Finds and loads oneDNN: see dnnl.h. */
#include "dnnl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifndef RL_ONEDNN_FILE
#define RL_ONEDNN_FILE "" /* where scripts/setup.sh puts it; it may not be there */
#endif

static void *open_library(const char *path) {
    return *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
}

static void *find_library(void) {
    const char *named = getenv("RELAYOUT_ONEDNN");
    if (named) return open_library(named);
    void *lib = open_library("libdnnl.so.3");
    return lib ? lib : open_library(RL_ONEDNN_FILE);
}

/* A data pointer becomes one to a function by its bytes: ISO C has no cast for it. */
static bool find_function(void *library, const char *name, void *to) {
    void *p = dlsym(library, name);
    memcpy(to, &p, sizeof p);
    return p != NULL;
}

bool rl_dnnl_load(rl_dnnl *d) {
    bool all = true;
    memset(d, 0, sizeof *d);
    d->library = find_library();
    if (!d->library) return false;
#define F(result, name, parameters) all = all && find_function(d->library, "dnnl_" #name, &d->name);
    RL_DNNL_FUNCTIONS(F)
#undef F
    find_function(d->library, "omp_set_num_threads", &d->omp_set_num_threads);
    find_function(d->library, "GOMP_parallel", &d->gomp_parallel);
    return all && d->version()->major == 3;
}
