// Binaries that are missing, too old, broken or silent: the person is told what to do.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary, world } from "./world.mjs";

const w = world();
const { test } = w;

const bin = mkdtempSync(join(tmpdir(), "pillion-bin-"));
const program = (name, script) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
  return join(bin, name);
};
const old = program("old", `read -r line; printf '%s\\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"pillion","version":"0.0.1"},"agentCapabilities":{}}}'; cat >/dev/null`);
const broken = program("broken", "echo 'cannot open the store' >&2; exit 3");
const silent = program("silent", "cat >/dev/null");

/** Answers as far as `until`, and then nothing more, however it is asked; the real one once the file beside it is there. */
const mute = (name, until) => {
  writeFileSync(join(bin, `${name}.cjs`), `
const answers = {
  initialize: { protocolVersion: 1, agentInfo: { name: "pillion", version: "9.9.9" }, agentCapabilities: {}, _meta: { pillion: { version: 1, methods: [] } } },
  "session/new": { sessionId: "s1", configOptions: [{ id: "model", category: "model", name: "Model", type: "select", currentValue: "m", options: [{ value: "m", name: "scripted" }] }] },
};
for (const m of Object.keys(answers).slice(${until})) delete answers[m];
require("node:readline").createInterface({ input: process.stdin }).on("line", (l) => {
  const { id, method } = JSON.parse(l);
  if (answers[method]) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }) + "\\n");
});
setInterval(() => {}, 1000); // nor does it end when it is told to
`);
  const path = program(name, `[ -e '${join(bin, name)}.well' ] && exec '${binary}' "$@"\nexec '${process.execPath}' '${join(bin, name)}.cjs'`);
  return { path, heal: () => writeFileSync(`${path}.well`, "") };
};

async function fails(t, machine, said) {
  const p = await w.open(t, { "a.txt": "x\n" }, { machine });
  await p.bench.openFile("a.txt");
  await p.bench.command("Pillion: Restart Pillion");
  await p.bench.toast("Pillion is not running").waitFor();
  await p.page.locator(".notification-toast", { hasText: said }).first().waitFor();
  await p.page.locator(".notification-toast").getByRole("button", { name: "Show Log" }).first().click();
  await p.page.locator(".panel .view-line", { hasText: said.slice(0, 12) }).first().waitFor();
  await p.page.locator('.statusbar-item[id*="pillion"].error-kind, .statusbar-item.has-background-color[id*="pillion"]').first().waitFor();
  return p;
}

test("missing", async (t) => {
  const staged = join(w.server.home, "extensions", readdirSync(join(w.server.home, "extensions")).find((n) => n.startsWith("pillion-dev.")), "bin");
  renameSync(staged, `${staged}-away`);
  t.after(() => renameSync(`${staged}-away`, staged));
  const p = await fails(t, {}, "was not found");
  await p.bench.command("Pillion: Open Panel");
  const strip = p.bench.webview("pillion-dev.pillion").locator(".connection");
  await strip.getByText("Pillion is not running").waitFor();
  await strip.getByRole("button", { name: "Set the path" }).waitFor();
  renameSync(`${staged}-away`, staged); // what the person does about it
  await strip.getByRole("button", { name: "Restart Pillion" }).click();
  await strip.waitFor({ state: "hidden" });
  renameSync(staged, `${staged}-away`);
});

// npm is a script here that puts the real program where npm would.
test("missing: one button installs it with npm, and it runs", async (t) => {
  const staged = join(w.server.home, "extensions", readdirSync(join(w.server.home, "extensions")).find((n) => n.startsWith("pillion-dev.")), "bin");
  renameSync(staged, `${staged}-away`);
  t.after(() => renameSync(`${staged}-away`, staged));
  const place = `node_modules/@pillion-dev/${process.platform}-${process.arch}/bin`;
  const tools = mkdtempSync(join(tmpdir(), "pillion-npm-"));
  writeFileSync(join(tools, "npm"), `#!/bin/sh\n[ "$1 $2 $4" = "install --prefix --ignore-scripts" ] || exit 9\nmkdir -p "$3/${place}" && ln -s '${binary}' "$3/${place}/pillion" && echo "took $*"\n`, { mode: 0o755 });
  const p = await w.open(t, { "a.txt": "x\n" }, { machine: { "terminal.integrated.env.linux": { PATH: `${tools}:/usr/bin:/bin` } } });
  await p.bench.openFile("a.txt");
  await p.bench.command("Pillion: Restart Pillion");
  await p.bench.toast("was not found").waitFor();
  await p.page.locator(".notification-toast").getByRole("button", { name: "Install" }).first().click();
  await p.page.locator(".xterm-rows", { hasText: "pillion@" }).first().waitFor();
  const c = await p.panel();
  w.steps.push("Here I am.");
  await c.say("hello");
});

test("older", (t) => fails(t, { "pillion.binary.path": old }, "too old for this extension"));

// The real program, of which one word is changed on the way.
const release = (name, version) => program(name, `'${binary}' "$@" | sed -u 's/\\("agentInfo":{[^}]*"version":"\\)[^"]*/\\1${version}/'`);
for (const [name, version, said, button] of [
  ["elder", "0.0.9", "older than this extension", "Upgrade"],
  ["younger", "7.0.0", "newer than this extension", "Show Extension"],
]) {
  test(`of another release, ${name}: it is said with what to do, and it works all the same`, async (t) => {
    const p = await w.open(t, { "a.txt": "x\n" }, { machine: { "pillion.binary.path": release(name, version) } });
    const c = await p.panel();
    const toast = p.page.locator(".notification-toast", { hasText: said });
    await toast.first().waitFor();
    await toast.getByText("clear pillion.binary.path").first().waitFor();
    w.steps.push("Here I am.");
    await c.say("hello");
    await toast.getByRole("button", { name: button }).first().click();
    if (button === "Upgrade") await p.page.locator(".xterm-rows", { hasText: "installed by" }).first().waitFor();
    else await p.page.locator(".extensions-viewlet, .extension-list-item, .viewlet[id*='extensions']").first().waitFor();
  });
}

test("crashing at its start", (t) => fails(t, { "pillion.binary.path": broken }, "cannot open the store"));

test("hanging at its start", (t) => fails(t, { "pillion.binary.path": silent }, "did not answer within 20 seconds"));

const silenced = mute("mute", 1);
const muted = mute("muter", 2);

test("silent once it runs: the panel says what is waited for, words stay, and one click starts it again", async (t) => {
  const p = await w.open(t, { "a.txt": "x\n" }, { machine: { "pillion.binary.path": silenced.path } });
  await p.bench.command("Pillion: Open Panel");
  const panel = p.bench.webview("pillion-dev.pillion");
  const input = panel.locator("textarea.input");
  await input.fill("are you there?");
  const strip = panel.locator(".connection");
  await strip.getByText("a new session is waited for").waitFor();
  await p.status("is not responding").waitFor();
  await input.pressSequentially(" hello?"); // nothing is frozen
  silenced.heal();
  await strip.getByRole("button", { name: "Restart Pillion" }).click();
  await panel.locator(".picker.p-model").waitFor();
  assert.equal(await input.inputValue(), "are you there? hello?");
  w.steps.push("I am.");
  await input.press("Enter");
  await panel.locator(".md", { hasText: "I am." }).waitFor();
  await strip.waitFor({ state: "hidden" });
});

test("silent in a turn: stop is there, and where it is not heeded, a new start; what was sent can be sent again", async (t) => {
  const p = await w.open(t, { "a.txt": "x\n" }, { machine: { "pillion.binary.path": muted.path } });
  const c = await p.panel();
  await c.input.fill("answer me");
  await c.input.press("Enter");
  await c.frame.locator(".stop").waitFor();
  await c.frame.locator(".connection").getByText("the answer to your message is waited for").waitFor();
  await c.input.press("Escape");
  muted.heal();
  await c.frame.locator(".connection").getByRole("button", { name: "Restart Pillion" }).click();
  await c.frame.locator(".notice-title", { hasText: "Pillion stopped during the turn" }).waitFor();
  w.steps.push("Here I am.");
  await c.frame.getByRole("button", { name: "Send again" }).click(); // the session was the other program's: this one has none of that name
  await c.frame.getByRole("button", { name: "New session" }).first().click();
  await c.idle();
  await c.say("answer me");
  await c.answer("Here I am.");
});
