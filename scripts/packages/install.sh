#!/bin/sh
# Installs Pillion for this user, without root:
#
#   curl -fsSL https://github.com/pillion-dev/pillion/releases/latest/download/install.sh | sh
#   sh install.sh [VERSION]      a release, for example 0.2.0; without it, the newest
#
# The program goes to ~/.local/share/pillion/VERSION and ~/.local/bin/pillion points to it. The archive's SHA-256 is compared with
# the release's SHA256SUMS, and the signature of that file is verified with ssh-keygen (OpenSSH 8.1 or newer); where `gh` is installed and
# signed in, the release's attestation is verified too. To remove it: delete both.
#
# PILLION_SIGNERS: a file with allowed signers (ssh-keygen(1)) in place of Pillion's own, for a mirror that signs itself.
# PILLION_BIN: another folder than ~/.local/bin. PILLION_FROM: another place that holds the release's files (https:// or file://).
set -eu
# Of scripts/packages/signers; scripts/dist.sh puts them here.
signers=''
# Everything is in a function that the last line calls: a download that ends early runs nothing.
main() {
  umask 022
  from=${PILLION_FROM:-https://github.com/pillion-dev/pillion/releases}
  bin=${PILLION_BIN:-$HOME/.local/bin}
  share=${XDG_DATA_HOME:-$HOME/.local/share}/pillion
  # A link to the program must hold from any folder.
  case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
  case $share in /*) ;; *) share=$PWD/$share ;; esac
  version=${1:-}

  [ "$(uname -s)" = Linux ] || fail "there is no program for $(uname -s) yet; https://github.com/pillion-dev/pillion says how to build it"
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no program for $(uname -m)" ;;
  esac
  if ldd --version 2>&1 | grep -qi musl; then fail "the program needs glibc, and this system has musl; build it from source"; fi
  for tool in tar sha256sum; do command -v "$tool" >/dev/null || fail "$tool is missing"; done

  case $from in
    */releases) if [ -n "$version" ]; then from=$from/download/v$version; else from=$from/latest/download; fi ;;
  esac
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' INT TERM HUP
  get SHA256SUMS
  verify
  # The newest release has one archive for each architecture; its name holds the version.
  name=$(sed -n "s/^[0-9a-f]\{64\}  \(pillion-[^ ]*-linux-$arch\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS" | head -n 1)
  [ -n "$name" ] || fail "$from has no archive for linux/$arch"
  found=${name#pillion-}
  found=${found%-linux-"$arch".tar.gz}
  [ -z "$version" ] || [ "$version" = "$found" ] || fail "$from holds version $found, not $version"
  get "$name"
  (cd "$scratch" && grep "  $name\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) || fail "$name is not the file that SHA256SUMS names; nothing was installed"
  case $from in
    https://github.com/*)
      if command -v gh >/dev/null && gh auth status >/dev/null 2>&1; then
        gh attestation verify "$scratch/$name" --repo pillion-dev/pillion >/dev/null || fail "$name has no valid attestation; nothing was installed"
      fi
      ;;
  esac

  tar -xzf "$scratch/$name" -C "$scratch"
  "$scratch/pillion-$found-linux-$arch/pillion" version >/dev/null || fail "the program does not start on this system; nothing was installed"
  mkdir -p "$share" "$bin"
  # The folder takes its name in one step; a version that is there already, and may be running, is replaced as a whole.
  rm -rf "$share/$found.new"
  mv "$scratch/pillion-$found-linux-$arch" "$share/$found.new"
  # pillion upgrade uses the same folders again.
  printf 'PILLION_BIN=%s\nXDG_DATA_HOME=%s\n' "$bin" "${share%/pillion}" >"$share/$found.new/install.env"
  rm -rf "${share:?}/$found"
  mv "$share/$found.new" "$share/$found"
  ln -sfn "$share/$found/pillion" "$bin/.pillion.new"
  mv -f "$bin/.pillion.new" "$bin/pillion"
  echo "pillion $found is installed: $bin/pillion"
  case :$PATH: in
    *:"$bin":*) ;;
    *) echo "$bin is not on your PATH; add it, for example: echo 'export PATH=\"$bin:\$PATH\"' >> ~/.profile" ;;
  esac
}

# verify checks who wrote SHA256SUMS, before anything in it is believed.
verify() {
  if [ -n "${PILLION_SIGNERS:-}" ]; then
    cat "$PILLION_SIGNERS" >"$scratch/signers" || fail "PILLION_SIGNERS: $PILLION_SIGNERS cannot be read"
  elif [ -n "$signers" ]; then
    printf '%s\n' "$signers" >"$scratch/signers"
  else
    return 0
  fi
  # ssh-keygen knows -Y since OpenSSH 8.1; an older one prints its usage for any of its forms.
  if ! command -v ssh-keygen >/dev/null || ! printf x | ssh-keygen -Y check-novalidate -n x -s /dev/null 2>&1 | grep -qi 'signature'; then
    echo "install: the signature of the release is not checked, because this system has no ssh-keygen of OpenSSH 8.1 or newer" >&2
    return 0
  fi
  get SHA256SUMS.sig
  ssh-keygen -q -Y verify -f "$scratch/signers" -I releases@pillion -n pillion-release -s "$scratch/SHA256SUMS.sig" <"$scratch/SHA256SUMS" >/dev/null 2>&1 ||
    fail "SHA256SUMS is not signed by Pillion's release key; nothing was installed"
}

fail() {
  echo "install: $*" >&2
  exit 1
}

get() { # FILE: into $scratch
  if command -v curl >/dev/null; then
    curl -fsSL --proto '=https,file' --retry 3 -o "$scratch/$1" "$from/$1" || fail "$from/$1 cannot be downloaded"
  elif command -v wget >/dev/null; then
    wget -q --https-only -O "$scratch/$1" "$from/$1" || fail "$from/$1 cannot be downloaded"
  else
    fail "curl or wget is needed"
  fi
}

main "$@"
