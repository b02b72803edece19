#!/usr/bin/env bash
# Installs what the benchmarks compare with and nothing else needs: setup-peers.sh CACHE_DIR
# OpenCode from npm, one version, into CACHE_DIR/peers. Without it the benchmarks leave its part out and say so.
set -uo pipefail
OPENCODE=1.18.33
mkdir -p "$1/peers"
cd "$1/peers" || exit 0
[ "$(node -p 'require("./node_modules/opencode-ai/package.json").version' 2>/dev/null)" = "$OPENCODE" ] && exit 0
command -v npm >/dev/null || { echo "setup: no npm, so no OpenCode to compare with" >&2; exit 0; }
echo "setup: OpenCode $OPENCODE, for the benchmarks" >&2
[ -e package.json ] || echo '{"private": true}' >package.json
npm install --no-audit --no-fund --loglevel=error "opencode-ai@$OPENCODE" >npm.log 2>&1 || {
  tail -n 3 npm.log >&2
  echo "setup: OpenCode is not to be had; its part of the benchmarks is left out" >&2
}
# npm may hold back its install script: what that would do is link the program in.
node_modules/.bin/opencode --version >/dev/null 2>&1 || node node_modules/opencode-ai/postinstall.mjs >>npm.log 2>&1 || true
