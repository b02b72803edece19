// Git: the message of a commit in the SCM input, and a review whose findings stand at their lines, each of which can be fixed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const edit = (filePath, oldString, newString) => ({ tool: "edit", input: { filePath, oldString, newString } });

/** A window on a repository with one commit; `files` are what differs from it. */
async function repository(t, committed, files, options = {}) {
  await w.before();
  const folder = mkdtempSync(join(w.scratch, "git-"));
  const git = (...args) => execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args]);
  for (const [name, text] of Object.entries(committed)) writeFileSync(join(folder, name), text);
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "parser: read numbers, one by one");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return { p: await w.open(t, {}, { folder, ...options, settings: { "git.enabled": true, ...options.settings } }), git, folder };
}

test("a commit message is written into the SCM input from what is staged; what the person typed is asked about", async (t) => {
  const { p, git } = await repository(t, { "a.txt": "one\n" }, { "a.txt": "two\n", "b.txt": "not staged\n" });
  git("add", "a.txt");
  await p.page.keyboard.press("Control+Shift+G");
  await p.page.locator(".scm-view .resource", { hasText: "a.txt" }).waitFor();
  w.steps.push("parser: say two\n\nOne was wrong.");
  await p.page.locator(".scm-view .resource", { hasText: "a.txt" }).hover(); // the actions show while the pointer is in the view
  await p.page.locator('a.action-label[aria-label^="Write a Commit Message"]').first().click();
  const input = p.page.locator(".scm-editor .view-lines");
  await input.getByText("parser: say two").waitFor();
  const heard = JSON.stringify(w.model.seen.at(-1));
  assert.match(heard, /parser: read numbers, one by one/);
  assert.match(heard, /\+two/);
  assert.doesNotMatch(heard, /not staged/);
  await p.shot("git-message");
  // its own words are replaced without a question, the person's are not
  await p.page.locator(".scm-editor").click();
  await p.page.keyboard.press("Control+End");
  await p.page.keyboard.type(" Mine.");
  await p.bench.command("Pillion: Write a Commit Message");
  await p.page.locator(".monaco-dialog-box", { hasText: "Replace the commit message" }).getByText("Cancel").click();
  await input.getByText("Mine.").waitFor();
});

test("a review's findings are threads at their lines, the language server's and the model's; one is fixed as a proposal", async (t) => {
  const server = fileURLToPath(new URL("./heldserver.mjs", import.meta.url));
  const gate = join(mkdtempSync(join((await w.before(), w.scratch), "gate-")), "open");
  writeFileSync(gate, "");
  const text = Array.from({ length: 9 }, (_, i) => `line ${i + 1}\n`).join("");
  const { p } = await repository(t, { "a.held": text }, { "a.held": text.replace("line 2\n", "BAD 2\n").replace("line 7\n", "seven\n") }, { machine: { "pillion.lsp": { held: { command: [process.execPath, server, gate], extensions: [".held"] } } } });
  await p.bench.openFile("a.held");
  w.steps.push("- a.held:7: error: **seven** is no line\n  `line 7` is meant.\n- z.held:1: error: made up\n\nThe rest is fine.");
  await p.bench.command("Pillion: Review Changes…");
  await p.page.locator(".quick-input-list .monaco-list-row", { hasText: "Uncommitted Changes" }).click();
  const thread = p.page.locator(".review-widget", { hasText: "is no line" });
  await thread.waitFor();
  await p.page.locator(".review-widget", { hasText: "bad: BAD 2" }).waitFor(); // the server's, on a changed line
  assert.equal(await p.page.locator(".review-widget", { hasText: "made up" }).count(), 0);
  await p.shot("git-review");
  w.steps.push(read("a.held"), edit("a.held", "seven", "line 7"), "Fixed.");
  await thread.locator('a.action-label[aria-label^="Fix This"]').click();
  await p.lens("Accept").first().waitFor();
  assert.match(JSON.stringify(w.model.seen.at(-1).messages), /a\.held:7.*is no line/s);
  await p.shot("git-review-fix");
  await p.accept(0).click();
  await p.onDisk("a.held", text.replace("line 2\n", "BAD 2\n"));
});
