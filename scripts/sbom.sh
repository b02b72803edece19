#!/usr/bin/env bash
# Writes what a Pillion binary was built from as a CycloneDX 1.6 list: sbom.sh BINARY > pillion.cdx.json
# The Go modules are read from the binary itself, the npm packages of the extension and the JS host from package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-bin/pillion}
[ -f "$bin" ] || { echo "sbom: $bin is not there; run make build first" >&2; exit 1; }
go version -m "$bin" | node scripts/sbom.mjs "$(sha256sum "$bin" | cut -d' ' -f1)"
