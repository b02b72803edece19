#!/usr/bin/env bash
# Checks that a program is hardened as docs/SECURITY.md promises of releases: hardened.sh PROGRAM. Says what is missing and fails.
set -euo pipefail
parts=$(readelf -hldW "$1")
missing() { echo "hardened: $1: $2"; exit 1; }
grep -q 'Type: *DYN' <<<"$parts" || missing "$1" "it is no position-independent executable"
grep -q 'FLAGS_1.*NOW.*PIE' <<<"$parts" || missing "$1" "symbols are not bound at the start (BIND_NOW)"
grep -q GNU_RELRO <<<"$parts" || missing "$1" "the table of symbols stays writable (RELRO)"
grep 'GNU_STACK' <<<"$parts" | grep -qv ' RWE ' || missing "$1" "the stack is executable"
