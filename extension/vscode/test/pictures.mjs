// Takes the pictures of docs/images/vscode in the themes: node extension/vscode/test/pictures.mjs [light dark contrast]
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModel } from "../../../test/e2e/model.mjs";
import { root, stage } from "../stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "./e2e/workbench.mjs";
import { Pillion } from "./e2e/world.mjs";
import { panelPictures } from "./panels.mjs";

const themes = { light: "Light Modern", dark: "Dark Modern", contrast: "Default High Contrast" };
/** The theme in which every screen is kept; of the others the panel and a review. */
const whole = "dark";
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

const patch = `*** Begin Patch
*** Update File: shop/money.go
@@
-// Cents is an amount of money.
+// Cents is an amount of money; what is owed is negative.
*** Update File: store/store.go
@@
-// Store keeps receipts.
+// Store keeps receipts by their number, which starts at one.
*** End Patch`;

function save(name, png) {
  const file = join(out, `${name}.png`);
  writeFileSync(file, png);
  spawnSync("convert", [file, "-strip", "+dither", "-colors", "250", "-define", "png:compression-level=9", file]); // smaller, where there is ImageMagick
}

async function world(theme, o) {
  const server = await startServer({
    ...at,
    extension: staged,
    settings: { "workbench.colorTheme": themes[theme], "editor.codeLens": true, "pillion.review.mode": o.follow ? "follow" : "" },
    machine: { "pillion.env": { PATH: `${join(root, ".cache", "bin")}:${process.env.PATH}` }, ...(o.follow ? { "pillion.permission": { edit: "allow" } } : {}), "pillion.config": o.config ?? {} },
    env: { XDG_STATE_HOME: join(scratch, `state-${theme}`), OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "x", OPENAI_MODEL: "scripted", PILLION_MODEL: o.model },
  });
  const folder = mkdtempSync(join(scratch, "till-"));
  cpSync(join(root, "examples/go-broken"), folder, { recursive: true });
  const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, viewport: { width: 1400, height: 900 }, ready: '.statusbar-item[id*="pillion"]' });
  const p = new Pillion(bench, folder, { steps });
  p.page.setDefaultTimeout(60_000);
  const shot = async (name) => {
    await p.page.mouse.move(700, 890);
    await p.page.waitForTimeout(800); // for decorations that fade in
    save(`${name}-${theme}`, await p.page.screenshot());
  };
  return { p, shot, end: async () => (await bench.close(), server.stop()) };
}

for (const theme of wanted) {
  await panelPictures(browser, theme, (name, png) => save(`${name}-${theme}`, png));
  let w = await world(theme, { model: "builtin/quickfix" });
  if (theme === whole) {
    await w.p.bench.command("Pillion: Get Started");
    await w.p.page.locator(".getting-started-category, .gettingStartedContainer").first().waitFor();
    await w.p.bench.command("View: Toggle Primary Side Bar Visibility"); // room for the step's own page beside it
    await w.p.bench.webview().locator("h1, h2, p, li").first().waitFor();
    await w.shot("walkthrough");
  }
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("fix all errors");
  await w.p.accept(0).waitFor();
  await w.shot("review");
  await w.end();
  if (theme !== whole) continue;

  w = await world(theme, { model: "openai/scripted", follow: true });
  await w.p.bench.openFile("money.go");
  steps.push(
    read("shop/money.go"),
    read("shop/basket.go"),
    edit("shop/money.go", "// Cents is an amount of money.\n", "// Cents is an amount of money; what is owed is negative.\n"),
    edit("shop/basket.go", "// Add puts n pieces of a good into the basket.\n", "// Add puts n pieces of a good into the basket. Pieces of one price share a line.\n"),
    "Both comments say more now.",
  );
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("make the comments of the shop more precise");
  await w.p.bench.webview("pillion-dev.pillion").getByText("Both comments say more now.").first().waitFor();
  await w.p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await w.p.page.locator(".editor-instance .dirty-diff-glyph").first().click({ position: { x: 1, y: 8 } });
  await w.p.page.locator('.peekview-widget [aria-label^="Undo This Change"]').first().waitFor();
  await w.shot("follow");
  await w.end();

  w = await world(theme, { model: "openai/scripted", config: { tools: { apply_patch: true } } });
  steps.push({ tool: "lsp", input: { operation: "diagnostics" } }, read("shop/money.go"), read("store/store.go"), { tool: "apply_patch", input: { patchText: patch } }, "Done.");
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("say in the comments what is owed and what is stored");
  await w.p.accept(0).waitFor();
  await w.p.tab("Pillion proposes").click();
  await w.p.bench.command("Pillion: Review All Files Together");
  await w.p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: "Accept all 2 files" }).locator("visible=true").first().waitFor();
  await w.shot("several");
  await w.end();

  const verify = ["gofmt -l shop store", "go vet ./store"];
  w = await world(theme, { model: "openai/scripted", config: { review: "draft", repair_rounds: 0, verify, permission: { bash: "allow", verify: "allow" } } });
  steps.length = 0; // the turn before was not ended
  steps.push({ tool: "bash", input: { command: "sed -i 's/amount of money\\./amount of money; what is owed is negative./' shop/money.go", description: "Say what is owed" } },
    { tool: "bash", input: { command: "sed -i 's/keeps receipts\\./keeps receipts by their number./' store/store.go", description: "Say how receipts are kept" } }, "Both comments say more now.");
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("say in the comments what is owed and how receipts are kept");
  const card = w.p.bench.webview("pillion-dev.pillion").locator(".dock .permission");
  await card.getByText("Write the draft to 2 files?").waitFor();
  await card.getByRole("button", { name: "Review 2 hunks" }).click();
  await w.p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: "Accept all 2 files" }).locator("visible=true").first().waitFor();
  await w.shot("draft");
  await w.end();
}
await browser.close();
model.close();
rmSync(scratch, { recursive: true, force: true });
