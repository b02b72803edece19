import assert from "node:assert/strict";
import test from "node:test";
import type { TurnFile, TurnHunk } from "../../src/common/protocol";
import { byChange, comparedWith, hunksAt } from "../../src/common/turn";

const hunk = (id: string, oldStart: number, oldLines: number, newStart: number, newLines: number, state = "open", members = [{ changeSet: "c1", hunk: id }]): TurnHunk => ({ id, oldStart, oldLines, newStart, newLines, state, members });
const file = (hunks: TurnHunk[], more: Partial<TurnFile> = {}): TurnFile => ({ uri: "file:///a", kind: "edit", baseText: "a\nb\nc\nd\n", text: "A\nb\nnew\nc\n", hunks, ...more });
const all = (state: string) => [hunk("1", 1, 1, 1, 1, state), hunk("2", 2, 0, 3, 1, state), hunk("3", 4, 1, 4, 0, state)];

test("open hunks are compared with the text before the turn, kept ones with what they became", () => {
  assert.equal(comparedWith(file(all("open"))), "a\nb\nc\nd\n");
  assert.equal(comparedWith(file(all("kept"))), "A\nb\nnew\nc\n");
  assert.equal(comparedWith(file([hunk("1", 1, 1, 1, 1, "kept"), hunk("3", 4, 1, 4, 0)])), "A\nb\nc\nd\n");
});

test("line ends and a missing last one stay", () => {
  assert.equal(comparedWith(file([], { baseText: "a\r\nb\r\n" })), "a\r\nb\r\n");
  assert.equal(comparedWith(file([], { baseText: "a\nb" })), "a\nb");
});

test("a new file is compared with nothing, a binary not at all", () => {
  assert.equal(comparedWith(file([hunk("1", 0, 0, 1, 2)], { kind: "create", baseText: null, text: "x\ny\n" })), "");
  assert.equal(comparedWith(file([], { binary: true, baseText: null })), undefined);
});

test("a place finds its hunk, also where lines were deleted", () => {
  const f = file(all("open"));
  assert.deepEqual(hunksAt(f, 1, 1).map((h) => h.id), ["1"]);
  assert.deepEqual(hunksAt(f, 3, 3).map((h) => h.id), ["2"]);
  assert.deepEqual(hunksAt(f, 4, 0).map((h) => h.id), ["3"]);
  assert.deepEqual(hunksAt(file(all("kept")), 1, 4), []);
});

test("changes are taken back in reverse", () => {
  const hunks = [hunk("1", 1, 1, 1, 1, "open", [{ changeSet: "c1", hunk: "x" }, { changeSet: "c2", hunk: "y" }]), hunk("2", 3, 1, 3, 1, "open", [{ changeSet: "c1", hunk: "z" }])];
  assert.deepEqual(byChange(hunks), [["c2", ["y"]], ["c1", ["x", "z"]]]);
});
