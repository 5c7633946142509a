#!/usr/bin/env bash
# Fuzzing with libFuzzer (clang; installed if it is missing), under ASan and UBSan.  Ends with 1 if some input crashed a target, took
# more than 10 s or more than 2 GiB; it is then in build-fuzz/found/.  What new inputs reached is kept in build-fuzz/corpus/ for the next run;
# the corpora begin with seeds (tests/fuzz/seeds.py), of which only those stay that reach something new.
#
#   fuzz.sh                 60 s over all targets
#   fuzz.sh SECONDS         so many, over all targets
#   fuzz.sh SECONDS NAME... over these: onnx text cert optimize run values target
source "$(dirname "$0")/setup.sh"

seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} != 0 ] || targets=(optimize onnx text cert run values target)
need_packages
need_clang
need_python
build build -DRL_WERROR=ON
build build-fuzz -DCMAKE_C_COMPILER=clang -DRL_FUZZ=ON -DRL_CUDA=OFF

# -detect_leaks=0: LeakSanitizer needs ptrace, which some containers forbid; contexts are freed whole, and ctest counts blocks.
common=(-timeout=10 -rss_limit_mb=2048 -max_len=20000 -detect_leaks=0)
export UBSAN_OPTIONS=print_stacktrace=1

# Shares of the time, two targets at a time: optimize is slow, and the whole.
share() { if [ "$1" = optimize ]; then echo 4; else echo 1; fi; }
shares=0
for t in "${targets[@]}"; do shares=$((shares + $(share "$t"))); done

# fuzz NAME: its log is build-fuzz/NAME.log
fuzz() {
    local t=$1
    "build-fuzz/tests/fuzz_$t" "${common[@]}" -max_total_time=$((seconds * 2 * $(share "$t") / shares + 1)) -print_final_stats=1 \
        -artifact_prefix="build-fuzz/found/$t-" "build-fuzz/corpus/$t" >"build-fuzz/$t.log" 2>&1
}

# seed NAME: what is worth keeping of its seeds
seed() {
    mkdir -p "build-fuzz/corpus/$1.new"
    "build-fuzz/tests/fuzz_$1" "${common[@]}" -merge=1 "build-fuzz/corpus/$1.new" "build-fuzz/seeds/$1" >"build-fuzz/$1.merge.log" 2>&1 || true
    mv "build-fuzz/corpus/$1.new" "build-fuzz/corpus/$1"
}

# pairs COMMAND NAME...: two at a time; the names that failed
pairs() {
    local command=$1 pid=() name=() t i
    shift
    for t in "$@" ""; do
        if [ ${#pid[@]} = 2 ] || [ -z "$t" ]; then
            for i in "${!pid[@]}"; do wait "${pid[i]}" || echo "${name[i]}"; done
            pid=() name=()
        fi
        [ -z "$t" ] || { "$command" "$t" & pid+=($!) name+=("$t"); }
    done
}

mkdir -p build-fuzz/found build-fuzz/corpus
new=()
for t in "${targets[@]}"; do [ -d "build-fuzz/corpus/$t" ] || new+=("$t"); done
if [ ${#new[@]} != 0 ]; then
    [ -d build-fuzz/seeds ] || "$PYTHON" tests/fuzz/seeds.py build/relayout build-fuzz/seeds
    pairs seed "${new[@]}"
fi
failed=$(pairs fuzz "${targets[@]}")
for t in "${targets[@]}"; do
    log=build-fuzz/$t.log
    if grep -qx "$t" <<<"$failed"; then grep -E 'ERROR|must hold|runtime error|SUMMARY|artifact|#[0-9] ' "$log" | head -n 20; fi
    echo "$t: $(grep -oE 'number_of_executed_units: [0-9]+' "$log" | grep -oE '[0-9]+' || echo 0) inputs, $(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)"
done
nfail=$(grep -c . <<<"$failed" || true)
echo "$((${#targets[@]} - nfail)) passed, $nfail failed"
[ "$nfail" = 0 ]
