#!/usr/bin/env bash
# Everything that is tested of the Neovim plugin, on every Neovim there is: all.sh CACHE_DIR
# Lint, help tags, headless tests, screens.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "${1:-$here/../../../.cache}" && pwd)
again=$here/../../../scripts/again.sh
failed=0
fail() {
  echo "FAIL $*"
  failed=1
}

cd "$here/.." || exit 1
luacheck --quiet --no-color . || fail "luacheck (make setup-nvim installs it)"
nvims=()
for n in "$(command -v nvim || true)" "$cache/nvim-0.10/nvim" "$cache/nvim-0.12/nvim"; do
  [ -n "$n" ] && [ -x "$n" ] && nvims+=("$n")
done
[ ${#nvims[@]} -gt 0 ] || { echo "no Neovim found; run scripts/setup-nvim.sh"; exit 1; }
for nvim in "${nvims[@]}"; do
  for file in "$here"/*_test.lua; do
    # grep's own exit code says nothing, and what follows || would hide the first one.
    "$again" "$here/run.sh" "$nvim" "$file" | { grep -v '^ok' || true; }
    [ "${PIPESTATUS[0]}" = 0 ] || fail "$file on $nvim"
  done
  if command -v tmux >/dev/null; then
    "$again" node "$here/screen.mjs" "$nvim" || fail "screens on $nvim"
  else
    fail "no tmux, so no screens were compared (make setup-nvim installs it)"
  fi
done
exit $failed
