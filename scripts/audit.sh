#!/usr/bin/env bash
# Known weaknesses in what Pillion is built from, as far as the services that know them can be reached.
# Exit code 1 only for a weakness that was found; what could not be asked is said.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
bad=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# 0: nothing known, 3: found. Everything else: it could not be fetched or the database was not reached.
timeout 300 go run "golang.org/x/vuln/cmd/govulncheck@${GOVULNCHECK:-latest}" ./... >"$log" 2>&1
case "$(grep -c '^Vulnerability #' "$log"):$(grep -c 'No vulnerabilities found' "$log")" in
  0:0) echo "govulncheck: not asked: $(tail -1 "$log")" ;;
  0:*) echo "govulncheck: nothing known" ;;
  *) cat "$log"; bad=1 ;;
esac
if npm audit --omit=dev >"$log" 2>&1; then
  echo "npm audit: nothing known"
elif grep -q 'audit endpoint returned an error\|ENOTFOUND\|EAI_AGAIN\|ECONN' "$log"; then
  echo "npm audit: not asked: $(grep -m1 'npm warn audit\|npm error' "$log")"
else
  cat "$log"; bad=1
fi
exit $bad
