/* What device.c and device_run.c share. */
#ifndef RL_DEVICE_INTERNAL_H
#define RL_DEVICE_INTERNAL_H
#include "device.h"

/* Small integers are sizes and the like, which the host wants; strings and sequences have no other place. */
bool rl_device_takes(const rl_tensor *t);
/* Gives up the recording that is being made; none: nothing. */
void rl_device_end_recording(rl_rt *rt);
bool rl_device_failed(rl_status s); /* the device or its libraries, not the model */

#endif
