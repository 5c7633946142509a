#!/bin/sh
# The rules about who may include whom (a break is a failing test): rules.sh [ROOT]
#   proto        only src/onnx_*.[ch]
#   src          neither passes nor runtime nor cuda, except the program (src/main.c, src/program.c, src/cmd*)
#   passes       neither runtime nor proto nor cuda
#   runtime      neither passes nor proto nor cuda; cuda sees runtime and src headers
# and about files: each .c and .h starts with a comment that says what it is for; a function's brace ends the line of its head;
# each .c of the libraries and the program is built (sources.cmake).
# In a function that frees its own arena nothing returns before that: a function around it makes and frees the arena.
root=${1:-$(dirname "$0")/..}
cd "$root" || exit 2
bad=0

say() {
    echo "$1"
    bad=1
}

# forbid REGEX FILE...: no #include "..." or <...> of the files matches REGEX
forbid() {
    re=$1
    shift
    hit=$(grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' "$@" | grep -E "[\"<]([^\">]*/)?($re)")
    [ -z "$hit" ] || say "$hit: not allowed here"
}

proto='onnx\.pb-c\.h|protobuf-c|proto/'
free='^src/(main\.c|program\.c|api\.c|cmd)'
forbid 'passes/|runtime/|cuda/' src/onnx_*.[ch]
forbid "passes/|runtime/|cuda/|$proto" $(ls src/*.[ch] | grep -vE "$free|^src/onnx_")
forbid "runtime/|cuda|$proto" passes/*.[ch]
forbid "passes/|$proto" runtime/*.[ch]
forbid "passes/|$proto" cuda/*
forbid 'cuda/' runtime/*.[ch]

# One process for all files: awk, as two for each are most of the time that this takes.
hit=$(awk '
    FNR == 1 && !/^\/\*/ { print FILENAME ":1: a file starts with a comment: what it is for" }
    $0 == "{" { print FILENAME ":" FNR ": a line of its own for a brace" }' \
    src/*.[ch] passes/*.[ch] runtime/*.[ch] tests/*.c tests/unit/*.[ch] include/*.h cuda/*.[ch] cuda/*.cu cuda/*.cpp)
[ -z "$hit" ] || say "$hit"

hit=$(awk '
    /^[^ \t}].*\{$/ { n = 0; at = "" }
    match($0, /rl_arena_init\(&[a-z]+,/) { at = substr($0, RSTART + 15, RLENGTH - 16); n = 0 }
    at != "" && /(^|[^_A-Z])RL_TRY\(|return rl_[a-z]*fail\(/ { early[n++] = FILENAME ":" FNR ": returns before rl_arena_free(&" at ")" }
    at != "" && index($0, "rl_arena_free(&" at ")") { for (i = 0; i < n; i++) print early[i]; n = 0 }' \
    src/*.c passes/*.c runtime/*.c cuda/*.c)
[ -z "$hit" ] || say "$hit"

built=$(sed -n 's/^  \(.*\.c\))*$/\1/p' */sources.cmake)
for f in $(ls src/*.c passes/*.c runtime/*.c | grep -vxF "$built"); do say "$f: in no sources.cmake"; done

[ $bad -eq 0 ] && echo "rules hold"
exit $bad
