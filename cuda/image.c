/* The kernels' image (device.cu, compiled by nvcc), as bytes of the program. RL_CUDA_IMAGE: the file. */
extern const unsigned char rl_cuda_image[];

__asm__(".section .rodata\n"
        ".balign 16\n"
        ".global rl_cuda_image\n"
        ".hidden rl_cuda_image\n"
        "rl_cuda_image:\n"
        ".incbin \"" RL_CUDA_IMAGE "\"\n"
        ".byte 0\n"
        ".previous\n");
