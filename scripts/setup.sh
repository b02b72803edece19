#!/usr/bin/env bash
# Installs what is missing and nothing else.
#
#   setup.sh run|test CACHE_DIR
#
# run: what the main job uses (C compiler, ripgrep, gopls). test: also npm packages, language servers, ACP clients, VS Code.
# Debian packages come from apt (as root), Go programs and npm packages go into CACHE_DIR. Safe to run again.
set -euo pipefail
want=$1
mkdir -p "$2"
cache=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
GOPLS=v0.23.0

say() { printf 'setup: %s\n' "$*" >&2; }

command -v go >/dev/null || {
  say "Go is missing: install Go 1.26 or newer from https://go.dev/dl, then run this again"
  exit 1
}

# 1. Debian packages
packages=(git gcc libc6-dev make ripgrep)
[ "$want" = test ] && packages+=(clangd postgresql shellcheck tmux)
missing=()
if command -v dpkg-query >/dev/null; then
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
fi
if [ ${#missing[@]} -gt 0 ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  say "apt: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 || {
    tail -n 20 "$cache/apt.log" >&2
    say "apt could not install ${missing[*]}; install them by hand and run this again"
    exit 1
  }
fi

# 2. gopls, into the cache unless there is one
if ! command -v gopls >/dev/null; then
  say "gopls $GOPLS"
  GOBIN=$cache/bin GOFLAGS=-mod=mod go install "golang.org/x/tools/gopls@$GOPLS"
fi
[ "$want" = test ] || exit 0

command -v npm >/dev/null || {
  say "npm is missing: install Node.js 20 or newer, then run this again"
  exit 1
}

# 3. npm packages of the repository (ACP clients for the end-to-end tests)
stamp=$(sha256sum "$root/package-lock.json" | cut -d' ' -f1)
if [ "$(cat "$root/node_modules/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
  say "npm ci"
  (cd "$root" && npm ci --no-audit --no-fund --loglevel=error >"$cache/npm.log" 2>&1) || {
    tail -n 20 "$cache/npm.log" >&2
    exit 1
  }
  echo "$stamp" >"$root/node_modules/.stamp"
fi

# 4. language servers for the integration tests
"$root/lspbridge/testdata/install-servers.sh" "$cache/servers"

# 5. a real VS Code for the extension's tests
"$root/scripts/setup-vscode.sh" "$cache/vscode" >&2

# 6. the Neovims for the plugin's tests
"$root/scripts/setup-nvim.sh" "$cache"
