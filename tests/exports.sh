#!/bin/sh
# exports.sh HEADER (LIBRARY MARK NODE)...: each shared library exports exactly the functions that the public header marks so, with the
# symbol version NODE.
header=$1
shift
while [ $# -ge 3 ]; do
    have=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sort)
    want=$(sed -n "s/^$2 .*[ *]\(rl_[a-z_]*\)(.*/\1@@$3/p" "$header" | sort)
    if [ -z "$want" ] || [ "$have" != "$want" ]; then
        echo "$1 exports: $have"
        echo "declared: $want"
        exit 1
    fi
    shift 3
done
[ $# = 0 ]
