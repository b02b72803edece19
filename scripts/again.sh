#!/usr/bin/env bash
# Runs a test command; when it fails, once more: again.sh COMMAND…
# Passing at the second try is noted in .cache/unreliable.log, with the end of the first failure; scripts/verdict.sh prints
# that at the end of the run and may fail it. PILLION_ONCE=1 runs everything once.
set -uo pipefail
log=$(cd "$(dirname "$0")/.." && pwd)/.cache/unreliable.log
first=$(mktemp)
trap 'rm -f "$first"' EXIT
"$@" 2>&1 | tee "$first"
code=${PIPESTATUS[0]}
[ "$code" != 0 ] || exit 0
[ -z "${PILLION_ONCE:-}" ] || exit "$code"
echo "again: failed with exit code $code; running it once more: $*"
"$@" || exit $?
{
  echo "UNRELIABLE ${*##*/}"
  grep -m 5 -A 3 -E '^(FAIL|not ok|✖)|Error:|FAIL ' "$first" | sed 's/^/    /'
} >>"$log"
