#!/usr/bin/env bash
# Installs what is missing and builds: used by the other scripts, which source it. Each step is skipped when there is nothing
# to do, so that it costs well under a second the second time.
#
#   need_packages       Debian packages for the build
#   need_clang          clang with libFuzzer, for scripts/fuzz.sh alone
#   need_checkers       clang and cppcheck, for scripts/static.sh in CI; false when they cannot be had (static.sh then says what it skips)
#   need_python         .venv with the packages of requirements.txt; false when they cannot be had
#   need_browser        Chromium, for test_report.py; false when it cannot be had (the test then says what it skips)
#   need_onednn         oneDNN 3.x for the fast kernels, unless the system has it; false when it cannot be had: all works without
#   need_nvcc           nvcc on the PATH; with RL_FETCH_NVCC=1 from PyPI into build/nvcc (347 MB); false when there is none
#   build_here          builds build/ as the tests want it
#   build DIR OPTION... configures DIR with CMake options (only when they are new) and builds it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
PYTHON=$ROOT/.venv/bin/python
export OPENBLAS_NUM_THREADS=1 # of numpy: suites run beside each other, and its threads only get into each other's way

say() { printf '%s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

have_protobuf_c() {
    command -v protoc-c >/dev/null &&
        printf '#include <protobuf-c/protobuf-c.h>\n' | cc -E -xc - >/dev/null 2>&1
}

install_packages() {
    if ! command -v apt-get >/dev/null; then
        say "missing, and there is no apt-get to install it: $* (these are Debian's names)"
        return 1
    fi
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq || say "apt-get update failed; trying with the lists at hand"
    as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

have_fuzzer() {
    printf 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }\n' |
        clang -fsanitize=fuzzer,address -xc - -o /dev/null 2>/dev/null
}

need_clang() { have_fuzzer || install_packages clang libclang-rt-14-dev; }

need_checkers() {
    local want=()
    command -v clang >/dev/null || want+=(clang)
    command -v cppcheck >/dev/null || want+=(cppcheck)
    [ ${#want[@]} = 0 ] || install_packages "${want[@]}"
}

need_packages() {
    local want=()
    command -v cc >/dev/null && command -v make >/dev/null || want+=(build-essential)
    command -v cmake >/dev/null || want+=(cmake)
    if ! command -v cc >/dev/null || ! have_protobuf_c; then want+=(libprotobuf-c-dev protobuf-c-compiler); fi
    python3 -c 'import venv, ensurepip' 2>/dev/null || want+=(python3 python3-venv)
    [ ${#want[@]} = 0 ] || install_packages "${want[@]}"
}

# need_pip NAME ARGUMENT...: pip install ARGUMENT... into .venv, unless that was done before with the same arguments.
need_pip() {
    local stamp=$ROOT/.venv/.done-$1 key
    shift
    key="$* $(cat scripts/requirements.txt)"
    [ -x "$PYTHON" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return 0
    if ! "$PYTHON" -c 'import pip' 2>/dev/null; then
        say "making .venv"
        rm -rf .venv
        python3 -m venv .venv || return 1
    fi
    say "pip install $*"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 30 "$@" || return 1
    printf '%s' "$key" >"$stamp"
}

need_python() { need_pip tests -r scripts/requirements.txt; }

need_browser() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && return 0
    command -v apt-get >/dev/null || return 1
    say "installing chromium"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 ||
        { as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }
}

need_onednn() {
    ldconfig -p 2>/dev/null | grep -q 'libdnnl\.so\.3 ' || need_pip onednn --no-deps onednn-cpu-gomp==2023.2.0
}

need_nvcc() {
    command -v nvcc >/dev/null && return 0
    if [ -x /usr/local/cuda/bin/nvcc ]; then
        PATH=$PATH:/usr/local/cuda/bin
        return 0
    fi
    [ "${RL_FETCH_NVCC:-0}" = 1 ] || return 1
    local bin
    if ! ls build/nvcc/lib/python3*/site-packages/nvidia/cu13/bin/nvcc >/dev/null 2>&1; then
        say "fetching nvcc into build/nvcc"
        python3 -m venv build/nvcc &&
            build/nvcc/bin/pip install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.5.37 nvidia-cuda-runtime==13.5.37 || return 1
    fi
    bin=$(echo "$ROOT"/build/nvcc/lib/python3*/site-packages/nvidia/cu13/bin)
    PATH=$PATH:$bin
}

build() {
    local dir=$1 key
    shift
    key="$*"
    if [ ! -f "$dir/CMakeCache.txt" ] || [ "$(cat "$dir/.options" 2>/dev/null)" != "$key" ]; then
        local generator=()
        if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
        mkdir -p "$dir"
        cmake -S . -B "$dir" "${generator[@]}" "$@" >"$dir/configure.log" 2>&1 || { cat "$dir/configure.log" >&2; return 1; }
        printf '%s' "$key" >"$dir/.options"
    fi
    cmake --build "$dir" --parallel "$(nproc)" >"$dir/build.log" 2>&1 || { tail -n 60 "$dir/build.log" >&2; return 1; }
}

# -g1: lines and functions for what prints a stack; all of -g is a quarter of what compiling takes.
build_here() { build build -DRL_WERROR=ON "-DRL_CUDA_ARCHS=${RL_CUDA_ARCHS:-90}" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG"; }
