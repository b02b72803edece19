// The package itself, installed as a person installs it.
import assert from "node:assert/strict";
import { accessSync, constants, readdirSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world({ vsix: true });
const { test } = w;

test("the .vsix installs, brings a binary that runs, and nothing of the sources", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const extensions = join(w.server.home, "extensions");
  const own = readdirSync(extensions).filter((n) => n.startsWith("pillion-dev.pillion-"));
  assert.equal(own.length, 1);
  accessSync(join(extensions, own[0], "bin", "pillion"), constants.X_OK);
  const files = readdirSync(join(extensions, own[0]), { recursive: true });
  assert.deepEqual(files.filter((f) => /\.(ts|map|mjs)$|node_modules|[\\/]test[\\/]/.test(f)), []);
  await p.bench.openFile("a.txt");
  await p.ask([{ tool: "read", input: { filePath: "a.txt" } }, { tool: "edit", input: { filePath: "a.txt", oldString: "one", newString: "two" } }, "Done."]);
  await p.lens("Accept").waitFor();
  await p.accept(0).click();
  await p.onDisk("a.txt", "two\n");
});
