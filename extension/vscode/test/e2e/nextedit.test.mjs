// After a declaration was renamed by hand, or got another parameter, its uses are offered as hunks: a real module (cobra) in a Git
// repository, the packaged extension, gopls, and no model's help.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../stage.mjs";
import { world } from "./world.mjs";

const go = (...args) => execFileSync("go", args, { cwd: root, encoding: "utf8" }).trim();
const env = { PATH: `${join(root, ".cache", "bin")}:${process.env.PATH}`, GOCACHE: go("env", "GOCACHE"), GOMODCACHE: go("env", "GOMODCACHE"), GOPLSCACHE: join(dirname(go("env", "GOCACHE")), "gopls") };
const w = world({ vsix: true, machine: { "pillion.env": env } });
const { test } = w;

/** A window on a copy of a module of ours' dependencies, as a Git repository. */
async function module(t, name) {
  await w.before();
  const folder = mkdtempSync(join(w.scratch, "module-"));
  cpSync(go("list", "-m", "-f", "{{.Dir}}", name), folder, { recursive: true });
  for (const f of readdirSync(folder, { recursive: true, withFileTypes: true })) chmodSync(join(f.parentPath, f.name), f.isDirectory() ? 0o755 : 0o644);
  chmodSync(folder, 0o755); // the module cache is read-only
  const git = (...args) => execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args]);
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "as it is");
  return { p: await w.open(t, {}, { folder, settings: { "git.enabled": true, "files.autoSave": "afterDelay", "files.autoSaveDelay": 100 } }), folder };
}

test("a function renamed by hand in cobra: its other use is offered, reviewed, and written as one undo step", { limit: 240_000 }, async (t) => {
  const { p, folder } = await module(t, "github.com/spf13/cobra");
  await p.bench.openFile("args.go");
  const panel = await p.panel();
  await panel.say("look at args.go", [{ tool: "lsp", input: { operation: "diagnostics", filePath: "args.go" } }, "Nothing is wrong."]); // from here on gopls runs
  await panel.answer("Nothing is wrong");
  const line = p.page.locator(".editor-instance .view-line", { hasText: "func legacyArgs(" });
  await line.locator("span span", { hasText: "legacyArgs" }).first().dblclick();
  await p.page.keyboard.type("oldArgs");
  await p.page.keyboard.press("Escape"); // the suggestions
  // the offer is drawn at the end of the line, as text of a style sheet; the command is there as long as it is
  const drawn = () => p.page.evaluate(() => [...document.querySelectorAll(".editor-instance .view-line span")].some((e) => /Rename 1 other use of legacyArgs to oldArgs/.test(getComputedStyle(e, "::after").content)));
  for (const end = Date.now() + 100_000; !(await drawn()); await p.page.waitForTimeout(100)) assert.ok(Date.now() < end, "nothing is offered");
  await p.shot("next-edit");
  await p.page.keyboard.press("Control+Alt+U");
  await p.accept(0).waitFor();
  await p.shot("next-edit-review");
  await p.bench.command("Pillion: Accept All");
  await p.onDisk("command.go", (text) => text?.includes("oldArgs("));
  assert.doesNotMatch(p.read("command.go") + p.read("args.go"), /legacyArgs\(/);
  execFileSync("go", ["build", "./..."], { cwd: folder });
});
