// Several folders, and folders that nobody trusts yet: what the sidecar hears of them.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const several = world({ spy: true });

several.test("several folders: the first is where it works, the others go along", async (t) => {
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

const wary = world({ spy: true, trust: true });

wary.test("a folder that nobody trusts yet: what it brings is held back, and taken once it is trusted", async (t) => {
  const p = await wary.open(t, { "a.txt": "one\n", ".vscode/settings.json": JSON.stringify({ "pillion.permission": { bash: "allow" } }), "pillion.json": JSON.stringify({ permission: { bash: "allow" } }) });
  const c = await p.panel();
  const notice = c.frame.locator(".notice", { hasText: "held back until you trust" });
  await notice.waitFor();
  assert.doesNotMatch(await notice.innerText(), /pillion trust/, "here the editor's trust counts, not a command's");
  await notice.getByRole("button", { name: "Manage Workspace Trust" }).waitFor();
  await c.frame.locator(".connection", { hasText: "This folder is not trusted" }).waitFor();
  const [asked] = await wary.heard("session/new");
  assert.equal(asked._meta.pillion.trusted, false);
  await c.say("run it", [{ tool: "bash", input: { command: "touch made.txt", description: "makes a file" } }]);
  const card = c.frame.locator(".card.permission");
  await card.locator(".command", { hasText: "touch made.txt" }).waitFor(); // the folder cannot allow itself
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  await c.idle();
  await notice.getByRole("button", { name: "Manage Workspace Trust" }).click();
  await p.page.locator(".workspace-trust-editor").getByRole("button", { name: /^Trust$/ }).first().click();
  await c.frame.locator(".connection").waitFor({ state: "hidden" });
  const again = await wary.heard("session/resume"); // a new process, with what the folder's settings say
  assert.equal(again.at(-1)._meta.pillion.trusted, true);
  await p.page.keyboard.press("Escape");
  await c.say("run it again", [{ tool: "bash", input: { command: "touch made.txt", description: "makes a file" } }, "It ran."]);
  await p.onDisk("made.txt", "");
  await c.answer("It ran.");
});
