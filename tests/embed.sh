#!/bin/sh
# embed.sh BUILD: installs BUILD into a folder of its own, builds examples/embed against that with CMake and with pkg-config, runs what
# came out, and looks at what the libraries need.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
work=$build/embed
tree=$work/tree
rm -rf "$work"
mkdir -p "$work"
model=$root/models/channels_last_cnn.onnx
ngood=0

fail() {
    echo "failed: $*"
    exit 1
}
good() {
    ngood=$((ngood + 1))
    echo "$* ok"
}

cmake --install "$build" --prefix "$tree" >"$work/install.log"
lib=$(dirname "$(find "$tree" -name librelayout.so)")
export LD_LIBRARY_PATH="$lib"

# runs NAME PROGRAM: optimizes, and compares with the program's own result
"$tree/bin/relayout" optimize "$model" -o "$work/want.onnx" --target ort >/dev/null || fail "the installed program"
runs() {
    "$2" "$model" "$work/$1.onnx" >"$work/$1.txt" || fail "$1: $(tail -n 1 "$work/$1.txt")"
    grep -q '32 -> ' "$work/$1.txt" && grep -q 'relayout.explain/1' "$work/$1.txt" || fail "$1: what it prints"
    cmp -s "$work/$1.onnx" "$work/want.onnx" || fail "$1: another result than the program's"
    good "$1"
}

cmake -S "$root/examples/embed" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$tree" >"$work/cmake.log" 2>&1 ||
    fail "find_package: see $work/cmake.log"
cmake --build "$work/cmake" >>"$work/cmake.log" 2>&1 || fail "cmake --build: see $work/cmake.log"
runs cmake "$work/cmake/embed"
runs cmake-c++ "$work/cmake/embed_cxx"

cp -r "$root/examples/embed" "$work/make"
export PKG_CONFIG_PATH="$lib/pkgconfig"
[ "$(pkg-config --modversion relayout)" = "$("$tree/bin/relayout" --version | cut -d' ' -f2)" ] || fail "pkg-config: another version"
make -C "$work/make" CFLAGS="-O1 -Wall -Wextra -Wpedantic -Werror" CXXFLAGS="-O1 -Wall -Wextra -Werror" >"$work/make.log" 2>&1 ||
    fail "pkg-config: see $work/make.log"
runs pkg-config "$work/make/embed"
runs pkg-config-c++ "$work/make/embed_cxx"
rm "$work/make/embed"
make -C "$work/make" embed STATIC=1 >"$work/static.log" 2>&1 || fail "static: see $work/static.log"
LD_LIBRARY_PATH='' runs static "$work/make/embed"
ldd "$work/make/embed" | grep -q librelayout && fail "static: needs the shared library"

# the runtime: a model that it runs
session=$build/tests/session.onnx
for p in cmake make; do
    "$work/$p/embed_run" "$session" "$work/run.onnx" | grep -q 'same outputs' || fail "$p: embed_run"
    good "runtime, $p"
done

# core carries neither threads nor kernels, and says what it needs
needed() { objdump -p "$1" | awk '$1 == "NEEDED" {print $2}' | sort | tr '\n' ' '; }
case $(needed "$lib/librelayout.so") in
"libc.so.6 libm.so.6 libprotobuf-c.so.1 " | "libc.so.6 libprotobuf-c.so.1 ") good "core needs protobuf-c only" ;;
*) fail "core needs $(needed "$lib/librelayout.so")" ;;
esac
nm -D --undefined-only "$lib/librelayout.so" | grep -E ' (dlopen|dlsym|pthread_create)' && fail "core loads libraries, or starts threads"
strings "$lib/librelayout.so" | grep -iE 'libdnnl|libcuda|nvrtc|cublas' && fail "core names oneDNN or CUDA"
nm "$lib/librelayout.a" 2>/dev/null | grep -E ' U pthread_| T rl_exec_' && fail "core has threads or kernels"

# a component that is not there is said to be
rm "$lib/cmake/relayout/relayout-runtime.cmake"
cmake -S "$root/examples/embed" -B "$work/none" -DCMAKE_PREFIX_PATH="$tree" >"$work/none.log" 2>&1 &&
    fail "a component that is missing was found"
grep -q 'component runtime is not installed' "$work/none.log" || fail "the missing component is not named"
good "components"

# symbol versions
objdump -p "$lib/librelayout.so" | grep -q ' RELAYOUT_0$' && objdump -p "$lib/librelayout_runtime.so" | grep -q ' RELAYOUT_RUNTIME_0$' || fail "no symbol versions"
objdump -T "$work/cmake/embed" | grep -q 'RELAYOUT_0.* rl_optimize_bytes' || fail "a program is bound to no version"
good "symbol versions"

# as C++ and as C, each by itself and pedantic
for c in "c++ -std=c++11 -xc++" "c++ -std=c++20 -xc++" "cc -std=c99 -xc" "cc -std=c17 -xc"; do
    printf '#include <relayout.h>\nint main(void) { return rl_version() == 0; }\n' |
        $c - -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I "$tree/include" || fail "$c"
    good "header: $c"
done
echo "$ngood passed, 0 failed"
