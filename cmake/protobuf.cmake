# protobuf-c: the generated code lives in the build tree only.
option(RL_STATIC_PROTOBUF "link libprotobuf-c.a where there is one" OFF)
set(RL_PROTOBUF_C_NAMES protobuf-c)
if(RL_STATIC_PROTOBUF)
  set(RL_PROTOBUF_C_NAMES libprotobuf-c.a protobuf-c)
endif()
find_program(PROTOC_C NAMES protoc-c protoc-gen-c)
find_library(PROTOBUF_C NAMES ${RL_PROTOBUF_C_NAMES})
find_path(PROTOBUF_C_INCLUDE protobuf-c/protobuf-c.h)
set(RL_MISSING) # named in one line: CMake breaks none that begins with a space
if(NOT PROTOBUF_C OR NOT PROTOBUF_C_INCLUDE)
  list(APPEND RL_MISSING libprotobuf-c-dev)
endif()
if(NOT PROTOC_C)
  list(APPEND RL_MISSING protobuf-c-compiler)
endif()
if(SKBUILD) # for pip: the extension module, too
  find_package(Python QUIET COMPONENTS Interpreter Development.Module)
  if(NOT TARGET Python::Module)
    list(APPEND RL_MISSING python3-dev)
  endif()
endif()
if(RL_MISSING)
  list(JOIN RL_MISSING " " RL_MISSING)
  message(FATAL_ERROR " packages are missing: apt-get install ${RL_MISSING}")
endif()
set(RL_PROTO_DIR ${CMAKE_CURRENT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${RL_PROTO_DIR})
add_custom_command(
  OUTPUT ${RL_PROTO_DIR}/onnx.pb-c.c ${RL_PROTO_DIR}/onnx.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${RL_PROTO_DIR} --proto_path=${CMAKE_CURRENT_SOURCE_DIR}/proto onnx.proto
  DEPENDS proto/onnx.proto)
add_library(rl_proto OBJECT ${RL_PROTO_DIR}/onnx.pb-c.c)
target_include_directories(rl_proto PUBLIC ${RL_PROTO_DIR} ${PROTOBUF_C_INCLUDE})
