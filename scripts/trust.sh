#!/usr/bin/env bash
# What relayout does with bad inputs, random models and interrupted writes: how often each was tried, and how often it went wrong, as the
# tests print it; ends with 1 where something did, or a test gave no figure.
#
#   trust.sh > bench/results/trust.md
#   trust.sh [MODELS [KILLS [FUZZ_SECONDS]]]     1000 random models, 500 kills, 60 s of fuzzing
source "$(dirname "$0")/setup.sh"

models=${1:-1000} kills=${2:-500} fuzz=${3:-60}
need_packages
need_python
build build -DRL_WERROR=ON
logs=build/trust
mkdir -p "$logs"
declare -A tried=([input]=0 [result]=0 [write]=0) found=([input]=0 [wrong]=0 [worse]=0 [write]=0)
rows=() broken=0

# What check.py calls worse: more of what moves data, or a second run that finds something.
WORSE='Transposes grew|other moves grew|second optimize'

# row CLASS WHAT COMMAND...: runs it; its closing line has the figures. CLASS: input, result or write.
row() {
    local class=$1 what=$2 log status=0 figures passed failed worse=0 extra
    shift 2
    log=$logs/$(tr -cd 'a-z' <<<"$what").log
    say "$what"
    "$@" >"$log" 2>&1 || status=$?
    figures=$(grep -hoE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true
    if ! read -r passed _ failed _ <<<"$figures" || [ $((status != 0)) != $((failed != 0)) ]; then
        broken=$((broken + 1))
        rows+=("| $what | no figure (status $status) | | \`${*//$PYTHON/python}\` |")
        return
    fi
    tried[$class]=$((${tried[$class]} + passed + failed))
    if [ "$class" = result ]; then
        # a failing model is worse where nothing else is said of it, and wrong otherwise
        worse=$(grep -E '^[a-z-]+ [^ ]+ \([^)]*\): ' "$log" | grep -E "$WORSE" | cut -d' ' -f1-2 | sort -u | grep -c . || true)
        [ "$worse" -le "$failed" ] || worse=$failed
        found[worse]=$((${found[worse]} + worse))
        found[wrong]=$((${found[wrong]} + failed - worse))
    else
        found[$class]=$((${found[$class]} + failed))
    fi
    extra=$(grep -hE '^slowest |^[0-9]+ kills, ' "$log" | tail -n 1) || true
    rows+=("| $what | $((passed + failed))${extra:+; $extra} | $failed | \`${*//$PYTHON/python}\` |")
}

# Inputs, not targets, are counted; a target that failed counts once.
fuzzed() {
    local status=0
    scripts/fuzz.sh --seed 1 "$fuzz" >"$logs/fuzz.out" || status=$?
    cat "$logs/fuzz.out"
    awk '/ inputs, / { n += $2 } / passed, / { failed = $3 } END { print n - failed " passed, " failed + 0 " failed" }' "$logs/fuzz.out"
    return $status
}
# Each allocation that was made to fail counts.
oom() {
    local status=0
    build/tests/unit_oom models build/tests "${OOM_COUNT:-300}" >"$logs/oom.out" || status=$?
    cat "$logs/oom.out"
    awk '/ failures, / { for (i = 2; i <= NF; i++) if ($i == "failures,") n += $(i - 1) } / checks, / { failed = $3 }
         END { print n - failed " passed, " failed + 0 " failed" }' "$logs/oom.out"
    return $status
}

row input "hostile files: damaged, contradictory, oversized, pointing elsewhere; optimized, and run" "$PYTHON" tests/python/test_hostile.py --all
row input "inputs that once crashed a fuzz target" build/tests/crashes tests/fuzz/crashes
if have_fuzzer; then
    row input "fuzzed inputs, ASan and UBSan" fuzzed
else
    rows+=("| fuzzed inputs | skipped: no clang with libFuzzer | | \`scripts/fuzz.sh\` |")
fi
row input "false certificates: accepted" "$PYTHON" tests/python/test_proof.py --count 50 --mutations 1000
row result "models of the ONNX backend suite under two targets" "$PYTHON" tests/python/test_backend.py --fraction 1
row result "random models under two targets and one more in turn, the own runtime beside onnxruntime" \
    "$PYTHON" tests/python/test_random.py --count "$models" --every turn --own
row result "random models under every target and objective" "$PYTHON" tests/python/test_random.py --count "$((models / 20))" --seed 500000 --every all
row write "faults while writing, and kills" "$PYTHON" tests/python/test_faults.py --kills "$kills"
row write "allocations that fail, in whole commands" oom

cat <<END
# Bad inputs, wrong results, worsening, files lost

Made by \`scripts/trust.sh $models $kills $fuzz\`, which counts what the tests print. What peers do with such files: \`docs/trust.md\`.
Machine: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, $(uname -sr).
Versions: relayout $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d).

| what must not happen | tried | happened |
|---|---|---|
| bad inputs: a crash, a sanitizer's report, more than 10 s or than the memory allowed; a false certificate accepted | ${tried[input]} | ${found[input]} |
| a wrong result: other outputs, an invalid model, another interface | ${tried[result]} models | ${found[wrong]} |
| silent worsening: more Transposes or more of what moves data, or a second run that finds something | ${tried[result]} models | ${found[worse]} |
| a file lost or half written; memory lost, or another answer than "out of memory" | ${tried[write]} | ${found[write]} |

| test | tried | failed | by |
|---|---|---|---|
$(printf '%s\n' "${rows[@]}")
END
[ $((broken + found[input] + found[wrong] + found[worse] + found[write])) = 0 ]
