#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs every test. Prints each suite's closing line and ends
# with 1 if any failed. Whole logs: build/test-logs/.
#
#   test.sh              all suites in CI sizes
#   test.sh zoo cases    suites whose name contains one of these words
#   test.sh --device cuda    the suites that run models, on a GPU; skipped, with their number, where there is none
#
# Where there is nvcc, the CUDA backend is compiled for RL_CUDA_ARCHS (default 90: one architecture); setup.sh's need_nvcc can fetch it.
case "${1:-}" in
-h | --help)
    sed -n '2,/^[^#]/s/^#\( \|$\)//p' "$0"
    exit 0
    ;;
esac
source "$(dirname "$0")/setup.sh"

device=
if [ "${1:-}" = --device ]; then
    device=$2
    shift 2
fi
need_packages
need_python
need_browser || say "Chromium cannot be had: the page of relayout report is not opened in a browser"
need_onednn || say "no oneDNN: the fast kernels are not tested"
need_checkers || say "clang or cppcheck cannot be had"
need_nvcc || say "no nvcc: the CUDA backend is not compiled (RL_FETCH_NVCC=1 fetches it); its kernels run on an emulated device"
build_here

RANDOM_COUNT=${RANDOM_COUNT:-200}
logs=build/test-logs
mkdir -p "$logs"
words=("$@")
any=0 # is there a suite that the words name?
: >"$logs/failed"

closing() { grep -E 'tests passed|passed, .* failed' "$1" | tail -n 1 | grep . || grep -v '^$' "$1" | tail -n 1; }

# suite NAME COMMAND...: runs it beside the two before, of which one often waits for a disk, and prints its last line; on failure also what it
# complained about.
suite() {
    local name=$1 w chosen=0
    shift
    for w in "${words[@]}"; do [[ $name == *"$w"* ]] && chosen=1; done
    [ ${#words[@]} = 0 ] || [ $chosen = 1 ] || return 0
    any=1
    while [ "$(jobs -rp | wc -l)" -ge 3 ]; do wait -n || true; done
    run_suite "$name" "$@" &
}

run_suite() {
    local name=$1 start=$SECONDS status=0 lines
    shift
    "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
    lines=$(printf '%-16s %4d s  %s' "$name" $((SECONDS - start)) "$(closing "$logs/$name.log")")
    if [ $status != 0 ]; then
        echo "$name" >>"$logs/failed"
        lines+=$'\n'$(grep -vE '(ok|ok  \(.*\))$' "$logs/$name.log" | tail -n 40 | sed 's/^/    /')
    fi
    printf '%s\n' "$lines" # at once: two suites may end together
}

# Tests that need no options of their own.
others() {
    local f
    for f in tests/python/test_*.py; do
        case $(basename "$f" .py) in
        test_zoo | test_cases | test_backend | test_backend_run | test_random | test_solve | test_movement | test_proof | test_package) ;;
        *) suite "$(basename "$f" .py | sed 's/^test_//')" "$PYTHON" "$f" ;;
        esac
    done
}

py() { suite "$1" "$PYTHON" "tests/python/$2" --build build "${@:3}"; }

# clang is not installed for this: scripts/fuzz.sh does that. FUZZ_SEED: empty for other inputs each time.
fuzz() {
    local seed=${FUZZ_SEED-1}
    if have_fuzzer; then scripts/fuzz.sh --light ${seed:+--seed "$seed"} "${FUZZ_SECONDS:-60}"; else echo "skipped: no clang with libFuzzer"; fi
}

# Races, addresses and bytes without numbers of the kernels (cuda/watch.h).
gpu_races() {
    if [ -x build/cuda/relayout_watched ]; then ctest --test-dir build -R 'watched|gpu_watch' --output-on-failure --no-tests=error
    else echo "skipped: no compiler with -fsanitize=thread"; fi
}

# The list for a device: what the CPU's has that runs models.
on_device() {
    local why names=(backend-run zoo-run text-run joined kernels-spatial kernels)
    if ! why=$(build/relayout run models/attention_block.onnx --device "$device" 2>&1); then
        echo "0 passed, 0 failed, ${#names[@]} skipped: ${why#relayout: models/attention_block.onnx: }"
        exit 0
    fi
    py backend-run test_backend_run.py --device "$device" --at-least 2003
    py zoo-run test_zoo_run.py --device "$device"
    py text-run test_text_run.py --device "$device"
    py joined test_fast.py --device "$device"
    py kernels-spatial test_kernels_spatial.py --device "$device"
    py kernels test_kernels_b.py --device "$device"
}

closing_status() {
    wait
    if [ -s "$logs/failed" ]; then
        echo "failed: $(sort "$logs/failed" | xargs) (logs in $logs)"
        exit 1
    fi
    if [ $any = 0 ]; then
        echo "no suite's name contains ${words[*]}"
        exit 2
    fi
    echo "all suites passed in $SECONDS s"
    exit 0
}

if [ -n "$device" ]; then
    on_device
    closing_status
fi

suite ctest ctest --test-dir build --output-on-failure --no-tests=error -E 'watched|gpu_watch'
suite gpu-races gpu_races
suite static scripts/static.sh clang cppcheck # gcc: the build above
wait # ctest makes what embed reads
suite embed sh tests/embed.sh build
wait # the next one promises how long installing takes
suite package bash tests/package.sh build
wait
suite fuzz fuzz # takes longest: first, beside the others
py models-onnx verify.py --target onnx models/*.onnx
py models-generic verify.py --target generic models/*.onnx
py cases-onnx test_cases.py --target onnx
py cases-generic test_cases.py --target generic
py zoo-onnx test_zoo.py --target onnx
py backend-run test_backend_run.py --at-least 2004
py backend-run-reference test_backend_run.py --fraction "${BACKEND_FRACTION:-0.25}" --kernels reference
py backend-run-joined test_backend_run.py --fraction "${BACKEND_FRACTION:-0.25}" --joined
if [ -x build/cuda/relayout_emulated ]; then
    watched=build/cuda/relayout_watched # it says more, and is as quick where models are small
    [ -x $watched ] || watched=build/cuda/relayout_emulated
    py gpu-emulated test_backend_run.py --relayout $watched --device cuda _conv_ pool softmax reduce gather scatter matmul \
        gemm pad resize layer_norm batchnorm where clip cast transpose slice concat _attention rotary top_k cumsum triu tril onehot gridsample \
        lstm gru_ rnn_ lrn test_mean_ quantizelinear convinteger hardmax normalization mvn shrink eyelike dropout upsample swiglu bitcast
    py gpu-emulated-text test_text_run.py --relayout $watched --device cuda text/ops text/moves text/graph text/ir
    RELAYOUT_SERVING=build/cuda/relayout_emulated_serving py gpu-emulated-low test_zoo_run.py --relayout build/cuda/relayout_emulated --device cuda --type float16 espcn mobilenetv3
    py gpu-emulated-joined test_fast.py --relayout build/cuda/relayout_emulated --device cuda --count 100
    py gpu-emulated-zoo test_zoo_run.py --relayout build/cuda/relayout_emulated --device cuda --replayed mobilenet superres ssd crnn
else
    say "skipped: no C++ compiler for the emulated device"
fi
# Not beside zoo-onnx, which makes the samples and what they are compared with.
py zoo-generic test_zoo.py --target generic
py zoo-fused test_zoo.py --target fused
py backend test_backend.py --fraction "${BACKEND_FRACTION:-0.25}"
suite solve "$PYTHON" tests/python/test_solve.py --solver build/tests/solve_cli --count "${SOLVE_COUNT:-200}" --limit 2
py proof test_proof.py --count "${PROOF_COUNT:-60}" --targets "${PROOF_TARGETS:-24}" --mutations "${MUTATION_COUNT:-400}" --seed "${RANDOM_SEED:-0}"
others
py float16 test_fast.py --type float16
py bfloat16 test_fast.py --type bfloat16 --seed 1
py zoo-run-float16 test_zoo_run.py --type float16 resnet18 mobilenetv3 vit_tiny swin_tiny unet shufflenet
py movement test_movement.py --count "${MOVEMENT_COUNT:-500}" --seed "${RANDOM_SEED:-0}"
py random-ort test_random.py --count "$((RANDOM_COUNT / 4))" --seed "${RANDOM_SEED:-0}" --target ort
py random test_random.py --count "$RANDOM_COUNT" --seed "${RANDOM_SEED:-0}"
py random-known test_random.py --known
py random-wide test_random.py --wide --own --count "$((RANDOM_COUNT / 4))" --seed "${RANDOM_SEED:-0}"
py random-own test_random.py --count "$((RANDOM_COUNT / 4))" --own --seed "${RANDOM_SEED:-0}"
closing_status
