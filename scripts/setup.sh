#!/usr/bin/env bash
# Installs what is missing for one target and nothing else.
#
#   setup.sh run|go|windows|vscode|nvim|dist|test CACHE_DIR
#
# run: what the main job uses: a C compiler, ripgrep, gopls
# go: also what the Go tests use: language servers, clangd, PostgreSQL, strace, npm packages
# windows: Wine and a C cross compiler, with which the tests try the program for Windows
# vscode: also the packages of the VS Code extension, a real VS Code and a browser
# nvim: also three Neovims and tmux
# dist: what makes and tries the packages that are given away
# test: all of it but that
#
# Debian packages come from apt (as root, or with sudo); Go programs and npm packages go into CACHE_DIR. It is safe to run
# again: what is there is left alone. At the end it lists what it installed; CACHE_DIR/installed.txt keeps that list.
set -euo pipefail
target=$1
mkdir -p "$2"
cache=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
GOPLS=v0.23.0
GOTESTSUM=v1.13.0

case $target in run | go | windows | vscode | nvim | dist | test) ;; *) echo "usage: $0 run|go|windows|vscode|nvim|dist|test CACHE_DIR" >&2 && exit 2 ;; esac
wants() { [ "$target" = test ] || [ "$target" = "$1" ]; }
say() { printf 'setup: %s\n' "$*" >&2; }
touch "$cache/installed.txt"
before=$(wc -l <"$cache/installed.txt")
installed() { echo "$*" >>"$cache/installed.txt"; }

command -v go >/dev/null || {
  say "Go is missing: install Go 1.26 or newer from https://go.dev/dl, then run this again"
  exit 1
}

# 1. Debian packages
packages=(git gcc libc6-dev make ripgrep)
if wants go; then packages+=(clangd postgresql shellcheck strace tmux); fi
if wants nvim; then packages+=(tmux); fi
if [ "$target" = dist ]; then packages+=(binutils cpio rpm2cpio zstd unzip); fi
if command -v dpkg-query >/dev/null; then
  "$root/scripts/apt.sh" "$cache" "${packages[@]}"
  # Without them scripts/windows-test.sh says that it tests nothing.
  if [ "$target" = windows ] && [ "$(go env GOARCH)" = amd64 ]; then "$root/scripts/apt.sh" "$cache" wine wine64 gcc-mingw-w64-x86-64-win32 || say "the program for Windows will not be tested"; fi
fi

# program PATH MODULE@VERSION: a Go program in the cache
program() {
  [ -x "$1" ] && return
  say "$2 (compiles, up to two minutes)"
  GOBIN=$(dirname "$1") GOFLAGS=-mod=mod go install "$2"
  installed "$2"
}

# 2. gopls, unless there is one
command -v gopls >/dev/null || program "$cache/bin/gopls" "golang.org/x/tools/gopls@$GOPLS"
if [ "$target" != run ]; then
  # 3. npm packages of the repository
  command -v npm >/dev/null || {
    say "npm is missing: install Node.js 20 or newer, then run this again"
    exit 1
  }
  stamp=$(sha256sum "$root/package-lock.json" | cut -d' ' -f1)
  if [ "$(cat "$root/node_modules/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
    say "npm ci"
    (cd "$root" && npm ci --no-audit --no-fund --loglevel=error >"$cache/npm.log" 2>&1) || {
      tail -n 20 "$cache/npm.log" >&2
      exit 1
    }
    echo "$stamp" >"$root/node_modules/.stamp"
    installed "npm packages of package-lock.json"
  fi
fi
if wants go; then
  # 4. what runs, checks and repeats the Go tests, and the language servers they talk to
  program "$cache/gotestsum-$GOTESTSUM/gotestsum" "gotest.tools/gotestsum@$GOTESTSUM"
  "$root/scripts/staticcheck.sh" "$cache" install
  "$root/lspbridge/testdata/install-servers.sh" "$cache/servers"
fi
if wants vscode; then "$root/scripts/setup-vscode.sh" "$cache/vscode" >&2; fi
if wants nvim; then "$root/scripts/setup-nvim.sh" "$cache"; fi

if [ "$(wc -l <"$cache/installed.txt" 2>/dev/null || echo 0)" -gt "$before" ]; then
  say "installed:"
  tail -n "+$((before + 1))" "$cache/installed.txt" | sed 's/^/  /' >&2
fi
