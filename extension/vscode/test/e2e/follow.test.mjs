// Follow mode: changes are written at once; the gutter keeps and undoes them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
  await p.shot("follow-peek");
  await peek.locator('[aria-label^="Undo This Change"]').first().click();
  await p.onDisk("a.txt", long.replace("line 10\n", "LINE 10\n"));
  await marks.nth(1).waitFor({ state: "detached" });
  await p.bench.command("Pillion: Keep All Changes of the Turn");
  await marks.first().waitFor({ state: "detached" });
  assert.equal(p.read("a.txt"), long.replace("line 10\n", "LINE 10\n"));
});

test("in a git repository: the panel's bar and the lenses keep and undo, whatever the gutter shows", async (t) => {
  await w.before();
  const folder = mkdtempSync(join(w.scratch, "repository-"));
  const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: folder });
  writeFileSync(join(folder, "a.txt"), long);
  writeFileSync(join(folder, "b.txt"), long);
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "one");
  const p = await w.open(t, {}, { folder, settings: { "git.enabled": true } });
  await p.bench.openFile("a.txt");
  await p.page.locator(".statusbar-item", { hasText: /master|main/ }).first().waitFor(); // git is on
  const panel = await p.panel();
  const bar = panel.frame.locator(".changes");
  await panel.say("go", [...steps().slice(0, 3), { tool: "edit", input: { filePath: "b.txt", oldString: "line 2\n", newString: "LINE 2\n" } }, "Done."].flatMap((x) => (x.input?.filePath === "b.txt" ? [read("b.txt"), x] : [x])));
  await bar.getByText("2 files changed").waitFor();
  await p.lens("Keep file (2 changes)").waitFor();
  await p.page.locator(".editor-instance .dirty-diff-glyph").first().waitFor();
  await p.shot("follow-git");
  // one is undone by its lens, after the person has written above it
  await p.page.locator(".editor-instance .view-line", { hasText: /line.1$/ }).first().click();
  await p.page.keyboard.press("Home");
  await p.page.keyboard.type("mine\n");
  await p.lens(/^\s*Undo$/, 1).click();
  await p.page.locator(".editor-instance .view-line", { hasText: /line.10/ }).waitFor();
  await p.lens("Keep file (1 change)").waitFor();
  assert.match((await p.bench.lines()).join("\n"), /mine\n+line 1\n+LINE 2\n/);
  // a file by the bar, then the rest
  await bar.locator(".row").click();
  await bar.getByRole("button", { name: "Undo b.txt" }).click();
  await p.onDisk("b.txt", long);
  await bar.getByText("1 file changed").waitFor();
  await bar.getByRole("button", { name: "Keep", exact: true }).click();
  await bar.waitFor({ state: "hidden" });
  await p.lens("Keep file").waitFor({ state: "detached" });
  assert.match((await p.bench.lines()).join("\n"), /LINE 2/);
});

test("what was reviewed before it was written is not asked about again", async (t) => {
  const p = await w.open(t, { "a.txt": long }, { settings: { "pillion.review.mode": "preview" }, machine: { "pillion.permission": { edit: "ask" } } });
  await p.bench.openFile("a.txt");
  const panel = await p.panel();
  await panel.say("go", steps());
  await p.accept(0).click();
  await p.onDisk("a.txt", long.replace("line 2\n", "LINE 2\n"));
  await p.lens("Accept").waitFor();
  await p.accept(0).click();
  await p.onDisk("a.txt", changed);
  await panel.idle();
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await panel.frame.locator(".changes").waitFor({ state: "hidden" });
  await p.page.locator(".codelens-decoration", { hasText: "Keep" }).first().waitFor({ state: "detached" });
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
