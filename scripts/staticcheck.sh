#!/usr/bin/env bash
# Static analysis of the Go code by staticcheck, configured by staticcheck.conf.
#
#   staticcheck.sh CACHE_DIR          runs it; installs it first when it is missing
#   staticcheck.sh CACHE_DIR install  installs it only
#
# A first run takes two minutes on two cores, later ones about twelve seconds.
set -euo pipefail
VERSION=v0.8.2
tool=$1/staticcheck-$VERSION/staticcheck
cd "$(dirname "$0")/.."
if [ ! -x "$tool" ]; then
  echo "setup: staticcheck $VERSION" >&2
  GOBIN=$(dirname "$tool") GOFLAGS=-mod=mod go install "honnef.co/go/tools/cmd/staticcheck@$VERSION"
  echo "honnef.co/go/tools/cmd/staticcheck@$VERSION" >>"$1/installed.txt"
fi
[ "${2:-}" != install ] || exit 0
"$tool" ./agent/... ./lspbridge/... ./sidecar/... ./tools/... ./bench/...
