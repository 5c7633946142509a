/* relayout._core: the C API for __init__.py, which documents, checks and converts; here are only plain types.
 *
 * A model is (path, bytes, directory): one of the first two is None.  Options are a tuple in the order of OPTIONS below.  The interpreter
 * lock is released while the library works; its question whether to stop takes the lock for a moment, ten times a second, so that
 * Ctrl-C ends a call.  Whatever fails raises Failure(status, message), or what a callback raised. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <relayout.h>
#include <string.h>
#include <time.h>

static PyObject *failure;

/* ---- callbacks ---- */

typedef struct {
    PyThreadState *state; /* of the call, while the lock is released */
    PyObject *progress, *log; /* borrowed; NULL: none */
    double asked;
    int raised;
} host;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void call(host *h, PyObject *f, const char *format, int level, const char *text) {
    if (!f || h->raised) return;
    PyEval_RestoreThread(h->state);
    PyObject *r = level < 0 ? PyObject_CallFunction(f, format, text) : PyObject_CallFunction(f, format, level, text);
    h->raised = r == NULL;
    Py_XDECREF(r);
    h->state = PyEval_SaveThread();
}

static void on_progress(void *user, const char *step) { call(user, ((host *)user)->progress, "s", -1, step); }
static void on_log(void *user, rl_log_level level, const char *text) { call(user, ((host *)user)->log, "is", (int)level, text); }

static int on_stop(void *user) {
    host *h = user;
    double t = now();
    if (h->raised || t - h->asked < 0.1) return h->raised;
    h->asked = t;
    PyEval_RestoreThread(h->state);
    h->raised = PyErr_CheckSignals() != 0;
    h->state = PyEval_SaveThread();
    return h->raised;
}

/* ---- arguments ---- */

typedef struct {
    host h;
    rl_context context;
    rl_options o;
    const char **list[2];
} options;

static PyObject *raise_status(rl_status s, const char *message) {
    if (PyErr_Occurred()) return NULL; /* by a callback, or a signal */
    PyObject *args = Py_BuildValue("(is)", (int)s, message);
    if (args) PyErr_SetObject(failure, args);
    Py_XDECREF(args);
    return NULL;
}

static void drop_options(options *p) {
    PyMem_Free(p->list[0]);
    PyMem_Free(p->list[1]);
}

/* A tuple of str as a list that ends with NULL; its strings are the tuple's. */
static int strings_of(PyObject *tuple, const char ***out) {
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n < 0) return 0;
    *out = PyMem_Calloc((size_t)n + 1, sizeof **out);
    for (Py_ssize_t i = 0; *out && i < n; i++) {
        PyObject *bytes = PyTuple_GetItem(tuple, i);
        char *s; /* a byte 0 in it is a ValueError: what stands behind would be left out without a word */
        if (PyBytes_AsStringAndSize(bytes, &s, NULL) != 0) return 0;
        (*out)[i] = s;
    }
    return *out != NULL || (PyErr_NoMemory(), 0);
}

/* OPTIONS: target, objective, time_limit, max_memory, input_layouts, output_layouts, dims, input_shapes, threads, progress, log, external_data */
static int options_of(PyObject *tuple, options *p) {
    PyObject *dims, *shapes, *progress, *log;
    Py_ssize_t memory;
    memset(p, 0, sizeof *p);
    p->o.struct_size = sizeof p->o;
    p->context.struct_size = sizeof p->context;
    if (!PyArg_ParseTuple(tuple, "zzdnzzO!O!IOOz", &p->o.target, &p->o.objective, &p->o.time_limit, &memory, &p->o.input_layouts,
                          &p->o.output_layouts, &PyTuple_Type, &dims, &PyTuple_Type, &shapes, &p->o.threads, &progress, &log, &p->o.external_data)) return 0;
    p->o.max_memory = (size_t)memory;
    if (!strings_of(dims, &p->list[0]) || !strings_of(shapes, &p->list[1])) {
        drop_options(p);
        return 0;
    }
    p->o.dims = p->list[0];
    p->o.input_shapes = p->list[1];
    p->o.context = &p->context;
    p->h.progress = progress == Py_None ? NULL : progress;
    p->h.log = log == Py_None ? NULL : log;
    p->context.user = &p->h;
    p->context.stop = on_stop;
    if (p->h.progress) p->context.progress = on_progress;
    if (p->h.log) p->context.log = on_log;
    return 1;
}

static int model_of(PyObject *tuple, rl_model *m, const char **directory) {
    Py_ssize_t n = 0;
    const char *data = NULL;
    memset(m, 0, sizeof *m);
    if (!PyArg_ParseTuple(tuple, "zz#z", &m->path, &data, &n, directory)) return 0;
    m->data = data;
    m->nbyte = (size_t)n;
    return 1;
}

#define UNLOCKED(p, call)                                                                                            \
    do {                                                                                                             \
        (p)->h.state = PyEval_SaveThread();                                                                          \
        call;                                                                                                        \
        PyEval_RestoreThread((p)->h.state);                                                                          \
    } while (0)

/* ---- optimizing and explaining ---- */

/* optimize(model, out, options) -> (bytes or None, changed, JSON) */
static PyObject *core_optimize(PyObject *self, PyObject *args) {
    PyObject *model, *opt, *bytes = NULL, *made = NULL;
    const char *to;
    rl_model m;
    options p;
    rl_result r;
    rl_status s;
    void *out = NULL;
    char *report = NULL;
    size_t nout = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!zO!", &PyTuple_Type, &model, &to, &PyTuple_Type, &opt) || !options_of(opt, &p)) return NULL;
    if (!model_of(model, &m, &p.o.directory)) {
        drop_options(&p);
        return NULL;
    }
    p.o.report = &report;
    if (to) UNLOCKED(&p, s = rl_optimize_file(m.path, to, &p.o, &r));
    else UNLOCKED(&p, s = rl_optimize_bytes(m.data, m.nbyte, &out, &nout, &p.o, &r));
    drop_options(&p);
    if (s != RL_OK) made = raise_status(s, r.error);
    else if (to || (bytes = PyBytes_FromStringAndSize(out, (Py_ssize_t)nout)))
        made = Py_BuildValue("(Ois)", bytes ? bytes : Py_None, r.changed, report);
    Py_XDECREF(bytes);
    rl_free(out);
    rl_free(report);
    return made;
}

/* stats(model, options) -> JSON; explain(model, options, node) -> JSON */
static PyObject *describe(PyObject *args, int explains) {
    PyObject *model, *opt, *made;
    const char *node = NULL;
    rl_model m;
    options p;
    rl_result r;
    rl_status s;
    char *json = NULL;
    if (!PyArg_ParseTuple(args, "O!O!|z", &PyTuple_Type, &model, &PyTuple_Type, &opt, &node) || !options_of(opt, &p)) return NULL;
    if (!model_of(model, &m, &p.o.directory)) {
        drop_options(&p);
        return NULL;
    }
    if (explains) UNLOCKED(&p, s = rl_model_explain(&m, node, &p.o, &json, &r));
    else UNLOCKED(&p, s = rl_model_stats(&m, &p.o, &json, &r));
    drop_options(&p);
    made = s == RL_OK ? PyUnicode_FromString(json) : raise_status(s, r.error);
    rl_free(json);
    return made;
}

static PyObject *core_stats(PyObject *self, PyObject *args) { return (void)self, describe(args, 0); }
static PyObject *core_explain(PyObject *self, PyObject *args) { return (void)self, describe(args, 1); }

/* verify(a, b, options, runs, seed, rtol, atol) */
static PyObject *core_verify(PyObject *self, PyObject *args) {
    PyObject *model[2], *opt;
    rl_verify_options how = {.struct_size = sizeof how};
    unsigned long long seed;
    rl_model m[2];
    options p;
    rl_result r;
    rl_status s;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!IKdd", &PyTuple_Type, &model[0], &PyTuple_Type, &model[1], &PyTuple_Type, &opt, &how.runs, &seed,
                          &how.rtol, &how.atol) || !options_of(opt, &p)) return NULL;
    how.seed = seed;
    if (!model_of(model[0], &m[0], &p.o.directory) || !model_of(model[1], &m[1], &p.o.directory)) {
        drop_options(&p);
        return NULL;
    }
    UNLOCKED(&p, s = rl_model_verify(&m[0], &m[1], &how, &p.o, &r));
    drop_options(&p);
    if (s != RL_OK) return raise_status(s, r.error);
    Py_RETURN_NONE;
}

/* ---- sessions ---- */

typedef struct {
    rl_session *s;
    options p;
    PyObject *model, *opt; /* whose bytes and strings are used */
} session;

static void end_session(PyObject *capsule) {
    session *x = PyCapsule_GetPointer(capsule, "relayout.session");
    if (!x) return;
    rl_session_free(x->s);
    drop_options(&x->p);
    Py_XDECREF(x->model);
    Py_XDECREF(x->opt);
    PyMem_Free(x);
}

/* session(model, options) -> capsule */
static PyObject *core_session(PyObject *self, PyObject *args) {
    PyObject *model, *opt, *capsule;
    rl_model m;
    rl_result r;
    rl_status s;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &model, &PyTuple_Type, &opt)) return NULL;
    session *x = PyMem_Calloc(1, sizeof *x);
    if (!x) return PyErr_NoMemory();
    if (!(capsule = PyCapsule_New(x, "relayout.session", end_session))) {
        PyMem_Free(x);
        return NULL;
    }
    Py_INCREF(model);
    Py_INCREF(opt);
    x->model = model;
    x->opt = opt;
    if (!options_of(opt, &x->p) || !model_of(model, &m, &x->p.o.directory)) {
        Py_DECREF(capsule);
        return NULL;
    }
    UNLOCKED(&x->p, s = rl_session_new(&m, &x->p.o, &x->s, &r));
    if (s == RL_OK) return capsule;
    raise_status(s, r.error);
    PyObject *type, *value, *trace; /* the capsule's end must not see an exception */
    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF(capsule);
    PyErr_Restore(type, value, trace);
    return NULL;
}

static PyObject *dims_of(const rl_array *a) {
    if (a->rank == UINT32_MAX) Py_RETURN_NONE;
    PyObject *t = PyTuple_New(a->rank);
    for (uint32_t i = 0; t && i < a->rank; i++) PyTuple_SetItem(t, i, PyLong_FromLongLong(a->dim[i]));
    return t;
}

/* ports(session) -> ([(name, type, dims or None), ...] of inputs, the same of outputs) */
static PyObject *core_ports(PyObject *self, PyObject *capsule) {
    session *x = PyCapsule_GetPointer(capsule, "relayout.session");
    (void)self;
    if (!x) return NULL;
    PyObject *both[2] = {PyList_New(0), PyList_New(0)};
    for (int k = 0; k < 2 && both[0] && both[1]; k++) {
        const rl_array *a;
        for (uint32_t i = 0; (a = k ? rl_session_output(x->s, i) : rl_session_input(x->s, i)) != NULL; i++) {
            PyObject *dims = dims_of(a), *item = dims ? Py_BuildValue("(siN)", a->name, (int)a->dtype, dims) : NULL;
            if (item) PyList_Append(both[k], item);
            Py_XDECREF(item);
        }
    }
    if (both[0] && both[1] && !PyErr_Occurred()) return Py_BuildValue("(NN)", both[0], both[1]);
    Py_XDECREF(both[0]);
    Py_XDECREF(both[1]);
    return NULL;
}

typedef struct { void **p; size_t n; } blocks;
typedef struct { rl_array *a; Py_ssize_t n; blocks held; } inputs;

static void drop_inputs(inputs *in) {
    for (size_t i = 0; i < in->held.n; i++) PyMem_Free(in->held.p[i]);
    PyMem_Free(in->held.p);
}

/* p is freed with the inputs. */
static int hold(blocks *held, void *p) {
    void **more = p ? PyMem_Realloc(held->p, (held->n + 1) * sizeof *more) : NULL;
    if (!more) {
        PyMem_Free(p);
        return PyErr_NoMemory(), 0;
    }
    held->p = more;
    held->p[held->n++] = p;
    return 1;
}

static int arrays_of(PyObject *list, blocks *held, rl_array **out);

/* (name, type, dims, address, bytes); of strings a tuple of bytes is in place of the address, of a sequence a list of such tuples. */
static int array_of(PyObject *item, blocks *held, rl_array *a) {
    PyObject *dims, *data;
    Py_ssize_t nbyte;
    int type;
    const char **text = NULL;
    rl_array *items;
    if (!PyArg_ParseTuple(item, "ziO!On", &a->name, &type, &PyTuple_Type, &dims, &data, &nbyte)) return 0;
    a->dtype = type;
    a->rank = (uint32_t)PyTuple_Size(dims);
    a->nbyte = (size_t)nbyte;
    int64_t *dim = PyMem_Calloc(a->rank + 1u, sizeof *dim);
    if (!hold(held, dim)) return 0;
    for (uint32_t k = 0; k < a->rank; k++) dim[k] = PyLong_AsLongLong(PyTuple_GetItem(dims, k));
    a->dim = dim;
    if (PyTuple_Check(data)) {
        int ok = strings_of(data, &text);
        if ((text && !hold(held, text)) || !ok) return 0;
        a->data = text;
    } else if (PyList_Check(data)) {
        if (!arrays_of(data, held, &items)) return 0;
        a->data = items;
        a->nbyte = (size_t)PyList_Size(data) * sizeof *items;
    } else {
        a->data = PyLong_AsVoidPtr(data);
    }
    return !PyErr_Occurred();
}

static int arrays_of(PyObject *list, blocks *held, rl_array **out) {
    Py_ssize_t n = PyList_Size(list);
    *out = PyMem_Calloc((size_t)n + 1, sizeof **out);
    if (!hold(held, *out)) return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!array_of(PyList_GetItem(list, i), held, &(*out)[i])) return 0;
    return 1;
}

static int inputs_of(PyObject *list, inputs *in) {
    memset(in, 0, sizeof *in);
    in->n = PyList_Size(list);
    return arrays_of(list, &in->held, &in->a);
}

static PyObject *value_of(const rl_array *a);

static PyObject *items_of(const rl_array *a) {
    PyObject *l = PyList_New(0);
    for (size_t i = 0; l && i < a->nbyte / sizeof *a; i++) {
        PyObject *x = value_of((const rl_array *)a->data + i);
        if (x) PyList_Append(l, x);
        else Py_CLEAR(l);
        Py_XDECREF(x);
    }
    return l;
}

/* A bytearray, a list of bytes for strings, a list of values for a sequence, or None. */
static PyObject *data_of(const rl_array *a) {
    if (a->dtype == RL_ARRAY_NONE) Py_RETURN_NONE;
    if (a->dtype == RL_ARRAY_SEQUENCE) return items_of(a);
    if (a->dtype != 8) return PyByteArray_FromStringAndSize(a->data, (Py_ssize_t)a->nbyte);
    PyObject *l = PyList_New(0);
    for (size_t i = 0; l && i < a->nbyte / sizeof(char *); i++) {
        PyObject *s = PyBytes_FromString(((const char *const *)a->data)[i]);
        if (s) PyList_Append(l, s);
        Py_XDECREF(s);
    }
    return l;
}

static PyObject *value_of(const rl_array *a) {
    return Py_BuildValue("(iNN)", (int)a->dtype, dims_of(a), data_of(a));
}

static int numbers_of(PyObject *tuple, int64_t *out) {
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n && i < RL_DESC_RANK; i++) out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return !PyErr_Occurred();
}

/* bind(session, name, type, dims, strides, address, bytes); strides in elements; address None: no longer */
static PyObject *core_bind(PyObject *self, PyObject *args) {
    PyObject *capsule, *dims, *strides, *address;
    const char *name;
    int type;
    Py_ssize_t nbyte;
    int64_t dim[RL_DESC_RANK], stride[RL_DESC_RANK];
    rl_desc d;
    rl_error e = {""};
    rl_result r;
    (void)self;
    if (!PyArg_ParseTuple(args, "OsiO!O!On", &capsule, &name, &type, &PyTuple_Type, &dims, &PyTuple_Type, &strides, &address, &nbyte)) return NULL;
    session *x = PyCapsule_GetPointer(capsule, "relayout.session");
    if (!x || !numbers_of(dims, dim) || !numbers_of(strides, stride)) return NULL;
    void *p = address == Py_None ? NULL : PyLong_AsVoidPtr(address);
    rl_status s = rl_desc_strided(type, (uint32_t)PyTuple_Size(dims), dim, stride, 0, &d, &e);
    if (s != RL_OK) return raise_status(s, e.text);
    s = rl_session_bind(x->s, name, p ? &d : NULL, p, (size_t)nbyte, &r);
    if (s != RL_OK) return raise_status(s, r.error);
    Py_RETURN_NONE;
}

/* run(session, inputs, there) -> [(type, dims, data), ...], None for an output that is in its place (there: a byte for each that is not 0);
 * not twice at once */
static PyObject *core_run(PyObject *self, PyObject *args) {
    PyObject *capsule, *list, *there, *made = NULL;
    inputs in;
    const rl_array *out;
    rl_result r;
    rl_status s;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!S", &capsule, &PyList_Type, &list, &there)) return NULL;
    session *x = PyCapsule_GetPointer(capsule, "relayout.session");
    if (x && inputs_of(list, &in)) {
        x->p.h.raised = 0;
        UNLOCKED(&x->p, s = rl_session_run(x->s, in.a, (uint32_t)in.n, &out, &r));
        made = s == RL_OK ? PyList_New(0) : raise_status(s, r.error);
        for (uint32_t i = 0; made && rl_session_output(x->s, i); i++) {
            PyObject *item = i < PyBytes_Size(there) && PyBytes_AsString(there)[i] ? Py_BuildValue("") : value_of(&out[i]);
            if (item) PyList_Append(made, item);
            else Py_CLEAR(made);
            Py_XDECREF(item);
        }
    }
    if (x) drop_inputs(&in);
    return made;
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"optimize", core_optimize, METH_VARARGS, NULL}, {"stats", core_stats, METH_VARARGS, NULL},
    {"explain", core_explain, METH_VARARGS, NULL},   {"verify", core_verify, METH_VARARGS, NULL},
    {"session", core_session, METH_VARARGS, NULL},   {"ports", core_ports, METH_O, NULL},
    {"run", core_run, METH_VARARGS, NULL},           {"bind", core_bind, METH_VARARGS, NULL},
    {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "relayout._core", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) {
    PyObject *m = PyModule_Create(&module);
    if (!m) return NULL;
    failure = PyErr_NewException("relayout._core.Failure", NULL, NULL);
    Py_XINCREF(failure);
    if (!failure || PyModule_AddObject(m, "Failure", failure) != 0 || PyModule_AddStringConstant(m, "version", rl_version()) != 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
