#!/usr/bin/env bash
# Builds the program for Windows and runs it and the tests named Windows under Wine: windows-test.sh CACHE_DIR
# Where Wine or the cross compiler is missing (set-up installs them from Debian) it says so and ends well.
set -euo pipefail
cache=$1
cd "$(dirname "$0")/.."
for program in wine x86_64-w64-mingw32-gcc; do
  command -v $program >/dev/null || { echo "windows: not tested, because $program is missing: install wine, wine64 and gcc-mingw-w64-x86-64-win32"; exit 0; }
done
export WINEPREFIX=$cache/wine WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml= GOOS=windows
mkdir -p "$cache/windows"
trap 'wineserver -k 2>/dev/null || true' EXIT # of this prefix only
system=$WINEPREFIX/drive_c/windows/system32
[ -d "$system" ] || wine wineboot --init >"$cache/windows/wine.log" 2>&1 || { cat "$cache/windows/wine.log" >&2; exit 1; }
[ -e "$system/bcryptprimitives.dll" ] || x86_64-w64-mingw32-gcc -shared -O2 -o "$system/bcryptprimitives.dll" test/windows/testdata/prng.c -ladvapi32

CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc go build -ldflags '-s -w' -o "$cache/windows/pillion.exe" ./sidecar
CGO_ENABLED=0 go test -exec wine -run Windows ./tools/files ./tools/guard ./tools/shell/run ./lspbridge
GOOS='' PILLION_WINDOWS_EXE=$cache/windows/pillion.exe go test -count 1 ./test/windows
