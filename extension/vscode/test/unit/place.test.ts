// Where code of an answer goes.
import assert from "node:assert/strict";
import test from "node:test";
import { hunksOf, textWith } from "../../src/common/hunks";
import { placeOf } from "../../src/common/place";

const lines = (s: string) => s.split("\n");
const file = lines("package a\n\nfunc one() int {\n\treturn 0\n}\n\nfunc two() int {\n\treturn 0\n}\n");

test("a declaration takes the place of the one that begins alike, up to its own end", () => {
  assert.deepEqual(placeOf(file, lines("func two() int {\n\tx := 1\n\treturn x\n}")), { from: 6, to: 8, indent: "" });
  assert.deepEqual(placeOf(file, lines("\nfunc one() int {\n\treturn 1\n}\n")), { from: 2, to: 4, indent: "" });
});

test("without a closing line it reaches as far as it is deeper, and stands as deep as what it replaces", () => {
  const py = lines("class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n");
  assert.deepEqual(placeOf(py, lines("def f(self):\n    return 3")), { from: 1, to: 2, indent: "    " });
});

test("nothing alike, or more than one: no place", () => {
  assert.equal(placeOf(file, lines("func three() {\n}")), undefined);
  assert.equal(placeOf(lines("x {\n}\nx {\n}"), lines("x {\n  y\n}")), undefined);
  assert.equal(placeOf(lines("f {\n  x\n) else\n}"), lines("f {\n  y\n}")), undefined);
  assert.equal(placeOf(file, [""]), undefined);
});

test("hunks of two texts give the second text when all are taken, the first when none is", () => {
  const texts = ["", "a\n", "a\nb\nc\n", "x\na\nc\nd\n", "b\n", "a\nb\nc\nd\ne\nf\n", "a\nc\ne\n"];
  for (const base of texts) {
    for (const next of texts) {
      const hunks = hunksOf(base, next);
      const now = next.split("\n");
      const take = (id: string) => {
        const h = hunks.find((x) => x.id === id)!;
        const from = h.newLines > 0 ? h.newStart - 1 : h.newStart;
        return now.slice(from, from + h.newLines);
      };
      assert.equal(textWith(base, hunks, take), next, JSON.stringify([base, next]));
      assert.equal(textWith(base, hunks, () => undefined), base, JSON.stringify([base, next]));
    }
  }
});
