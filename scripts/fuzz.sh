#!/usr/bin/env bash
# Runs every fuzz target for a time each: fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  dir=${pkg#github.com/pillion-dev/pillion/}
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | sed 's/func //'); do
    echo "== $dir $target"
    go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$1"
  done
done
