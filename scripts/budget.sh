#!/usr/bin/env bash
# Holds the binary to its budget: budget.sh BINARY
#
# One live call of reflect.Method or MethodByName, which text/template contains, makes the linker keep every exported method
# of every linked type: tens of MB that nothing calls. The linker's own dependency graph shows it as <ReflectMethod>.
set -euo pipefail
binary=$1
max=61000000 # bytes of the stripped linux/amd64 binary; 59,781,360 when the model SDKs, grpc and protobuf had gone, 92,224,464 before
cd "$(dirname "$0")/.."
graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
go build -ldflags '-s -w -dumpdep' -o /dev/null ./sidecar 2>"$graph"
[ -s "$graph" ] || { echo "budget: the linker printed no dependency graph"; exit 1; }
if grep -m 5 '<ReflectMethod>' "$graph"; then
  echo "budget: this reaches reflect.Method or MethodByName by name, so the linker keeps all exported methods; find who imports it with go list -deps"
  exit 1
fi
size=$(stat -c %s "$binary")
if [ "$(go env GOOS)/$(go env GOARCH)" = linux/amd64 ] && [ "$size" -gt "$max" ]; then
  echo "budget: $binary has $size bytes, and the budget is $max: see what grew with go tool nm -size -sort size, or raise it with a reason"
  exit 1
fi
echo "budget: $size of $max bytes"
