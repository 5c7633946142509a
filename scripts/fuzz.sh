#!/usr/bin/env bash
# Fuzzing with libFuzzer (clang; installed if it is missing), under ASan and UBSan.  Ends with 1 if some input crashed a target, took
# more than 10 s or more than 2 GiB; it is then in build-fuzz/found/: it goes to tests/fuzz/crashes/TARGET/ under a name that says what it
# is, with what mends it.  What new inputs reached is kept in build-fuzz/corpus/ for the next run; the corpora begin with seeds
# (tests/fuzz/seeds.py), of which only those stay that reach something new.
#
#   fuzz.sh                 60 s over all targets
#   fuzz.sh SECONDS         so many, over all targets
#   fuzz.sh SECONDS NAME... over these: onnx text cert optimize run values target plan structured damaged
#   fuzz.sh --seed N ...    the same inputs each time: only the seeds to begin with, N for libFuzzer's choices, addresses not random, and a
#                           number of inputs instead of a time (where that takes more than twice the time it ends there); nothing is kept,
#                           and the seeds are not chosen from first: reading them, libFuzzer leaves out what reaches nothing new
#   fuzz.sh --light ...     without the checks of UBSan for what ASan sees as well (null, object-size), for additions to pointers and for
#                           addresses that only other processors mind: a third less to compile; scripts/trust.sh has them all
#
# damaged is no target of libFuzzer's: models with one thing wrong each (tests/fuzz/damage.py), evenly chosen from 266,000, all of them from
# 6,000 s on, go to the targets optimize and run.
source "$(dirname "$0")/setup.sh"

leaves=
if [ "${1:-}" = --light ]; then leaves=null,object-size,pointer-overflow,alignment; shift; fi
seed=0
if [ "${1:-}" = --seed ]; then seed=$2; shift 2; fi
seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} != 0 ] || targets=(optimize structured damaged onnx text cert run values target plan)
need_packages
need_clang
need_python
build_here
build build-fuzz -DCMAKE_C_COMPILER=clang -DRL_FUZZ=ON -DRL_CUDA=OFF "-DRL_FUZZ_LEAVES=$leaves"

# -detect_leaks=0, and the same of what looks for them at the end: LeakSanitizer needs ptrace, which some containers forbid, and falls over what oneDNN's threads
# leave; contexts are freed whole, and ctest counts blocks.
# -entropic=0: how rare each of an input's ten thousand features is takes longer to count than the input takes to run.
common=(-timeout=10 -rss_limit_mb=2048 -detect_leaks=0 -entropic=0)
plain=()
if [ "$seed" != 0 ] && setarch -R true 2>/dev/null; then plain=(setarch -R); fi
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0

# Inputs of each target: the structured one's are recipes (tests/fuzz/model.h), which need not grow slowly.
lengths() { if [ "$1" = structured ]; then echo -max_len=488 -len_control=0; else echo -max_len=20000; fi; }

# Shares of the time, one target after the other: optimize and structured are slow, and the whole.
share() { case $1 in optimize | structured) echo 4 ;; damaged) echo 2 ;; *) echo 1 ;; esac; }
# Inputs per second of one core, more or less.
rate() {
    case $1 in
    optimize) echo 1000 ;; structured) echo 107 ;; damaged) echo 400 ;; run) echo 2000 ;; text | onnx | cert) echo 5000 ;; *) echo 10000 ;;
    esac
}
shares=0
for t in "${targets[@]}"; do shares=$((shares + $(share "$t"))); done

# fuzz NAME: its log is build-fuzz/NAME.log
fuzz() {
    local t=$1 corpus=(build-fuzz/corpus/"$1") all=$((seconds * $(share "$1") / shares + 1)) limit inputs
    if [ "$t" = damaged ]; then
        "$PYTHON" tests/fuzz/damage.py build-fuzz/seeds/optimize build-fuzz/found $((1 + 266000 / (all * $(rate damaged)))) build-fuzz/tests/fuzz_{optimize,run} >build-fuzz/damaged.log 2>&1
        return
    fi
    limit=(-max_total_time="$all")
    if [ "$seed" != 0 ]; then
        rm -rf "build-fuzz/made/$t"
        mkdir -p "build-fuzz/made/$t"
        corpus=(build-fuzz/made/"$t" build-fuzz/seeds/"$t") # what is new goes to the first
        inputs=$((all * $(rate "$t")))
        # The seeds are beside what libFuzzer makes; the structured target's, models of random bytes, are such inputs themselves.
        [ "$t" = structured ] || inputs=$((inputs + $(find "build-fuzz/seeds/$t" -type f | wc -l)))
        limit=(-max_total_time=$((2 * all)) -runs="$inputs")
    fi
    # shellcheck disable=SC2046
    "${plain[@]}" "build-fuzz/tests/fuzz_$t" "${common[@]}" $(lengths "$t") "${limit[@]}" -print_final_stats=1 -seed="$seed" -artifact_prefix="build-fuzz/found/$t-" "${corpus[@]}" >"build-fuzz/$t.log" 2>&1
}

# choose NAME: what is worth keeping of its seeds. What crashes is left out by -merge, and found.
choose() {
    rm -rf "build-fuzz/chosen/$1" "build-fuzz/chosen/$1.new"
    mkdir -p "build-fuzz/chosen/$1.new"
    # shellcheck disable=SC2046
    "${plain[@]}" "build-fuzz/tests/fuzz_$1" "${common[@]}" $(lengths "$1") -merge=1 -artifact_prefix="build-fuzz/found/$1-" \
        "build-fuzz/chosen/$1.new" "build-fuzz/seeds/$1" >"build-fuzz/$1.merge.log" 2>&1
    mv "build-fuzz/chosen/$1.new" "build-fuzz/chosen/$1"
    cp -r --update "build-fuzz/chosen/$1" build-fuzz/corpus/
}

mkdir -p build-fuzz/found build-fuzz/corpus build-fuzz/tmp
export TMPDIR=$ROOT/build-fuzz/tmp # of models with data in other files; what a crash leaves there goes
rm -rf build-fuzz/tmp/*
touch build-fuzz/begun
made=$(cksum <tests/fuzz/seeds.py)
if [ "$(cat build-fuzz/seeds/made 2>/dev/null)" != "$made" ]; then
    rm -rf build-fuzz/seeds build-fuzz/chosen
    "$PYTHON" tests/fuzz/seeds.py build/relayout build-fuzz/seeds
    echo "$made" >build-fuzz/seeds/made
fi
mkdir -p build-fuzz/chosen
: >build-fuzz/failed
[ "$seed" != 0 ] || for t in "${targets[@]}"; do [ "$t" = damaged ] || [ -d "build-fuzz/chosen/$t" ] || choose "$t" || echo "$t"; done >>build-fuzz/failed
for t in "${targets[@]}"; do fuzz "$t" || echo "$t"; done >>build-fuzz/failed
# Where a seed crashed, its target has one in found/ without having failed.
for t in "${targets[@]}"; do
    [ -z "$(find build-fuzz/found -newer build-fuzz/begun -name "$t-*" ! -name '*-slow-unit-*')" ] || echo "$t" >>build-fuzz/failed
done
failed=$(sort -u build-fuzz/failed)
for t in "${targets[@]}"; do
    log=build-fuzz/$t.log
    if grep -qx "$t" <<<"$failed"; then grep -E 'ERROR|must hold|runtime error|SUMMARY|artifact|#[0-9] ' "$log" | head -n 20; fi
    echo "$t: $(grep -oE 'number_of_executed_units: [0-9]+' "$log" | grep -oE '[0-9]+' || echo 0) inputs, $(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)"
done
nfail=$(grep -c . <<<"$failed" || true)
echo "$((${#targets[@]} - nfail)) passed, $nfail failed"
[ "$nfail" = 0 ]
