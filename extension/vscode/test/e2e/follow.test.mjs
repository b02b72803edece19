// Follow mode: changes are written at once; the gutter keeps and undoes them.
import assert from "node:assert/strict";
import { world } from "./world.mjs";

const w = world({ machine: { "pillion.permission": { edit: "allow" } }, settings: { "pillion.review.mode": "follow" } });
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const long = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join("");
const changed = long.replace("line 2\n", "LINE 2\n").replace("line 10\n", "LINE 10\n");
const steps = () => [
  read("a.txt"),
  { tool: "edit", input: { filePath: "a.txt", oldString: "line 2\n", newString: "LINE 2\n" } },
  { tool: "edit", input: { filePath: "a.txt", oldString: "line 10\n", newString: "LINE 10\n" } },
  "Done.",
];

test("the turn's changes are marked; a click keeps or undoes one; the rest in one go", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await p.bench.openFile("a.txt");
  await p.ask(steps());
  await p.onDisk("a.txt", changed);
  const marks = p.page.locator(".editor-instance .dirty-diff-glyph");
  await marks.nth(1).waitFor();
  await p.shot("follow-gutter");
  await marks.nth(0).click({ position: { x: 1, y: 8 } });
  const peek = p.page.locator(".peekview-widget");
  await peek.locator('[aria-label^="Undo This Change"]').first().waitFor();
  await p.page.waitForTimeout(300); // for the picture only
  await p.shot("follow-peek");
  await peek.locator('[aria-label^="Undo This Change"]').first().click();
  await p.onDisk("a.txt", long.replace("line 10\n", "LINE 10\n"));
  await marks.nth(1).waitFor({ state: "detached" });
  await p.bench.command("Pillion: Keep All Changes of the Turn");
  await marks.first().waitFor({ state: "detached" });
  assert.equal(p.read("a.txt"), long.replace("line 10\n", "LINE 10\n"));
});

test("a checkpoint takes the files back, and the restore can be undone", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await p.bench.openFile("a.txt");
  await p.ask(steps());
  await p.onDisk("a.txt", changed);
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await p.bench.command("Pillion: Restore a Checkpoint…");
  await p.bench.quick.getByText("before this prompt").first().click();
  await p.bench.quick.getByText("Files only").click();
  await p.bench.toast("Restored 1 file").waitFor();
  await p.onDisk("a.txt", long);
  await p.bench.toast("Restored 1 file").getByRole("button", { name: "Undo Restore" }).click();
  await p.onDisk("a.txt", changed);
});
