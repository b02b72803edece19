#!/usr/bin/env bash
# Runs every fuzz target: fuzz.sh 30s      for a time each, guided by coverage (the first build takes minutes)
#                         fuzz.sh short    for a second each, two at once, without guidance: what `make test` has time for
# What a target finds is written to its testdata/fuzz and belongs into the repository: from then on plain tests run it.
# What only widens coverage is kept in .cache/fuzz and is where the next run begins.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
programs=$root/.cache/fuzz
mkdir -p "$programs/corpus"
# Two targets at once with a worker each, or one with as many as there are processors.
case $1 in
  short) time=1s each=2 workers=1 guided=() ;;
  *) time=$1 each=1 workers=$(nproc) guided=(-fuzz=.) ;;
esac
export root programs time workers

mapfile -t folders < <(grep -rlE '^func Fuzz' --include=*_test.go agent lspbridge sidecar tools | xargs -n1 dirname | sort -u)
for folder in "${folders[@]}"; do
  go test -c "${guided[@]}" -o "$programs/${folder//\//_}.test" "./$folder"
done

one() { # FOLDER TARGET
  cd "$root/$1" || exit 1
  local said
  if said=$("$programs/${1//\//_}.test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$time" -test.parallel "$workers" -test.fuzzcachedir "$programs/corpus/${1//\//_}" 2>&1); then
    printf 'ok    %s %s: %s\n' "$1" "$2" "$(grep -o 'execs: [0-9]*' <<<"$said" | tail -1)"
  elif grep -q 'context deadline exceeded' <<<"$said" && ! grep -q 'Failing input written' <<<"$said"; then
    printf 'ok    %s %s: its time was over in the middle of an input\n' "$1" "$2" # go test calls that a failure
  else
    printf 'FAIL  %s %s\n%s\n' "$1" "$2" "$said"
    exit 1
  fi
}
export -f one
for folder in "${folders[@]}"; do
  sed -nE "s/^func (Fuzz[A-Za-z0-9_]+).*/${folder//\//\\/} \1/p" "$folder"/*_test.go
done | xargs -P "$each" -L 1 bash -c 'one "$@"' _ || {
  # What a second of chance finds does not decide whether a build is good: the same build must say the same twice. The
  # input is kept, and from now on plain `go test` fails with it until the fault is mended.
  [ "$1" = short ] || exit 1
  echo 'fuzz: NEW FAULTS, see FAIL above; their inputs are in testdata/fuzz, and go test fails with them from now on'
}
