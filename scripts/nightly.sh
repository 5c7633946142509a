#!/usr/bin/env bash
# The long tests: all of scripts/test.sh in large sizes, then the same kind under ASan + UBSan, under valgrind, and a coverage
# figure. Prints each suite's closing line and ends with 1 if any failed.
#
#   nightly.sh           all steps
#   nightly.sh valgrind threads    steps whose name contains one of these words
#
#   RANDOM_COUNT   random models (default 20000); RANDOM_SEED: the first (default: today's day number times a million)
source "$(dirname "$0")/setup.sh"

export SOLVE_COUNT=${SOLVE_COUNT:-2000} MOVEMENT_COUNT=${MOVEMENT_COUNT:-5000} RANDOM_COUNT=${RANDOM_COUNT:-20000} RANDOM_SEED=${RANDOM_SEED:-$(($(date +%s) / 86400 * 1000000))}
export FUZZ_SECONDS=${FUZZ_SECONDS:-7200} FUZZ_SEED=
export BACKEND_FRACTION=${BACKEND_FRACTION:-1} PROOF_COUNT=${PROOF_COUNT:-4000} PROOF_TARGETS=${PROOF_TARGETS:-120} MUTATION_COUNT=${MUTATION_COUNT:-20000}
export RL_CUDA_ARCHS=${RL_CUDA_ARCHS:-75;80;90}
failed=()
words=("$@")
step() {
    local name=$1 status=0 w chosen=0
    shift
    for w in "${words[@]}"; do [[ $name == *"$w"* ]] && chosen=1; done
    [ ${#words[@]} = 0 ] || [ $chosen = 1 ] || return 0
    echo "== $name"
    "$@" || status=$?
    [ $status = 0 ] || failed+=("$name")
}

if [ ${#words[@]} != 0 ]; then # what "release" does first
    need_packages
    need_python
    need_onednn || true
    need_nvcc || true
    build_here
fi
build_asan() { build build-asan -DRL_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug; }

step "release" scripts/test.sh
# The CUDA backend's kernels, every thread on the host: the whole backend suite and the sample models.
emulated() {
    [ -x build/cuda/relayout_emulated ] || { echo "skipped: no C++ compiler for the emulated device"; return 0; }
    local status=0 test watched=build/cuda/relayout_watched # with races looked for: ten times as slow and more where models are large
    [ -x $watched ] || watched=build/cuda/relayout_emulated
    for test in test_kernels_b.py "test_text_run.py text/ops text/moves text/graph text/ir text/control"; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/python/$test --relayout $watched --device cuda | tail -n 3 || status=1
    done
    for test in "test_backend_run.py --at-least 2003" test_text_run.py test_kernels_spatial.py "test_fast.py --count 2000 --seed $((RANDOM_SEED % 100000))"; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/python/$test --relayout build/cuda/relayout_emulated --device cuda | tail -n 3 || status=1
    done
    for test in --replayed "--type float16" "--type bfloat16"; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/python/test_zoo_run.py --relayout build/cuda/relayout_emulated --device cuda $test | tail -n 3 || status=1
    done
    [ ! -x build/cuda/unit_gpu_dnn ] || build/cuda/unit_gpu_dnn all || status=1
    return $status
}
step "CUDA kernels on an emulated device" emulated
step "certificates of all sample models" "$PYTHON" tests/python/test_proof.py --zoo all --count 0 --made 0 --mutations 0

# Leaks count as failures; the leak check needs ptrace, which some containers forbid.
sanitized() {
    build_asan || return 1
    local n=$((RANDOM_COUNT / 20)) status=0
    ctest --test-dir build-asan --output-on-failure | tail -n 3 || status=1
    for test in "test_cases.py" "test_cli.py" "test_backend.py --fraction 0.5 --seed 2" "test_random.py --count $n --seed $RANDOM_SEED"; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/python/$test --build build --relayout build-asan/relayout | tail -n 20 || status=1
    done
    return $status
}
step "ASan and UBSan" sanitized

# The whole backend suite, the kernels on random shapes and the joined nodes, by both sets of kernels.
sanitized_kernels() {
    build_asan || return 1
    local status=0
    export ASAN_OPTIONS=detect_leaks=0 # oneDNN and OpenMP keep what they have until the process ends
    for test in "test_backend_run.py --kernels reference --at-least 2004" "test_backend_run.py --kernels fast" "test_kernels_spatial.py" \
        "test_kernels_b.py" "test_run_ops.py" "test_fast.py --count 500 --seed $((RANDOM_SEED % 100000))" "test_bytes.py --count 500 --seed $((RANDOM_SEED % 100000))" "test_native.py --count 100 --seed $((RANDOM_SEED % 100000))"; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/python/$test --build build --relayout build-asan/relayout | tail -n 20 || status=1
    done
    "$PYTHON" tests/python/test_places.py --build build-asan --count 60 --seed $((RANDOM_SEED % 100000)) | tail -n 20 || status=1
    return $status
}
step "kernels under ASan and UBSan" sanitized_kernels

# Each command with allocations that fail, in a build whose sanitizers see what such a failure leaves behind.
allocation_failures() { build_asan && build-asan/tests/unit_oom models build-asan/tests "${OOM_COUNT:-1500}"; }
step "allocation failures" allocation_failures

# Each model under every target and objective, before and after in onnxruntime and in relayout's own runtime: 0.3 s of a core for a model, so
# 50 minutes of two cores for 20,000.
every_target() {
    "$PYTHON" tests/python/test_random.py --count "$((RANDOM_COUNT / 2))" --seed "$RANDOM_SEED" --every all --own --jobs "$(nproc)" "$@"
}
step "every target and objective" every_target
step "every target and objective, other types" every_target --wide

step "weights beyond 2 GiB that change" "$PYTHON" tests/python/test_cli.py --large
step "kills while writing" "$PYTHON" tests/python/test_faults.py --kills 500

# All shapes instead of some; oneDNN and torch themselves instead of what they answered before.
layouts() {
    local status=0
    build/tests/unit_formats 1 || status=1
    build/tests/unit_move 1 || status=1
    if [ -e build/onednn/include ] || { python3 -m venv build/onednn &&
        build/onednn/bin/pip install --quiet --no-deps onednn-devel-cpu-gomp==2023.2.0 onednn-cpu-gomp==2023.2.0; }; then
        "$PYTHON" tests/python/test_layout_onednn.py --onednn build/onednn || status=1
    else
        echo "skipped: oneDNN cannot be had"
    fi
    if python3 -c 'import numpy, torch' 2>/dev/null; then
        python3 tests/python/test_layout_torch.py --count 50000 || status=1
    else
        echo "skipped: python3 has no torch (Debian: python3-torch)"
    fi
    return $status
}
step "layouts" layouts

# What runs in several threads: contexts and sessions at once, each session with threads of its own; layouts moved by several; the
# program on several models, and each model by several threads, with and without oneDNN (an empty name: none).
threads() {
    build build-tsan -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS=-fsanitize=thread -O1" || return 1
    local status=0 fixed=() out m n=0
    ! setarch -R true 2>/dev/null || fixed=(setarch -R) # ThreadSanitizer wants addresses where it looks for them
    out=$(mktemp -d)
    export TSAN_OPTIONS="exitcode=66 suppressions=$ROOT/tests/tsan.supp"
    "${fixed[@]}" ctest --test-dir build-tsan -R 'session|plan|formats|unit_move' --output-on-failure | tail -n 3 || status=1
    watched() {
        n=$((n + 1))
        "${fixed[@]}" build-tsan/relayout "$@" >/dev/null 2>"$out/err" || { cat "$out/err"; echo "$*: fails under ThreadSanitizer"; status=1; }
    }
    watched optimize models/*.onnx -o "$out/" --jobs 4
    watched bench-move --threads 4 --most 4194304 --only nchw
    for m in models/*.onnx build/zoo/pt_mobilenetv3*.onnx build/zoo/*espcn*.onnx; do
        [ -f "$m" ] || continue
        watched run "$m" --threads 4 --kernels reference
        watched run "$m" --threads 4
        RELAYOUT_ONEDNN='' watched run "$m" --threads 4
        RELAYOUT_ONEDNN='' watched bench "$m" --threads 3 --runs 3
    done
    rm -rf "$out"
    echo "threads: $n runs, $([ $status = 0 ] && echo 'no errors' || echo errors)"
    return $status
}
step "threads under ThreadSanitizer" threads

valgrinded() {
    command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; return 0; }
    local status=0 n=0 m out
    out=$(mktemp -d)
    local -x RELAYOUT_ONEDNN='' # the code that it generates is more than valgrind translates
    for m in models/*.onnx build/zoo/*mobilenet*.onnx build/zoo/*espcn*.onnx build/zoo/pt_crnn*.onnx build/zoo/pt_gpt*.onnx build/zoo/tf_ssd_lite*.onnx; do
        [ -f "$m" ] || continue
        n=$((n + 1))
        valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 \
            build/relayout optimize "$m" -o "$out/o.onnx" >/dev/null || { echo "$m: valgrind complains"; status=1; }
    done
    for command in "stats IN" "print IN" "explain IN" "report IN -o OUT/r.html" "dot IN --svg -o OUT/g.svg" "run IN --kernels reference" "bench IN --runs 1" \
        "optimize IN -o OUT/p.onnx --target onnx --proof OUT/p.cert --json OUT/p.json --check" "verify IN OUT/p.onnx" \
        "check-proof OUT/p.cert IN OUT/p.onnx" "targets" "ops" "passes" "layout describe --shape 2,64,3,3 NCHW4"; do
        n=$((n + 1))
        command=${command//IN/models/channels_last_cnn.onnx}
        # shellcheck disable=SC2086
        valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 build/relayout ${command//OUT/$out} >/dev/null ||
            { echo "$command: valgrind complains, or it fails"; status=1; }
    done
    rm -rf "$out"
    echo "valgrind: $n runs, $([ $status = 0 ] && echo 'no errors' || echo errors)"
    return $status
}
step "valgrind" valgrinded

step "coverage" scripts/coverage.sh 90
step "static checks" scripts/static.sh
step "64-bit ARM" scripts/aarch64.sh

if [ ${#failed[@]} != 0 ]; then
    printf 'failed: %s\n' "${failed[*]}"
    exit 1
fi
echo "all passed in $SECONDS s"
