// What the person decided, and what of it goes over the wire.
import assert from "node:assert/strict";
import test from "node:test";
import { Decisions } from "../../src/common/decisions";

test("an answer names what was decided, typed or said; the option speaks for the rest", () => {
  const d = new Decisions();
  d.set("accepted", { choice: "accept" });
  d.set("rejected", { choice: "reject", comment: "no" });
  d.set("typed", { lines: ["mine"] });
  d.set("said", { comment: "mind this" });
  d.set("both", { choice: "accept", lines: ["a", "b"], comment: "so" });
  assert.equal(d.decided, 3);
  const decided = { accepted: { decision: "accept" }, rejected: { decision: "reject", comment: "no" }, both: { decision: "edit", newLines: ["a", "b"], comment: "so" } };
  assert.deepEqual(d.answer(true), { ...decided, typed: { decision: "edit", newLines: ["mine"] }, said: { decision: "accept", comment: "mind this" } });
  assert.deepEqual(d.answer(false), { ...decided, said: { decision: "reject", comment: "mind this" } });
});

test("a part changes alone, undefined clears it, and what stays the same is told to nobody", () => {
  const d = new Decisions();
  assert.equal(d.set("h", { choice: undefined }), false);
  assert.equal(d.set("h", { choice: "reject", lines: ["x"] }), true);
  assert.equal(d.set("h", { lines: ["x"] }), false);
  assert.equal(d.set("h", { comment: "why" }), true);
  assert.deepEqual(d.of("h"), { choice: "reject", lines: ["x"], comment: "why" });
  assert.equal(d.set("h", { choice: undefined }), true);
  assert.equal(d.decided, 0);
  assert.deepEqual(d.answer(true), { h: { decision: "edit", newLines: ["x"], comment: "why" } });
  assert.deepEqual(d.of("another"), {});
});

test("deleting all lines of a hunk is an edit to no lines", () => {
  const d = new Decisions();
  d.set("h", { choice: "accept", lines: [] });
  assert.deepEqual(d.answer(false), { h: { decision: "edit", newLines: [] } });
});
