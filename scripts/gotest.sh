#!/usr/bin/env bash
# Every Go test, under the race detector but for the packages of test/without_race.txt, what measures memory and most of
# bench/replay: gotest.sh CACHE_DIR
# A test that fails alone is run again, twice at most, and noted in CACHE_DIR/unreliable.log; a data race, a panic or more
# than five failures are final. PILLION_ONCE=1 runs everything once. Skipped tests and their reasons go to
# CACHE_DIR/skipped.log; PILLION_SKIPS=strict fails the run for a reason that test/skips.txt does not name.
set -euo pipefail
cache=$1
tool=$(find "$cache" -maxdepth 2 -path '*gotestsum-*/gotestsum' | head -n 1)
cd "$(dirname "$0")/.."
export GORACE=atexit_sleep_ms=0 PILLION_TEST_SERVERS=$cache/servers/node_modules/.bin
plain=$(grep -v '^#' test/without_race.txt | sed "s#^#$(go list -m)/#")
all=$(go list ./tools/draft ./sidecar/... ./lspbridge ./bench/replay ./...) # the long ones first
raced=$(grep -vxF "$plain" <<<"$all")
flags=(-vet=off -timeout 40m) # `make lint` has vetted
[ -x "$tool" ] || { echo "gotest: gotestsum is missing; run make setup-test"; exit 1; }
events=$(mktemp) plainEvents=$(mktemp) memoryEvents=$(mktemp) replayEvents=$(mktemp)
# The first race build compiles for minutes without a line of output.
(
  for ((s = 30; ; s += 30)); do
    sleep 30
    [ -s "$events" ] && break
    echo "gotest: compiling with the race detector, $s s"
  done
) &
# Only if it still runs: half an hour later its number may be another program's.
trap 'rm -f "$events" "$plainEvents" "$memoryEvents" "$replayEvents"; kill $(jobs -pr) 2>/dev/null || true' EXIT
rerun=(--rerun-fails=2 --rerun-fails-max-failures 5 --rerun-fails-abort-on-data-race)
[ -z "${PILLION_ONCE:-}" ] || rerun=()
code=0
run() { "$tool" --format standard-quiet --hide-summary skipped --jsonfile "$1" "${rerun[@]}" --packages "$2" -- "${flags[@]}" "${@:3}" || code=$?; }
run "$events" "${raced//$'\n'/ }" -race
run "$plainEvents" "${plain//$'\n'/ }"
# It measures memory, of which the race detector takes several times as much.
run "$memoryEvents" ./sidecar -run '^TestMemoryOfLongEvents$'
# It computes for minutes in workers that a tenth of its cases has shown to the race detector.
run "$replayEvents" ./bench/replay
cat "$plainEvents" "$memoryEvents" "$replayEvents" >> "$events"
node scripts/gotest.mjs "$events" test/skips.txt "$cache/skipped.log" "$cache/unreliable.log" || [ "${PILLION_SKIPS:-}" != strict ] || code=1
exit "$code"
