#!/bin/sh
# install-servers.sh DIR: puts the language servers npm has into DIR/node_modules, for integration_test.go, and
# TypeScript 7, which is its own server, into DIR/ts7/node_modules, and ESLint, which projects bring along, into DIR/eslint,
# and servers that only restraint_linux_test.go starts into DIR/more.
# Run again, it does nothing that is done. Versions are pinned: node 20 runs them all. No install scripts are run.
set -eu
dir=${1:?usage: install-servers.sh DIR}
mkdir -p "$dir"
cd "$dir"

# install FOLDER PACKAGE…
install() (
	mkdir -p "$1"
	cd "$1"
	shift
	[ "$(cat .installed 2>/dev/null || true)" = "$*" ] && exit 0
	[ -f package.json ] || echo '{"private":true}' >package.json
	npm install --silent --no-audit --no-fund --ignore-scripts "$@"
	echo "$*" >.installed
)

install . typescript-language-server@5.3.0 typescript@5.9.3 pyright@1.1.414 bash-language-server@5.8.1 \
	vscode-langservers-extracted@4.10.0 yaml-language-server@1.19.2
install ts7 typescript@7.0.2
install eslint eslint@9.39.5
install more svelte-language-server@0.18.4 dockerfile-language-server-nodejs@0.15.0 intelephense@1.18.5
