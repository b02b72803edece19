#!/usr/bin/env bash
# The main job: the built-in model mends a broken project. run.sh [DIR] [PROMPT]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-}
prompt=${2:-fix all errors}
if [ -z "$dir" ]; then
  dir=$(mktemp -d "${TMPDIR:-/tmp}/pillion-ride.XXXXXX")
  cp -R "$root/examples/go-broken/." "$dir"
  echo "A copy of examples/go-broken is in $dir" >&2
fi
exec "$root/bin/pillion" run --cwd "$dir" "$prompt"
