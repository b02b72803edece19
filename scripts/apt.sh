#!/usr/bin/env bash
# Installs Debian packages that are missing: apt.sh CACHE_DIR PACKAGE…
# It waits for another apt to finish (10 minutes at most), tries each download three times, and notes in
# CACHE_DIR/installed.txt what it installed. Nothing is done, and apt is not asked, when all are there.
set -euo pipefail
cache=$1
shift
missing=()
for p in "$@"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
options=(-qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
mkdir -p "$cache"
echo "setup: apt: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# An update fails while another apt holds the lists' lock, which the timeout above does not cover.
for try in 1 2 3 4 5; do
  $sudo apt-get "${options[@]}" update >"$cache/apt.log" 2>&1 && break
  [ "$try" = 5 ] || { echo "setup: apt-get update failed; trying again in $((try * 5)) s" >&2; sleep $((try * 5)); }
done
$sudo env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "${missing[@]}" >>"$cache/apt.log" 2>&1 || {
  tail -n 20 "$cache/apt.log" >&2
  echo "setup: apt could not install ${missing[*]}; install them by hand and run this again" >&2
  exit 1
}
printf 'Debian package %s\n' "${missing[@]}" >>"$cache/installed.txt"
