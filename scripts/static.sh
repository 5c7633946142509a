#!/usr/bin/env bash
# What compilers and checkers say without running anything; ends with 1 where one has something to say.
#
#   static.sh              all of these; a tool that is not installed is named and skipped
#   static.sh NAME...      gcc clang tidy cppcheck analyzer
#
# gcc, clang: all warnings of CMakeLists.txt as errors.  tidy: clang-tidy by .clang-tidy.  analyzer: gcc -fanalyzer.
source "$(dirname "$0")/setup.sh"

names=("$@")
[ ${#names[@]} != 0 ] || names=(gcc clang tidy cppcheck analyzer)
need_packages
mkdir -p build-static
build build-static/gcc -DRL_WERROR=ON -DCMAKE_C_COMPILER=gcc -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
mapfile -t sources < <(ls src/*.c passes/*.c runtime/*.c)
failed=()

have() {
    command -v "$1" >/dev/null && return 0
    echo "skipped: $1 is not installed"
    return 1
}

# each NAME COMMAND...: COMMAND FILE for each source, two at a time; what it says is in build-static/NAME.log
each() {
    local name=$1
    shift
    printf '%s\n' "${sources[@]}" | xargs -P 2 -n 4 "$@" >"build-static/$name.log" 2>"build-static/$name.err"
}

# The flags of the build: where the generated code is, what is defined.
flags=(-std=c17 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE '-DRL_VERSION="static"' -Ibuild-static/gcc/proto)

run_gcc() { :; } # built above
run_clang() { ! have clang || build build-static/clang -DRL_WERROR=ON -DCMAKE_C_COMPILER=clang; }
run_tidy() {
    have clang-tidy || return 0
    each tidy clang-tidy --quiet -p build-static/gcc || { grep -hE ': (warning|error):' build-static/tidy.log | sort -u | head -n 60; return 1; }
}
run_cppcheck() {
    have cppcheck || return 0
    cppcheck --quiet -j2 --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --suppressions-list=scripts/cppcheck.txt \
        -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE '-DRL_VERSION="static"' -Ibuild-static/gcc/proto src passes runtime >build-static/cppcheck.log 2>&1 ||
        { head -n 60 build-static/cppcheck.log; return 1; }
}
# Without the checks that follow memory from malloc to free (memory here comes from arenas), and those that need to know that a jump
# ends what cannot go on.
run_analyzer() {
    have gcc || return 0
    local off=(-Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference -Wno-analyzer-possible-null-dereference -Wno-analyzer-use-of-uninitialized-value)
    for f in "${sources[@]}"; do printf '%s\0' "$f"; done |
        xargs -0 -P 2 -n 1 gcc -O1 -fanalyzer "${off[@]}" -Werror "${flags[@]}" -c -o /dev/null >build-static/analyzer.log 2>&1 ||
        { grep -E 'error:' build-static/analyzer.log | head -n 60; return 1; }
}

for n in "${names[@]}"; do
    start=$SECONDS status=0
    "run_$n" || status=$?
    echo "$n: $([ $status = 0 ] && echo "nothing to say" || echo "see above, and build-static/$n.log") ($((SECONDS - start)) s)"
    [ $status = 0 ] || failed+=("$n")
done
[ ${#failed[@]} = 0 ]
