/* The numbers of the recurrent ops and of their activations: for tables of kernels, and for kernels. C and C++. */
#ifndef RL_RECURRENT_OPS_H
#define RL_RECURRENT_OPS_H

enum { RL_LSTM, RL_GRU, RL_RNN };

typedef enum {
    ACT_RELU, ACT_TANH, ACT_SIGMOID, ACT_AFFINE, ACT_LEAKY_RELU, ACT_THRESHOLDED_RELU, ACT_SCALED_TANH, ACT_HARD_SIGMOID, ACT_ELU,
    ACT_SOFTSIGN, ACT_SOFTPLUS, ACT_NOP
} rl_act_kind;
typedef struct { rl_act_kind kind; double alpha, beta; } rl_activation;

#endif
