#!/usr/bin/env bash
# Builds the release program twice, the second time in another folder with an empty build cache, and compares: reproducible.sh
# It takes as long as a first build, about five minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pillion-twice.XXXXXX")
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
git diff --quiet HEAD -- . || { echo "reproducible: commit your changes first: a build names its commit, and the second one is made from it"; exit 1; }
arch=$(go env GOARCH)
./scripts/build-release.sh "$arch" twice "$scratch/one"
git clone -q --no-local . "$scratch/elsewhere/with another name"
(cd "$scratch/elsewhere/with another name" && GOCACHE=$scratch/cache ./scripts/build-release.sh "$arch" twice "$scratch/two")
one=$(sha256sum <"$scratch/one") two=$(sha256sum <"$scratch/two")
if [ "$one" != "$two" ]; then
  echo "reproducible: two builds of $(git rev-parse --short HEAD) differ, first at $(cmp "$scratch/one" "$scratch/two" 2>&1 || true)"
  exit 1
fi
echo "reproducible: two builds of $(git rev-parse --short HEAD), one hash: ${one%% *}"
