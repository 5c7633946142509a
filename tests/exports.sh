#!/bin/sh
# exports.sh LIBRARY HEADER: the shared library exports exactly the functions that the public header marks RL_API.
have=$(nm -D --defined-only "$1" | awk '{print $3}' | sort)
want=$(sed -n 's/^RL_API .*[ *]\(rl_[a-z_]*\)(.*/\1/p' "$2" | sort)
[ -n "$want" ] && [ "$have" = "$want" ] && exit 0
echo "exported: $have"
echo "declared: $want"
exit 1
