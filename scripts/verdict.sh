#!/usr/bin/env bash
# The last lines of `make test`: what passed only at a second try, and what was skipped: verdict.sh CACHE_DIR
# test/unreliable.txt holds what is known of such tests, one a line: the name, then the cause once it has been found. More
# than three unreliable tests fail the run, and so does one that has been there before: it is mended before anything else.
set -uo pipefail
cache=$1
cd "$(dirname "$0")/.." || exit
skipped=0
if [ -s "$cache/skipped.log" ]; then
  skipped=$(wc -l <"$cache/skipped.log")
  echo "skipped, with the reason:"
  sed 's/^/  /' "$cache/skipped.log"
fi
if [ -s "$cache/unreliable.log" ]; then
  echo
  cat "$cache/unreliable.log"
  count=$(grep -c '^UNRELIABLE' "$cache/unreliable.log")
  echo "$count unreliable, $skipped skipped"
  echo "Add each to test/unreliable.txt with its first failure; find the cause with go test -race -count 20."
  if [ "$count" -gt 3 ]; then
    echo "verdict: more than three tests needed a second try"
    exit 1
  fi
  while read -r _ name; do
    if grep -qF "${name%% (*}" test/unreliable.txt; then
      echo "verdict: $name was unreliable before (test/unreliable.txt); mend it first"
      exit 1
    fi
  done < <(grep '^UNRELIABLE' "$cache/unreliable.log")
fi
echo "passed; $skipped skipped"
