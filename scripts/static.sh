#!/usr/bin/env bash
# What compilers and checkers say without running anything; ends with 1 where one has something to say.
#
#   static.sh              all of these; a tool that is not installed is named and skipped
#   static.sh NAME...      gcc clang cppcheck tidy analyzer; test.sh has the first three (the first is its build), nightly.sh all
#
# gcc, clang: all warnings of CMakeLists.txt as errors, over all that is built (clang: -fsyntax-only).  cppcheck: but for what cppcheck.txt
# says.  tidy: clang-tidy by .clang-tidy.  analyzer: gcc -fanalyzer.
source "$(dirname "$0")/setup.sh"

names=("$@")
[ ${#names[@]} != 0 ] || names=(gcc clang cppcheck tidy analyzer)
need_packages
build_here
mkdir -p build-static
mapfile -t sources < <(ls src/*.c passes/*.c runtime/*.c)
passed=0 failed=() skipped=()

have() { command -v "$1" >/dev/null; }

# errors NAME: the lines of its log that say something
errors() { ! grep -hE '(error|warning):' "build-static/$1.log" | sort -u | head -n 60 | grep .; }

run_gcc() { build build-static/gcc -DRL_WERROR=ON -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=gcc -DRL_CUDA=OFF; } # as packages are built
run_clang() {
    python3 - <<'PY' | xargs -d '\n' -P 2 -n 1 sh -c >build-static/clang.log 2>&1 || { errors clang; return 1; }
import json
import shlex
for c in json.load(open("build/compile_commands.json")):
    words = shlex.split(c["command"])
    first = next(i for i, w in enumerate(words) if w.startswith("-"))
    at = words.index("-o")
    if c["file"].endswith(".c"):
        print("cd", shlex.quote(c["directory"]), "&& clang -fsyntax-only", shlex.join(words[first:at] + words[at + 2:]))
PY
}
run_cppcheck() { # of the headers outside the project it reads only the one that the generated code asks for
    local protobuf
    protobuf=$(sed -n 's/^PROTOBUF_C_INCLUDE:PATH=//p' build/CMakeCache.txt)/protobuf-c/protobuf-c.h
    cppcheck --quiet -j2 --std=c11 --enable=warning,performance,portability --error-exitcode=1 --suppressions-list=scripts/cppcheck.txt \
        -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE '-DRL_VERSION="static"' '-D_Noreturn=__attribute__((noreturn))' -Ibuild/proto \
        --include="$protobuf" src passes runtime >build-static/cppcheck.log 2>&1 || { head -n 60 build-static/cppcheck.log; return 1; }
}
run_tidy() {
    printf '%s\n' "${sources[@]}" | xargs -P 2 -n 4 clang-tidy --quiet -p build >build-static/tidy.log 2>build-static/tidy.err || { errors tidy; return 1; }
}
# Without the search for NULL, which cannot know what a table or an earlier pass sees to, and for what is not set, which does not see that a
# loop downwards sets all; clang-tidy has both, with the reasons in the code. __clang_analyzer__: what src/base.h says to analyzers.
run_analyzer() {
    local off=(-Wno-analyzer-null-dereference -Wno-analyzer-use-of-uninitialized-value)
    printf '%s\n' "${sources[@]}" | xargs -P 2 -n 1 gcc -O1 -fanalyzer "${off[@]}" -Werror -std=c17 -D__clang_analyzer__ \
        -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE '-DRL_VERSION="static"' -Ibuild/proto -c -o /dev/null >build-static/analyzer.log 2>&1 || { errors analyzer; return 1; }
}

for n in "${names[@]}"; do
    start=$SECONDS
    tool=$n
    case $n in tidy) tool=clang-tidy ;; analyzer) tool=gcc ;; esac
    if ! have "$tool"; then
        echo "$n: skipped, $tool is not installed"
        skipped+=("$n")
    elif "run_$n"; then
        echo "$n: nothing to say ($((SECONDS - start)) s)"
        passed=$((passed + 1))
    else
        echo "$n: see above, and build-static/$n.log ($((SECONDS - start)) s)"
        failed+=("$n")
    fi
done
echo "$passed passed, ${#failed[@]} failed, ${#skipped[@]} skipped${skipped:+: ${skipped[*]}}"
[ ${#failed[@]} = 0 ]
