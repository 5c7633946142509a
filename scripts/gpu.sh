#!/usr/bin/env bash
# On a machine with an NVIDIA GPU, nvcc and, best, cuDNN 9: builds, runs every test on the GPU, checks the kernels with compute-sanitizer,
# and measures.  Writes bench/results/gpu-NAME.md with the device's name.  Ends with 1 if anything failed, with 5 where there is no GPU.
source "$(dirname "$0")/setup.sh"

need_packages
need_python
need_nvcc || { say "gpu.sh: no nvcc (RL_FETCH_NVCC=1 fetches it)"; exit 5; }
build build-gpu -DRL_WERROR=ON -DRL_CUDA=ON
if ! why=$(build-gpu/relayout run models/attention_block.onnx --device cuda 2>&1); then
    say "gpu.sh: ${why#relayout: models/attention_block.onnx: }"
    exit 5
fi
name=$(grep -o '^[^,]*, compute capability [0-9.]*' <<<"$why" | head -n 1)
out=bench/results/gpu-$(tr -cs 'A-Za-z0-9' '-' <<<"${name%%,*}" | tr 'A-Z' 'a-z' | sed 's/-*$//').md
logs=build-gpu/test-logs
mkdir -p "$logs"
status=0

step() {
    local what=$1
    shift
    if "$@" >"$logs/$what.log" 2>&1; then echo "$what: $(tail -n 1 "$logs/$what.log")"; else
        status=1
        echo "$what: FAILED: $(tail -n 1 "$logs/$what.log")"
    fi
}

sanitized() {
    command -v compute-sanitizer >/dev/null || { echo "skipped: no compute-sanitizer"; return 0; }
    local tool m bad=0 n=0
    for tool in memcheck racecheck initcheck; do
        for m in models/*.onnx; do
            n=$((n + 1))
            compute-sanitizer --tool "$tool" --error-exitcode 99 build-gpu/relayout run "$m" --device cuda || bad=1
        done
    done
    echo "$n runs under compute-sanitizer"
    return $bad
}

{
    echo "# $name"
    echo
    echo "Made by \`scripts/gpu.sh\` on $(date -u +%F), commit $(git rev-parse --short HEAD); driver and toolkit:"
    echo "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1), $(nvcc --version | grep -o 'V[0-9.]*$')"
    echo
    echo '```'
    step backend "$PYTHON" tests/python/test_backend_run.py --build build-gpu --device cuda --at-least 2004
    step zoo "$PYTHON" tests/python/test_zoo_run.py --build build-gpu --device cuda --jobs 1
    step sanitizer sanitized
    echo '```'
    echo
    build-gpu/cuda/gpu_moves 64 || status=1
    echo
    echo "## Models"
    for m in models/*.onnx build-gpu/zoo/*.onnx; do
        [ -f "$m" ] || continue
        echo
        echo "\`$(basename "$m")\`"
        echo '```'
        build-gpu/relayout bench "$m" --device cuda 2>&1 | head -n 12
        echo '```'
    done
} >"$out"
cat "$out"
exit $status
