#!/bin/sh
# Manual pages and completion scripts, as the program prints them: pages.sh PROGRAM DIR
set -e
rm -rf "$2"
mkdir -p "$2/man1"
"$1" --man >"$2/man1/relayout.1"
for c in $("$1" completion words); do
    "$1" $(echo "$c" | tr / ' ') --man >"$2/man1/relayout-$(echo "$c" | tr / -).1"
done
"$1" completion bash >"$2/relayout.bash"
"$1" completion zsh >"$2/_relayout"
"$1" completion fish >"$2/relayout.fish"
touch "$2/done"
