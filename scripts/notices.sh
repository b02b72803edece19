#!/usr/bin/env bash
# Prints the licences of everything that is linked or packed into the program: notices.sh ARCH [OS]
set -euo pipefail
cd "$(dirname "$0")/.."
echo "Pillion holds these works of others, each under its own licence."
show() { # NAME FOLDER
  local found=
  for f in "$2"/[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]* "$2"/COPYING* "$2"/NOTICE* "$2"/PATENTS; do
    [ -f "$f" ] || continue
    found=1
    printf '\n%s\n%s: %s\n\n' "--------------------------------------------------------------------------------" "$1" "$(basename "$f")"
    cat "$f"
  done
  [ -n "$found" ] || { echo "notices: $1 has no licence file in $2" >&2; exit 1; }
}
show "The Go standard library and runtime" "$(go env GOROOT)"
while read -r path version dir; do show "$path $version" "$dir"; done < <(
  GOOS=${2:-linux} GOARCH=$1 CGO_ENABLED=1 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./sidecar | LC_ALL=C sort -u
)
printf '\n%s\n%s\n\n' "--------------------------------------------------------------------------------" "zod (npm)"
cat tools/custom/host/zod.LICENSE
