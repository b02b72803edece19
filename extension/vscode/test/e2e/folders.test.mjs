// Several folders, and folders that nobody trusts yet: what the sidecar hears of them.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

several.test("each folder has its own configuration: a session of it is asked where it works, and goes by it", async (t) => {
  const settings = (review) => ({ ".vscode/settings.json": JSON.stringify({ "pillion.review.mode": review, "pillion.permission": { edit: "allow" } }) });
  const make = (name, files) => {
    const folder = mkdtempSync(join(several.scratch, `${name}-`));
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    return folder;
  };
  const first = make("first", { "a.txt": "one\n" });
  const other = make("other", { "b.txt": "two\n", ...settings("follow"), "pillion.json": JSON.stringify({ instructions: ["RULES.md"] }), "RULES.md": "Write in capitals here.\n" });
  const workspace = join(mkdtempSync(join(several.scratch, "workspace-")), "two.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: first }, { path: other }] }));
  const p = await several.open(t, {}, { folder: first, workspace });
  await p.bench.openFile("b.txt");
  const edit = (folder, name, from, to) => [{ tool: "read", input: { filePath: join(folder, name) } }, { tool: "edit", input: { filePath: join(folder, name), oldString: from, newString: to } }, "Done."];
  // a session of the other folder: its settings write at once, its file of configuration brings the rules
  await p.bench.command("Pillion: New Session");
  await p.bench.quick.getByText("New session in which folder?").waitFor();
  await p.shot("folders-pick");
  await p.page.keyboard.press("Enter"); // the folder of the file in front stands first
  const [asked] = await several.heard("session/new");
  assert.equal(asked.cwd, other);
  assert.deepEqual(asked.additionalDirectories, [first]);
  const c = await p.panel();
  await c.say("write", edit(other, "b.txt", "two", "TWO"));
  p.folder = other;
  await p.onDisk("b.txt", "TWO\n");
  await c.idle();
  assert.match(c.told(), /Write in capitals here/);
  // one of the first folder asks, as ever
  await p.bench.command("Pillion: New Session");
  await p.bench.quick.locator(".monaco-list-row", { hasText: first }).click();
  await several.heard("session/new", 2);
  await c.frame.locator(".user").first().waitFor({ state: "detached" }); // the panel shows the new one
  await c.say("write", edit(first, "a.txt", "one", "ONE"));
  await p.accept(0).waitFor();
  assert.doesNotMatch(c.told(), /Write in capitals here/);
  await p.accept(0).click();
  p.folder = first;
  await p.onDisk("a.txt", "ONE\n");
  // both are in the list
  await p.bench.command("Pillion: Sessions…");
  await p.bench.quick.locator(".monaco-list-row").nth(1).waitFor();
  await p.page.keyboard.press("Escape");
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
