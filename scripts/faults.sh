#!/usr/bin/env bash
# The fault suite in full: faults.sh 30m (the soak's time). Each row names what is broken and the tests that break it; the
# same tests run in `go test ./...` with fewer rounds, and fewest with -short.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export PILLION_SOAK=$1 # also what makes some rows larger than in `make test`
failed=()
row() { # what, package, tests
  printf '%-58s' "$1"
  local out
  if out=$(go test "./$2" -count="${COUNT:-1}" -timeout 60m -run "^($3)\$" 2>&1) && ! grep -q 'no tests to run' <<<"$out"; then
    awk '/^ok/ {print "ok  " $3}' <<<"$out"
  else
    echo FAILED
    tail -40 <<<"$out"
    failed+=("$1")
  fi
}
row "kill -9 while files are written" tools/files 'TestKill|TestCrashAtEveryPoint|TestRecover.*|TestFailureInTheMiddleTakesAllBack'
row "kill -9 in a patch of twenty files" sidecar 'TestKilledInTheMiddleOfAPatch'
row "kill -9 in a restore of a checkpoint" sidecar 'TestKilledInTheMiddleOfARestore|TestARestoreIsTrueAtEveryStep'
row "kill -9 in the store" agent/store 'Test.*'
row "kill -9 in mid-turn; a turn cut at every event" agent 'TestKillInMidTurn|TestATurnCutAtEveryEvent|TestTwoProcessesOnOneSession'
row "kill -9 of the program: no orphans" sidecar 'TestNothingOutlivesKill9'
row "full disk (files)" tools/files 'TestFullDiskTearsNothing'
row "full disk (sessions, spilled output)" agent 'TestAFullDiskIsToldAndTheTurnGoesOn|TestABrokenStoreIsNoReasonNotToWork'
row "full disk (commands)" tools/shell/run 'TestAFullDiskIsSaidAndTheCommandGoesOn'
row "read-only, permission lost, another user's files" tools/files 'TestAsAnotherUser|TestCommitRefuses'
row "two writers of one file" tools/files 'TestWritersOfOneFileLoseNothing|TestWaitingForAnotherWriterIsCancelled'
row "two processes on one file" sidecar 'TestTwoProcessesOnOneFileLoseNothing'
row "file changed between approval and apply" tools/builtin 'TestFileThatMoved.*|TestPathSwappedForALinkWhileAsking|TestTypingBetweenComparisonAndWrite'
row "language server: crash, hang, garbage, silence" lspbridge 'TestFaults|TestServerThatCrashesAlways|TestFrozenServer|TestGarbageIsGivenUpSoon|TestServerThatNever.*|TestServersDieWithUs'
row "MCP server: crash, hang, silence" tools/mcp 'TestAServerThat.*|TestServersThatCannotStart|TestSilenceEndsACallAndProgressBreaksIt'
row "JS host: crash, hang, flood" tools/custom 'TestToolsThatMisbehave'
row "shell: deaf, flood" tools/shell/run 'TestKillEnds.*|TestTimeoutLeavesNothing|TestAFloodKeepsTheLastTwoMegabytes'
row "shell: fork bomb" tools/shell/sandbox 'TestAForkBombEnds'
row "model stream: cut at every byte, silent, absurd" agent/provider 'TestARecordedAnswerCutAtEveryByteIsWholeOrCut|TestASilentStreamEndsAfterTheIdleTime|TestTwentyMegabytesInOneDelta|TestAReaderThatReturnsNothingForEverEnds'
row "model stream cut in a turn" agent 'TestACut.*|TestRetry.*|TestCancel.*'
row "editor gone in mid-approval, talking nonsense" sidecar 'TestAPermissionNobodyAnswersEndsWithTheEditor|TestTheEditorGoingAwayEndsEverything|TestAPendingApproval.*|TestNonsenseOnTheWire.*'
row "editor that reads slowly" sidecar/acp 'TestASlowEditor.*'
row "clocks that jump (sessions)" agent/store 'TestAClockThatJumpsChangesNoOrder'
row "clocks that jump (checkpoints)" tools/checkpoint 'TestARacilyCleanFileIsNotTrusted|TestPruneByAgeAndSize'
row "a gigabyte to read, to search" tools/builtin 'TestReadOfOneGigabyteTakesLittleMemory'
row "a gigabyte that a command prints" tools/shell/run 'TestMemoryStaysBounded'
row "a line larger than memory" tools/search 'TestALineLargerThanMemory'
row "random sessions for $1: flat memory, descriptors, threads" sidecar 'TestSoak'
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
