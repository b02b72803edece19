#!/usr/bin/env bash
# What a change to one room needs, within three minutes when built before: test-fast.sh [PACKAGE…]
# Without arguments: the Go packages that differ from the upstream branch (or from the last commit) and those that import
# them, without the race detector and with -short; for changes of the VS Code extension types, style and unit tests; for
# changes of the Neovim plugin its annotations and headless tests on the newest Neovim here. It installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=$PWD/.cache
export PILLION_TEST_SERVERS=$cache/servers/node_modules/.bin
base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD~1 2>/dev/null || git rev-parse HEAD)
[ "$base" != "$(git rev-parse HEAD)" ] || [ -n "$(git status --porcelain)" ] || base=$(git rev-parse HEAD~1)
changed=$( (git diff --name-only "$base"; git ls-files --others --exclude-standard) | sort -u)

packages=("$@")
if [ ${#packages[@]} -eq 0 ] && grep -qE '^(agent|lspbridge|sidecar|tools|bench)/' <<<"$changed"; then
  module=$(go list -m)
  own=$(grep -E '^(agent|lspbridge|sidecar|tools|bench)/' <<<"$changed" | sed -E 's#/testdata/.*##; s#/[^/]*$##' | sort -u | while read -r dir; do
    while [ -n "$dir" ] && ! compgen -G "$dir/*.go" >/dev/null; do case $dir in */*) dir=${dir%/*} ;; *) dir= ;; esac; done
    [ -z "$dir" ] || echo "$module/$dir"
  done | sort -u)
  # and the packages that import one of them directly
  importers=$(go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}}' ./... | awk -v own="$own" '
    BEGIN { split(own, a, "\n"); for (i in a) want[a[i]] = 1 }
    { for (i = 2; i <= NF; i++) if ($i in want) { print $1; next } }')
  mapfile -t packages < <(printf '%s\n%s\n' "$own" "$importers" | grep -v '^$' | sort -u)
fi
if [ ${#packages[@]} -gt 0 ]; then
  bad=$(gofmt -l agent lspbridge sidecar tools bench)
  [ -z "$bad" ] || { printf '%s\n' "$bad" "run gofmt -w on these"; exit 1; }
  echo "go: ${#packages[@]} packages"
  go vet "${packages[@]}"
  go test -short -vet=off -timeout 10m "${packages[@]}"
  go test -vet=off -run 'ImportsFollow|Architecture' ./sidecar
fi
if grep -qE '^extension/vscode/|^(package|tsconfig|eslint)' <<<"$changed"; then
  npm run --silent typecheck && npm run --silent lint && npm run --silent test:unit
fi
if grep -q '^extension/nvim/' <<<"$changed"; then
  nvim=$(for n in "$cache/nvim-0.12/nvim" "$cache/nvim-0.10/nvim" "$(command -v nvim || true)"; do [ -x "$n" ] && echo "$n" && break; done)
  if [ -n "$nvim" ] && [ -x bin/pillion ]; then
    extension/nvim/tests/run.sh "$nvim"
  else
    echo "nvim: not tested: run make setup-test and make build first"
  fi
fi
[ ${#packages[@]} -gt 0 ] || grep -qE '^extension/|^(package|tsconfig|eslint)' <<<"$changed" || echo "nothing to test: no Go, TypeScript or Lua file has changed since $(git rev-parse --short "$base")"
