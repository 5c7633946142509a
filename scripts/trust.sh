#!/usr/bin/env bash
# The table of what relayout does with bad inputs, random models and interrupted writes, each row by the test that is named in it; ends
# with 1 where a figure is not the wanted one.  trust.sh [MODELS [KILLS [FUZZ_SECONDS]]]: 1000 random models, 500 kills, 60 s of fuzzing.
#
#   trust.sh > bench/results/trust.md
source "$(dirname "$0")/setup.sh"

models=${1:-1000} kills=${2:-500} fuzz=${3:-60}
need_packages
need_python
build build -DRL_WERROR=ON
mkdir -p build/trust
bad=0

# row WHAT WANTED COMMAND...: COMMAND's closing line; the row of the table
row() {
    local what=$1 wanted=$2 log status=0 figures extra
    shift 2
    log=build/trust/$(echo "$what" | tr -cd 'a-z').log
    "$@" >"$log" 2>&1 || status=$?
    figures=$(grep -hoE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1)
    extra=$(grep -hE '^slowest ' "$log" | tail -n 3 | tr '\n' ';' | sed 's/;$//; s/;/; /g')
    [ $status = 0 ] && [ -n "$figures" ] || bad=1
    printf '| %s | %s%s | %s | `%s` |\n' "$what" "${figures:-no figure (status $status)}" "${extra:+; $extra}" "$wanted" "${*//$PYTHON/python}"
}

fuzzed() {
    local status=0
    scripts/fuzz.sh --seed 1 "$fuzz" >build/trust/fuzz.out || status=$?
    cat build/trust/fuzz.out
    awk -F'[: ]+' '/inputs, cov/ { n += $2 } END { print n " passed, 0 failed" }' build/trust/fuzz.out
    return $status
}
# Each allocation that was made to fail counts.
oom() {
    build/tests/unit_oom models build/tests "${OOM_COUNT:-300}" | tee build/trust/oom.out
    awk '{ for (i = 2; i <= NF; i++) if ($i == "failures,") n += $(i - 1) } END { print n " passed, 0 failed" }' build/trust/oom.out
}

cat <<END
# Bad inputs, wrong results, worsening, files lost

Made by \`scripts/trust.sh $models $kills $fuzz\`. A failure is a crash, a hang over 10 s, a sanitizer's report, more memory than allowed, a wrong
result, or a file half written. What peers do with such files is measured in \`docs/peers.md\`.
Machine: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, $(uname -sr).
Versions: relayout $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d).

| what | figure | wanted | by |
|---|---|---|---|
END
row "hostile files (damaged, contradictory, oversized, pointing elsewhere), optimized and run" "0 failed; 10 s" "$PYTHON" tests/python/test_hostile.py --all
row "inputs that once crashed a fuzz target" "0 failed" build/tests/crashes tests/fuzz/crashes
if have_fuzzer; then row "fuzzed inputs, eight targets, ASan and UBSan" "0 failed" fuzzed; fi
row "models of the ONNX backend suite: same outputs, no more moves, second run changes nothing" "0 failed" "$PYTHON" tests/python/test_backend.py --fraction 1
row "random models, two targets and one more in turn, own runtime against onnxruntime: wrong, worse" "0 failed" \
    "$PYTHON" tests/python/test_random.py --count "$models" --every turn --own
row "random models of other types, opsets 7 to 28, the same" "0 failed" "$PYTHON" tests/python/test_random.py --wide --count "$((models / 2))" --every turn --own
row "random models under every target and objective" "0 failed" "$PYTHON" tests/python/test_random.py --count "$((models / 20))" --seed 500000 --every all
row "false certificates refused" "0 failed" "$PYTHON" tests/python/test_proof.py --count 50 --mutations 1000
row "faults while writing, and $kills kills: files lost or half written" "0 failed" "$PYTHON" tests/python/test_faults.py --kills "$kills"
row "commands with failing allocations: lost, leaked, written" "0 failed" oom
exit $bad
