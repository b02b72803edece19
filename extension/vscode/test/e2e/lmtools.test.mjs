// Pillion's tools for other extensions of the window: what is asked, refused and cancelled.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world({ driver: true, machine: { "pillion.config": { permission: { lsp: "ask" } } } });
const { test } = w;

/** Runs in the extension host: one call after the other, each result a line of `out`; the third is cancelled when the file `cancel` is there. */
const host = `const vscode = require("vscode"), fs = require("fs"), path = require("path");
exports.run = async () => {
  const at = (name) => path.join(__dirname, name);
  await vscode.extensions.getExtension("pillion-dev.pillion").activate();
  for (let n = 1; n <= 3; n++) {
    const stop = new vscode.CancellationTokenSource();
    const poll = setInterval(() => n === 3 && fs.existsSync(at("cancel")) && stop.cancel(), 50);
    const said = await vscode.lm.invokeTool("pillion_diagnostics", { input: { filePath: "a.none" }, toolInvocationToken: undefined }, stop.token)
      .then((r) => r.content.map((p) => p.value).join(""), (e) => "threw " + e);
    clearInterval(poll);
    fs.appendFileSync(at("out"), said.replace(/\\n/g, " ") + "\\n");
  }
  await new Promise(() => {}); // the host lives as long as its window
};`;

test("a tool of Pillion's, called by another extension: the person is asked, a no is said, who gives up takes the question away", async (t) => {
  const p = await w.open(t, { "a.none": "x\n", "host.cjs": host }, { host: "host.cjs" });
  const said = async (n) => (await p.onDisk("out", (text) => text?.split("\n").length === n + 1)).split("\n")[n - 1];
  await p.status("1 waiting").click();
  const card = p.bench.webview("pillion-dev.pillion").locator(".card.permission");
  await card.getByRole("button", { name: "Allow once" }).click();
  assert.match(await said(1), /no language server/i);
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  assert.match(await said(2), /^error: .*rejected/);
  await card.waitFor();
  writeFileSync(join(p.folder, "cancel"), "");
  assert.match(await said(3), /^threw .*Cancel/);
  await card.waitFor({ state: "detached" });
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
});
