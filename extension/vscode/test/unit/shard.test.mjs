import assert from "node:assert/strict";
import test from "node:test";
import { part } from "../shard.mjs";

const files = [["a", 5], ["b", 19], ["c", 1], ["d", 12], ["e", 2], ["f", 0]];

test("each file is in one part, and the parts are about equally heavy", () => {
  for (const m of [1, 2, 3]) {
    const parts = Array.from({ length: m }, (_, i) => part(files, `${i + 1}/${m}`));
    assert.deepEqual(parts.flat().sort(), ["a", "b", "c", "d", "e", "f"]);
  }
  assert.deepEqual(part(files, "1/2"), ["b", "c"]);
  assert.deepEqual(part(files, "2/2"), ["a", "d", "e", "f"]);
});

test("a part that does not exist is refused: it would test nothing", () => {
  for (const which of ["0/2", "3/2", "2", "", "x/y"]) assert.throws(() => part(files, which), /say 1\/2 or 2\/2/);
});
