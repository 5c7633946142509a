#!/usr/bin/env bash
# package.sh [BUILD]: `pip install .` into a clean environment, BUILD/venv, and tests/python/test_package.py there, without and with onnx;
# then examples/python, each of which is left out where the package that it is about is missing.
#   PYTHONS="python3.9 python3.13": the same wheel is tested with these too, where they have NumPy.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
beside=$root/.venv/bin/python # has onnx and onnxruntime
venv=$build/venv
start=$SECONDS
cd "$root"

fail() {
    echo "failed: $*"
    exit 1
}

rm -rf "$venv" "$build/wheel"
python3 -m venv "$venv"
if ! "$venv/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps -w "$build/wheel" . >"$build/wheel.log" 2>&1; then
    tail -n 20 "$build/wheel.log"
    fail "pip wheel"
fi
"$venv/bin/python" -m pip install -q --disable-pip-version-check "$build"/wheel/relayout_onnx-*-abi3-*.whl || fail "pip install"
"$venv/bin/python" -c 'import relayout; assert relayout.optimize("models/channels_last_cnn.onnx")[1]["changed"]' || fail "the first model"
took=$((SECONDS - start))
# A minute to the first optimized model is promised: by the clock or, where other work runs on this machine, of processor time.
times >"$build/times.txt" # not in a pipe: there it would be a subshell's
worked=$(awk 'NR == 2 {gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4)}' "$build/times.txt")
[ "$worked" -gt 0 ] || fail "no processor time was measured"
[ "$took" -lt 60 ] || [ "$worked" -lt 60 ] || fail "installing took $worked s of processor time, $took s in all"

"$build/relayout" optimize tests/unit/session.rlt --disable normalize,fold,legal,dce -o "$build/session.onnx" >/dev/null
"$venv/bin/python" tests/python/test_package.py --model "$build/session.onnx" || fail "alone"
site=$("$venv/bin/python" -c 'import relayout, pathlib; print(pathlib.Path(relayout.__file__).parents[1])')
mkdir -p "$build/site"
ln -sfn "$site/relayout" "$build/site/relayout"
PYTHONPATH=$build/site "$beside" tests/python/test_package.py --model "$build/session.onnx" --onnx || fail "beside onnx"
for python in ${PYTHONS:-}; do
    PYTHONPATH=$build/site "$python" tests/python/test_package.py --model "$build/session.onnx" || fail "$python"
done

for example in examples/python/[a-z]*.py; do
    status=0
    PYTHONPATH=$build/site "$beside" "$example" --out "$build" >"$build/example.log" 2>&1 || status=$?
    case $status in
    0) echo "$example ok" ;;
    77) echo "$example skipped: $(tail -n 1 "$build/example.log")" ;;
    *)
        cat "$build/example.log"
        fail "$example"
        ;;
    esac
done
# Where what it is built with is missing, one line names the packages (here CMake is told to look in an empty folder).
nowhere="-DCMAKE_C_COMPILER=$(command -v cc) -DPython_INCLUDE_DIR=$build/none -DCMAKE_FIND_ROOT_PATH=$build/wheel"
for kind in PROGRAM LIBRARY INCLUDE; do nowhere="$nowhere -DCMAKE_FIND_ROOT_PATH_MODE_$kind=ONLY"; done
CMAKE_ARGS=$nowhere "$venv/bin/python" -m pip wheel --disable-pip-version-check --no-deps -w "$build/wheel" . >"$build/missing.log" 2>&1 && fail "built from nothing"
grep -q 'packages are missing: apt-get install libprotobuf-c-dev protobuf-c-compiler python3-dev$' "$build/missing.log" || {
    tail -n 20 "$build/missing.log"
    fail "what is missing is not named"
}
echo "all passed, 0 failed; the first model after $took s, $worked s of processor time"
