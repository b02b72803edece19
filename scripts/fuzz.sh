#!/usr/bin/env bash
# Runs every fuzz target for a time each: fuzz.sh 30s; with 20000x for so many inputs each.
# What a target finds is written to its testdata/fuzz and belongs into the repository: from then on plain tests run it.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=()
while IFS= read -r dir; do
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | sed 's/func //') || continue
  for target in $targets; do
    echo "== $dir $target"
    go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel "${FUZZPARALLEL:-2}" || failed+=("$dir $target")
  done
done < <(grep -rlE '^func Fuzz' --include=*_test.go agent lspbridge sidecar tools | xargs -n1 dirname | sort -u)
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
