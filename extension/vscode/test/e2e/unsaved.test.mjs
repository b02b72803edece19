// Unsaved changes in a real VS Code, while another ACP client edits the same file: VS Code's backup says so.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";
import { world } from "../../../../test/e2e/pillion.mjs";
import { root } from "../../stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "./workbench.mjs";

// A turn of a client without file methods, which knows nothing of VS Code: how often it was asked, and what the model and the
// person were told.
async function turn(t, w) {
  const { child, ended } = w.start();
  const said = [];
  let asked = 0;
  const app = acp.client({ name: "another" })
    .onNotification(acp.methods.client.session.update, ({ params }) => void (params.update.sessionUpdate === "agent_message_chunk" && said.push(params.update.content.text)))
    .onRequest(acp.methods.client.session.requestPermission, () => (asked++, { outcome: { outcome: "selected", optionId: "once" } }));
  await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (ctx) => {
    await ctx.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {}, clientInfo: { name: "another", version: "1" } });
    const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "shout" }] });
  });
  child.stdin.end();
  await ended;
  return { asked, said: said.join(""), told: JSON.stringify(w.model.seen.at(-1).messages.at(-1)) };
}

const steps = () => [{ tool: "read", input: { filePath: "notes.txt" } }, { tool: "edit", input: { filePath: "notes.txt", oldString: "two", newString: "TWO" } }, "Done."];

test("unsaved in VS Code", { timeout: 300_000 }, async (t) => {
  const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
  const script = [...steps(), ...steps()];
  const w = await world(t, script, { "notes.txt": "one\ntwo\n" });
  const server = await startServer(at);
  t.after(() => server.stop());
  const browser = await launchBrowser({ executablePath: at.chromium });
  t.after(() => browser.close());
  // code-server's own folder, where the person started it without --user-data-dir.
  w.env.XDG_DATA_HOME = join(w.root, "data");
  mkdirSync(w.env.XDG_DATA_HOME);
  symlinkSync(server.data, join(w.env.XDG_DATA_HOME, "code-server"));

  const bench = await Workbench.open(browser, server, w.project, { timeout: 60_000 });
  await bench.openFile("notes.txt");
  await bench.page.locator(".monaco-editor .view-lines").first().click();
  await bench.page.keyboard.press("Control+Home");
  await bench.page.keyboard.type("mine ");
  // Of this file: the workbench backs up a document of its own for a moment, too.
  const all = join(server.data, "User/Backups");
  const backups = () => {
    try {
      return readdirSync(all, { recursive: true }).filter((f) => /vscode-remote\/./.test(f) && /notes\.txt [^]*mine/.test(readFileSync(join(all, f), "utf8")));
    } catch { return []; }
  };
  const until = async (f) => { for (const end = Date.now() + 60_000; !f(); await new Promise((r) => setTimeout(r, 50))) assert.ok(Date.now() < end, "waited in vain"); };
  await until(() => backups().length === 1); // a second or two after the last key

  const first = await turn(t, w);
  assert.equal(first.asked, 0, "asked about a change that cannot be written");
  assert.match(first.told, /notes\.txt has unsaved changes in code-server\. Save them there/);
  assert.match(first.said, /notes\.txt has unsaved changes in code-server/);
  assert.equal(readFileSync(join(w.project, "notes.txt"), "utf8"), "one\ntwo\n", "written behind the unsaved text");

  await bench.page.keyboard.press("Control+s");
  await until(() => backups().length === 0);
  const second = await turn(t, w);
  assert.equal(second.asked, 1);
  assert.equal(readFileSync(join(w.project, "notes.txt"), "utf8"), "mine one\nTWO\n");
});
