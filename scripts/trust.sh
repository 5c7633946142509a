#!/usr/bin/env bash
# What relayout does with bad inputs, random models and interrupted writes: how often each was tried, and how often it went wrong, as the
# tests print it; ends with 1 where something did, or a test gave no figure.
#
#   trust.sh > bench/results/trust.md
#   trust.sh [MODELS [KILLS [FUZZ_SECONDS [FAILURES]]]]    1000 random models, 500 kills, 120 s of fuzzing (0: none), 300 allocations of each command
source "$(dirname "$0")/setup.sh"

models=${1:-1000} kills=${2:-500} fuzz=${3:-120} failures=${4:-300}
need_packages
need_python
build_here
logs=build/trust
mkdir -p "$logs"

# What check.py calls worse: more of what moves data, or a second run that finds something.
WORSE='Transposes grew|other moves grew|second optimize'

# row CLASS WHAT COMMAND...: runs it and appends to CLASS.rows its figures, by its closing line, and its row of the table.
row() {
    local class=$1 what=$2 log status=0 figures passed failed worse=0 extra
    shift 2
    log=$logs/$(tr -cd 'a-z' <<<"$what").log
    say "$what"
    "$@" >"$log" 2>&1 || status=$?
    figures=$(grep -hoE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true
    if ! read -r passed _ failed _ <<<"$figures" || [ $((status != 0)) != $((failed != 0)) ]; then
        echo "0 0 0 1 | $what | no figure (status $status) | | \`${*//$PYTHON/python}\` |" >>"$logs/$class.rows"
        return
    fi
    if [ "$class" = result ]; then # a failing model is worse where nothing else is said of it, and wrong otherwise
        worse=$(awk -v worse="$WORSE" '/^[a-z-]+ [^ ]+ \([^)]*\): / { at[$1 $2] = 1; if ($0 !~ worse) wrong[$1 $2] = 1 }
            END { for (m in at) if (!(m in wrong)) n++; print n + 0 }' "$log")
    fi
    extra=$(grep -hE '^slowest |^[0-9]+ kills, ' "$log" | tail -n 1) || true
    echo "$((passed + failed)) $((failed - worse)) $worse 0 | $what | $((passed + failed))${extra:+; $extra} | $failed | \`${*//$PYTHON/python}\` |" \
        >>"$logs/$class.rows"
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
    build/tests/unit_oom models build/tests "$failures" >"$logs/oom.out" 2>&1 || status=$? # what is said after the first command goes to stderr
    cat "$logs/oom.out"
    awk '/ failures, / { for (i = 2; i <= NF; i++) if ($i == "failures,") n += $(i - 1) } / checks, / { failed = $3 }
         END { print n - failed " passed, " failed + 0 " failed" }' "$logs/oom.out"
    return $status
}

inputs() {
    row input "hostile files: damaged, contradictory, oversized, pointing elsewhere; optimized, and run" "$PYTHON" tests/python/test_hostile.py --all
    row input "inputs that once crashed a fuzz target" build/tests/crashes tests/fuzz/crashes
    row input "false certificates: accepted" "$PYTHON" tests/python/test_proof.py --count 50 --mutations 1000
}
results() {
    row result "models of the ONNX backend suite under two targets" "$PYTHON" tests/python/test_backend.py --fraction 1
    row result "random models under two targets and one more in turn, the own runtime beside onnxruntime" \
        "$PYTHON" tests/python/test_random.py --count "$models" --every turn --own
    row result "random models of other types, opsets 7 to 28, the same" \
        "$PYTHON" tests/python/test_random.py --wide --count "$((models / 2))" --every turn --own
    row result "random models under every target and objective" "$PYTHON" tests/python/test_random.py --count "$((models / 20))" --seed 500000 --every all
}
writes() {
    row write "faults while writing, and kills" "$PYTHON" tests/python/test_faults.py --kills "$kills"
    row write "allocations that fail, in whole commands" oom
}
rm -f "$logs"/*.rows
inputs &
results &
writes &
wait
if [ "$fuzz" = 0 ] || ! have_fuzzer; then
    echo "0 0 0 0 | fuzzed inputs, ASan and UBSan | not run | | \`scripts/fuzz.sh\` |" >>"$logs/input.rows"
else
    row input "fuzzed inputs, ASan and UBSan" fuzzed
fi

# sum CLASS FIELD: over its rows; 1 tried, 2 wrong, 3 worse, 4 without a figure
sum() { awk -v f="$2" '{ n += $f } END { print n + 0 }' "$logs/$1.rows"; }

cat <<END
# Bad inputs, wrong results, worsening, files lost

Made by \`scripts/trust.sh $models $kills $fuzz $failures\`, which counts what the tests print. What peers do with such files: \`docs/trust.md\`.
Machine: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, $(uname -sr).
Versions: relayout $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d).

| what must not happen | tried | happened |
|---|---|---|
| bad inputs: a crash, a sanitizer's report, more than 10 s or than the memory allowed; a false certificate accepted | $(sum input 1) | $(sum input 2) |
| a wrong result: other outputs, an invalid model, another interface | $(sum result 1) models | $(sum result 2) |
| silent worsening: more Transposes or more of what moves data, or a second run that finds something | $(sum result 1) models | $(sum result 3) |
| a file lost or half written; memory lost, or another answer than "out of memory" | $(sum write 1) | $(sum write 2) |

| test | tried | failed | by |
|---|---|---|---|
$(cut -d' ' -f5- "$logs"/input.rows "$logs"/result.rows "$logs"/write.rows)
END
[ "$(awk '{ n += $2 + $3 + $4 } END { print n }' "$logs"/*.rows)" = 0 ]
