#!/usr/bin/env bash
# Runs lists of make targets side by side: lanes.sh LOG_DIR "TARGET…" "TARGET…" …
# The targets of one list run in order, and the list ends with the first that fails; the other lists go on, so a run names
# all that fails. A target's output is printed whole when it ends, and stays in LOG_DIR/TARGET.log; every minute a line says
# what is running. LOG_DIR/times.txt gets the seconds of each target. A signal ends all of them.
set -uo pipefail
logs=$1
shift
rm -rf "$logs"
mkdir -p "$logs"

lane() { # TARGET…
  local target begun result=passed
  for target; do
    begun=$SECONDS
    printf 'began %s -\n' "$target"
    make --no-print-directory "$target" >"$logs/$target.log" 2>&1 </dev/null || result=FAILED
    printf '%s %s %s\n' "$result" "$target" $((SECONDS - begun))
    [ "$result" = passed ] || return
  done
}

# Each list is a process group of its own, so that its programs end with it.
exec 3< <(
  set -m
  for targets; do
    # shellcheck disable=SC2086 # a list of words
    lane $targets &
    printf 'group %s -\n' "$!"
  done
  wait
)
groups=() failed=()
declare -A running
stop() {
  trap '' INT TERM HUP
  for group in "${groups[@]}"; do kill -TERM -- "-$group" 2>/dev/null; done
  exit 130
}
trap stop INT TERM HUP

while :; do
  read -r -t 60 said name seconds <&3
  code=$?
  if [ "$code" -gt 128 ]; then # nothing was said for a minute
    line=
    for name in "${!running[@]}"; do line+=" $name $((SECONDS - running[$name])) s,"; done
    echo "lanes: running:${line%,}"
    continue
  fi
  [ "$code" = 0 ] || break # all lists have ended
  case $said in
    group) groups+=("$name") ;;
    began) running[$name]=$SECONDS ;;
    passed | FAILED)
      unset "running[$name]"
      echo "== $name"
      cat "$logs/$name.log"
      echo "== $name: $said after $seconds s"
      printf '%5d s  %s %s\n' "$seconds" "$name" "$said" >>"$logs/times.txt"
      [ "$said" = passed ] || failed+=("$name")
      ;;
  esac
done
echo "side by side, $SECONDS s in all:"
cat "$logs/times.txt"
[ ${#failed[@]} = 0 ] || { echo "lanes: FAILED: ${failed[*]}"; exit 1; }
