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
took=$((SECONDS - start))
# A minute is promised; what else runs on this machine is not counted, so it is a minute of processor time.
times >"$build/times.txt" # not in a pipe: there it would be a subshell's
worked=$(awk 'NR == 2 {gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4)}' "$build/times.txt")
[ "$worked" -gt 0 ] || fail "no processor time was measured"
[ "$worked" -lt 60 ] || fail "installing took $worked s of processor time, $took s in all"

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
echo "all passed, 0 failed; installed in $took s, $worked s of processor time"
