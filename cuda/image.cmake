# The kernels of device.cu, compiled by nvcc: RL_CUDA_IMAGE, where there is nvcc. It takes longest of all that is built, so it is the first target.
#
#   RL_CUDA=AUTO (default)  in the program where there are nvcc and the toolkit's headers; ON: there must be; OFF: not
#   RL_CUDA_ARCHS           what the kernels are compiled for; PTX of the last one is added for newer GPUs
set(RL_CUDA AUTO CACHE STRING "the CUDA backend: AUTO, ON or OFF")
set(RL_CUDA_ARCHS "75;80;90" CACHE STRING "compute capabilities to compile kernels for")
set(RL_CUDA_DEPENDS
  cuda/index.h cuda/number.h cuda/params.h cuda/ops.h cuda/k_move.h cuda/k_each.h cuda/k_few_rows.h cuda/k_recode.h cuda/k_recurrent.h
  cuda/k_reduce.h cuda/k_conv.h cuda/k_nn.h cuda/kernels.inc cuda/k_axis.h cuda/k_interleave.h cuda/k_place.h
  cuda/k_odd_tile.h cuda/k_tile.h cuda/k_weave.h runtime/dynamic_scale.h runtime/grid.h runtime/seen.h runtime/pointwise.inc
  runtime/activation.inc runtime/recurrent_ops.h runtime/rows.h)
list(TRANSFORM RL_CUDA_DEPENDS PREPEND ${PROJECT_SOURCE_DIR}/)

if(RL_CUDA STREQUAL "OFF")
  return()
endif()
find_program(NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT NVCC)
  if(RL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RL_CUDA is ON and there is no nvcc")
  endif()
  message(STATUS "no nvcc: built without the CUDA backend")
  return()
endif()

set(RL_CUDA_IMAGE ${CMAKE_CURRENT_BINARY_DIR}/cuda/kernels.fatbin)
set(code "")
if(RL_WERROR)
  list(APPEND code -Werror all-warnings)
endif()
foreach(arch ${RL_CUDA_ARCHS})
  list(APPEND code -gencode arch=compute_${arch},code=sm_${arch})
  set(newest ${arch})
endforeach()
list(APPEND code -gencode arch=compute_${newest},code=compute_${newest})
add_custom_command(OUTPUT ${RL_CUDA_IMAGE}
  COMMAND ${NVCC} -std=c++17 -O3 --expt-relaxed-constexpr --threads 0 -fatbin -Xfatbin=-compress-all ${code} -o ${RL_CUDA_IMAGE} ${PROJECT_SOURCE_DIR}/cuda/device.cu
  DEPENDS ${PROJECT_SOURCE_DIR}/cuda/device.cu ${RL_CUDA_DEPENDS} VERBATIM)
add_custom_target(rl_cuda_image DEPENDS ${RL_CUDA_IMAGE})
