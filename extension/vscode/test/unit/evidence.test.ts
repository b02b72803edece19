// What was run on a draft, as it may be shown.
import assert from "node:assert/strict";
import test from "node:test";
import { evidenceSummary, readEvidence, readNotes } from "../../src/common/evidence";

test("whatever comes is read; an unknown status never reads as a success", () => {
  assert.deepEqual(readEvidence(undefined), []);
  assert.deepEqual(readEvidence([null, 3, {}, { status: "passed" }]), []);
  const [e] = readEvidence([{ command: "make test", status: "splendid", exitCode: "0", stale: 1, tests: [{ name: "A", status: "green", before: "odd" }, { suite: "x" }] }]);
  assert.equal(e?.status, "notRun");
  assert.equal(e.exitCode, undefined);
  assert.equal(e.stale, false);
  assert.deepEqual(e.tests.map((t) => [t.name, t.suite, t.status, t.before]), [["A", "", "notRun", "notRun"]]);
});

test("long output is kept at its end, lists are bounded", () => {
  const [e] = readEvidence([{ command: "c", status: "failed", output: "line\n".repeat(10_000) + "the reason", tests: Array.from({ length: 9000 }, () => ({ name: "T", status: "passed" })) }]);
  assert.ok(e!.output!.length < 9000 && e!.output!.endsWith("the reason") && e!.output!.startsWith("…\nline"));
  assert.equal(e!.tests.length, 5000);
  const [noted] = readEvidence([{ command: "c", status: "failed", output: "why\n\n<bash_metadata>\nexit code: 1\n</bash_metadata>" }]);
  assert.equal(noted?.output, "why");
});

test("the summary counts tests where every command has told of its own, else commands", () => {
  const of = (...list: unknown[]) => evidenceSummary(readEvidence(list));
  const t = (status: string) => ({ name: "t", status });
  assert.equal(of(), "");
  assert.equal(of({ command: "a", status: "passed", tests: [t("passed"), t("passed"), t("skipped")] }), "Tests: 2 passed, 1 skipped");
  assert.equal(of({ command: "a", status: "failed", tests: [t("passed"), t("failed")] }), "Tests: 1 failed, 1 passed");
  assert.equal(of({ command: "a", status: "failed", tests: [t("passed")] }), "Tests: 1 passed, and a check failed");
  assert.equal(of({ command: "a", status: "passed", tests: [t("passed")] }, { command: "b", status: "notRun" }), "Checks: 1 passed, 1 not run");
  assert.equal(of({ command: "a", status: "passed", stale: true }, { command: "b", status: "failed" }), "Checks: 1 failed, 1 passed (before the last change)");
});

test("uses, verified groups and claims are lines of their own; nothing unknown reads as a success", () => {
  assert.deepEqual(readNotes(undefined), []);
  assert.deepEqual(readNotes([1]), []);
  assert.deepEqual(readNotes({ uses: [null, {}], groups: [{ title: "together" }, 3], claims: [{}], attempts: "2" }), []);
  const notes = readNotes({
    uses: [
      { name: "Load", kind: "function", what: "signature", public: true, uses: 14, files: 6, inside: 5, others: [{ path: "/p/a.go", line: 3 }, {}] },
      { name: "one", kind: "method", what: "body", uses: 1, files: 1, inside: 1 },
      { name: "x", what: "removed", unknown: "no server" },
    ],
    groups: [{ title: "verified rename Load → Fetch, 41 places", verified: true }],
    claims: [{ text: "tests pass and vet is clean", about: "tests", subject: "tests", support: "run", command: "go test" }, { text: "tests pass and vet is clean", about: "lint", subject: "go vet", support: "none" }, { text: "lint passes", about: "lint", support: "none", command: "make lint test", exit: 1 }, { text: "it builds", support: "proved" }, { text: "lint is clean", support: "failed", command: "make lint", exit: 2 }],
    merged: ["/p/a.go", 3],
    attempts: 2,
    insists: "the test is wrong",
  });
  assert.deepEqual(notes.map((n) => [n.status, n.label, n.said]), [
    ["notRun", "public function Load", "declared differently · 14 uses in 6 files, 5 of them in this proposal; 9 outside may be affected"],
    ["info", "method one", "changed inside · 1 use in 1 file, 1 of them in this proposal"],
    ["notRun", "x", "removed or renamed · its uses are not known (no server)"],
    ["passed", "verified rename Load → Fetch, 41 places", ""],
    ["passed", "The agent says “tests pass and vet is clean”", "tests: go test ended with 0 on this version"],
    ["notRun", "The agent says “tests pass and vet is clean”", "go vet: no run of that is known"],
    ["notRun", "The agent says “lint passes”", "lint: not known: make lint test ended with 1 and checks other things too"],
    ["notRun", "The agent says “it builds”", "no run of that is known"],
    ["failed", "The agent says “lint is clean”", "not so: make lint ended with 2"],
    ["info", "/p/a.go has changed since the agent read it; the change is to the file as it is now", ""],
    ["info", "2 earlier attempts went back to the agent", ""],
    ["failed", "The agent was told of the errors and proposes this all the same: “the test is wrong”", ""],
  ]);
  assert.deepEqual(notes[0]?.rows, ["/p/a.go:3"]);
});
