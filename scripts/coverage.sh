#!/usr/bin/env bash
# Line coverage of src and passes by the tests that need no network and no sample models: the files below 90 %, and the whole, which
# ends it with 1 where it is less than LEAST.
#
#   coverage.sh [LEAST]    percent; 90
source "$(dirname "$0")/setup.sh"

least=${1:-90}
need_packages
need_python
need_pip coverage gcovr==8.6 || { echo "skipped: gcovr cannot be had"; exit 0; }
build_here
build build-cov -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=--coverage
find build-cov -name '*.gcda' -delete
ctest --test-dir build-cov -j2 -E gpu >build-cov/ctest.log || tail -n 20 build-cov/ctest.log
# In test_cli the process that is to die of a limit on what it writes takes others along: each writes its counts when it ends.
for test in test_cases test_cli test_explain test_hostile test_interface test_layouts test_movement test_onnx_io test_reduce test_report test_targets \
    "test_shape --dump build-cov/tests/shape_dump" "test_backend --fraction 0.25" "test_random --count 200" "test_proof --count 50 --mutations 100"; do
    # shellcheck disable=SC2086
    set -- $test
    "$PYTHON" "tests/python/$1.py" --build build --relayout build-cov/relayout "${@:2}" >"build-cov/$1.log" 2>&1 ||
        echo "$1 fails in this build: $(tail -n 1 "build-cov/$1.log")"
done
.venv/bin/gcovr --root . --filter src/ --filter passes/ --gcov-ignore-errors=all --gcov-ignore-parse-errors=all --gcov-parallel 2>/dev/null \
    --json-summary build-cov/coverage.json --txt build-cov/coverage.txt build-cov/CMakeFiles build-cov/tests/CMakeFiles ||
    .venv/bin/gcovr --root . --filter src/ --filter passes/ --gcov-ignore-errors=all --gcov-ignore-parse-errors=all --json-summary build-cov/coverage.json build-cov
"$PYTHON" - "$least" <<'PY'
import json
import sys
least, s = float(sys.argv[1]), json.load(open("build-cov/coverage.json"))
for f in sorted(s["files"], key=lambda f: f["line_percent"] or 0):
    if (f["line_percent"] or 0) < 90:
        print(f"{f['line_percent'] or 0:5.1f} %  {f['line_covered']:5d} of {f['line_total']:5d}  {f['filename']}")
print(f"line coverage of src and passes: {s['line_percent']:.1f} % ({s['line_covered']} of {s['line_total']} lines), branches {s['branch_percent']:.1f} %")
sys.exit(s["line_percent"] < least)
PY
