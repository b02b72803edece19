// Takes the pictures of docs/images/vscode in the themes: node extension/vscode/test/pictures.mjs [light dark contrast]
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModel } from "../../../test/e2e/model.mjs";
import { root, stage } from "../stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "./e2e/workbench.mjs";
import { Pillion } from "./e2e/world.mjs";

const themes = { light: "Default Light Modern", dark: "Default Dark Modern", contrast: "Default High Contrast" };
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(themes);
const out = join(root, "docs", "images", "vscode");
mkdirSync(out, { recursive: true });
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const scratch = mkdtempSync(join(tmpdir(), "pillion-pictures-"));
const staged = stage(join(scratch, "staged"), { binary: process.env.PILLION_BIN ?? join(root, "bin", "pillion") });
const browser = await launchBrowser({ executablePath: at.chromium });
const steps = [];
const model = await startModel(steps);
const read = (filePath) => ({ tool: "read", input: { filePath } });
const edit = (filePath, oldString, newString) => ({ tool: "edit", input: { filePath, oldString, newString } });

async function world(theme, o) {
  const server = await startServer({
    ...at,
    extension: staged,
    settings: { "workbench.colorTheme": themes[theme], "editor.codeLens": true, "pillion.review.mode": o.follow ? "follow" : "" },
    machine: { "pillion.env": { PATH: `${join(root, ".cache", "bin")}:${process.env.PATH}` }, ...(o.follow ? { "pillion.permission": { edit: "allow" } } : {}) },
    env: { XDG_STATE_HOME: join(scratch, `state-${theme}`), OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "x", OPENAI_MODEL: "scripted", PILLION_MODEL: o.model },
  });
  const folder = mkdtempSync(join(scratch, "till-"));
  cpSync(join(root, "examples/go-broken"), folder, { recursive: true });
  const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, ready: '.statusbar-item[id*="pillion"]' });
  const p = new Pillion(bench, folder, { steps });
  const shot = async (name) => {
    await p.page.mouse.move(700, 880);
    await p.page.waitForTimeout(800); // for decorations that fade in
    await p.page.screenshot({ path: join(out, `${name}-${theme}.png`) });
  };
  return { p, shot, end: async () => (await bench.close(), server.stop()) };
}

for (const theme of wanted) {
  let w = await world(theme, { model: "builtin/quickfix" });
  await w.p.bench.command("Pillion: Get Started");
  await w.p.page.locator(".getting-started-category, .gettingStartedContainer").first().waitFor();
  await w.shot("walkthrough");
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("fix all errors");
  await w.p.accept(0).waitFor();
  await w.shot("review");
  await w.end();

  w = await world(theme, { model: "openai/scripted", follow: true });
  await w.p.bench.openFile("money.go");
  steps.push(read("shop/money.go"), read("shop/basket.go"), edit("shop/money.go", "package shop\n", "// Package shop is a small shop.\npackage shop\n"), edit("shop/basket.go", "package shop\n", "package shop // see money.go\n"), "The package has a comment now.");
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("say what the package does");
  await w.p.page.locator(".editor-instance .dirty-diff-glyph").first().waitFor();
  await w.p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await w.p.page.locator(".editor-instance .view-line").nth(5).click();
  await w.p.bench.command("Show Next Change");
  await w.p.page.locator('.peekview-widget [aria-label^="Undo This Change"]').first().waitFor();
  await w.shot("follow");
  await w.end();
}
await browser.close();
model.close();
rmSync(scratch, { recursive: true, force: true });
