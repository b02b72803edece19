#!/usr/bin/env bash
# Checks all of the program's packages with their tests without cgo for other systems and processors: platforms.sh [OS/ARCH …]
# None of these needs a C compiler. Nothing is run. It is go vet and not go build, because tests of one system are easily used by another's.
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=("$@")
[ $# -gt 0 ] || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
for platform in "${platforms[@]}"; do
  export CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/}
  go vet ./agent/... ./lspbridge/... ./sidecar/... ./tools/... || { echo "platforms: the code does not build for $platform"; exit 1; }
  echo "platforms: $platform"
done
