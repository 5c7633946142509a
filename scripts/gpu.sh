#!/usr/bin/env bash
# On a machine with an NVIDIA GPU and, best, cuBLASLt and cuDNN 9: builds, runs every test on the GPU, checks the kernels with compute-sanitizer, and
# measures.  Writes bench/results/gpu-NAME.md with the device's name.
#
#   gpu.sh                      all parts but pack
#   gpu.sh tests move           a few of them:
#                               pack       nothing on a GPU: builds for the architectures of RL_CUDA_ARCHS (90) and puts what a machine without a network
#                                          or a compiler needs into build-gpu-packed: the program, unit tests, gpu_moves, libprotobuf-c, sample models
#                               build      the program and the tests, where build-gpu-packed is not there
#                               tests      unit tests on the device, with the libraries and by own kernels alone
#                               move       moves against cudaMemcpy's copy and cudnnTransformTensor
#                               models     share of cuDNN's and cuBLASLt's kernels, latency beside onnxruntime's CUDA provider
#                               zoo        the sample models in float32; zoo16, zoobf: in float16, bfloat16, against the CPU's kernels
#                               sanitizer  memcheck, racecheck, initcheck on the unit tests of own kernels
#                               ops        text cases and random networks against onnxruntime
#                               places     plans of layouts: costs measured on the device, plans with blocks, against the CPU's reference kernels
#                               backend    the ONNX backend suite
#
# build, move and models go first and alone, one after the other, since they measure (but for build); the others share the device, two at a time.
# Whatever fails, the rest is done; a part's report replaces its older one in the file, which is written after each part.  Ends with 1 if anything
# failed, with 5 where there is no GPU.  GPU_SECONDS=240: no step begins or goes on after so many (models takes half of what is left where others
# follow); what had no time is said, and a call with these parts does it.  GPU_OUT, a folder that gets the file and the parts' reports and logs after
# each part, so that a call that is ended leaves what it had; GPU_DONE, such a folder of an earlier call, whose reports the file has, too.  Where a
# Python package is missing (numpy, onnx, onnxruntime) what wants it is skipped and said.  Logs: build-gpu/test-logs.
#
# zoo, zoo16 and zoobf take what they compare with from build-gpu-packed/references where that is (the CPU's reference kernels have most of their time):
#     for t in float16 bfloat16; do tests/python/test_zoo_run.py --type $t --references build-gpu-packed/references --only-references; done
#
# GPU_PROGRAM, GPU_TOOLS and GPU_SERVING name another program, folder of unit tests and program for many command lines (a dry run on the emulated device:
# GPU_PROGRAM=build/cuda/relayout_emulated GPU_TOOLS=build/cuda/unit gpu.sh tests); PYTHON, another Python; RELAYOUT_SHARED, where the sample
# models are.  cuDNN and cuBLASLt are also looked for in Python's packages (nvidia-cudnn-cu13 and the like).  To build without a network:
# GPU_PREFIX, a folder with Debian's packages libprotobuf-c-dev and protobuf-c-compiler, and what they need, unpacked (dpkg -x).
export PYTHON_GIVEN=${PYTHON:-}
source "$(dirname "$0")/setup.sh"

parts=("$@")
all=(tests move models zoo sanitizer zoo16 ops places backend zoobf) # the file's order, too
packed=build-gpu-packed
built=build-gpu
[ ! -x $packed/relayout ] || built=$packed
[ ${#parts[@]} != 0 ] || parts=("${all[@]}")
most=${GPU_SECONDS:-0}
program=${GPU_PROGRAM:-$built/relayout} tools=${GPU_TOOLS:-$built/cuda/device}
moves=${GPU_MOVES:-$built/cuda/gpu_moves} serving=${GPU_SERVING:-$built/cuda/relayout_serving} # many command lines in one process
GPU_CASES=${GPU_CASES:-} # a few of the cases and models, for a dry run
logs=build-gpu/test-logs
results=bench/results
[ -z "${GPU_PROGRAM:-}" ] || results=$logs # a dry run is no result
mkdir -p "$logs"
rm -f "$logs/failed"
alone=() shared=()
for p in "${parts[@]}"; do
    case $p in build | pack | move | models) alone+=("$p") ;; *) shared+=("$p") ;; esac
done
at_once=2 # parts; of 40 processes at a time an H200 had none ready after 100 s, of a dozen two or three a second
jobs=$((2 * $(nproc) / ((${#shared[@]} < at_once ? ${#shared[@]} : at_once) + 1))) # of each part; much of their time they wait for the device
jobs=$((jobs < 2 ? 2 : jobs < $(nproc) ? jobs : $(nproc)))
export CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)

# The Python that has what the tests want: the one that is named, .venv, the machine's own; $missing: what it has not.
find_python() {
    local p m
    for p in "$PYTHON_GIVEN" "$PYTHON" python3; do
        [ -n "$p" ] && "$p" -c 'import numpy, onnx, onnxruntime' 2>/dev/null && PYTHON=$p && return 0
    done
    [ $built = $packed ] || timeout 100 bash -c 'source scripts/setup.sh && need_python' && return 0 # where there is a network
    "$PYTHON" -c '' 2>/dev/null || PYTHON=python3
    for m in numpy onnx onnxruntime; do "$PYTHON" -c "import $m" 2>/dev/null || missing="${missing:+$missing, }$m"; done
}
missing=

# What goes wrong is told by a file, since parts and steps are processes of their own.
failed() { : >"$logs/failed"; }

# Seconds until this part must end: nine minutes of its own, and GPU_SECONDS in all.
part_start=0
left() {
    local own=$((part_start + 510 - SECONDS)) all=$((most - SECONDS))
    [ "$most" = 0 ] || [ $all -gt $own ] || own=$all
    echo $own
}

# Of what was built: a copy of the folder may have another history.
commit() { cat $packed/commit 2>/dev/null || git rev-parse --short HEAD 2>/dev/null || echo unknown; }

# Is there a device? Its name, and what the program says of the libraries, in $device; 5: none.
find_device() {
    local why rc=0
    why=$(timeout 300 "$program" run models/attention_block.onnx --device cuda 2>&1) || rc=$?
    device=$(head -n 1 <<<"$why")
    device=${device%; nodes on it*}
    device=${device%; nodes*}
    [ $rc = 0 ] && return 0
    say "gpu.sh: ${why#relayout: models/attention_block.onnx: }"
    [ $rc = 5 ] && exit 5
    failed # there is a device, and it fails: go on, so that the tests tell where
    device="$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1), unknown; it failed"
}

# What compute-sanitizer, or a failed check, says before the end.
complained() { grep -qE '^=+ +(Error|ERROR: |Warning: .*hazard|Invalid|Uninitialized|Misaligned|Race reported)|: failed: ' "$1"; }

# A name, the most seconds, a command: says the last line of what that says, and where it fails its end, at once.  What ran out of time did not fail;
# it counts as failed where it had all its seconds, and is not known to be slow ($patient): it may hang.
patient=
step() {
    local what=$1 limit=$2 rc=0 start=$SECONDS rest cut= said
    shift 2
    rest=$(left)
    [ "$rest" -ge 5 ] || { echo "$what: skipped: no time left"; return; }
    [ "$limit" -le "$rest" ] || limit=$rest cut=1
    timeout "$limit" "$@" >"$logs/$what.log" 2>&1 || rc=$?
    said="$what ($((SECONDS - start)) s): $(grep -v '^$' "$logs/$what.log" | tail -n 1)"
    if [ $rc = 124 ] && ! complained "$logs/$what.log"; then
        said="$what: timed out after $((SECONDS - start)) s, no error until then"
        [ -n "$cut$patient" ] || failed
    elif [ $rc != 0 ]; then
        failed
        said="$what ($((SECONDS - start)) s): FAILED ($rc)"$'\n'
        said+=$(grep -vE '(ok|ok  \(.*\))$' "$logs/$what.log" | tail -n 12 | cut -c1-300 | sed 's/^/    /' || true)
    fi
    printf '%s\n' "$said"
}

# beside MOST COMMAND...: in the background, once fewer than MOST are there.
beside() {
    while [ "$(jobs -rp | wc -l)" -ge "$1" ]; do wait -n || true; done
    "${@:2}" &
}

py() {
    [ -z "$missing" ] || { echo "$1: skipped: Python has no $missing"; return; }
    step "$1" "$2" "$PYTHON" "${@:3}" --build build-gpu --relayout "$program" --device cuda
}

# For the GPU at hand; where it cannot be asked, for all that CI compiles.
architectures() {
    local cap
    cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
    echo "${RL_CUDA_ARCHS:-${cap:-75;80;90}}"
}

# Headers and libraries that came with Python packages, and in GPU_PREFIX, for the compiler, CMake and the loader.
nvidia_folders() {
    "$PYTHON" -c "import glob, sys; print(':'.join(x for p in sys.path for x in sorted(glob.glob(p + '/nvidia/*/$1'))))" 2>/dev/null || true
}
find_libraries() {
    local libs includes arch
    libs=$(nvidia_folders lib) includes=$(nvidia_folders include)
    for arch in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/nvidia/lib64; do # the toolkit's, and where containers have the driver
        [ ! -d "$arch" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$arch"
    done
    [ -z "$libs" ] || export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ -z "$includes" ] || export CMAKE_INCLUDE_PATH="$includes${CMAKE_INCLUDE_PATH:+:$CMAKE_INCLUDE_PATH}"
    [ -n "${GPU_PREFIX:-}" ] || return 0
    arch=$(cc -print-multiarch 2>/dev/null || true)
    export PATH="$GPU_PREFIX/usr/bin:$PATH" CPATH="$GPU_PREFIX/usr/include${CPATH:+:$CPATH}" \
        CMAKE_PREFIX_PATH="$GPU_PREFIX/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}" \
        LD_LIBRARY_PATH="$GPU_PREFIX/usr/lib/$arch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

do_build() {
    local rc=0
    (build build-gpu -DRL_WERROR=ON -DRL_CUDA=ON "-DRL_CUDA_ARCHS=$(architectures)" &&
        cmake --build build-gpu --target gpu_tests) >"$logs/build.log" 2>&1 || rc=$?
    [ $rc = 0 ] && echo "built with $(nvcc --version | grep -o 'V[0-9.]*$')" && return
    failed
    echo "build: FAILED ($rc)"
    tail -n 20 "$logs/build.log"
    return 1
}

do_pack() {
    local f samples
    rm -rf $packed/{cuda,lib,shared,relayout,commit} # references stay
    RL_CUDA_ARCHS=${RL_CUDA_ARCHS:-90} do_build || return
    mkdir -p $packed/cuda $packed/lib $packed/shared
    cp build-gpu/relayout $packed
    git rev-parse --short HEAD >$packed/commit 2>/dev/null || rm -f $packed/commit
    cp build-gpu/cuda/{gpu_moves,relayout_serving,unit_gpu_index} build-gpu/cuda/device_gpu_* $packed/cuda
    strip $packed/relayout $packed/cuda/*
    f=$(ldd build-gpu/relayout | awk '/libprotobuf-c/ {print $3}')
    [ -z "$f" ] || cp -L "$f" $packed/lib
    samples=$(PYTHONPATH=tests/python "$PYTHON" -c 'import zoo; print(zoo.ZOO)' 2>/dev/null || true) # where the tests find them
    [ ! -d "$samples" ] || cp -r "$samples" $packed/shared/zoo
    echo "packed: $(du -sh $packed | cut -f1), $(du -sh $packed/shared | cut -f1) of it sample models, $(ls $packed/references 2>/dev/null | wc -l) references"
}

# Unit tests, with the libraries and by own kernels alone; the last of them waits after each node, so that what fails is named.
do_tests() {
    local t cores
    cores=$(nproc)
    for t in dp4a table ops run recurrent move; do beside "$cores" step "gpu_$t" 200 "${tools}_gpu_$t"; done
    [ ! -x "$(dirname "$tools")/unit_gpu_index" ] || beside "$cores" step gpu_index 100 "$(dirname "$tools")/unit_gpu_index"
    for t in table run; do RELAYOUT_CUDA_LIBRARIES=0 beside "$cores" step "own-gpu_$t" 200 "${tools}_gpu_$t"; done
    RELAYOUT_CUDA_SYNC=1 beside "$cores" step table-waiting 200 "${tools}_gpu_table"
    wait
}

do_ops() {
    beside 4 py text 300 tests/python/test_text_run.py $GPU_CASES
    beside 4 py joined 300 tests/python/test_fast.py --count "${GPU_COUNT:-300}" --jobs "$jobs"
    beside 4 py kernels-spatial 300 tests/python/test_kernels_spatial.py --jobs "$jobs"
    beside 4 py kernels 300 tests/python/test_kernels_b.py --jobs "$jobs"
    wait
}

do_backend() { py backend 520 tests/python/test_backend_run.py $([ -n "$GPU_CASES" ] || echo --at-least 2003) --jobs "$jobs" $GPU_CASES; }
zoo() { py "$1" 520 tests/python/test_zoo_run.py "${@:2}" $([ ! -d $packed/references ] || echo --references $packed/references) --jobs "$jobs" $GPU_CASES; }
do_zoo() { zoo zoo --replayed; }
do_zoo16() { zoo zoo-float16 --type float16; }
do_zoobf() { zoo zoo-bfloat16 --type bfloat16; }
do_places() {
    beside 2 py places 300 tests/python/test_places.py --count "${GPU_COUNT:-20}"
    beside 2 py places-measured 300 tests/python/test_places.py --count "${GPU_COUNT:-20}" --measured
    wait
}

# Own kernels: what NVIDIA's libraries do inside is not looked at. Tests that take long go in parts (check.h); racecheck, which takes longest, starts last.
do_sanitizer() {
    local tool t k parts sanitizer=compute-sanitizer patient=1
    command -v $sanitizer >/dev/null || sanitizer=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
    command -v "$sanitizer" >/dev/null || { echo "skipped: there is no compute-sanitizer"; return; }
    for tool in memcheck initcheck racecheck; do
        for t in run ops dp4a table move; do
            case $t in move) parts=4 ;; run | ops) parts=2 ;; *) parts=1 ;; esac
            for ((k = 0; k < parts; k++)); do
                RELAYOUT_CUDA_LIBRARIES=0 RELAYOUT_CHECK=$k/$parts beside $((($(nproc) + 1) / 2)) \
                    step "$tool-gpu_$t-$((k + 1))of$parts" 200 "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 20 "${tools}_gpu_$t"
            done
        done
    done
    wait
}

do_move() {
    local rc=0
    timeout "$(left)" "$moves" ${GPU_MEGABYTES:-} || rc=$?
    [ $rc != 124 ] || { echo "gpu_moves: timed out"; return; }
    [ $rc = 0 ] || { failed; echo "gpu_moves: FAILED ($rc)"; }
}

# The sample models with their weights, while moves are measured, which the device's clock does.
models=(--build build-gpu --relayout "$program" ${GPU_MODELS:-resnet mobilenet vit swin gpt})
prepare() {
    case " ${parts[*]} " in *" zoo"* | *" models "*) ;; *) return ;; esac
    nice timeout 200 "$PYTHON" bench/gpu_models.py --only-prepare "${models[@]}" >"$logs/prepare.log" 2>&1 &
    prepared=$!
}
do_models() {
    case $missing in *numpy* | *onnx,* | onnx | *" onnx") echo "skipped: Python has no $missing"; return ;; esac
    timeout "$(left)" "$PYTHON" bench/gpu_models.py --seconds "$(($(left) * (${#shared[@]} ? 2 : 3) / 4))" --json "$logs/models" "${models[@]}" 2>"$logs/models.log" ||
        { failed; echo "FAILED: $(tail -n 3 "$logs/models.log")"; }
}

# The file is made of the parts' reports, in this order.
assemble() {
    local p
    echo "# ${device%%,*}"
    echo
    echo "Made by \`scripts/gpu.sh\`; the device: $device."
    for p in build "${all[@]}"; do
        [ -s "$logs/$p.md" ] || continue
        echo
        cat "$logs/$p.md"
        [ "$(grep -c '^```' "$logs/$p.md")" != 1 ] || printf '(has not ended)\n```\n'
    done
}

write_file() {
    local name
    name=gpu-$(tr -cs 'A-Za-z0-9' '-' <<<"${device%%,*}" | tr 'A-Z' 'a-z' | sed 's/-*$//').md
    assemble >"$results/$name"
    [ -z "${GPU_OUT:-}" ] || { mkdir -p "$GPU_OUT" && cp "$results/$name" "$GPU_OUT" && tar -C "$logs" -czf "$GPU_OUT/logs.tar.gz" . 2>/dev/null || true; } # logs grow meanwhile
}

report() {
    local part=$1 start=$SECONDS fence=
    part_start=$SECONDS
    [ "$(left)" -ge 20 ] || { echo "($part: no time left: scripts/gpu.sh $part)"; return; }
    case $part in move | models) ;; *) fence='```' ;; esac
    {
        echo "## $part"
        echo
        echo "$(date -u +%F), commit $(commit), driver" \
            "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)."
        echo
        [ -z "$fence" ] || echo "$fence"
        "do_$part" || true
        [ -z "$fence" ] || echo "$fence"
    } >"$logs/$part.md"
    cat "$logs/$part.md"
    echo "($part: $((SECONDS - start)) s)"
}

for p in "${parts[@]}"; do
    declare -F "do_$p" >/dev/null || { say "gpu.sh: no part '$p'"; exit 2; }
done
[ -z "${GPU_DONE:-}" ] || [ ! -s "$GPU_DONE/logs.tar.gz" ] || tar -C "$logs" -xzf "$GPU_DONE/logs.tar.gz" --wildcards './*.md'
find_python
[ -z "$missing" ] || say "gpu.sh: Python ($PYTHON) has no $missing: what wants it is skipped"
find_libraries
if [ $built = $packed ]; then
    export LD_LIBRARY_PATH="$ROOT/$packed/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ "${parts[0]}" = pack ] || [ ! -d $packed/shared/zoo ] || export RELAYOUT_SHARED="${RELAYOUT_SHARED:-$ROOT/$packed/shared}"
elif [ -z "${GPU_PROGRAM:-}" ]; then
    need_nvcc || { say "gpu.sh: no nvcc (RL_FETCH_NVCC=1 fetches it; build-gpu-packed, made by gpu.sh pack where there is one, needs none)"; exit 5; }
    timeout 100 bash -c 'source scripts/setup.sh && need_packages' || say "gpu.sh: going on without"
    case ${parts[0]} in build | pack) ;; *) [ -x "$program" ] || alone=(build "${alone[@]}") ;; esac
fi
device= prepared=
for p in "${alone[@]}"; do
    case $p in
        build | pack) report $p; continue ;;
        models) wait $prepared || true ;;
    esac
    [ -n "$device" ] || { find_device; prepare; }
    report "$p"
    write_file
done
case ${parts[*]} in build | pack) [ ! -e "$logs/failed" ]; exit ;; esac
[ ! -x "$serving" ] || export RELAYOUT_SERVING=$serving
[ -n "$device" ] || { find_device; prepare; }
wait $prepared || true
for p in "${shared[@]}"; do
    beside $at_once report "$p"
    write_file
done
for p in $(seq $at_once); do
    wait -n || true
    write_file
done
[ ! -e "$logs/failed" ]
