#!/usr/bin/env bash
# Builds the program as it is given away: build-release.sh ARCH VERSION FILE [OS]
#
# A position-independent executable, whose addresses differ from run to run, with all symbols bound at the start and their
# table read-only afterwards (BIND_NOW, full RELRO): a fault in the C of the parsers finds no fixed place to jump to. The
# relocations cost 9 MB of file, which a .tar.gz packs to less than one.
#
# --gc-sections leaves out the tables of grammars that tools/treesitter has packed.
#
# No build id and no path of this machine get into it: the same commit, Go and C compiler give the same bytes
# (scripts/reproducible.sh).
set -euo pipefail
arch=$1 version=$2 to=$3 os=${4:-linux}
host=$(go env GOARCH)
mapfile -t gcflags < <("$(dirname "$0")/gcflags.sh")
if [ "$os" = windows ]; then
  # A time in the header would make every build another one. Addresses are random there by default (dynamicbase, high-entropy-va).
  CGO_ENABLED=1 GOOS=windows GOARCH=$arch CC=x86_64-w64-mingw32-gcc go build -trimpath -buildvcs=true -buildmode=pie "${gcflags[@]}" \
    -ldflags "-s -w -buildid= -linkmode=external -extldflags '-Wl,--no-insert-timestamp,--build-id=none -static' -X main.version=$version" -o "$to" ./sidecar
  exit
fi
if [ "$arch" = "$host" ]; then cc=$(go env CC); elif [ "$arch" = arm64 ]; then cc=aarch64-linux-gnu-gcc; else cc=x86_64-linux-gnu-gcc; fi
CGO_ENABLED=1 GOOS=linux GOARCH=$arch CC=$cc go build -trimpath -buildvcs=true -buildmode=pie "${gcflags[@]}" \
  -ldflags "-s -w -buildid= -linkmode=external -extldflags '-Wl,-z,relro,-z,now,--gc-sections,--build-id=none' -X main.version=$version" -o "$to" ./sidecar

./scripts/hardened.sh "$to"
