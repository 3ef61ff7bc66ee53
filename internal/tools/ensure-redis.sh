#!/usr/bin/env bash
# Makes sure that redis-server (or valkey-server) can be started by the tests,
# which choose free ports themselves. Installs it where that needs no question:
# as root, with apt. Elsewhere it says how and fails.
set -euo pipefail

for server in redis-server valkey-server; do
  if command -v "$server" >/dev/null; then
    exit 0
  fi
done

if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  cat >&2 <<'HOW'
The tests start Redis servers of their own and need the program redis-server:
  Debian, Ubuntu   sudo apt-get install redis-server
  Fedora           sudo dnf install redis
  Alpine           sudo apk add redis
  macOS            brew install redis
HOW
  exit 1
fi

# The package would start a service on the default port. The tests do not use it,
# and this exit status is Debian's way to forbid the start.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends redis-server
command -v redis-server
