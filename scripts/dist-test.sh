#!/usr/bin/env bash
# Unpacks every archive in dist/ into a root of its own and uses it: dist-test.sh
# As root the programs run in a chroot that holds the C library and nothing else; other architectures need qemu-user-static.
set -euo pipefail
cd "$(dirname "$0")/../dist"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pillion-dist.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
tried=0
version_of_all=$(ls pillion.nvim-*.tar.gz | head -1); version_of_all=${version_of_all#pillion.nvim-}; version_of_all=${version_of_all%.tar.gz}

fail() { printf 'dist-test: %s\n' "$*" >&2; exit 1; }
ok() { printf 'ok  %s\n' "$*"; tried=$((tried + 1)); }
is() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }

# run ROOT ARCH COMMAND…: runs /path/in/root with nothing of this machine but the C library
run() {
  local at=$1 arch=$2
  shift 2
  if [ "$arch" != "$(dpkg --print-architecture 2>/dev/null || echo amd64)" ]; then
    command -v qemu-aarch64-static >/dev/null || return 77
    env -i HOME=/tmp "$(command -v qemu-aarch64-static)" -L /usr/aarch64-linux-gnu "$at$1" "${@:2}"
  elif [ "$(id -u)" = 0 ]; then
    local lib
    for lib in $(ldd "$at$1" | grep -o '/[^ ]*'); do install -D "$lib" "$at$lib"; done
    mkdir -p "$at/tmp" "$at/proc"
    env -i HOME=/tmp "$(command -v chroot)" "$at" "$@"
  else
    env -i HOME="$at" "$at$1" "${@:2}"
  fi
}

# try NAME ROOT ARCH PROGRAM VERSION
try() {
  local said machine code=0
  machine=$(readelf -h "$2$4" | sed -n 's/ *Machine: *//p')
  case $3 in amd64 | x64) is "$1" "$machine" "Advanced Micro Devices X86-64" ;; arm64) is "$1" "$machine" AArch64 ;; esac
  ../scripts/hardened.sh "$2$4" || fail "$1: is not hardened"
  said=$(run "$2" "${3/x64/amd64}" "$4" version) || code=$?
  if [ $code = 77 ]; then ok "$1 unpacks; an $3 program cannot be run here"; return; fi
  is "$1" "$code" 0
  is "$1" "$(cut -d' ' -f2 <<<"$said")" "$5"
  [[ $(run "$2" "${3/x64/amd64}" "$4" config schema) == *'"Pillion configuration"'* ]] || fail "$1: config schema"
  ok "$1: $said"
}

sha256sum --quiet -c SHA256SUMS

for f in pillion-*-linux-*.tar.gz; do
  name=${f%.tar.gz}; arch=${name##*-}; version=${name#pillion-}; version=${version%-linux-*}
  mkdir "$scratch/$name.root"
  tar -xzf "$f" -C "$scratch/$name.root"
  at=$scratch/$name.root
  try "$f" "$at" "$arch" "/$name/pillion" "$version"
  for part in LICENSE THIRD-PARTY-NOTICES.txt README.md CHANGELOG.md man/pillion.1 completions/pillion.{bash,zsh,fish}; do
    [ -s "$at/$name/$part" ] || fail "$f lacks $part"
  done
  bash -c 'source "$1"; complete -p pillion' - "$at/$name/completions/pillion.bash" >/dev/null || fail "$f: bash completion"
  if command -v man >/dev/null; then
    page=$(MANROFFOPT=-c LC_ALL=C man -P cat -l "$at/$name/man/pillion.1" 2>/dev/null | col -b)
    [[ $page == *"pillion run"* ]] || fail "$f: manual page"
  fi
done

for f in pillion_*.deb; do
  [ -e "$f" ] || continue
  mkdir "$scratch/$f.root"
  dpkg-deb -x "$f" "$scratch/$f.root"
  dpkg-deb -e "$f" "$scratch/$f.control"
  (cd "$scratch/$f.root" && md5sum --quiet -c "$scratch/$f.control/md5sums") || fail "$f: its md5sums are of other files"
  version=$(dpkg-deb -f "$f" Version)
  try "$f" "$scratch/$f.root" "$(dpkg-deb -f "$f" Architecture)" /usr/bin/pillion "${version/\~dev/-dev}"
  for part in doc/pillion/copyright man/man1/pillion.1.gz bash-completion/completions/pillion; do
    [ -s "$scratch/$f.root/usr/share/$part" ] || fail "$f lacks /usr/share/$part"
  done
done

for f in pillion-*.rpm; do
  [ -e "$f" ] || continue
  if ! command -v rpm2cpio >/dev/null || ! command -v cpio >/dev/null; then echo "--  $f: not unpacked: rpm2cpio or cpio is missing"; continue; fi
  mkdir "$scratch/$f.root"
  rpm2cpio "$f" >"$scratch/rpm.cpio" || [ -s "$scratch/rpm.cpio" ] || fail "$f cannot be unpacked" # that of rpm 4.18 ends with 1 although everything came out
  (cd "$scratch/$f.root" && cpio -idm --quiet --no-absolute-filenames <"$scratch/rpm.cpio" 2>/dev/null)
  name=${f%.rpm}
  try "$f" "$scratch/$f.root" "$(sed 's/.*\.//; s/x86_64/amd64/; s/aarch64/arm64/' <<<"$name")" /usr/bin/pillion "$version_of_all"
  [ -s "$scratch/$f.root/usr/share/zsh/site-functions/_pillion" ] || fail "$f lacks its zsh completion"
done

for f in pillion-*.pkg.tar.zst; do
  [ -e "$f" ] || continue
  if ! command -v zstd >/dev/null; then echo "--  $f: not unpacked: zstd is missing"; continue; fi
  mkdir "$scratch/$f.root"
  zstd -qdc "$f" | tar -x -C "$scratch/$f.root"
  name=${f%.pkg.tar.zst}
  try "$f" "$scratch/$f.root" "$(sed 's/.*-//; s/x86_64/amd64/; s/aarch64/arm64/' <<<"$name")" /usr/bin/pillion "$version_of_all"
  [ -s "$scratch/$f.root/.PKGINFO" ] || fail "$f lacks .PKGINFO"
done

# npm, as `npm install -g` and `npx` lay it out, from the archives and without a registry. Only this machine's platform starts.
here=linux-$(node -p process.arch)
npm install --silent --no-audit --no-fund --no-save --ignore-scripts --offline --prefix "$scratch/npm" \
  "./npm/pillion-dev-$here-$version_of_all.tgz" >/dev/null 2>&1 || fail "npm/pillion-dev-$here-$version_of_all.tgz cannot be installed"
tar -xzf "npm/pillion-$version_of_all.tgz" -C "$scratch/npm/node_modules" # npm would ask the registry for the other platform's
mv "$scratch/npm/node_modules/package" "$scratch/npm/node_modules/pillion"
is npm "$(env -i HOME="$scratch" PATH="$PATH" node "$scratch/npm/node_modules/pillion/pillion.mjs" version | cut -d' ' -f2)" "$version_of_all"
code=0
env -i HOME="$scratch" PATH="$PATH" node "$scratch/npm/node_modules/pillion/pillion.mjs" no-such-command >/dev/null 2>&1 || code=$?
[ $code != 0 ] || fail "npm: the exit code of the program is lost"
ok "npm/pillion-$version_of_all.tgz: npx pillion"
rm -rf "$scratch/npm/node_modules/@pillion-dev"
said=$(node "$scratch/npm/node_modules/pillion/pillion.mjs" version 2>&1) && fail "npm: started without its program"
[[ $said == *"--omit=optional"* ]] || fail "npm: without its program it says: $said"
ok "npm/pillion-$version_of_all.tgz: says what is missing without the platform's package"

# install.sh from a folder instead of the network: first, again over itself, and a damaged archive.
mirror=$scratch/mirror
mkdir "$mirror"
cp SHA256SUMS pillion-*-linux-*.tar.gz "$mirror"
by_script() { env -i HOME="$scratch/home" PATH="/usr/bin:/bin" PILLION_FROM="file://$mirror" sh install.sh "$@"; }
by_script >/dev/null || fail "install.sh"
by_script "$version_of_all" >/dev/null || fail "install.sh over itself"
is install.sh "$("$scratch/home/.local/bin/pillion" version | cut -d' ' -f2)" "$version_of_all"
# In folders of its own, and pillion upgrade uses those again.
(cd "$scratch" && env -i HOME="$scratch/home" PATH="/usr/bin:/bin" PILLION_FROM="file://$mirror" PILLION_BIN="my bin" XDG_DATA_HOME="$scratch/data" sh "$OLDPWD/install.sh" >/dev/null) || fail "install.sh with other folders"
[[ $(HOME=$scratch "$scratch/my bin/pillion" upgrade --show) == *"installed by install.sh"*"PILLION_BIN='$scratch/my bin' XDG_DATA_HOME=$scratch/data sh -c"* ]] || fail "install.sh: pillion upgrade does not know its folders"
by_script 9.9.9 >/dev/null 2>&1 && fail "install.sh: another version than the one asked for was installed"
for f in "$mirror"/*.tar.gz; do echo x >>"$f"; done
rm -rf "${scratch:?}/home"
said=$(by_script 2>&1) && fail "install.sh: a damaged archive was installed"
[[ $said == *SHA256SUMS* && ! -e $scratch/home/.local/bin/pillion ]] || fail "install.sh: a damaged archive: $said"
ok "install.sh: installs, replaces itself, refuses another version and a damaged archive"

# Signed releases: a good signature, and each way in which one is none.
cp pillion-*-linux-*.tar.gz SHA256SUMS "$mirror"
ssh-keygen -q -t ed25519 -N '' -C release -f "$scratch/key"
ssh-keygen -q -t ed25519 -N '' -C stranger -f "$scratch/strange"
printf 'releases@pillion namespaces="pillion-release" %s\n' "$(cat "$scratch/key.pub")" >"$scratch/signers"
sign() { rm -f "$mirror/SHA256SUMS.sig"; ssh-keygen -q -Y sign -f "$scratch/$1" -n "${2:-pillion-release}" "$mirror/SHA256SUMS"; }
signed() { rm -rf "${scratch:?}/home"; env -i HOME="$scratch/home" PATH="/usr/bin:/bin" PILLION_SIGNERS="$scratch/signers" PILLION_FROM="file://$mirror" sh "${script:-install.sh}" 2>&1; }
refused() { # WHY
  said=$(signed) && fail "install.sh: $1 was installed"
  [[ $said == *SHA256SUMS* && ! -e $scratch/home/.local/bin/pillion ]] || fail "install.sh: $1: $said"
}
refused "a release without a signature"
sign key
signed >/dev/null || fail "install.sh: a signed release"
# The keys that dist.sh writes into the script count as well, several of them too.
sed "s|^signers=''\$|signers='$(tr -d '\n' <"$scratch/signers" | sed 's/[|&]/\\&/g')'|" install.sh >"$scratch/carries.sh"
(unset -f signed; rm -rf "${scratch:?}/home"; env -i HOME="$scratch/home" PATH="/usr/bin:/bin" PILLION_FROM="file://$mirror" sh "$scratch/carries.sh" >/dev/null) || fail "install.sh: a signed release, with keys in the script"
sign strange; refused "a release that a stranger signed"
sign key file; refused "a signature for something else"
sign key; echo "# changed" >>"$mirror/SHA256SUMS"; refused "a list of checksums that was changed"
ok "install.sh: verifies signatures, refuses missing, strange, reused and outdated ones"

node ../scripts/packages/check.mjs . "$version_of_all" || fail "the entries for other package managers"
ok "acp-registry, homebrew, aur, mason, scoop, winget, container, devcontainer: versions, checksums, addresses"

for f in pillion-*-windows-amd64.zip; do
  [ -e "$f" ] || continue
  mkdir "$scratch/$f.root"
  unzip -q "$f" -d "$scratch/$f.root"
  at=$scratch/$f.root/${f%.zip}
  [[ $(file -b "$at/pillion.exe") == PE32+*x86-64* ]] || fail "$f: pillion.exe is no program for Windows x64"
  for part in LICENSE THIRD-PARTY-NOTICES.txt README.md CHANGELOG.md; do [ -s "$at/$part" ] || fail "$f lacks $part"; done
  # Only what Windows has: a DLL of MinGW's would be missing there.
  needs=$(x86_64-w64-mingw32-objdump -p "$at/pillion.exe" | sed -n 's/^\tDLL Name: //p' | sort -f | tr '\n' ' ')
  [[ $needs != *libgcc* && $needs != *libwinpthread* && $needs != *libstdc* ]] || fail "$f needs $needs"
  ok "$f unpacks; needs $needs"
done

for f in pillion-*.vsix; do
  [ -e "$f" ] || fail "there is no .vsix"
  [[ $f == *-linux-* ]] || continue
  mkdir "$scratch/$f.root"
  unzip -q "$f" -d "$scratch/$f.root"
  at=$scratch/$f.root/extension
  try "$f" "$scratch/$f.root" "$(grep -o 'linux-[a-z0-9]*' <<<"$f" | head -1 | cut -d- -f2)" /extension/bin/pillion "$version_of_all"
  for part in package.json extension/vscode/dist/extension.js extension/vscode/dist/THIRD-PARTY-NOTICES.txt bin/THIRD-PARTY-NOTICES.txt; do
    [ -s "$at/$part" ] || fail "$f lacks $part"
  done
  grep -q CC-BY-4.0 "$at/extension/vscode/dist/THIRD-PARTY-NOTICES.txt" || fail "$f: the icons are not credited"
done

for f in pillion.nvim-*.tar.gz; do
  tar -xzf "$f" -C "$scratch"
  if command -v nvim >/dev/null; then
    env -i HOME="$scratch" PATH="$PATH" nvim --headless -u NONE -i NONE --cmd "set rtp^=$scratch/pillion.nvim" \
      -c 'runtime plugin/pillion.lua' -c 'if exists(":Pillion") != 2 | cquit | endif' -c 'lua require("pillion")' -c 'helptags ALL' -c 'help pillion' -c 'qa!' 2>/dev/null || fail "$f: no :Pillion"
    ok "$f: :Pillion and :help pillion"
  else
    [ -s "$scratch/pillion.nvim/plugin/pillion.lua" ] || fail "$f lacks plugin/pillion.lua"
    ok "$f unpacks"
  fi
done
[ $tried -ge 4 ] || fail "only $tried archives were found"
