// The npm SDK as the editor: what a client built on it sees.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";
import { world } from "./pillion.mjs";

// connect runs f as a client of a fresh process.
async function connect(t, w, capabilities, handlers, f) {
  const { child, ended } = w.start();
  const updates = [];
  const app = acp
    .client({ name: "e2e" })
    .onNotification(acp.methods.client.session.update, (ctx) => {
      updates.push(ctx.params);
    })
    .onRequest(acp.methods.client.session.requestPermission, (ctx) => handlers.permission(ctx.params))
    .onRequest(acp.methods.client.fs.readTextFile, (ctx) => handlers.read(ctx.params))
    .onRequest(acp.methods.client.fs.writeTextFile, (ctx) => handlers.write(ctx.params));
  const result = await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (ctx) => {
    const init = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: capabilities,
      clientInfo: { name: "e2e", version: "1" },
    });
    assert.equal(init.protocolVersion, 1);
    assert.equal(init.agentInfo.name, "pillion");
    return f(ctx, updates, init);
  });
  child.stdin.end();
  const { code, signal, stderr } = await ended;
  assert.equal(code, 0, `${signal ?? ""} ${stderr()}`);
  return result;
}

const text = (updates, kind = "agent_message_chunk") =>
  updates.filter((u) => u.update.sessionUpdate === kind).map((u) => u.update.content.text).join("");

const prompt = (ctx, sessionId, words) => ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });

test("read, edit with permission, end", async (t) => {
  const w = await world(
    t,
    [{ tool: "read", input: { filePath: "a.txt" } }, { tool: "edit", input: { filePath: "a.txt", oldString: "two", newString: "TWO" } }, "All done, friend."],
    { "a.txt": "one\ntwo\nthree\n" },
  );
  const file = join(w.project, "a.txt");
  const asked = [];
  const handlers = {
    permission: (p) => {
      asked.push(p);
      assert.equal(readFileSync(file, "utf8"), "one\ntwo\nthree\n", "written before it was allowed");
      return { outcome: { outcome: "selected", optionId: p.options.find((o) => o.kind === "allow_once").optionId } };
    },
  };
  await connect(t, w, {}, handlers, async (ctx, updates) => {
    const session = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    const end = await prompt(ctx, session.sessionId, "please");
    assert.equal(end.stopReason, "end_turn");
    assert.equal(text(updates), "All done, friend.");
    assert.deepEqual(updates.filter((u) => u.update.sessionUpdate === "tool_call").map((u) => u.update.kind), ["read", "edit"]);
  });
  assert.equal(readFileSync(file, "utf8"), "one\nTWO\nthree\n");
  assert.equal(asked.length, 1);
  const diff = asked[0].toolCall.content.find((c) => c.type === "diff");
  // This client may show nothing but the diff: the verdict and how far "always" reaches stand above the texts.
  assert.equal(diff.path, file);
  assert.equal(diff.oldText, "--- edit a.txt\none\ntwo\nthree\n");
  assert.match(diff.newText, /^Problems cannot be checked.*\n“Always” would allow any edit in this session\n\+\+\+ edit a\.txt\none\nTWO\nthree\n$/);
});

test("an editor with files: its text is read, its write is used", async (t) => {
  const w = await world(
    t,
    [{ tool: "read", input: { filePath: "a.txt" } }, { tool: "edit", input: { filePath: "a.txt", oldString: "two", newString: "TWO" } }],
    { "a.txt": "one\ntwo\n" },
  );
  const file = join(w.project, "a.txt");
  let writes = 0;
  const handlers = {
    permission: () => ({ outcome: { outcome: "selected", optionId: "once" } }),
    read: (p) => ({ content: readFileSync(p.path, "utf8") }),
    write: (p) => {
      writes++;
      writeFileSync(p.path, p.content);
      return {};
    },
  };
  await connect(t, w, { fs: { readTextFile: true, writeTextFile: true } }, handlers, async (ctx) => {
    const session = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    await prompt(ctx, session.sessionId, "please");
  });
  assert.equal(readFileSync(file, "utf8"), "one\nTWO\n");
  assert.equal(writes, 1);
});

test("cancel ends a turn that hangs, also while a permission waits", async (t) => {
  const w = await world(t, [{ hang: true }, { tool: "write", input: { filePath: "b.txt", content: "x\n" } }]);
  let ask;
  const asked = new Promise((resolve) => (ask = resolve));
  const handlers = { permission: () => new Promise((resolve) => ask(() => resolve({ outcome: { outcome: "cancelled" } }))) };
  await connect(t, w, {}, handlers, async (ctx) => {
    const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    const hanging = w.model.hanging();
    const first = prompt(ctx, sessionId, "hang");
    await hanging;
    await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
    assert.equal((await first).stopReason, "cancelled");
    const second = prompt(ctx, sessionId, "write");
    const answer = await asked;
    await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
    answer();
    assert.equal((await second).stopReason, "cancelled");
  });
  assert.throws(() => readFileSync(join(w.project, "b.txt")));
});

test("a session is listed, loaded by another process and goes on", async (t) => {
  const w = await world(t, ["I shall remember.", "You said: go."]);
  const sessionId = await connect(t, w, {}, {}, async (ctx) => {
    const s = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    await prompt(ctx, s.sessionId, "remember go");
    return s.sessionId;
  });
  await connect(t, w, {}, {}, async (ctx, updates) => {
    const list = await ctx.request(acp.methods.agent.session.list, { cwd: w.project });
    assert.deepEqual(list.sessions.map((s) => s.sessionId), [sessionId]);
    await ctx.request(acp.methods.agent.session.load, { sessionId, cwd: w.project, mcpServers: [] });
    assert.equal(text(updates, "user_message_chunk"), "remember go");
    assert.equal(text(updates), "I shall remember.");
    await prompt(ctx, sessionId, "what did I say?");
    assert.match(text(updates), /You said: go\.$/);
    assert.match(JSON.stringify(w.model.seen.at(-1).messages), /remember go/);
    await ctx.request(acp.methods.agent.session.delete, { sessionId });
  });
});

test("two sessions at once do not wait for each other", async (t) => {
  const w = await world(t, [{ hang: true }, "quick"]);
  await connect(t, w, {}, {}, async (ctx, updates) => {
    const a = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    const b = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    const hanging = w.model.hanging();
    const slow = prompt(ctx, a.sessionId, "hang");
    await hanging;
    assert.equal((await prompt(ctx, b.sessionId, "quick")).stopReason, "end_turn");
    assert.equal(text(updates.filter((u) => u.sessionId === b.sessionId)), "quick");
    await ctx.notify(acp.methods.agent.session.cancel, { sessionId: a.sessionId });
    assert.equal((await slow).stopReason, "cancelled");
  });
});

test("errors are errors, and the connection lives", async (t) => {
  const w = await world(t, []);
  await connect(t, w, {}, {}, async (ctx) => {
    await assert.rejects(ctx.request(acp.methods.agent.session.new, { cwd: "/no/such/folder", mcpServers: [] }), /does not exist/);
    await assert.rejects(prompt(ctx, "nobody", "x"), /no session "nobody"/);
    const s = await ctx.request(acp.methods.agent.session.new, { cwd: w.project, mcpServers: [] });
    await assert.rejects(ctx.request(acp.methods.agent.session.setMode, { sessionId: s.sessionId, modeId: "none" }), /unknown mode/);
    await ctx.request(acp.methods.agent.session.setMode, { sessionId: s.sessionId, modeId: "plan" });
  });
});

test("the process ends when the editor goes away in the middle of a turn", async (t) => {
  const w = await world(t, [{ hang: true }]);
  const { child, ended } = w.start();
  const hanging = w.model.hanging();
  let out = "";
  child.stdout.on("data", (b) => {
    out += b;
    const m = /"sessionId":"([^"]+)"/.exec(out);
    if (m && !out.includes("sent")) {
      out += "sent";
      child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 3, method: "session/prompt", params: { sessionId: m[1], prompt: [{ type: "text", text: "x" }] } }) + "\n");
    }
  });
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1 } }) + "\n");
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "session/new", params: { cwd: w.project, mcpServers: [] } }) + "\n");
  await hanging;
  const begun = Date.now();
  child.stdin.end();
  const { code } = await ended;
  assert.equal(code, 0);
  assert.ok(Date.now() - begun < 2000, `it took ${Date.now() - begun} ms`);
});
