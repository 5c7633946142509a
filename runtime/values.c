/* Values to and from files, and random ones: see values.h. */
#include <math.h>
#include <string.h>

#include "../src/onnx_internal.h"
#include "kernels.h"
#include "values.h"

/* ---- reading ---- */

/* The graph keeps the types of tensors only: others are looked up in the file's ValueInfoProto. */
static rl_pb_kind kind_of(const rl_graph *g, rl_str name) {
    if (!g->onnx) return RL_PB_TENSOR;
    rl_wire w = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != GRAPH_INPUT) continue;
        rl_span given = rl_wire_part(f.body, VALUE_NAME), type = rl_wire_part(f.body, VALUE_TYPE);
        if (given.n != strlen(name) || !rl_same_bytes(given.p, name, given.n)) continue;
        rl_wire v = rl_wire_of(type);
        for (rl_field k; rl_wire_next(&v, &k);)
            if (k.type == RL_WIRE_LEN && k.number != TYPE_DENOTATION) return (rl_pb_kind)k.number;
    }
    return RL_PB_TENSOR;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

rl_status rl_value_read(rl_rt *rt, rl_graph *g, rl_value input, const char *path, rl_tensor *out) {
    rl_span bytes;
    RL_TRY(rl_file_map(rt->ctx, path, (uint64_t)1 << 40, &bytes, NULL));
    jmp_buf outer;
    memcpy(&outer, &rt->ctx->oom, sizeof outer);
    if (setjmp(rt->ctx->oom)) { /* unmaps, and goes on to the caller's place */
        rl_file_unmap(bytes);
        memcpy(&rt->ctx->oom, &outer, sizeof outer);
        rl_no_memory(rt->ctx);
    }
    rl_status s = ends_with(path, ".pb") ? rl_pb_read(rt, g, kind_of(g, rl_val(g, input)->name), bytes, out) : rl_npy_read(rt, path, bytes, out);
    memcpy(&rt->ctx->oom, &outer, sizeof outer);
    rl_file_unmap(bytes);
    return s;
}

/* ---- writing ---- */

static void put_name(rl_text *t, const char *name) {
    for (const char *s = name; *s; s++) {
        bool plain = (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || strchr("_-+=@,", *s)
                     || (*s == '.' && s != name);
        if (plain) rl_put_bytes(t, s, 1);
        else rl_put(t, "%%%02X", (unsigned)(unsigned char)*s);
    }
}

void rl_value_print(rl_rt *rt, const char *dir, const char *name, const rl_tensor *t, rl_text *path, rl_text *bytes) {
    rl_put(path, "%s/", dir);
    put_name(path, name);
    bool is_npy = rl_npy_print(rt, t, bytes);
    if (!is_npy) rl_pb_print(rt, t, bytes);
    rl_put(path, is_npy ? ".npy" : ".pb");
}

rl_status rl_value_write(rl_rt *rt, const char *dir, const char *name, const rl_tensor *t) {
    rl_arena tmp;
    rl_arena_init(&tmp, rt->ctx);
    rl_text path = {.mem = &tmp}, bytes = {.mem = &tmp};
    rl_value_print(rt, dir, name, t, &path, &bytes);
    rl_status s = rl_file_write(rt->ctx, path.p, bytes.p ? bytes.p : "", bytes.n);
    rl_arena_free(&tmp);
    return s;
}

/* ---- random values ---- */

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The least denormal; 0: no float that has values between whole numbers at random. */
static double least_of(rl_dtype t) {
    switch (t) {
    case RL_F32: return 0x1p-149;
    case RL_F64: return 0x1p-1074;
    case RL_F16: return 0x1p-24;
    case RL_BF16: return 0x1p-133;
    default: return 0;
    }
}

static bool keeps_numbers(rl_op op) {
    return op == RL_OP_Identity || op == RL_OP_Cast || op == RL_OP_Reshape || op == RL_OP_Flatten || op == RL_OP_Squeeze || op == RL_OP_Unsqueeze ||
           op == RL_OP_Transpose || op == RL_OP_Slice || op == RL_OP_Expand;
}

/* How many rows the Gathers have at least that v picks from, also where views and casts lie between. */
static uint64_t rows_picked(const rl_graph *g, rl_value v, uint32_t depth) {
    const rl_valinfo *x = rl_val(g, v);
    uint64_t rows = UINT64_MAX;
    for (uint32_t i = 0; depth && i < x->nuse; i++) {
        const rl_nodeinfo *n = rl_nod(g, x->use[i].node);
        uint32_t slot = x->use[i].slot;
        if (n->op == RL_OP_Gather && slot == 1) {
            const rl_valinfo *data = rl_val(g, n->in[0]);
            int64_t axis = rl_attr_int(n, "axis", 0);
            if (data->rank == RL_NORANK) continue;
            if (axis < 0) axis += data->rank;
            if (axis >= 0 && axis < data->rank && data->dim[axis] > 0) rows = RL_MIN(rows, (uint64_t)data->dim[axis]);
        } else if (slot == 0 && keeps_numbers(n->op) && rl_has(rl_out(n, 0))) {
            rows = RL_MIN(rows, rows_picked(g, n->out[0], depth - 1));
        }
    }
    return rows;
}

rl_status rl_value_random(rl_rt *rt, const rl_graph *g, rl_value input, const rl_hash *size, uint64_t seed, rl_tensor *out) {
    const rl_valinfo *v = rl_val(g, input);
    int64_t dim[RL_RANK] = {0};
    uint64_t state = seed ^ rl_hash_bytes(v->name, strlen(v->name));
    const char *unmade = v->dtype == RL_UNDEF ? "of a type that is not known; give --input"
                         : v->dtype == RL_STRING ? "of strings; give --input"
                         : v->rank == RL_NORANK || v->rank > RL_RANK ? "of a rank that is not known; give --input or --input-shape" : NULL;
    if (unmade) return rl_fail(rt->ctx, RL_EUSAGE, "input '%.100s': no random value %s", v->name, unmade);
    for (uint32_t i = 0; i < v->rank; i++)
        if (!size || !rl_dim_eval(rt->ctx, v->dim[i], size, &dim[i])) dim[i] = rl_dim_guess(rt->ctx, v->dim[i], 1);
    rl_tensor wide = rl_tensor_new(rt, RL_F64, v->rank, dim);
    double *x = rl_data(&wide);
    bool is_float = least_of(v->dtype) > 0;
    uint64_t whole = is_float ? 1 : RL_MIN(rows_picked(g, input, 8), v->dtype == RL_BOOL ? 2u : 4u);
    for (int64_t i = 0, n = rl_numel(&wide); i < n; i++) {
        uint64_t r = next_random(&state);
        x[i] = is_float ? (double)(r >> 11) * 0x1p-52 - 1 : (double)((r >> 62) % whole);
    }
    *out = rl_tensor_new(rt, v->dtype, v->rank, dim);
    rl_convert(rt, out, &wide, true);
    rl_tensor_drop(&wide);
    return RL_OK;
}

void rl_value_corners(rl_rt *rt, rl_corners which, uint64_t seed, rl_tensor *t) {
    double least = t->kind == RL_TENSOR ? least_of(t->dtype) : 0;
    if (which == RL_NOCORNER || least <= 0) return;
    const double corner[] = {0, -0.0, least, -least, INFINITY, -INFINITY, NAN};
    uint64_t state = ~seed, ncorner = which == RL_SMALL ? 4 : RL_LEN(corner);
    rl_tensor wide = rl_tensor_new(rt, RL_F64, t->rank, t->dim);
    rl_convert(rt, &wide, t, true);
    double *x = rl_data(&wide);
    for (int64_t i = 0, n = rl_numel(&wide); i < n; i++) {
        uint64_t r = next_random(&state) >> 32;
        if (r % 3 == 0) x[i] = corner[r / 3 % ncorner];
    }
    rl_convert(rt, t, &wide, true);
    rl_tensor_drop(&wide);
}
