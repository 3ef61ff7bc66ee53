#!/usr/bin/env bash
# fuzz.sh TIME runs every fuzz test of the root module for TIME (10s, 1m, 1000x …),
# one after the other, and stops at the first that fails.
set -euo pipefail

cd "$(dirname "$0")/../.."
duration=${1:-10s}

# `go test -list` prints the names of a package's tests, then "ok", the package and
# the time taken.
targets=$(go test -list '^Fuzz' ./... |
  awk '/^Fuzz/ { names[++n] = $1 } /^ok/ { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')

while read -r package name; do
  if [[ -n $package ]]; then
    echo "$package $name"
    go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" "$package" </dev/null
  fi
done <<<"$targets"
