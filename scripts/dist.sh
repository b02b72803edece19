#!/usr/bin/env bash
# Makes everything that is given away, in dist/: for each architecture a tar.gz, a .deb and a .vsix, then the Neovim plugin
# and SHA256SUMS. The same commit gives the same bytes with the same Go, C compiler and node_modules.
#
#   dist.sh [amd64] [arm64]     default: this machine's, and arm64 where its cross compiler (gcc-aarch64-linux-gnu) is installed
#
# The programs need cgo (tree-sitter is C) and glibc. Not built here: macOS, Windows, musl.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
umask 022

say() { printf 'dist: %s\n' "$*" >&2; }
host=$(go env GOARCH)

# What a version is: that of package.json on its tag, else followed by where we are. Debian sorts ~ before the release.
base=$(node -p 'require("./package.json").version')
version=$base
if [ "$(git describe --exact-match --tags --match "v$base" 2>/dev/null)" != "v$base" ]; then
  version=$base-dev.g$(git rev-parse --short=12 HEAD) # g: digits only may not begin with 0 in a version
fi
git diff --quiet HEAD -- . || version=$version.dirty
debian=${version/-dev/~dev}

architectures=("$@")
if [ $# = 0 ]; then
  architectures=("$host")
  if [ "$host" != arm64 ]; then
    if command -v aarch64-linux-gnu-gcc >/dev/null; then architectures+=(arm64); else say "arm64 is not built: gcc-aarch64-linux-gnu is missing"; fi
  fi
fi

out=$root/dist
work=$out/work
rm -rf "$work"
mkdir -p "$work"
rm -f "$out"/pillion*.tar.gz "$out"/pillion*.deb "$out"/pillion*.vsix "$out"/SHA256SUMS

pack() { # FOLDER ARCHIVE: a tar.gz that depends on nothing but what is in it
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$(dirname "$1")" -cf - "$(basename "$1")" | gzip -n6 >"$2"
}

build() { # ARCH: the program
  say "pillion $version linux/$1"
  mkdir -p "$work/$1"
  ./scripts/build-release.sh "$1" "$version" "$work/$1/pillion"
  ./scripts/notices.sh "$1" >"$work/$1/THIRD-PARTY-NOTICES.txt"
}

# What the pages beside a program need is said by a program that runs here.
documents() {
  local here=$work/$host/pillion
  [ -x "$here" ] || { here=$work/host/pillion; go build -tags grpcnotrace -trimpath -ldflags "-X main.version=$version" -o "$here" ./sidecar; }
  mkdir -p "$work/share"
  HOME=$work "$here" __docs --man "$work/share"
  for shell in bash zsh fish; do HOME=$work "$here" completion $shell >"$work/share/pillion.$shell"; done
}

tarball() { # ARCH
  local to=$work/pillion-$version-linux-$1
  mkdir -p "$to/man" "$to/completions"
  cp "$work/$1/pillion" "$work/$1/THIRD-PARTY-NOTICES.txt" LICENSE README.md CHANGELOG.md "$to"
  cp "$work/share/pillion.1" "$to/man"
  cp "$work"/share/pillion.{bash,zsh,fish} "$to/completions"
  pack "$to" "$out/pillion-$version-linux-$1.tar.gz"
}

deb() { # ARCH
  local to=$work/deb-$1 doc
  doc=$to/usr/share/doc/pillion
  install -D -m 755 "$work/$1/pillion" "$to/usr/bin/pillion"
  install -D -m 644 "$work/share/pillion.bash" "$to/usr/share/bash-completion/completions/pillion"
  install -D -m 644 "$work/share/pillion.zsh" "$to/usr/share/zsh/vendor-completions/_pillion"
  install -D -m 644 "$work/share/pillion.fish" "$to/usr/share/fish/vendor_completions.d/pillion.fish"
  mkdir -p "$to/usr/share/man/man1" "$doc" "$to/DEBIAN"
  gzip -n9 <"$work/share/pillion.1" >"$to/usr/share/man/man1/pillion.1.gz"
  gzip -n9 <CHANGELOG.md >"$doc/changelog.gz"
  cat LICENSE "$work/$1/THIRD-PARTY-NOTICES.txt" >"$doc/copyright"
  local glibc
  glibc=$(objdump -T "$work/$1/pillion" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_// | sort -uV | tail -1)
  cat >"$to/DEBIAN/control" <<CONTROL
Package: pillion
Version: $debian
Architecture: $1
Maintainer: The Pillion authors <pillion-dev@users.noreply.github.com>
Installed-Size: $(du -sk --apparent-size "$to/usr" | cut -f1)
Depends: libc6 (>= ${glibc:-2.34})
Recommends: git, ripgrep
Section: devel
Priority: optional
Homepage: https://github.com/pillion-dev/pillion
Description: coding agent that rides behind your editor
 Every change is shown as a diff, with the problems it fixes and the problems
 it would cause, before it is written. Speaks the Agent Client Protocol to
 editors, LSP to language servers, and works in the terminal.
CONTROL
  # What `dpkg --verify` and debsums compare the installed files with.
  (cd "$to" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Zgzip -z6 --build "$to" "$out/pillion_${debian}_$1.deb" >/dev/null
}

for arch in "${architectures[@]}"; do build "$arch"; done
documents
for arch in "${architectures[@]}"; do
  tarball "$arch"
  if command -v dpkg-deb >/dev/null && command -v objdump >/dev/null; then deb "$arch"; else say "no .deb: dpkg-deb or objdump is missing"; fi
  target=linux-${arch/amd64/x64}
  npm run --silent package -- "$target=$work/$arch/pillion" >/dev/null
done

plugin=$work/pillion.nvim
mkdir -p "$plugin"
cp -R extension/nvim/{plugin,lua,doc,README.md} LICENSE "$plugin"
rm -f "$plugin/doc/tags"
pack "$plugin" "$out/pillion.nvim-$version.tar.gz"

(cd "$out" && sha256sum pillion* >SHA256SUMS)
rm -rf "$work"
(cd "$out" && ls -l pillion* SHA256SUMS | awk '{printf "%6.1f MB  %s\n", $5/1e6, $NF}')
