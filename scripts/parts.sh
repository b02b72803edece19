#!/usr/bin/env bash
# Runs make targets one after the other, up to the first that fails, and says at the end how many seconds each took: parts.sh TARGET…
set -euo pipefail
times=
trap 'echo; echo "seconds:$times"' EXIT
for target; do
  begun=$SECONDS
  make --no-print-directory "$target"
  times+=" $target $((SECONDS - begun))"
done
