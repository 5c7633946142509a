/* What device.c and device_run.c share. */
#ifndef RL_DEVICE_INTERNAL_H
#define RL_DEVICE_INTERNAL_H
#include "device.h"

/* Small integers are sizes and the like, which the host wants; strings and sequences have no other place. */
bool rl_device_takes(const rl_tensor *t);
bool rl_device_failed(rl_status s); /* the device or its libraries, not the model */

#endif
