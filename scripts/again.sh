#!/usr/bin/env bash
# Runs a command, and once more when it fails, which is said: again.sh COMMAND…
# A test that fails now and then has a cause worth finding: PILLION_ONCE=1 runs everything once.
set -uo pipefail
"$@" && exit 0
code=$?
[ -z "${PILLION_ONCE:-}" ] || exit "$code"
echo "again: $* failed with $code; once more"
"$@" || exit $?
echo "again: passed at its second try, which means it is UNRELIABLE: $*"
