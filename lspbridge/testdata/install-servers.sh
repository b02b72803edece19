#!/bin/sh
# install-servers.sh DIR: puts the language servers npm has into DIR/node_modules, for integration_test.go.
# Run again, it does nothing that is done. Versions are pinned: node 20 runs them all.
set -eu
dir=${1:?usage: install-servers.sh DIR}
mkdir -p "$dir"
cd "$dir"
want='typescript-language-server@5.3.0 typescript@5.9.3 pyright@1.1.414 bash-language-server@5.8.1 vscode-langservers-extracted@4.10.0 yaml-language-server@1.19.2'
[ "$(cat .installed 2>/dev/null || true)" = "$want" ] && exit 0
[ -f package.json ] || echo '{"private":true}' >package.json
# shellcheck disable=SC2086 # a list
npm install --silent --no-audit --no-fund --ignore-scripts $want
echo "$want" >.installed
