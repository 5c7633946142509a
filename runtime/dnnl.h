/* The part of oneDNN v3's C interface that the fast kernels use.
 *
 * It is declared here, and the library is loaded when a run asks for fast kernels (dnnl.c): so neither building nor running needs
 * oneDNN.  The numbers are those of its dnnl_types.h, which every 3.x keeps.  A function dnnl_memory_create is called as
 *
 *   rl_dnnl d;
 *   if (rl_dnnl_load(&d)) d.memory_create(&memory, desc, engine, bytes);      0: done
 *
 * and $RELAYOUT_ONEDNN names the library's file where it is not found by itself; an empty one: no oneDNN. */
#ifndef RL_DNNL_H
#define RL_DNNL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_dnnl_md_s *rl_dnnl_md;
typedef const struct rl_dnnl_md_s *rl_dnnl_cmd;
typedef struct rl_dnnl_engine_s *rl_dnnl_engine;
typedef struct rl_dnnl_stream_s *rl_dnnl_stream;
typedef struct rl_dnnl_memory_s *rl_dnnl_memory;
typedef struct rl_dnnl_pd_s *rl_dnnl_pd;
typedef const struct rl_dnnl_pd_s *rl_dnnl_cpd;
typedef struct rl_dnnl_primitive_s *rl_dnnl_primitive;
typedef struct rl_dnnl_attr_s *rl_dnnl_attr;
typedef const struct rl_dnnl_attr_s *rl_dnnl_cattr;
typedef struct rl_dnnl_post_s *rl_dnnl_post;
typedef struct { int major, minor, patch; const char *hash; unsigned cpu_runtime, gpu_runtime; } rl_dnnl_version;
typedef struct { int arg; rl_dnnl_memory memory; } rl_dnnl_exec_arg;

enum { RL_DNNL_F32 = 3, RL_DNNL_S32 = 4, RL_DNNL_S8 = 5, RL_DNNL_U8 = 6 }; /* types */
enum { RL_DNNL_RANK = 12, RL_DNNL_CPU = 1, RL_DNNL_IN_ORDER = 1, RL_DNNL_INFERENCE = 96, RL_DNNL_TAG_ANY = 1,
       RL_DNNL_SCRATCHPAD_USER = 1, RL_DNNL_RUNTIME_OMP = 2 };
enum { RL_DNNL_ARG_SRC = 1, RL_DNNL_ARG_SRC_1 = 2, RL_DNNL_ARG_DST = 17, RL_DNNL_ARG_WEIGHTS = 33, RL_DNNL_ARG_BIAS = 41,
       RL_DNNL_ARG_SCRATCHPAD = 80, RL_DNNL_ARG_SCALES = 4096, RL_DNNL_ARG_ZEROS = 8192 /* of the argument it is added to */, RL_DNNL_ARG_POST_OP = 32768 /* times 1 + the post-op's number */ };
enum { RL_DNNL_QUERY_IMPL = 8, RL_DNNL_QUERY_SRC = 129, RL_DNNL_QUERY_WEIGHTS = 131, RL_DNNL_QUERY_DST = 133, RL_DNNL_QUERY_SCRATCHPAD = 136 };
enum { RL_DNNL_CONV_DIRECT = 1, RL_DNNL_DECONV_DIRECT = 10, RL_DNNL_POOL_MAX = 511, RL_DNNL_POOL_AVG_ALL = 767, RL_DNNL_POOL_AVG = 1023,
       RL_DNNL_BINARY_ADD = 131056, RL_DNNL_BINARY_MUL = 131057 };
enum { RL_DNNL_RELU = 32, RL_DNNL_TANH = 33, RL_DNNL_ELU = 34, RL_DNNL_LINEAR = 38, RL_DNNL_HARD_SIGMOID = 40,
       RL_DNNL_LOGISTIC = 41, RL_DNNL_GELU_TANH = 43, RL_DNNL_SWISH = 44, RL_DNNL_CLIP = 47, RL_DNNL_GELU_ERF = 49,
       RL_DNNL_HARD_SWISH = 52 };

/* F(result, name without dnnl_, parameters) */
#define RL_DNNL_FUNCTIONS(F)                                                                                         \
    F(const rl_dnnl_version *, version, (void))                                                                      \
    F(int, engine_create, (rl_dnnl_engine *, int kind, size_t index))                                                \
    F(int, engine_destroy, (rl_dnnl_engine))                                                                         \
    F(int, stream_create, (rl_dnnl_stream *, rl_dnnl_engine, unsigned flags))                                        \
    F(int, stream_destroy, (rl_dnnl_stream))                                                                         \
    F(int, memory_desc_create_with_strides, (rl_dnnl_md *, int rank, const int64_t *dim, int type, const int64_t *stride)) \
    F(int, memory_desc_create_with_tag, (rl_dnnl_md *, int rank, const int64_t *dim, int type, int tag))             \
    F(const char *, fmt_tag2str, (int tag))                                                                          \
    F(int, memory_desc_destroy, (rl_dnnl_md))                                                                        \
    F(int, memory_desc_equal, (rl_dnnl_cmd, rl_dnnl_cmd))                                                            \
    F(size_t, memory_desc_get_size, (rl_dnnl_cmd))                                                                   \
    F(int, memory_create, (rl_dnnl_memory *, rl_dnnl_cmd, rl_dnnl_engine, void *))                                   \
    F(int, memory_set_data_handle, (rl_dnnl_memory, void *))                                                         \
    F(int, memory_destroy, (rl_dnnl_memory))                                                                         \
    F(int, primitive_attr_create, (rl_dnnl_attr *))                                                                  \
    F(int, primitive_attr_set_scratchpad_mode, (rl_dnnl_attr, int))                                                  \
    F(int, primitive_attr_set_post_ops, (rl_dnnl_attr, rl_dnnl_post))                                                \
    F(int, primitive_attr_set_scales_mask, (rl_dnnl_attr, int arg, int mask))                                        \
    F(int, primitive_attr_set_zero_points_mask, (rl_dnnl_attr, int arg, int mask))                                   \
    F(int, primitive_attr_destroy, (rl_dnnl_attr))                                                                   \
    F(int, post_ops_create, (rl_dnnl_post *))                                                                        \
    F(int, post_ops_append_eltwise, (rl_dnnl_post, int alg, float alpha, float beta))                                \
    F(int, post_ops_append_binary, (rl_dnnl_post, int alg, rl_dnnl_cmd))                                             \
    F(int, post_ops_destroy, (rl_dnnl_post))                                                                         \
    F(int, primitive_desc_query, (rl_dnnl_cpd, int what, int index, void *))                                         \
    F(rl_dnnl_cmd, primitive_desc_query_md, (rl_dnnl_cpd, int what, int index))                                      \
    F(int, primitive_desc_destroy, (rl_dnnl_pd))                                                                     \
    F(int, primitive_create, (rl_dnnl_primitive *, rl_dnnl_cpd))                                                     \
    F(int, primitive_execute, (rl_dnnl_primitive, rl_dnnl_stream, int n, const rl_dnnl_exec_arg *))                  \
    F(int, primitive_destroy, (rl_dnnl_primitive))                                                                   \
    F(int, reorder_primitive_desc_create,                                                                            \
      (rl_dnnl_pd *, rl_dnnl_cmd src, rl_dnnl_engine, rl_dnnl_cmd dst, rl_dnnl_engine, rl_dnnl_cattr))               \
    F(int, convolution_forward_primitive_desc_create,                                                                \
      (rl_dnnl_pd *, rl_dnnl_engine, int prop, int alg, rl_dnnl_cmd src, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd dst, \
       const int64_t *stride, const int64_t *dilation, const int64_t *before, const int64_t *after, rl_dnnl_cattr))  \
    F(int, deconvolution_forward_primitive_desc_create,                                                              \
      (rl_dnnl_pd *, rl_dnnl_engine, int prop, int alg, rl_dnnl_cmd src, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd dst, \
       const int64_t *stride, const int64_t *dilation, const int64_t *before, const int64_t *after, rl_dnnl_cattr))  \
    F(int, pooling_forward_primitive_desc_create,                                                                    \
      (rl_dnnl_pd *, rl_dnnl_engine, int prop, int alg, rl_dnnl_cmd src, rl_dnnl_cmd dst, const int64_t *stride, const int64_t *kernel, \
       const int64_t *dilation, const int64_t *before, const int64_t *after, rl_dnnl_cattr))                         \
    F(int, matmul_primitive_desc_create,                                                                             \
      (rl_dnnl_pd *, rl_dnnl_engine, rl_dnnl_cmd src, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd dst, rl_dnnl_cattr))

typedef struct {
    void *library;
#define F(result, name, parameters) result (*name) parameters;
    RL_DNNL_FUNCTIONS(F)
#undef F
    /* Of the OpenMP runtime that it uses; NULL where that is not GNU's. Both kinds of loops then share its threads. */
    void (*omp_set_num_threads)(int);
    void (*gomp_parallel)(void (*fn)(void *), void *arg, unsigned nthread, unsigned flags);
} rl_dnnl;

/* False where there is no oneDNN 3.x. It stays loaded until the process ends: its threads do. */
bool rl_dnnl_load(rl_dnnl *d);

#endif
