#!/usr/bin/env bash
# Installs, builds, and runs the main job on real models: the text recogniser and detector that the PyPI package
# rapidocr-onnxruntime ships, and the models of models/. Each result is checked against the original in onnxruntime.
# May be run again; without a network it goes on with models/ alone.
source "$(dirname "$0")/setup.sh"

need_packages
[ -f build/CMakeCache.txt ] || say "building"
build build

models=(models/channels_last_cnn.onnx models/attention_block.onnx)
if need_python; then
    need_onednn || say "oneDNN cannot be had: models run on the reference kernels"
    if need_pip rapidocr --no-deps rapidocr-onnxruntime==1.4.4; then
        folder=$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("rapidocr_onnxruntime").submodule_search_locations[0])')/models
        # Trial sizes: batch, colours, height, width. The recogniser wants a height of 48, the detector multiples of 32.
        models=("$folder/ch_PP-OCRv4_rec_infer.onnx@2x3x48x320,1x3x48x160" "$folder/ch_PP-OCRv4_det_infer.onnx@1x3x96x160,2x3x64x64" "${models[@]}")
    else
        say "rapidocr-onnxruntime cannot be had (no network?): going on with the models of models/"
    fi
else
    say "the Python packages cannot be had (no network?): nothing can be checked"
    PYTHON=python3
fi
exec "$PYTHON" tests/python/verify.py --out build/quickstart "${models[@]}"
