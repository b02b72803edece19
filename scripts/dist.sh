#!/usr/bin/env bash
# Makes everything that is given away, in dist/: for each architecture a tar.gz, a .deb, an .rpm, an Arch package and a .vsix, then
# the npm packages, install.sh, what other package managers need (scripts/packages/make.mjs), the Neovim plugin and SHA256SUMS.
# The same commit gives the same bytes with the same Go, C compiler and node_modules.
#
#   dist.sh [amd64] [arm64]     default: this machine's, and arm64 where its cross compiler (gcc-aarch64-linux-gnu) is installed
#
# Where MinGW is installed (gcc-mingw-w64-x86-64), the zip, .vsix and npm package for Windows x64 too.
# PILLION_SIGNING_KEY: an OpenSSH private key that signs SHA256SUMS; its public part must be in scripts/packages/signers.
#
# The programs need cgo (tree-sitter is C) and, on Linux, glibc. Not built here: macOS, musl.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
umask 022

say() { printf 'dist: %s\n' "$*" >&2; }
host=$(go env GOARCH)

# What a version is: that of package.json on its tag, else followed by where we are.
base=$(node -p 'require("./package.json").version')
version=$base
if [ "$(git describe --exact-match --tags --match "v$base" 2>/dev/null)" != "v$base" ]; then
  version=$base-dev.g$(git rev-parse --short=12 HEAD) # g: digits only may not begin with 0 in a version
fi
git diff --quiet HEAD -- . || version=$version.dirty
tilde=${version/-dev/\~dev} # .deb and .rpm sort ~ before the release

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
rm -rf "$out"/pillion*.{tar.gz,zip,deb,rpm,zst,vsix} "$out"/{npm,acp-registry,homebrew,aur,scoop,winget,mason,container,devcontainer,install.sh,SHA256SUMS,SHA256SUMS.sig}

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
  [ -x "$here" ] || { here=$work/host/pillion; go build -trimpath -ldflags "-X main.version=$version" -o "$here" ./sidecar; }
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

# The .deb, .rpm and Arch packages.
system_packages() { # ARCH
  local nfpm=$root/.cache/bin/nfpm glibc kind
  [ -x "$nfpm" ] || GOBIN=$(dirname "$nfpm") GOFLAGS=-mod=mod go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.1
  gzip -n9 <"$work/share/pillion.1" >"$work/share/pillion.1.gz"
  gzip -n9 <CHANGELOG.md >"$work/share/changelog.gz"
  cat LICENSE "$work/$1/THIRD-PARTY-NOTICES.txt" >"$work/$1/copyright"
  glibc=$(objdump -T "$work/$1/pillion" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_// | sort -uV | tail -1)
  for kind in deb rpm archlinux; do
    local as=$tilde
    [ $kind != archlinux ] || as=${version//-/_} # a hyphen separates the package's release there
    sed -e "s|\${ARCH}|$1|g; s|\${VERSION}|$as|g; s|\${WORK}|$work/$1|g; s|\${SHARE}|$work/share|g; s|\${GLIBC}|${glibc:-2.34}|g" \
      scripts/packages/nfpm.yaml >"$work/nfpm.yaml"
    "$nfpm" package --config "$work/nfpm.yaml" --packager $kind --target "$out" >"$work/nfpm.log" 2>&1 || { cat "$work/nfpm.log" >&2; exit 1; }
  done
}

for arch in "${architectures[@]}"; do build "$arch"; done
documents
for arch in "${architectures[@]}"; do
  tarball "$arch"
  if command -v objdump >/dev/null; then system_packages "$arch"; else say "no .deb, .rpm and Arch packages: objdump (binutils) is missing"; fi
  target=linux-${arch/amd64/x64}
  npm run --silent package -- "$target=$work/$arch/pillion" >/dev/null
done

# Windows: a zip, whose files have the commit's time.
if command -v x86_64-w64-mingw32-gcc >/dev/null && command -v zip >/dev/null; then
  say "pillion $version windows/amd64"
  windows=$work/windows-amd64
  mkdir -p "$windows"
  ./scripts/build-release.sh amd64 "$version" "$windows/pillion.exe" windows
  ./scripts/notices.sh amd64 windows >"$windows/THIRD-PARTY-NOTICES.txt"
  to=$work/pillion-$version-windows-amd64
  mkdir -p "$to"
  cp "$windows/pillion.exe" "$windows/THIRD-PARTY-NOTICES.txt" LICENSE README.md CHANGELOG.md "$to"
  find "$to" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  (cd "$work" && find "$(basename "$to")" | sort | zip -qX9@ "$out/pillion-$version-windows-amd64.zip")
  npm run --silent package -- "win32-x64=$windows/pillion.exe" >/dev/null
  architectures+=(windows-amd64)
else
  say "nothing for Windows is built: gcc-mingw-w64-x86-64 or zip is missing"
fi
# Any platform: it brings the program from the npm package, or finds it on the PATH.
npm run --silent package -- none >/dev/null

plugin=$work/pillion.nvim
mkdir -p "$plugin"
cp -R extension/nvim/{plugin,lua,doc,README.md} LICENSE "$plugin"
rm -f "$plugin/doc/tags"
pack "$plugin" "$out/pillion.nvim-$version.tar.gz"

node scripts/packages/make.mjs "$version" "$out" "$work" "${architectures[@]}"

(cd "$out" && sha256sum pillion* npm/* install.sh >SHA256SUMS)
if [ -n "${PILLION_SIGNING_KEY:-}" ]; then
  ssh-keygen -q -Y sign -f "$PILLION_SIGNING_KEY" -n pillion-release "$out/SHA256SUMS"
  ssh-keygen -q -Y verify -f <(grep -v '^#' scripts/packages/signers) -I releases@pillion -n pillion-release -s "$out/SHA256SUMS.sig" <"$out/SHA256SUMS" >/dev/null ||
    { say "PILLION_SIGNING_KEY is not in scripts/packages/signers"; exit 1; }
else
  say "SHA256SUMS is not signed: PILLION_SIGNING_KEY is not set"
fi
rm -rf "$work"
# shellcheck disable=SC2012 # these names are ours
(cd "$out" && ls -l pillion* npm/* SHA256SUMS | awk '{printf "%6.1f MB  %s\n", $5/1e6, $NF}')
