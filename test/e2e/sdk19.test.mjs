// The npm SDK of 1.9.0 as the editor: its example client, as it was shipped, and an app written on it. Editors stay on
// older SDKs for a long time.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "acp-sdk-1.9";
import { binary, world } from "./pillion.mjs";

// connect is the example client's set-up: a ClientSideConnection over the process's pipes.
async function connect(t, w, answer) {
  const { child, ended } = w.start();
  const updates = [];
  const client = {
    requestPermission: async (params) => answer(params),
    sessionUpdate: async (params) => void updates.push(params),
    readTextFile: async ({ path }) => ({ content: readFileSync(path, "utf8") }),
    writeTextFile: async () => ({}),
  };
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const connection = new acp.ClientSideConnection(() => client, stream);
  const hello = await connection.initialize({ protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } } });
  assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
  const { sessionId } = await connection.newSession({ cwd: w.project, mcpServers: [] });
  return { child, ended, updates, connection, sessionId };
}

test("1.9.0: a prompt, an edit that is approved, and the end", async (t) => {
  const w = await world(t, [{ tool: "read", input: { filePath: "a.txt" } }, { tool: "edit", input: { filePath: "a.txt", oldString: "old", newString: "new" } }, "Finished."], { "a.txt": "old\n" });
  let asked = 0;
  const c = await connect(t, w, (params) => {
    asked++;
    const allow = params.options.find((o) => o.kind === "allow_once");
    assert.ok(params.toolCall.content.some((x) => x.type === "diff"));
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  });
  const end = await c.connection.prompt({ sessionId: c.sessionId, prompt: [{ type: "text", text: "edit it" }] });
  assert.equal(end.stopReason, "end_turn");
  assert.equal(asked, 1);
  assert.equal(readFileSync(join(w.project, "a.txt"), "utf8"), "new\n");
  const said = c.updates.filter((u) => u.update.sessionUpdate === "agent_message_chunk").map((u) => u.update.content.text).join("");
  assert.equal(said, "Finished.");
  c.child.stdin.end();
  assert.equal((await c.ended).code, 0);
});

test("1.9.0: a cancelled turn says so", async (t) => {
  const w = await world(t, [{ hang: true }]);
  const c = await connect(t, w, () => ({ outcome: { outcome: "cancelled" } }));
  const hanging = w.model.hanging();
  const end = c.connection.prompt({ sessionId: c.sessionId, prompt: [{ type: "text", text: "wait" }] });
  await hanging;
  await c.connection.cancel({ sessionId: c.sessionId });
  assert.equal((await end).stopReason, "cancelled");
});

test("1.9.0: the example client, as it was shipped", async (t) => {
  const w = await world(t, ["Hello from the model."]);
  // It starts its agent with npx; this npx starts ours.
  const bin = join(w.root, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npx"), `#!/bin/sh\nexec "${binary}" acp\n`, { mode: 0o755 });
  const example = join(dirname(createRequire(import.meta.url).resolve("acp-sdk-1.9")), "examples", "client.js");
  const out = await new Promise((resolve, reject) => {
    const run = execFile(process.execPath, [example], { cwd: w.project, env: { ...w.env, PATH: bin + delimiter + w.env.PATH } }, (error, stdout, stderr) =>
      error ? reject(error) : resolve(stdout + stderr),
    );
    run.stdin.end();
  });
  assert.match(out.replaceAll(/\s+/g, ""), /Hellofromthemodel\./); // it breaks the line behind every chunk
  assert.match(out, /Agent completed with: end_turn/);
});
