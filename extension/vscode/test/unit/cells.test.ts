import assert from "node:assert/strict";
import test from "node:test";
import { besideSource, cellChanges, cellLines, placeInText, withSource } from "../../src/common/cells";

const code = (source: string | string[], more = {}) => ({ cell_type: "code", execution_count: 1, metadata: {}, outputs: [{ text: source }], source, ...more });
const text = (cells: unknown[], more = {}) => JSON.stringify({ cells, metadata: { a: 1 }, nbformat: 4, nbformat_minor: 5, ...more }, undefined, 1);

test("changes of a notebook's text as changes of its cells", () => {
  const old = [code("one"), { cell_type: "markdown", metadata: {}, source: ["# Two\n", "b"] }, code("three", { id: "x" })];
  const before = text(old);
  assert.deepEqual(cellChanges(before, before), []);
  assert.deepEqual(cellChanges(before, JSON.stringify(JSON.parse(before))), [], "layout is no change");
  // other sources keep what the cell has besides
  assert.deepEqual(cellChanges(before, text([{ ...old[0], source: "ONE" }, old[1], { ...old[2], source: ["3\n", "4"] }])), [{ kind: "source", at: 0, source: "ONE" }, { kind: "source", at: 2, source: "3\n4" }]);
  // a new cell between others; one that goes
  const fresh = { ...code("new"), outputs: [] };
  assert.deepEqual(cellChanges(before, text([old[0], fresh, old[1], old[2]])), [{ kind: "replace", start: 1, count: 0, cells: [{ kind: "code", source: "new", id: undefined, metadata: {}, outputsOf: undefined }] }]);
  assert.deepEqual(cellChanges(before, text([old[0], old[2]])), [{ kind: "replace", start: 1, count: 1, cells: [] }]);
  // cells that move with others, or change their kind, keep their outputs where they are still theirs
  assert.deepEqual(cellChanges(before, text([fresh, { ...old[2], source: "3" }])), [{ kind: "replace", start: 0, count: 3, cells: [{ kind: "code", source: "new", id: undefined, metadata: {}, outputsOf: undefined }, { kind: "code", source: "3", id: "x", metadata: {}, outputsOf: 2 }] }]);
  assert.match(String(cellChanges(before, text([{ ...old[0], outputs: [{ text: "made up" }] }, old[1], old[2]]))), /outputs/);
  assert.match(String(cellChanges(before, text(old, { metadata: {} }))), /metadata/);
  for (const broken of ["", "{", "[]", "null", '{"cells":[{}]}', '{"cells":[{"cell_type":"code","source":[1]}]}']) assert.equal(cellChanges(before, broken), "the result is not a notebook", broken);
});

test("the lines in which cells begin, whatever stands in them", () => {
  assert.deepEqual(cellLines(text([code('} ] { "cells": ['), code(["a\n", '\\"{'])])).length, 2);
  assert.deepEqual(cellLines('{\n "metadata": {"cells": [{}]},\n "cells": [\n  {},\n  {"metadata": {"x": [{}]}}\n ]\n}'), [3, 4]);
  for (const none of ["", "x", "[]", '{"cells": {}}', '"', '{"cells": 1, "a": [{}]}']) assert.deepEqual(cellLines(none), [], none);
});

test("another source for a cell, and back: everything else stays, to the character", () => {
  const sources = ["", "a", "a\n", "a\nb", "\n\n", '"]}, { "source": [', "ü\\n\t"];
  const split = (s: string) => s.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  for (const indent of [undefined, 1, 2, 4, "\t"]) {
    for (const s of sources) {
      for (const asList of [true, false]) {
        const cells = [code(["source", "["]), { ...code(asList ? split(s) : s), metadata: { source: ["x"], cells: [{ source: "y" }] } }, code("z")];
        const was = JSON.stringify({ metadata: { cells: [{ source: "no" }] }, cells, nbformat: 4 }, undefined, indent);
        for (const other of sources) {
          const now = withSource(was, 1, other);
          assert.ok(now !== undefined);
          const cell = (JSON.parse(now) as { cells: { source: string | string[] }[] }).cells[1];
          assert.deepEqual(cell?.source, asList ? split(other) : other);
          assert.equal(withSource(now, 1, s), was, JSON.stringify([indent, s, other]));
        }
      }
    }
  }
  for (const none of ["", "{", text([])]) assert.equal(withSource(none, 0, "x"), undefined);
});

test("hunks beside the sources: of a cell its outputs and metadata, of the notebook what is outside its cells", () => {
  const was = text([code(["a\n", "b"]), code(["c"])]);
  const hunks = was.split("\n").map((line, start) => ({ start, lines: [line] }));
  const beside = (at: number | undefined) => besideSource(was, hunks, at).map((h) => h.lines[0]?.trim());
  assert.deepEqual(beside(undefined), ["{", '"cells": [', "],", '"metadata": {', '"a": 1', "},", '"nbformat": 4,', '"nbformat_minor": 5', "}"]);
  const first = beside(0);
  assert.ok(first.includes('"execution_count": 1,') && first.includes('"outputs": [') && first.includes('"metadata": {},'));
  assert.equal(beside(0).filter((l) => l === '"source": [').length, 0);
  assert.equal(beside(0).length + beside(1).length + 9 + 4 + 3, hunks.length); // and the lines of the two sources
  assert.deepEqual(besideSource("{", hunks, 0).length, hunks.length, "no notebook has no cells");
});

test("each place of a source is found in the text, however the notebook is written", () => {
  const source = 'a\n"ü"\\\n\n\tb\u2028😀c';
  const lines = source.split("\n");
  for (const indent of [undefined, 1, 4]) {
    for (const s of [source, source.match(/[^\n]*\n|[^\n]+$/g) ?? []]) {
      const was = text([code("no"), code(s)]);
      const whole = indent === 1 ? was : JSON.stringify(JSON.parse(was), undefined, indent);
      for (const [line, l] of lines.entries()) {
        for (let c = 0; c <= l.length; c++) {
          const at = placeInText(whole, 1, line, c);
          assert.ok(at);
          const here = whole.split("\n")[at.line]?.slice(at.character) ?? "";
          const wanted = c < l.length ? JSON.stringify(l[c]).slice(1, -1) : line < lines.length - 1 ? "\\n" : '"';
          if (!/[\ud800-\udfff]/.test(l[c] ?? "")) assert.ok(here.startsWith(wanted), JSON.stringify([indent, line, c, here]));
        }
        assert.deepEqual(placeInText(whole, 1, line, 99), placeInText(whole, 1, line, l.length));
      }
      assert.equal(placeInText(whole, 1, lines.length, 0), undefined);
      assert.equal(placeInText(whole, 2, 0, 0), undefined);
    }
  }
});
