#!/usr/bin/env bash
# Static analysis of the Go code: staticcheck, with what staticcheck.conf says.
#
#   staticcheck.sh CACHE_DIR         fetches it when it is not there yet
#   staticcheck.sh CACHE_DIR kept    runs it only when it has been fetched: twelve seconds when little has changed, two minutes at first
set -euo pipefail
VERSION=v0.8.2
tool=$1/staticcheck-$VERSION/staticcheck
cd "$(dirname "$0")/.."
if [ ! -x "$tool" ]; then
  if [ "${2:-}" = kept ]; then
    echo "staticcheck: not here, so not asked; make staticcheck fetches it"
    exit 0
  fi
  GOBIN=$(dirname "$tool") GOFLAGS=-mod=mod go install "honnef.co/go/tools/cmd/staticcheck@$VERSION"
fi
"$tool" ./agent/... ./lspbridge/... ./sidecar/... ./tools/... ./bench/...
