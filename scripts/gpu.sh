#!/usr/bin/env bash
# On a machine with an NVIDIA GPU, nvcc and, best, cuBLASLt and cuDNN 9: builds, runs every test on the GPU, checks the kernels with
# compute-sanitizer, and measures.  Writes bench/results/gpu-NAME.md with the device's name; whatever fails, the rest is done.  Ends with
# 1 if anything failed, with 5 where there is no GPU.  Logs: build-gpu/test-logs.
source "$(dirname "$0")/setup.sh"

need_packages
need_python
need_nvcc || { say "gpu.sh: no nvcc (RL_FETCH_NVCC=1 fetches it)"; exit 5; }
build build-gpu -DRL_WERROR=ON -DRL_CUDA=ON
cmake --build build-gpu --target gpu_tests >/dev/null
logs=build-gpu/test-logs
mkdir -p "$logs" bench/results
status=0 first=0
why=$(timeout 300 build-gpu/relayout run models/attention_block.onnx --device cuda 2>&1) || first=$?
if [ $first != 0 ]; then
    say "gpu.sh: ${why#relayout: models/attention_block.onnx: }"
    [ $first = 5 ] && exit 5
    status=1 # there is a device, and it fails: go on, so that the tests tell where
    why="$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1), unknown; it failed"
fi
device=$(head -n 1 <<<"$why")
device=${device%; nodes on it*}
out=bench/results/gpu-$(tr -cs 'A-Za-z0-9' '-' <<<"${device%%,*}" | tr 'A-Z' 'a-z' | sed 's/-*$//').md

# A name, the most seconds, a command.
step() {
    local what=$1 limit=$2 rc=0
    shift 2
    timeout "$limit" "$@" >"$logs/$what.log" 2>&1 || rc=$?
    if [ $rc = 0 ]; then
        echo "$what: $(tail -n 1 "$logs/$what.log")"
        return
    fi
    status=1
    echo "$what: FAILED ($rc)"
    grep -vE '(ok|ok  \(.*\))$' "$logs/$what.log" | tail -n 12 | cut -c1-300 | sed 's/^/    /'
}

sanitize() {
    local tool t
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer: skipped: it is not there"; return; }
    for tool in memcheck racecheck initcheck; do
        for t in device_gpu_table device_gpu_run device_gpu_chwn4 device_gpu_move; do
            step "$tool-$t" 900 compute-sanitizer --tool "$tool" --error-exitcode 99 "build-gpu/cuda/$t"
        done
    done
}

models() {
    local m
    for m in models/*.onnx build-gpu/zoo/*.onnx; do
        [ -f "$m" ] || continue
        echo
        echo "\`$(basename "$m")\`"
        echo '```'
        timeout 300 build-gpu/relayout bench "$m" --device cuda 2>&1 | sed -n 1,14p || { status=1; echo "FAILED"; }
        echo '```'
    done
}

{
    echo "# ${device%%,*}"
    echo
    echo "Made by \`scripts/gpu.sh\` on $(date -u +%F), commit $(git rev-parse --short HEAD), driver" \
        "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1), nvcc $(nvcc --version | grep -o 'V[0-9.]*$')."
    echo "$device"
    echo
    echo '```'
    for t in move chwn4 table run; do step "device_gpu_$t" 600 "build-gpu/cuda/device_gpu_$t"; done
    RELAYOUT_CUDA_SYNC=1 step table-waiting 600 build-gpu/cuda/device_gpu_table # what fails here is named
    step backend 1800 "$PYTHON" tests/python/test_backend_run.py --build build-gpu --device cuda --at-least 2004
    step zoo 1800 "$PYTHON" tests/python/test_zoo_run.py --build build-gpu --device cuda --jobs 1
    sanitize
    echo '```'
    echo
    timeout 600 build-gpu/cuda/gpu_moves 64 || { status=1; echo "gpu_moves: FAILED"; }
    echo
    echo "## Models"
    models
} >"$out"
cat "$out"
exit $status
