#!/usr/bin/env bash
# Every Go test under the race detector: gotest.sh CACHE_DIR
# A test that fails alone is run again, twice at most, and noted in CACHE_DIR/unreliable.log; a data race, a panic or more
# than five failures are final. PILLION_ONCE=1 runs everything once. Skipped tests and their reasons go to
# CACHE_DIR/skipped.log; PILLION_SKIPS=strict fails the run for a reason that test/skips.txt does not name.
set -euo pipefail
cache=$1
tool=$(find "$cache" -maxdepth 2 -path '*gotestsum-*/gotestsum' | head -n 1)
cd "$(dirname "$0")/.."
export GORACE=atexit_sleep_ms=0 PILLION_TEST_SERVERS=$cache/servers/node_modules/.bin
packages=(./sidecar/... ./lspbridge ./...) # the long ones first
flags=(-race -vet=off -timeout 20m)        # `make lint` has vetted
[ -x "$tool" ] || { echo "gotest: gotestsum is missing; run make setup-test"; exit 1; }
events=$(mktemp)
# The first race build compiles for minutes without a line of output.
(
  for ((s = 30; ; s += 30)); do
    sleep 30
    [ -s "$events" ] && break
    echo "gotest: compiling with the race detector, $s s"
  done
) &
clock=$!
trap 'rm -f "$events"; kill "$clock" 2>/dev/null || true' EXIT
rerun=(--rerun-fails=2 --rerun-fails-max-failures 5 --rerun-fails-abort-on-data-race)
[ -z "${PILLION_ONCE:-}" ] || rerun=()
code=0
"$tool" --format standard-quiet --hide-summary skipped --jsonfile "$events" "${rerun[@]}" --packages "${packages[*]}" -- "${flags[@]}" || code=$?
node scripts/gotest.mjs "$events" test/skips.txt "$cache/skipped.log" "$cache/unreliable.log" || [ "${PILLION_SKIPS:-}" != strict ] || code=1
exit "$code"
