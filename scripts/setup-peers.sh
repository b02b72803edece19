#!/usr/bin/env bash
# Installs what the benchmarks compare with and nothing else needs: setup-peers.sh CACHE_DIR
# OpenCode, Claude Code, Codex's and Google's agents from npm, one version each, into CACHE_DIR/peers. What cannot be had is left out of
# the benchmarks and of the tests, which say so.
set -uo pipefail
command -v npm >/dev/null || { echo "setup: no npm, so no agents to compare with" >&2; exit 0; }

# install FOLDER PACKAGE@VERSION…
install() {
  mkdir -p "$1"
  cd "$1" || return
  shift
  [ -e package.json ] || echo '{"private": true}' >package.json
  for peer; do
    name=${peer%@*} version=${peer##*@}
    [ "$(node -p "require('./node_modules/$name/package.json').version" 2>/dev/null)" = "$version" ] && continue
    echo "setup: $name $version, for the benchmarks" >&2
    npm install --no-audit --no-fund --loglevel=error "$peer" >npm.log 2>&1 || {
      tail -n 3 npm.log >&2
      echo "setup: $name is not to be had; its part of the benchmarks is left out" >&2
    }
  done
}

peers=$(mkdir -p "$1" && cd "$1" && pwd)/peers
install "$peers" opencode-ai@1.18.33 @zed-industries/codex-acp@0.16.0 @google/gemini-cli@0.61.0 @agentclientprotocol/claude-agent-acp@0.101.0
# npm may hold back its install script: what that would do is link the program in.
node_modules/.bin/opencode --version >/dev/null 2>&1 || node node_modules/opencode-ai/postinstall.mjs >>npm.log 2>&1 || true
# Codex's own: its program has the name of Zed's, which went before it.
install "$peers/codex" @agentclientprotocol/codex-acp@2.6.0
