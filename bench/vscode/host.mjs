// What the extension costs its host, in a real workbench: how long activation takes (as VS Code itself counts it) and the
// heap of the whole extension host with a session of many entries in it, beside the heap of a host that has an extension
// without code in the place of ours.
//
//   node bench/vscode/host.mjs [entries] [windows]
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadavg } from "node:os";
import { startModel } from "../../test/e2e/model.mjs";
import { root, stage } from "../../extension/vscode/stage.mjs";
import { installation, launchBrowser, runExtensionTests, startServer, Workbench } from "../../extension/vscode/test/e2e/workbench.mjs";

const entries = Number(process.argv[2] ?? 5000);
const windows = Number(process.argv[3] ?? 5);
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const scratch = mkdtempSync(join(tmpdir(), "pillion-bench-"));
const folder = join(scratch, "project");
mkdirSync(folder);
writeFileSync(join(folder, "a.txt"), "one\n");
// Each step is a text and a read: two entries.
const steps = Array.from({ length: entries / 2 - 1 }, () => ({ tool: "read", input: { filePath: "a.txt" } }));
const model = await startModel([...steps, "Done."]);
const dist = join(scratch, "dist"); // as it ships
execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs"), "--production", "--out", dist], { cwd: root, stdio: "inherit" });
const staged = stage(join(scratch, "staged"), { dist, binary: process.env.PILLION_BIN ?? join(root, "bin", "pillion") });
const out = join(scratch, "out.json");
writeFileSync(
  join(scratch, "measure.cjs"),
  `const vscode = require("vscode"), v8 = require("v8"), vm = require("vm"), fs = require("fs");
v8.setFlagsFromString("--expose-gc");
const gc = vm.runInNewContext("gc");
// After the window's own start has settled: it loads several megabytes in its first seconds, and drops compiled code that no collection
// has seen used for a while.
const heap = async () => {
  for (let before = [], at = 0; ; at++) {
    gc(); gc();
    before = [...before.slice(-9), process.memoryUsage().heapUsed / 2 ** 20];
    if (at >= 80 && Math.max(...before) - Math.min(...before) < 0.2 || at > 300) return before[before.length - 1];
    await new Promise((r) => setTimeout(r, 100));
  }
};
exports.run = async () => {
  const ours = vscode.extensions.getExtension("pillion-dev.pillion");
  // What starts with every window, so that the two hosts differ in us alone.
  const others = vscode.extensions.all.filter((e) => e !== ours && (e.packageJSON.activationEvents ?? []).some((a) => a === "*" || a === "onStartupFinished"));
  await Promise.allSettled(others.map((e) => e.activate()));
  const document = await vscode.workspace.openTextDocument(${JSON.stringify(join(folder, "a.txt"))});
  await vscode.window.showTextDocument(document);
  const found = {};
  if (ours) {
    await ours.activate();
    found.active = await heap();
    await vscode.commands.executeCommand("pillion.focus");
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("pillion.fix");
  }
  fs.writeFileSync(process.env.PILLION_BENCH_OUT, JSON.stringify({ ...found, heap: await heap() }));
};\n`,
);
const nothing = join(scratch, "nothing");
mkdirSync(nothing);
writeFileSync(join(nothing, "package.json"), JSON.stringify({ name: "nothing", publisher: "bench", version: "1.0.0", engines: { vscode: "^1.80.0" } }));
const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "x", OPENAI_MODEL: "scripted", PILLION_MODEL: "openai/scripted", XDG_STATE_HOME: join(scratch, "state"), PILLION_BENCH_OUT: out };
const machine = { "pillion.config": { permission: { doom_loop: "allow", read: "allow" }, steps: entries } };
const browser = await launchBrowser({ executablePath: at.chromium });

const server = await startServer({ ...at, extension: staged, env, machine });
const times = [];
const clicks = [];
for (let i = 0; i < windows; i++) {
  const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, ready: '.statusbar-item[id*="pillion"]' });
  await bench.command("Developer: Show Running Extensions");
  const row = bench.page.locator(".runtime-extensions-editor .monaco-list-row, .editor-instance .extension", { hasText: "Pillion" }).first();
  await row.getByText("Activation:").waitFor();
  times.push(Number(/Activation:\s*(\d+)ms/.exec(await row.innerText())?.[1]));
  await bench.page.keyboard.press("Escape");
  // From the click to a panel that can be typed into; the window is up and warm.
  const frame = bench.webview("pillion-dev.pillion");
  const began = performance.now();
  await bench.view("Pillion").click();
  await frame.locator("textarea.input").waitFor();
  await frame.locator("textarea.input").fill("x");
  clicks.push(Math.round(performance.now() - began));
  await frame.locator("textarea.input").fill("");
  await bench.close();
}
await server.stop();
const dev = await startServer({ ...at, env, machine, args: ["--vscode-option", "enable-smoke-test-driver"] });
/** The heaps of a host with this extension. */
async function measured(extension) {
  const { code, log } = await runExtensionTests(browser, dev, { folder, extension, tests: join(scratch, "measure.cjs"), timeout: 900_000 });
  if (code !== 0) throw new Error(log.slice(-20).join("\n"));
  return JSON.parse(readFileSync(out, "utf8"));
}
await measured(nothing); // the first window after the server's start holds more than all others
const { heap: empty } = await measured(nothing);
const { active, heap: full } = await measured(staged);
if (process.env.PILLION_BENCH_JSON) writeFileSync(process.env.PILLION_BENCH_JSON, JSON.stringify({ activation: times, panel: clicks, empty, active, full }));
for (const list of [times, clicks]) list.sort((a, b) => a - b);
console.log(`activation          ${times[Math.floor(times.length / 2)]} ms (median of ${times.length}: ${times.join(", ")})`);
console.log(`click to typing     ${clicks[Math.floor(clicks.length / 2)]} ms (${clicks.join(", ")})`);
console.log(`host heap, without  ${empty.toFixed(1)} MB`);
console.log(`host heap, active   ${active.toFixed(1)} MB`);
console.log(`host heap, ${entries} entries ${full.toFixed(1)} MB (${model.seen.length} requests to the model)`);
console.log(`load ${loadavg()[0].toFixed(1)}`);
await dev.stop();
await browser.close();
model.close();
rmSync(scratch, { recursive: true, force: true });
