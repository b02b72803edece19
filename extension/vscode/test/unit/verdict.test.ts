// The verdict in one line, in the words of the sidecar.
import assert from "node:assert/strict";
import test from "node:test";
import { verdictHeadline } from "../../src/common/verdict";

test("the headline counts errors; warnings and hints follow apart", () => {
  const of = (severity: string, n: number) => Array.from({ length: n }, () => ({ severity }));
  const line = (fixed: { severity: string }[], introduced: { severity: string }[]) => verdictHeadline({ fixed, introduced });
  assert.equal(line([], []), "Fixes 0 errors, introduces 0");
  assert.equal(line(of("error", 1), of("error", 2)), "Fixes 1 error, introduces 2");
  // a change that breaks a package silences its analysers: no fix
  assert.equal(line(of("warning", 9), of("error", 1)), "Fixes 0 errors, introduces 1; 9 warnings or hints fixed");
  assert.equal(line([...of("hint", 1), ...of("error", 3)], [...of("warning", 1), ...of("information", 1)]), "Fixes 3 errors, introduces 0; 1 warning or hint fixed, 2 warnings or hints introduced");
});
