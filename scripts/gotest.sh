#!/usr/bin/env bash
# Every Go test under the race detector: gotest.sh CACHE_DIR
# A test that fails alone is run again, twice at most, and said; a data race, a panic or more than five failures are final.
# PILLION_ONCE=1 runs everything once. Where gotestsum cannot be fetched, go test runs everything once as well.
set -euo pipefail
VERSION=v1.13.0
tool=$1/gotestsum-$VERSION/gotestsum
cd "$(dirname "$0")/.."
export GORACE=atexit_sleep_ms=0 PILLION_TEST_SERVERS=$1/servers/node_modules/.bin
packages=(./sidecar ./lspbridge ./...) # the long ones first
flags=(-race -vet=off -timeout 20m)    # lint has vetted
[ -x "$tool" ] || GOBIN=$(dirname "$tool") GOFLAGS=-mod=mod go install "gotest.tools/gotestsum@$VERSION" || echo "gotest: no gotestsum, so nothing is run twice"
if [ -n "${PILLION_ONCE:-}" ] || [ ! -x "$tool" ]; then
  exec go test "${flags[@]}" "${packages[@]}"
fi
again=$(mktemp)
trap 'rm -f "$again"' EXIT
"$tool" --format standard-quiet --hide-summary skipped --rerun-fails=2 --rerun-fails-max-failures 5 --rerun-fails-abort-on-data-race \
  --rerun-fails-report "$again" --packages "${packages[*]}" -- "${flags[@]}"
if [ -s "$again" ]; then
  echo "gotest: UNRELIABLE, passed when run again:"
  cat "$again"
fi
