#!/usr/bin/env bash
# Runs the headless tests on one Neovim: run.sh NVIM [TEST_FILE…]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nvim=$1
shift
[ $# -gt 0 ] || set -- "$here"/*_test.lua
failed=0
for file in "$@"; do
  echo "== $("$nvim" --version | head -n 1) $(basename "$file")"
  timeout 600 "$nvim" --headless -u NONE -i NONE -n --cmd "set rtp^=$here/.." -c "luafile $file" </dev/null 2>&1 || failed=1
  echo
done
exit $failed
