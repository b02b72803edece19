#!/usr/bin/env bash
# The Neovims that the tests run on: Debian's own, and two newer ones in the cache.
#
#   setup-nvim.sh CACHE_DIR        makes CACHE_DIR/nvim-0.10/nvim and CACHE_DIR/nvim-0.12/nvim; safe to run again
#
# The newer ones are packages of newer Debian suites, unpacked into a folder of their own: the system's apt is left
# alone. Their loader and libraries come along, because the terminal UI starts its own binary again, so that a wrapper
# around the loader would not do.
set -euo pipefail
cache=$1
say() { printf 'setup: %s\n' "$*" >&2; }

command -v apt-get >/dev/null || {
  command -v nvim >/dev/null && exit 0 # not Debian: the tests run on the Neovim that is there
  say "install Neovim 0.7 or newer, then run this again"
  exit 1
}
"$(dirname "$0")/apt.sh" "$cache" neovim lua-check tmux patchelf

# unpack SUITE PREFIX
unpack() {
  local suite=$1 prefix=$2 state mirror keyring lib loader deb
  [ -x "$prefix/nvim" ] && return
  say "Neovim of Debian $suite"
  echo "Neovim of Debian $suite, in $prefix" >>"$cache/installed.txt"
  mkdir -p "$prefix"
  prefix=$(cd "$prefix" && pwd)
  state=$prefix/.apt
  mkdir -p "$state"/etc "$state"/lists/partial "$state"/cache/archives/partial "$state"/prefs
  : >"$state/status"
  # shellcheck disable=SC2016 # apt's own placeholder
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  keyring=$(find /usr/share/keyrings -name 'debian-archive-keyring.*' | sort | head -n 1)
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/etc/sources.list"
  cat >"$state/apt.conf" <<CONF
Dir::Etc::sourcelist "$state/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$state/prefs";
Dir::State "$state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
CONF
  APT_CONFIG=$state/apt.conf apt-get update -qq
  APT_CONFIG=$state/apt.conf apt-get install -y -qq --download-only -o Debug::NoLocking=1 neovim >"$state/download.log" 2>&1 || {
    tail "$state/download.log" >&2
    exit 1
  }
  for deb in "$state"/cache/archives/*.deb; do dpkg -x "$deb" "$prefix"; done
  lib=$prefix/usr/lib/$(uname -m)-linux-gnu
  loader=$(find "$prefix" -name 'ld-linux-*.so.*' -type f | head -n 1)
  patchelf --set-interpreter "$loader" --set-rpath "$lib:$prefix/lib/$(uname -m)-linux-gnu" --force-rpath "$prefix/usr/bin/nvim"
  cat >"$prefix/nvim" <<RUN
#!/bin/sh
export VIMRUNTIME=$prefix/usr/share/nvim/runtime
export LUA_CPATH="$lib/lua/5.1/?.so;;" LUA_PATH="$prefix/usr/share/lua/5.1/?.lua;;"
exec $prefix/usr/bin/nvim "\$@"
RUN
  chmod +x "$prefix/nvim"
  rm -rf "$state"
}

mkdir -p "$cache"
unpack trixie "$cache/nvim-0.10"
unpack forky "$cache/nvim-0.12"
