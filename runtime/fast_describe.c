/* Convolutions of floats and of bytes as oneDNN describes them: see fast_conv.h. */
#include "fast_conv.h"

rl_status rl_conv_read(rl_call *c, rl_convolution *v) {
    RL_TRY(rl_conv_group(c, v->x, v->k, &v->group));
    RL_TRY(rl_window_read(c, v->x, v->k->dim + 2, &v->w));
    v->dim[0] = v->x->dim[0], v->dim[1] = v->k->dim[0];
    for (uint32_t i = 0; i < v->w.r; i++) v->dim[2 + i] = v->w.out[i];
    return RL_OK;
}

rl_tensor rl_conv_lifted(const rl_tensor *t) {
    rl_tensor x = *t;
    x.rank = 4;
    x.dim[2] = 1, x.dim[3] = t->dim[2];
    x.stride[2] = t->dim[2] * t->stride[2], x.stride[3] = t->stride[2];
    return x;
}

void rl_conv_lift(rl_convolution *v, rl_tensor *room) {
    if (v->x->rank != 3 || v->group == 1 || v->group != v->x->dim[1]) return;
    room[0] = rl_conv_lifted(v->x), room[1] = rl_conv_lifted(v->k);
    v->x = &room[0], v->k = &room[1];
    v->lifted = true;
    v->dim[3] = v->dim[2], v->dim[2] = 1;
    int64_t *each[] = {v->w.in, v->w.out, v->w.kernel, v->w.stride, v->w.dilation, v->w.before, v->w.after};
    for (uint32_t i = 0; i < RL_LEN(each); i++) each[i][1] = each[i][0], each[i][0] = i < 5;
    v->w.r = 2;
}

bool rl_conv_set_window(rl_convolution *v) {
    for (uint32_t i = 0; i < v->w.r; i++) {
        v->stride[i] = v->w.stride[i];
        v->dilation[i] = v->w.dilation[i] - 1;
        v->before[i] = v->w.before[i];
        int64_t out = v->back ? v->w.in[i] : v->w.out[i], in = v->back ? v->w.out[i] : v->w.in[i], reach = rl_window_reach(&v->w, i);
        v->after[i] = v->back ? (in - 1) * v->stride[i] + reach - out - v->before[i] : (out - 1) * v->stride[i] + reach - in - v->before[i];
        if (out <= 0 || v->before[i] < 0 || (!v->back && v->after[i] < 0 && -v->after[i] >= v->stride[i])) return false;
    }
    return true;
}

void rl_conv_set_weights(rl_convolution *v) {
    const rl_tensor *k = v->k;
    int64_t *d = v->kdim, *s = v->kstride, g = v->group;
    bool grouped = g > 1;
    v->krank = k->rank + grouped;
    uint32_t m = v->back ? 1 : 0, ch = 1 - m, at = grouped;
    if (grouped) d[0] = g, s[0] = k->dim[0] / g * k->stride[0];
    d[at] = m == 0 ? k->dim[0] / g : k->dim[1], s[at] = k->stride[m];
    d[at + 1] = ch == 0 ? k->dim[0] / g : k->dim[1], s[at + 1] = k->stride[ch];
    for (uint32_t i = 2; i < k->rank; i++) d[at + i] = k->dim[i], s[at + i] = k->stride[i];
}

int rl_conv_describe(rl_making *m, const rl_convolution *v, rl_dnnl_cmd src, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd dst) {
    const rl_dnnl *d = &m->f->d;
    if (v->back)
        return d->deconvolution_forward_primitive_desc_create(&m->pd, m->f->engine, RL_DNNL_INFERENCE, RL_DNNL_DECONV_DIRECT, src, weights, bias,
                                                              dst, v->stride, v->dilation, v->before, v->after, m->attr);
    return d->convolution_forward_primitive_desc_create(&m->pd, m->f->engine, RL_DNNL_INFERENCE, RL_DNNL_CONV_DIRECT, src, weights, bias, dst,
                                                        v->stride, v->dilation, v->before, v->after, m->attr);
}
