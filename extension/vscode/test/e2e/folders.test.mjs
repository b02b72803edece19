// Several folders, and folders that nobody trusts yet: what the sidecar hears of them.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { world } from "./world.mjs";

const several = world({ spy: true });

test("several folders: the first is where it works, the others go along", async (t) => {
  const folder = mkdtempSync(join(several.scratch, "first-"));
  const other = mkdtempSync(join(several.scratch, "other-"));
  writeFileSync(join(folder, "a.txt"), "one\n");
  writeFileSync(join(other, "b.txt"), "two\n");
  const workspace = join(several.scratch, "both.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: folder }, { path: other }] }));
  const p = await several.open(t, {}, { folder, workspace });
  await p.bench.openFile("b.txt");
  await p.ask([{ tool: "read", input: { filePath: join(other, "b.txt") } }, { tool: "edit", input: { filePath: join(other, "b.txt"), oldString: "two", newString: "TWO" } }, "Done."]);
  const [asked] = await several.heard("session/new");
  assert.equal(asked.cwd, folder);
  assert.deepEqual(asked.additionalDirectories, [other]);
  assert.equal(asked._meta.pillion.trusted, true);
  await p.lens("Accept").waitFor(); // a file of the other folder is reviewed like any
  await p.accept(0).click();
  p.folder = other;
  await p.onDisk("b.txt", "TWO\n");
});
