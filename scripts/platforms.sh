#!/usr/bin/env bash
# Builds all of the program's packages without cgo for other systems and processors: platforms.sh [OS/ARCH …]
# None of these needs a C compiler. Nothing is run.
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=("$@")
[ $# -gt 0 ] || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
for platform in "${platforms[@]}"; do
  export CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/}
  go build -o /dev/null ./agent/... ./lspbridge/... ./sidecar/... ./tools/... || { echo "platforms: the code does not build for $platform"; exit 1; }
  echo "platforms: $platform"
done
