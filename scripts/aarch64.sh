#!/usr/bin/env bash
# Builds for 64-bit ARM and runs the tests in C there, and a share of the ONNX backend suite, under QEMU; skipped where Debian's packages for
# it cannot be had. Quarter of an hour.
#
#   aarch64.sh [FRACTION]    of the backend suite; 0.25
source "$(dirname "$0")/setup.sh"

need_packages
need_python
dir=$ROOT/build-aarch64 root=$ROOT/build-aarch64/root
if ! command -v aarch64-linux-gnu-g++ qemu-aarch64-static >/dev/null; then
    install_packages g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static || { echo "skipped: no compiler for 64-bit ARM, or no QEMU"; exit 0; }
fi
# Its protobuf-c, into the build folder: apt with lists of its own, so that the machine's stay as they are.
protobuf_c() (
    mkdir -p "$dir"/apt/{lists,cache/archives}/partial && cd "$dir/apt"
    local apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache")
    "${apt[@]}" update && "${apt[@]}" download libprotobuf-c-dev libprotobuf-c1 2>/dev/null
    for package in *.deb; do dpkg-deb -x "$package" "$root"; done
)
[ -e "$root/usr/include/protobuf-c" ] || protobuf_c || { echo "skipped: no protobuf-c for 64-bit ARM"; exit 0; }

build "$dir" -DRL_WERROR=ON -DRL_CUDA=OFF "-DCMAKE_TOOLCHAIN_FILE=$ROOT/cmake/aarch64.cmake" "-DRL_SYSROOT=$root"
status=0
ctest --test-dir "$dir" -j2 -E 'gpu|embed|package|exports|rules|unit_oom' --output-on-failure | tail -n 3 || status=1
printf '#!/bin/sh\nexec qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=%s %s "$@"\n' "$root/usr/lib/aarch64-linux-gnu" "$dir/relayout" >"$dir/run"
chmod +x "$dir/run"
"$PYTHON" tests/python/test_backend_run.py --build build --relayout "$dir/run" --kernels reference --fraction "${1:-0.25}" | tail -n 2 || status=1
exit $status
