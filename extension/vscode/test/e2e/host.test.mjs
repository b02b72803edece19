// What the host does beside reviews: terminals, keys, code actions, the list of sessions.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world({ spy: true });
const { test } = w;

test("a terminal in the session: what it prints is shown, what is typed arrives, its size follows, closing ends it", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.command("Pillion: New Terminal in the Session");
  const rows = p.page.locator(".terminal-wrapper.active .xterm-rows");
  await rows.waitFor();
  const [size] = await w.heard("_pillion/terminal/resize");
  assert.ok(size.columns > 20 && size.rows > 2);
  await p.page.locator(".terminal-wrapper.active .xterm").click();
  await p.page.keyboard.type("echo it-$((40+2)); cat > typed.txt");
  await p.page.keyboard.press("Enter");
  await rows.getByText("it-42").first().waitFor();
  await p.page.keyboard.type("grüße");
  await p.page.keyboard.press("Enter");
  await p.page.keyboard.press("Control+d");
  await p.onDisk("typed.txt", "grüße\n");
  await p.bench.command("Terminal: Kill the Active Terminal Instance");
  const [ended] = await w.heard("_pillion/terminal/kill");
  assert.equal(ended.release, true);
});

test("a command of the agent's is watched in a terminal while it runs", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  await p.ask([{ tool: "bash", input: { command: "echo begun; until [ -e go ]; do sleep 0.1; done; echo over-$((1+1))", description: "waits for a file" } }, "Done."]);
  await p.bench.webview("pillion-dev.pillion").getByText("begun", { exact: true }).first().waitFor();
  await p.bench.command("Pillion: Show a Terminal of the Agent…");
  await p.bench.quick.locator(".monaco-list-row").first().click();
  const rows = p.page.locator(".terminal-wrapper.active .xterm-rows");
  await rows.getByText("begun").first().waitFor();
  await p.bench.command("Pillion: New Terminal in the Session");
  await w.heard("_pillion/terminal/create");
  await p.page.locator(".terminal-tabs-entry, .single-terminal-tab", { hasText: "Pillion:" }).first().waitFor();
  await p.bench.command("Terminal: Focus Terminal");
  await p.page.locator(".xterm.focus").first().waitFor({ state: "attached" });
  await p.page.keyboard.type("touch go");
  await p.page.keyboard.press("Enter");
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  assert.match(JSON.stringify(w.model.seen.at(-1).messages.at(-1)), /over-2/);
});

test("a key is kept in the secret storage, given at once and to every later process, and forgotten when removed", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const before = (await w.heard("_pillion/auth/set", 0)).length;
  await p.bench.command("Pillion: Add a Model Provider or API Key…");
  await p.bench.quick.locator(".monaco-list-row", { hasText: "Anthropic" }).first().click();
  const input = p.bench.quick.locator('input[type="password"]');
  await input.fill(" sk-test-1234 ");
  await input.press("Enter");
  await p.bench.quick.getByText(/^anthropic\//).first().waitFor(); // its models are to be chosen from at once
  await p.page.keyboard.press("Escape");
  assert.deepEqual((await w.heard("_pillion/auth/set", before + 1)).at(-1), { provider: "anthropic", key: "sk-test-1234" });
  await p.bench.command("Pillion: Restart Pillion");
  assert.deepEqual((await w.heard("_pillion/auth/set", before + 2)).at(-1), { provider: "anthropic", key: "sk-test-1234" });
  await p.bench.command("Pillion: Remove an API Key…");
  await p.bench.quick.locator(".monaco-list-row", { hasText: "Anthropic" }).first().click();
  assert.deepEqual((await w.heard("_pillion/auth/set", before + 3)).at(-1), { provider: "anthropic" });
});

test("a server is added by its URL: tried with its key first, then chosen, and used with that key", async (t) => {
  const heard = [];
  const server = createServer((q, r) => {
    let body = "";
    q.on("data", (d) => (body += d)).on("end", () => {
      heard.push({ url: q.url, key: q.headers.authorization, body });
      if (q.headers.authorization !== "Bearer sk-own") return r.writeHead(401).end(JSON.stringify({ error: { message: "unknown key" } }));
      if (q.url.endsWith("/models")) return r.end(JSON.stringify({ data: [{ id: "small" }, { id: "own-large" }] }));
      if (!JSON.parse(body).stream) return r.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "OK" } }] }));
      r.writeHead(200, { "content-type": "text/event-stream" });
      for (const choice of [{ delta: { role: "assistant", content: "Own words." }, finish_reason: null }, { delta: {}, finish_reason: "stop" }]) r.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "own-large", choices: [{ index: 0, ...choice }] })}\n\n`);
      r.end("data: [DONE]\n\n");
    });
  });
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  t.after(() => (server.closeAllConnections(), server.close()));
  const p = await w.open(t, { "a.txt": "one\n" });
  const panel = await p.panel();
  await p.bench.command("Pillion: Add a Model Provider or API Key…");
  await p.bench.quick.getByText("Anthropic", { exact: true }).first().waitFor();
  await p.shot("models-add");
  for (const name of ["Groq", "Mistral", "OpenRouter", "Together AI"]) {
    await p.bench.quick.locator("input:visible").first().fill(name); // the list draws only what is in sight
    await p.bench.quick.getByText(name, { exact: true }).first().waitFor();
  }
  const type = async (title, text) => {
    await p.bench.quick.getByText(title).first().waitFor();
    await p.bench.quick.locator("input:visible").first().fill(text);
    await p.page.keyboard.press("Enter");
  };
  // What Enter takes is the row that has the focus, which is another one until the list has been filtered.
  const pick = async (title, text) => {
    await p.bench.quick.getByText(title).first().waitFor();
    await p.bench.quick.locator("input:visible").first().fill(text);
    await p.bench.quick.locator(".monaco-list-row.focused", { hasText: text }).waitFor();
    await p.page.keyboard.press("Enter");
  };
  await pick("Add a model provider", "OpenAI-compatible");
  await type("URL of the OpenAI-compatible server", `http://127.0.0.1:${server.address().port}/v1/`);
  await type("API key of the server", "sk-wrong");
  await p.bench.quick.getByText("does not accept the API key: unknown key").first().waitFor();
  await p.page.keyboard.press("Enter"); // the URL is right
  await type("API key of the server", "sk-own");
  await pick("Model of the server", "own-large");
  await panel.frame.locator(".composer").getByText("own-large").waitFor(); // the workbench does not show every notification as a toast
  assert.deepEqual(heard.map((h) => h.url), ["/v1/models", "/v1/models", "/v1/chat/completions"], "it was tried before it was kept");
  await panel.say("hello");
  await panel.answer("Own words.");
  const last = heard.at(-1);
  assert.deepEqual([last.url, last.key, JSON.parse(last.body).model], ["/v1/chat/completions", "Bearer sk-own", "own-large"]);
  const settings = readFileSync(join(w.server.data, "Machine", "settings.json"), "utf8");
  assert.match(settings, /"local-server"/);
  assert.doesNotMatch(settings, /sk-own/);
});

test("Fix with Pillion, where a problem is: the model hears which", async (t) => {
  const p = await w.open(t, { "bad.json": '{\n  "a": ,\n}\n' });
  await p.bench.openFile("bad.json");
  await p.page.locator(".editor-instance .squiggly-error").first().waitFor();
  w.steps.push("I see.");
  await p.typing();
  await p.page.keyboard.press("F8"); // to the problem
  const peek = p.page.locator(".marker-widget, .peekview-widget").first();
  await peek.waitFor();
  await p.page.keyboard.press("Escape");
  await peek.waitFor({ state: "detached" });
  await p.page.locator(".lightBulbWidget").first().click();
  await p.page.locator(".action-widget").getByText("Explain with Pillion").first().waitFor();
  await p.page.locator(".action-widget").getByText("Fix with Pillion").first().click();
  await p.bench.webview("pillion-dev.pillion").getByText("I see.", { exact: true }).first().waitFor();
  const { prompt } = (await w.heard("session/prompt")).at(-1);
  assert.match(prompt[0].text, /^Fix this problem in bad\.json:\n- line 2: error: /);
  assert.match(prompt[1].uri, /bad\.json$/);
});

test("sessions: renamed, forked and exported from the list", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  await p.ask(["The answer is forty-two."]);
  await p.bench.webview("pillion-dev.pillion").getByText("forty-two").first().waitFor();
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  const row = (text) => p.bench.quick.locator(".monaco-list-row", { hasText: text });
  const press = async (text, label) => {
    await p.bench.command("Pillion: Sessions…");
    await row(text).first().hover();
    await row(text).first().locator(`[aria-label^="${label}"]`).first().click();
  };
  await press("In the panel", "Rename");
  const name = p.bench.quick.locator('input[type="text"]').first();
  await p.bench.quick.getByText("Rename the session").first().waitFor();
  await name.fill("The big question");
  await name.press("Enter");
  await row("The big question").first().waitFor(); // back in the list
  await p.page.keyboard.press("Escape");

  await press("The big question", "Fork");
  const [{ sessionId: first }] = await w.heard("_pillion/session/fork");
  const loaded = (await w.heard("session/load")).at(-1);
  assert.notEqual(loaded.sessionId, first);
  await p.bench.webview("pillion-dev.pillion").getByText("forty-two").first().waitFor();
  await p.bench.webview("pillion-dev.pillion").locator("textarea:focus").waitFor(); // the panel takes the focus last

  await press("In the panel", "Export");
  await p.bench.quick.locator(".monaco-list-row", { hasText: "Markdown" }).click();
  await p.page.locator(".editor-instance .view-line", { hasText: "forty-two" }).first().waitFor();
});
