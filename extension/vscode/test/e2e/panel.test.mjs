// The panel in a real workbench: what a person sees and presses, with the real binary behind it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const write = (filePath, content) => ({ tool: "write", input: { filePath, content } });
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const bash = (command) => ({ tool: "bash", input: { command, description: command } });

test("an answer streams as Markdown; the turn ends; what was said is shown", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("hello there", ["# Hello\n\nThis is **bold** and `code`.\n\n```js\nlet x = 1;\n```\n"]);
  await c.frame.locator(".user .said", { hasText: "hello there" }).waitFor();
  await c.frame.locator(".md strong", { hasText: "bold" }).waitFor();
  await c.frame.locator(".code .hl-number", { hasText: "1" }).waitFor();
  await c.idle();
  assert.equal(await c.frame.locator(".md .h1").innerText(), "Hello");
});

test("permission with always: asked once, with its pattern; the next of its kind runs", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("run it", [bash("touch made-1.txt"), bash("touch made-2.txt"), "Both ran."]);
  const card = c.frame.locator(".card.permission");
  await card.locator(".command", { hasText: "touch made-1.txt" }).waitFor();
  await card.getByText("“Always” would allow").waitFor();
  await c.input.fill("and then?"); // typing and queueing decide nothing
  await c.input.press("Enter");
  await c.frame.locator(".queue", { hasText: "and then?" }).waitFor();
  assert.equal(await card.count(), 1);
  w.steps.push("And then nothing.");
  await card.getByRole("button", { name: "Always…" }).click();
  await c.frame.locator(".menu-item", { hasText: "In this session" }).click();
  await p.onDisk("made-2.txt", "");
  await c.frame.locator(".md", { hasText: "Both ran." }).waitFor();
  await c.frame.locator(".user .said", { hasText: "and then?" }).waitFor(); // the queue went on
  await c.frame.locator(".md", { hasText: "And then nothing." }).waitFor();
  await c.idle();
  await c.frame.locator(".tool.k-execute.done").nth(1).waitFor();
});

test("a change: accepted in the panel, rejected with a message; the rejected text stays", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("change it", [read("a.txt"), write("a.txt", "ONE\n"), write("a.txt", "TWO\n"), "All right."]);
  const card = c.frame.locator(".card.permission");
  await card.getByText("Change 1 file?").waitFor();
  await card.getByRole("button", { name: "Show the change here" }).click();
  await card.locator(".dl.add", { hasText: "ONE" }).waitFor();
  assert.equal(p.read("a.txt"), "one\n", "written before the decision");
  await card.getByRole("button", { name: "Accept" }).click();
  await p.onDisk("a.txt", "ONE\n");
  await card.getByText("Change 1 file?").waitFor();
  await card.getByRole("button", { name: "Reject with a message" }).click();
  await card.getByLabel("What to do instead").fill("one is enough");
  await p.page.keyboard.press("Enter");
  await c.frame.locator(".tool.rejected").waitFor();
  await c.idle();
  assert.equal(p.read("a.txt"), "ONE\n");
  assert.match(JSON.stringify(w.model.seen.at(-1).messages), /one is enough/);
  await c.frame.locator(".tool.rejected .row").click();
  await c.frame.locator(".tool.rejected .dl.add", { hasText: "TWO" }).waitFor();
});

test("steer: what is said into the running turn, its next request holds; stop ends a turn", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("wait", [bash("echo waits; until [ -e go ]; do sleep 0.1; done"), "Heard."]);
  const card = c.frame.locator(".card.permission");
  await c.frame.locator(".tool.running .output, .card.permission").first().waitFor();
  if (await card.count()) await card.getByRole("button", { name: "Allow once" }).click();
  await c.frame.locator(".tool.running .output", { hasText: "waits" }).waitFor();
  await c.input.fill("in Go, please");
  await c.frame.getByRole("button", { name: "Steer", exact: true }).click();
  await c.frame.locator(".queue", { hasText: "at the next step" }).waitFor();
  const before = w.model.seen.length;
  writeFileSync(join(p.folder, "go"), "");
  await c.answer("Heard.");
  await c.idle();
  await c.frame.locator(".user", { hasText: "Steered" }).locator(".said", { hasText: "in Go, please" }).waitFor();
  const next = w.model.seen[before].messages;
  assert.match(JSON.stringify(next.filter((m) => m.role === "user").at(-1)), /in Go, please/);
  await c.frame.locator(".queue li").first().waitFor({ state: "detached" });
  await c.say("wait again", [bash("sleep 60"), "Never said."]);
  await c.frame.locator(".tool.running").waitFor();
  await c.frame.getByRole("button", { name: /^Stop/ }).click();
  await c.idle();
  await c.frame.locator(".turn.cancelled", { hasText: "Stopped" }).waitFor();
  await c.frame.locator(".tool.cancelled").waitFor();
  w.steps.length = 0;
});

test("a picture goes along: its very bytes reach the model", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.paste("shot.png", "image/png", png);
  await c.frame.locator(".chip-thumb").waitFor();
  await c.say("what is this?", ["A dot."]);
  await c.frame.locator(".user img.thumb").waitFor();
  await c.answer("A dot.");
  const said = w.model.seen.at(-1).messages.filter((m) => m.role === "user").at(-1).content;
  assert.deepEqual(said.filter((b) => b.type === "image_url").map((b) => b.image_url.url), [`data:image/png;base64,${png}`]);
});

test("@ finds files of the project; the model is told which", async (t) => {
  const p = await w.open(t, { "src/alpha.txt": "a\n", "src/beta.txt": "b\n" });
  const c = await p.panel();
  await c.input.pressSequentially("look at @beta");
  await c.frame.locator(".suggest .menu-item", { hasText: "src/beta.txt" }).waitFor();
  await c.input.press("Enter");
  assert.equal(await c.input.inputValue(), "look at @src/beta.txt ");
  w.steps.push("Seen.");
  await c.input.press("Enter");
  await c.frame.locator(".md", { hasText: "Seen." }).waitFor();
  assert.match(JSON.stringify(w.model.seen.at(-1).messages), /src\/beta\.txt/);
});

test("back to before a prompt: files and conversation; redo; edit and send again", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("first", ["Hello."]);
  await c.frame.locator(".md", { hasText: "Hello." }).waitFor();
  await c.idle();
  await c.say("second", [read("a.txt"), write("a.txt", "ONE\n"), "Changed."]);
  await c.frame.locator(".card.permission").getByRole("button", { name: "Accept" }).click();
  await c.frame.locator(".md", { hasText: "Changed." }).waitFor();
  await p.onDisk("a.txt", "ONE\n");
  const second = c.frame.locator(".entry", { has: c.frame.locator(".user", { hasText: "second" }) });
  const back = async (name) => {
    await second.hover();
    await second.getByRole("button", { name }).click();
    await c.frame.locator(".menu-item", { hasText: "Files and conversation" }).click();
  };
  await back("Restore to before this");
  await p.onDisk("a.txt", "one\n");
  await second.waitFor({ state: "detached" });
  await c.frame.getByRole("button", { name: "Redo" }).click();
  await p.onDisk("a.txt", "ONE\n");
  await second.waitFor();
  await c.frame.locator(".md", { hasText: "Changed." }).waitFor();
  await back("Edit and send again");
  await p.onDisk("a.txt", "one\n");
  await c.frame.locator(".mirror", { hasText: "second" }).waitFor();
  assert.equal(await c.input.inputValue(), "second");
  await c.say("second, better", ["Fine."]);
  await c.frame.locator(".md", { hasText: "Fine." }).waitFor();
  await p.holds(async () => assert.equal(await c.frame.locator(".user").count(), 2));
});

test("reload of the window: transcript, draft with its picture, and session are there again", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("remember me", ["I will."]);
  await c.frame.locator(".md", { hasText: "I will." }).waitFor();
  await c.idle();
  await c.paste("dot.png", "image/png", png);
  await c.frame.locator(".chip-thumb").waitFor();
  await c.input.pressSequentially("half a thought");
  await p.stored("half a thought"); // the picture lies beside it
  await c.input.pressSequentially(", and its last word");
  await p.reload(); // at once: the last keys are on their way to the host
  const again = await p.panel();
  await again.frame.locator(".user .said", { hasText: "remember me" }).waitFor();
  await again.frame.locator(".md", { hasText: "I will." }).waitFor();
  assert.equal(await again.input.inputValue(), "half a thought, and its last word");
  await again.frame.locator(".chip-thumb").waitFor();
  w.steps.push("Seen.");
  await again.input.press("Enter");
  await again.answer("Seen.");
  const heard = w.model.seen.at(-1).messages.filter((m) => m.role === "user").at(-1).content;
  assert.equal(heard.find((b) => b.type === "image_url")?.image_url.url, `data:image/png;base64,${png}`);
});

test("restart of the sidecar: the transcript stays and the session goes on", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("before", ["Here."]);
  await c.frame.locator(".md", { hasText: "Here." }).waitFor();
  await c.idle();
  await p.bench.command("Pillion: Restart");
  await c.say("after", ["Still here."]);
  await c.frame.locator(".md", { hasText: "Still here." }).waitFor();
  await c.frame.locator(".md", { hasText: "Here." }).first().waitFor();
  assert.match(JSON.stringify(w.model.seen.at(-1).messages), /before/);
});

test("by keyboard alone: ask, allow, read, and back to the message", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  w.steps.push(bash("touch keys.txt"), "Typed.");
  await c.frame.locator("textarea.input:focus").waitFor(); // the command brought the focus here
  await p.page.keyboard.type("use the keyboard");
  await p.page.keyboard.press("Enter");
  const card = c.frame.locator(".card.permission");
  await card.waitFor();
  await card.getByRole("button", { name: "Allow once" }).and(c.frame.locator(":enabled")).waitFor();
  await p.page.keyboard.press("Control+Alt+KeyY");
  await card.getByRole("button", { name: "Allow once" }).and(c.frame.locator(":focus")).waitFor();
  await p.page.keyboard.press("Enter");
  await p.onDisk("keys.txt", "");
  await c.frame.locator(".md", { hasText: "Typed." }).waitFor();
  await c.idle();
  await p.page.keyboard.press("Control+Alt+KeyH");
  await c.frame.locator(".transcript .entry:focus").waitFor();
  await p.page.keyboard.press("ArrowUp");
  await c.frame.locator(".transcript .entry:focus .text").waitFor();
  await p.page.keyboard.press("Escape");
  await c.frame.locator("textarea.input:focus").waitFor();
});

test("axe in the workbench: no serious violation in the panel", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("show all", [read("a.txt"), "# Done\n\n- one\n- `two`\n", ]);
  await c.frame.locator(".md .h1").waitFor();
  await c.idle();
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const handle = await c.input.elementHandle();
  const frame = await handle.ownerFrame();
  await frame.evaluate(axe);
  const bad = await frame.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`)));
  assert.deepEqual(bad, []);
});

test("no folder: one can ask, and is told what a folder would bring", async (t) => {
  const p = await w.open(t, {}, { noFolder: true });
  const c = await p.panel();
  await c.frame.getByText("To read and change files, open a folder.").waitFor();
  await c.say("hello", ["Hello without a folder."]);
  await c.frame.locator(".md", { hasText: "Hello without a folder." }).waitFor();
});
