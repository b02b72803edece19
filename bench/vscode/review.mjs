// How long a review takes besides what the model and the language servers take, in a real workbench:
//
//   - from the first piece of a model's answer to the frame of the panel that shows it,
//   - from the end of the check (the sidecar asks) to a proposal that can be seen: the first changed line is painted as one, and the
//     decision is in the editor's title bar; and until its lenses are drawn too (VS Code itself waits 250 ms or more before it asks
//     an extension for lenses: languageFeatureDebounce of CodeLensProvide, min 250),
//   - a file of 10,000 lines with three hunks: from the model's answer to visible, from the decision to written,
//   - what moves in the panel when the verdict arrives (Chromium's own layout shifts),
//   - activation, as VS Code itself counts it.
//
//   node bench/vscode/review.mjs [rounds]
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, watch, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "../../test/e2e/model.mjs";
import { root, stage } from "../../extension/vscode/stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "../../extension/vscode/test/e2e/workbench.mjs";
import { Pillion } from "../../extension/vscode/test/e2e/world.mjs";

const rounds = Number(process.argv[2] ?? 5);
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const scratch = mkdtempSync(join(tmpdir(), "pillion-bench-"));
const folder = join(scratch, "project");
mkdirSync(folder);
const lines = (n) => Array.from({ length: n }, (_, i) => `line ${i + 1} of a file\n`).join("");
const texts = { "small.held": lines(40), "large.held": lines(10_000) };
for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
const gate = join(mkdtempSync(join(scratch, "gate-")), "open");

const steps = [];
const model = await startModel(steps);
const binary = process.env.PILLION_BIN ?? join(root, "bin", "pillion");
const dist = join(scratch, "dist"); // as it ships
execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs"), "--production", "--out", dist], { cwd: root, stdio: "inherit" });
const staged = stage(join(scratch, "staged"), { dist, binary });
// The sidecar behind a pipe that notes when it asks: the check has ended by then, or has used up its budget.
const asked = join(scratch, "asked");
const pipe = join(scratch, "pillion");
writeFileSync(pipe, `#!${process.execPath}
const { appendFileSync } = require("node:fs");
const child = require("node:child_process").spawn(${JSON.stringify(binary)}, process.argv.slice(2), { stdio: ["inherit", "pipe", "inherit"] });
child.stdout.on("data", (piece) => {
  if (piece.includes('"session/request_permission"')) appendFileSync(${JSON.stringify(asked)}, Date.now() + "\\n");
  process.stdout.write(piece);
});
child.on("exit", (code) => process.exit(code ?? 1));
`, { mode: 0o755 });
const held = fileURLToPath(new URL("../../extension/vscode/test/e2e/heldserver.mjs", import.meta.url));
const machine = { "pillion.binary.path": pipe, "pillion.lsp": { held: { command: [process.execPath, held, gate], extensions: [".held"] } } };
const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "x", OPENAI_MODEL: "scripted", PILLION_MODEL: "openai/scripted", XDG_STATE_HOME: join(scratch, "state") };
const browser = await launchBrowser({ executablePath: at.chromium });
const server = await startServer({ ...at, extension: staged, env, machine, settings: { "editor.codeLens": true } });

/** Activation in windows of their own: only the first of an extension host counts. */
const activation = [];
for (let i = 0; i < rounds; i++) {
  const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, ready: '.statusbar-item[id*="pillion"]' });
  await bench.command("Developer: Show Running Extensions");
  const row = bench.page.locator(".runtime-extensions-editor .monaco-list-row, .editor-instance .extension", { hasText: "Pillion" }).first();
  await row.getByText("Activation:").waitFor();
  activation.push(Number(/Activation:\s*(\d+)ms/.exec(await row.innerText())?.[1]));
  await bench.close();
}

const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, ready: '.statusbar-item[id*="pillion"]' });
const p = new Pillion(bench, folder, { steps, model });
const panel = await p.panel();

/** Has a file changed at these lines and accepts it: when the model had answered, the sidecar asked, it was seen and written. */
async function review(name, at, word, meanwhile) {
  const before = texts[name];
  const after = at.reduce((text, n) => text.replace(`line ${n} of`, `${word} ${n} of`), before);
  await bench.openFile(name);
  const first = model.answered.length;
  // not waited for: it ends with the frame that shows the proposal
  const seen = bench.page.evaluate(() => new Promise((done) => {
    const drawn = (where, test = () => true) => [...document.querySelectorAll(where)].some((a) => test(a) && a.getClientRects().length > 0);
    const diff = () => drawn(".monaco-diff-editor .editor.modified .line-insert") && drawn('.editor-actions .action-label[aria-label^="Accept File"]');
    const lenses = () => drawn(".codelens-decoration a", (a) => a.textContent.trim() === "Accept");
    const times = {};
    const end = (what) => requestAnimationFrame(() => {
      times[what] = Date.now();
      if (what === "lenses") done(times);
    });
    const o = new MutationObserver(() => {
      if (!("diff" in times) && diff()) times.diff = end("diff");
      if (!("lenses" in times) && lenses()) times.lenses = end("lenses");
    });
    o.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  }));
  await panel.say("go", [{ tool: "read", input: { filePath: name, limit: 20 } }, { tool: "multiedit", input: { filePath: name, edits: at.map((n) => ({ oldString: `\nline ${n} of a file\n`, newString: `\n${word} ${n} of a file\n` })) } }, "Done."]);
  const { diff: visible, lenses } = await seen;
  await meanwhile?.();
  const times = { answered: model.answered[first + 1], asked: Number(readFileSync(asked, "utf8").trim().split("\n").at(-1)), visible, lenses };
  await p.page.keyboard.press("Control+Alt+o"); // into the proposal
  await p.page.locator(".modified-in-monaco-diff-editor.focused, .modified .monaco-editor.focused, .editor.modified .focused").first().waitFor();
  await p.page.locator('.editor-actions .action-label[aria-label^="Accept File"]').waitFor(); // the keys work from now on
  const path = join(folder, name);
  const written = new Promise((done) => {
    const look = () => readFileSync(path, "utf8") === after && (w.close(), done(statSync(path).mtimeMs));
    const w = watch(folder, look);
  });
  const decided = Date.now();
  await p.page.keyboard.press("Control+Shift+Enter");
  const ms = await written;
  await panel.idle();
  texts[name] = after;
  return { ...times, written: ms - decided };
}

// The first turn starts the language server; the check of its text is held, so that the verdict comes while the card is shown.
let shifts;
await review("small.held", [5], "BAD", async () => {
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("Checking problems").waitFor();
  await card.locator(".decide button:not(:disabled)").first().waitFor();
  const buttons = () => card.locator(".decide button").evaluateAll((all) => all.map((b) => { const { x, y } = b.getBoundingClientRect(); return `${x} ${y}`; }).join());
  const before = await buttons();
  await card.evaluate(() => {
    globalThis.moved = [];
    new PerformanceObserver((list) => globalThis.moved.push(...list.getEntries().map((e) => e.value))).observe({ type: "layout-shift" });
  });
  writeFileSync(gate, "");
  await card.getByText("introduces 1").waitFor();
  // two frames: the observer has heard of the one in which it came
  await card.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  shifts = { score: await card.evaluate(() => globalThis.moved.reduce((n, x) => n + x, 0)), buttons: (await buttons()) === before };
});

/** From the first piece of a model's answer to the frame that shows it. The answer comes when everything before it is drawn. */
async function firstToken(word) {
  let answer;
  const after = new Promise((done) => (answer = done));
  await panel.say("go", [{ text: `${word} and the rest`, after }]);
  await panel.frame.locator(".busy:not([hidden])").first().waitFor();
  const n = model.seen.length;
  const seen = panel.frame.locator("body").evaluate((body, word) => new Promise((done) => {
    const drawn = new MessageChannel(); // its message is a task of its own, so it comes after the frame in which the entry is made
    drawn.port1.onmessage = () => done(Date.now());
    const o = new MutationObserver(() => {
      if (![...document.querySelectorAll(".transcript .md")].some((e) => e.textContent.includes(word))) return;
      o.disconnect();
      drawn.port2.postMessage(0);
    });
    o.observe(body, { subtree: true, childList: true, characterData: true });
    requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.watching = word)));
  }), word);
  await panel.frame.locator("body").evaluate((_, word) => new Promise((done) => {
    const look = () => (globalThis.watching === word ? done() : requestAnimationFrame(look));
    look();
  }), word);
  answer();
  const at = await seen;
  await panel.idle();
  return at - model.began[n - 1];
}

const first = [];
for (let i = 0; i < 3 * rounds; i++) first.push(await firstToken(`w${String(i).padStart(2, "0")}`));

const beyond = [];
const decorated = [];
const large = { visible: [], written: [] };
await review("large.held", [10, 5000, 9990], "warm"); // the first of a file opens it in the servers
texts["large.held"] = readFileSync(join(folder, "large.held"), "utf8");
for (let i = 0; i < rounds; i++) {
  const small = await review("small.held", [10 + i], `r${i}`);
  beyond.push(small.visible - small.asked);
  decorated.push(small.lenses - small.asked);
  const big = await review("large.held", [100 + i, 4000 + i, 9000 + i], `r${i}`);
  large.visible.push(big.visible - big.answered);
  large.written.push(big.written);
}
await bench.close();
await server.stop();
await browser.close();
model.close();

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const say = (name, list, goal) => console.log(`${name.padEnd(42)} ${String(Math.round(median(list))).padStart(5)} ms  (goal ${goal} ms; ${list.map(Math.round).join(", ")})`);
if (process.env.PILLION_BENCH_JSON) writeFileSync(process.env.PILLION_BENCH_JSON, JSON.stringify({ activation, first, beyond, decorated, visible: large.visible, written: large.written, shift: shifts.score, buttons: shifts.buttons }));
say("activation", activation, 50);
say("first token to the panel's frame", first, 16);
say("proposal visible after the check", beyond, 150);
say("… and its lenses drawn", decorated, "none: VS Code's own 250");
say("10,000 lines, 3 hunks: answer to visible", large.visible, 500);
say("10,000 lines, 3 hunks: decision to written", large.written, 200);
console.log(`layout shift when the verdict arrives      ${shifts.score.toFixed(4)}, buttons ${shifts.buttons ? "stayed" : "MOVED"} (goal 0)`);
console.log(`load ${loadavg()[0].toFixed(1)}`);
rmSync(scratch, { recursive: true, force: true });
