#!/usr/bin/env bash
# Installs what drives the VS Code extension in a real workbench: code-server (VS Code itself, from npm), the node it wants,
# and a browser from Debian. Three to five minutes once, nothing the next time.
#
#   setup-vscode.sh CACHE_DIR
#
# CACHE_DIR/env then names the parts: CODE_SERVER_NODE, CODE_SERVER_ENTRY, CHROMIUM.
set -euo pipefail

CODE_SERVER_VERSION=4.139.1   # VS Code 1.139.1, runs on node 24
ARGON2_VERSION=0.44.0         # the other dependency whose install script must run
NODE_VERSION=24.21.0          # the npm package holds bin/node and the C++ headers for node-gyp
STAMP="code-server@$CODE_SERVER_VERSION node@$NODE_VERSION gate=1 slim=${SLIM:-1}"

[ $# -eq 1 ] || { echo "usage: $0 CACHE_DIR" >&2; exit 2; }
mkdir -p "$1"
CACHE=$(cd "$1" && pwd)

case $(uname -m) in
  x86_64) ARCH=x64 ;;
  aarch64) ARCH=arm64 ;;
  *) echo "no node package for $(uname -m)" >&2; exit 1 ;;
esac
NODE_HOME=$CACHE/node/node_modules/node-linux-$ARCH
VSCODE=$CACHE/code-server/node_modules/code-server/lib/vscode
ENTRY=$CACHE/code-server/node_modules/code-server/out/node/entry.js

STARTED=$(date +%s)
step() {
  now=$(date +%s)
  printf '%4ss  %s\n' "$((now - STARTED))" "$*"
}

# 1. Debian packages: a browser, a compiler, and the headers of the one native module that needs a library.
"$(dirname "$0")/apt.sh" "$(dirname "$CACHE")" chromium build-essential python3 libkrb5-dev

if [ "$(cat "$CACHE/stamp" 2>/dev/null || true)" = "$STAMP" ] && "$NODE_HOME/bin/node" "$ENTRY" --version >/dev/null 2>&1; then
  exit 0
fi
rm -f "$CACHE/stamp"

# 2. Node, from npm.
echo "node $NODE_VERSION and code-server $CODE_SERVER_VERSION, in $CACHE" >>"$(dirname "$CACHE")/installed.txt"
step "node $NODE_VERSION"
mkdir -p "$CACHE/node"
printf '{ "private": true, "dependencies": { "node-linux-%s": "%s" } }\n' "$ARCH" "$NODE_VERSION" >"$CACHE/node/package.json"
(cd "$CACHE/node" && npm install --no-audit --no-fund --loglevel=error)

# 3. code-server. Its postinstall runs npm again in lib/vscode, so both variables must come from the environment.
step "code-server $CODE_SERVER_VERSION (compiles native modules)"
rm -rf "$CACHE/code-server"
mkdir -p "$CACHE/code-server"
cat >"$CACHE/code-server/package.json" <<JSON
{
  "private": true,
  "dependencies": { "code-server": "$CODE_SERVER_VERSION" },
  "allowScripts": { "code-server@$CODE_SERVER_VERSION": true, "argon2@$ARGON2_VERSION": true }
}
JSON
(
  cd "$CACHE/code-server"
  PATH=$NODE_HOME/bin:$PATH npm_config_nodedir=$NODE_HOME JOBS=$(nproc) \
    npm install --no-audit --no-fund --foreground-scripts >"$CACHE/npm.log" 2>&1
) || { tail -n 40 "$CACHE/npm.log" >&2; exit 1; }

# 4. code-server lets every extension use proposed API. The tests should fail where a released VS Code would,
#    so put the check back: an extension gets the proposals that its manifest declares and no others.
step "restore the proposed-API check"
for f in workbench/api/node/extensionHostProcess.js workbench/api/worker/extensionHostWorkerMain.js code/browser/workbench/workbench.js; do
  # shellcheck disable=SC2016
  id='[$A-Za-z0-9_]+'
  sed -E -i "s/function ($id)\\(($id),($id)\\)\\{return!0\\}(function $id\\($id,$id\\)\\{if\\(!\\1\\()/function \\1(\\2,\\3){return!!\\2.enabledApiProposals\\&\\&\\2.enabledApiProposals.includes(\\3)}\\4/" "$VSCODE/out/vs/$f"
  grep -q 'enabledApiProposals&&' "$VSCODE/out/vs/$f" || { echo "the check was not found in $f" >&2; exit 1; }
done

# 5. Drop what a test never loads: other platforms' binaries, build leftovers, the Copilot extension and its runtime.
if [ "${SLIM:-1}" = 1 ]; then
  step "slim"
  find "$VSCODE/node_modules/@vscode/ripgrep-universal/bin" -mindepth 1 -maxdepth 1 ! -name "linux-$ARCH" -exec rm -rf {} +
  find "$VSCODE/node_modules" -type d \( -name obj.target -o -name obj \) -path '*/build/Release/*' -prune -exec rm -rf {} +
  rm -rf "$VSCODE/extensions/copilot" "$VSCODE"/node_modules/@github/copilot* "$VSCODE/node_modules/@microsoft/mxc-sdk" \
    "$VSCODE/extensions/mermaid-markdown-features"
fi

step "check"
"$NODE_HOME/bin/node" "$ENTRY" --version
(cd "$VSCODE" && for m in node-pty @vscode/spdlog @vscode/native-watchdog @parcel/watcher; do
  "$NODE_HOME/bin/node" -e "require('$m')" || { echo "native module $m does not load" >&2; exit 1; }
done)
cat >"$CACHE/env" <<ENV
CODE_SERVER_NODE=$NODE_HOME/bin/node
CODE_SERVER_ENTRY=$ENTRY
CHROMIUM=$(command -v chromium)
ENV
printf '%s' "$STAMP" >"$CACHE/stamp"
step "done, $(du -sh "$CACHE" | cut -f1)"
