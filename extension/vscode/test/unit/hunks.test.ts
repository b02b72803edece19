import assert from "node:assert/strict";
import test from "node:test";
import { blankChanges } from "../../src/common/hunks";
import { linesOf, reviewed, textWith } from "../../src/common/hunks";
import type { Hunk } from "../../src/common/protocol";

const base = "a\nb\nc\nd\ne\nf\n";
const proposed = "A\nb\nc\nnew\nd\nf\n"; // a→A, new before d, e gone
const hunks: Hunk[] = [
  { id: "1", oldStart: 1, oldLines: 1, newStart: 1, newLines: 1 },
  { id: "2", oldStart: 3, oldLines: 0, newStart: 4, newLines: 1 },
  { id: "3", oldStart: 5, oldLines: 1, newStart: 5, newLines: 0 },
];
const kinds = (current: string) => reviewed(base, proposed, hunks, current).hunks.map((h) => h.kind).join(" ");

test("untouched: every hunk as proposed, at its place", () => {
  const r = reviewed(base, proposed, hunks, proposed);
  assert.deepEqual(r.hunks.map((h) => [h.kind, h.start, h.lines, h.old]), [["proposed", 0, ["A"], ["a"]], ["proposed", 3, ["new"], []], ["proposed", 5, [], ["e"]]]);
  assert.equal(r.outside, false);
});

test("a replaced, an inserted and a deleted hunk are reverted one by one", () => {
  assert.equal(kinds("a\nb\nc\nnew\nd\nf\n"), "reverted proposed proposed");
  assert.equal(kinds("A\nb\nc\nd\nf\n"), "proposed reverted proposed");
  assert.equal(kinds("A\nb\nc\nnew\nd\ne\nf\n"), "proposed proposed reverted");
  assert.equal(kinds(base), "reverted reverted reverted");
});

test("edits inside and at the edges of hunks belong to them", () => {
  const r = reviewed(base, proposed, hunks, "A1\nA2\nb\nc\nnew\nnewer\nd\nE\nf\n");
  assert.deepEqual(r.hunks.map((h) => [h.kind, h.lines]), [["edited", ["A1", "A2"]], ["edited", ["new", "newer"]], ["edited", ["E"]]]);
  assert.equal(r.outside, false);
});

test("an edit of lines that no hunk is about is noticed, and spoils no hunk", () => {
  const r = reviewed(base, proposed, hunks, "A\nb!\nc\nnew\nd\nf\n");
  assert.deepEqual(r.hunks.map((h) => h.kind), ["proposed", "proposed", "proposed"]);
  assert.equal(r.outside, true);
});

test("among equal lines the deletion inside the hunk is meant", () => {
  const b = "{\n}\n";
  const p = "{\n}\n}\n";
  const h: Hunk[] = [{ id: "x", oldStart: 2, oldLines: 0, newStart: 3, newLines: 1 }];
  assert.deepEqual(reviewed(b, p, h, b), { hunks: [{ id: "x", start: 2, lines: [], old: [], proposed: ["}"], kind: "reverted" }], outside: false });
});

test("line ends do not count as changes", () => {
  assert.equal(reviewed("a\r\nb\r\n", "a\r\nB\r\n", [{ id: "x", oldStart: 2, oldLines: 1, newStart: 2, newLines: 1 }], "a\nB\n").hunks[0]?.kind, "proposed");
});

test("a created and a deleted file", () => {
  assert.equal(reviewed("", "x\ny\n", [{ id: "n", oldStart: 0, oldLines: 0, newStart: 1, newLines: 2 }], "").hunks[0]?.kind, "reverted");
  assert.equal(reviewed("x\ny\n", "", [{ id: "n", oldStart: 1, oldLines: 2, newStart: 0, newLines: 0 }], "x\ny\n").hunks[0]?.kind, "reverted");
});

test("textWith puts chosen hunks into the old text", () => {
  assert.equal(textWith(base, hunks, (id) => (id === "2" ? ["new"] : undefined)), "a\nb\nc\nnew\nd\ne\nf\n");
  assert.equal(textWith(base, hunks, (id) => ({ "1": ["A"], "2": ["new"], "3": [] })[id]), proposed);
});

test("any subset of reverted hunks is read back, whatever the lines (random)", () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  for (let round = 0; round < 400; round++) {
    const old: string[] = [];
    const now: string[] = [];
    const list: Hunk[] = [];
    const chosen = new Map<string, string[]>();
    const parts = 1 + random(5);
    const line = () => "xyz}"[random(4)] ?? "x"; // few different lines, so that diffs are ambiguous
    for (let i = 0; i < parts; i++) {
      const context = Array.from({ length: 1 + random(3) }, () => `context ${i}`);
      old.push(...context);
      now.push(...context);
      const removed = Array.from({ length: random(3) }, line);
      const added = Array.from({ length: random(3) }, line);
      if (removed.join() === added.join()) continue;
      list.push({ id: String(i), oldStart: old.length + (removed.length ? 1 : 0), oldLines: removed.length, newStart: now.length + (added.length ? 1 : 0), newLines: added.length });
      if (random(2)) chosen.set(String(i), added);
      old.push(...removed);
      now.push(...added);
    }
    old.push("end");
    now.push("end");
    const [b, p] = [old.join("\n") + "\n", now.join("\n") + "\n"];
    const current = textWith(b, list, (id) => chosen.get(id));
    const r = reviewed(b, p, list, current);
    assert.equal(r.outside, false, JSON.stringify({ b, p, current }));
    for (const h of r.hunks) assert.equal(h.kind, chosen.has(h.id) ? "proposed" : "reverted", JSON.stringify({ b, p, current, h }));
  }
});

test("linesOf", () => {
  assert.deepEqual([linesOf(""), linesOf("\n"), linesOf("a"), linesOf("a\r\nb\n\n")], [[], [""], ["a"], ["a", "b", ""]]);
});

test("lines that differ in blanks at their ends alone are found, and no others", () => {
  const changes = (old: string[], lines: string[]) => blankChanges({ old, lines });
  assert.deepEqual(changes(["if x {", "y()", "}"], ["if x {", "\ty()", "}  "]), [1, 2]);
  assert.deepEqual(changes(["a", "b"], ["new", "  a", "c"]), [1]);
  assert.deepEqual(changes(["a"], ["a"]), []);
  assert.deepEqual(changes([], ["", "x"]), []);
  assert.deepEqual(changes(["a", "", "b"], []), []);
});
