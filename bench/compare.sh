#!/usr/bin/env bash
# compare.sh [MODEL.onnx ...]: the Transposes that relayout and other optimizers leave, and how long each takes, as a table. Without models:
# those of models/ and docs/cookbook/.
#
# It is `relayout compare` for several models. Installs the others, in the versions named below, into build/peers the first time; what cannot be had has a - in its column. Another Python's: RELAYOUT_PYTHON=... relayout compare.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/setup.sh"

versions=(onnx==1.23.2 onnxruntime==1.31.1 onnxsim==0.8.1 onnxslim==0.1.98 onnxoptimizer==0.4.2 polygraphy==0.53.6 onnx-graphsurgeon==0.6.1)
models=()
for m in "$@"; do models+=("$(cd "$OLDPWD" && realpath "$m")"); done
need_packages
build build
if [ "$(cat build/peers/.done 2>/dev/null)" != "${versions[*]}" ]; then
    say "installing ${versions[*]} into build/peers"
    [ -x build/peers/bin/python ] || python3 -m venv build/peers
    for one in "${versions[@]}"; do
        build/peers/bin/python -m pip install -q --disable-pip-version-check --retries 2 --timeout 30 "$one" || say "cannot be had: $one"
    done
    printf '%s' "${versions[*]}" >build/peers/.done
fi
RELAYOUT_PYTHON=$ROOT/build/peers/bin/python exec python3 bench/compare.py "${models[@]}"
