#!/usr/bin/env bash
# Holds the binary to its budget: budget.sh BINARY
#
# One live call of reflect.Method or MethodByName, which text/template contains, makes the linker keep every exported method
# of every linked type: tens of MB that nothing calls. The linker's own dependency graph shows it as <ReflectMethod>.
# What a start and a first build cost is held by two figures that do not depend on the machine's load: the bytes that package
# initialisation allocates, and the number of packages that are compiled.
set -euo pipefail
binary=$1
max=44900000 # bytes of the stripped linux/amd64 binary; 44,639,024 with lib/pq, 47,754,768 with pgx, 47,689,104 with a packed grammar of bash and more that is not inlined, 49,178,928 with a bundler that is not inlined, 49,844,880 with packed grammars, 60,876,432 before, 92,224,464 with the model SDKs, grpc and protobuf
init=1600000 # bytes; 1,354,672 in November 2026, 3,867,240 before the SDKs had gone and expressions were compiled at their first use
packages=570 # 558 in November 2026, 950 with the model SDKs, grpc and protobuf
cd "$(dirname "$0")/.."
graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
mapfile -t gcflags < <(./scripts/gcflags.sh)
go build "${gcflags[@]}" -ldflags '-s -w -dumpdep' -o /dev/null ./sidecar 2>"$graph"
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
compiled=$(go list -deps ./sidecar | wc -l)
if [ "$compiled" -gt "$packages" ]; then
  echo "budget: $compiled packages are compiled, and the budget is $packages: see whose they are with go list -deps ./sidecar, or raise it with a reason"
  exit 1
fi
# init NAME @0.1 ms, 0.02 ms clock, 2312 bytes, 25 allocs
made=$(GODEBUG=inittrace=1 "$binary" version 2>&1 | awk '$1 == "init" { for (i = 2; i <= NF; i++) if ($i == "bytes,") sum += $(i-1) } END { print sum + 0 }')
if [ "$made" -gt "$init" ] || [ "$made" -eq 0 ]; then
  echo "budget: package initialisation allocates $made bytes, and the budget is $init: see whose with GODEBUG=inittrace=1 $binary version"
  exit 1
fi
echo "budget: $size of $max bytes, $made of $init at the start, $compiled of $packages packages"
