# For 64-bit ARM from another machine (scripts/aarch64.sh): cmake -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DRL_SYSROOT=... ; RL_SYSROOT has
# protobuf-c of that machine below usr/. Tests run under QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RL_SYSROOT)
set(PROTOBUF_C ${RL_SYSROOT}/usr/lib/aarch64-linux-gnu/libprotobuf-c.so)
set(PROTOBUF_C_INCLUDE ${RL_SYSROOT}/usr/include)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${RL_SYSROOT}/usr/lib/aarch64-linux-gnu)
