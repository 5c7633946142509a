/* The windows' numbers, for kernels.def. */
#ifndef RL_REF_SIGNAL_H
#define RL_REF_SIGNAL_H

enum { RL_WINDOW_HANN, RL_WINDOW_HAMMING, RL_WINDOW_BLACKMAN };

#endif
