// Takes the pictures of docs/images/vscode in the themes: node extension/vscode/test/pictures.mjs [light dark contrast] [scene ...]
// The scenes are panels, walkthrough, review, follow, several, draft, film and agents; without one, all are taken. `agents` needs the
// OpenCode of scripts/setup-peers.sh.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startModel } from "../../../test/e2e/model.mjs";
import { root, stage } from "../stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "./e2e/workbench.mjs";
import { Pillion } from "./e2e/world.mjs";
import { panelPictures } from "./panels.mjs";

const themes = { light: "Light Modern", dark: "Dark Modern", contrast: "Default High Contrast" };
/** The theme in which every screen is kept; of the others the panel and a review. */
const whole = "dark";
const given = process.argv.slice(2).filter((word) => word in themes);
const scenes = process.argv.slice(2).filter((word) => !(word in themes));
const wanted = given.length > 0 ? given : Object.keys(themes);
/** Whether a scene was asked for. */
const takes = (scene) => scenes.length === 0 || scenes.includes(scene);
const out = join(root, "docs", "images", "vscode");
mkdirSync(out, { recursive: true });
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const scratch = mkdtempSync(join(tmpdir(), "pillion-pictures-"));
const staged = stage(join(scratch, "staged"), { binary: process.env.PILLION_BIN ?? join(root, "bin", "pillion") });
const browser = await launchBrowser({ executablePath: at.chromium });
const steps = [];
const model = await startModel(steps, { aside: "Load is Price" });
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

/** The cache of this machine: a cold one would have the pictures say that a test takes a minute. */
const goenv = { GOCACHE: execFileSync("go", ["env", "GOCACHE"], { encoding: "utf8" }).trim(), GOFLAGS: "-mod=mod" };

/** A module in which one change needs several files, a generator and the tests. */
const shop = {
  "go.mod": "module shop\n\ngo 1.22\n",
  "price.go": "package shop\n\n//go:generate sh names.sh\n\n// Load is the price of an article in cents.\nfunc Load(id string) int { return len(id) * 100 }\n",
  "names.sh": "sed -n 's/^func \\([A-Z][a-z]*\\).*/\\1/p' price.go total.go > names.txt\n",
  "total.go": "package shop\n\n// Total is the price of all.\nfunc Total(ids []string) (sum int) {\n\tfor _, id := range ids {\n\t\tsum += Load(id)\n\t}\n\treturn sum\n}\n",
  "total_test.go": "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif Total([]string{\"a\", \"bc\"}) != 300 || Load(\"a\") != 100 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
  "names.txt": "Load\nTotal\n",
};

/** Writes files into a folder and commits them. */
function commit(folder, files) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const git = (...args) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "shop");
}

async function world(theme, o) {
  const server = await startServer({
    ...at,
    extension: staged,
    settings: { "workbench.colorTheme": themes[theme], "editor.codeLens": true, "terminal.integrated.gpuAcceleration": "off", "pillion.review.mode": o.follow ? "follow" : "" },
    machine: { "pillion.env": { PATH: `${join(root, ".cache", "bin")}:${process.env.PATH}`, ...o.env }, ...(o.follow ? { "pillion.permission": { edit: "allow" } } : {}), "pillion.config": o.config ?? {} },
    env: { XDG_STATE_HOME: join(scratch, `state-${theme}`), OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "x", OPENAI_MODEL: "scripted", PILLION_MODEL: o.model },
  });
  const folder = mkdtempSync(join(scratch, o.files ? "shop-" : "till-"));
  if (o.files) commit(folder, o.files);
  else cpSync(join(root, "examples/go-broken"), folder, { recursive: true });
  const bench = await Workbench.open(browser, server, folder, { timeout: 120_000, viewport: o.viewport ?? { width: 1400, height: 900 }, ready: '.statusbar-item[id*="pillion"]' });
  const p = new Pillion(bench, folder, { steps, model });
  p.page.setDefaultTimeout(60_000);
  const picture = async () => {
    await p.page.mouse.move(700, p.page.viewportSize().height - 10);
    await p.page.waitForTimeout(800); // for decorations that fade in
    return p.page.screenshot();
  };
  const shot = async (name) => save(`${name}-${theme}`, await picture());
  return { p, shot, picture, end: async () => (await bench.close(), server.stop()) };
}

/** Saves several pictures as one, two beside each other, each under its title. */
async function strip(name, frames) {
  const page = await browser.newPage({ viewport: { width: 1640, height: 100 } });
  const cells = frames.map(({ title, png }, n) => `<figure><figcaption><b>${n + 1}</b> ${title}</figcaption><img src="data:image/png;base64,${png.toString("base64")}"></figure>`);
  await page.setContent(`<style>body{margin:0;padding:12px;display:grid;grid-template-columns:1fr 1fr;gap:16px 12px;background:#14161b;color:#e0e2ea;font:17px/1.4 sans-serif}
figure{margin:0}figcaption{margin-bottom:6px}b{color:#4ea1ff;margin-right:4px}img{width:100%;border:1px solid #3a3f4b;border-radius:4px}</style>${cells.join("")}`);
  save(name, await page.screenshot({ fullPage: true }));
  await page.close();
}

/** What a step of the model waits for: `open` lets it go on. `reached` is kept when the model has come to the step. */
function gate() {
  let open, reach;
  const opened = new Promise((ok) => (open = ok));
  const reached = new Promise((ok) => (reach = ok));
  return { open, reached, step: (step) => ({ ...step, get after() { reach(); return opened; } }) };
}

/** From the prompt to the written files: the tree is shown in a terminal, which the draft does not change. */
async function film(theme) {
  // smaller than other pictures, as it is shown at half its size
  const w = await world(theme, { model: "openai/scripted", files: shop, viewport: { width: 1120, height: 740 }, env: goenv, config: { review: "draft", repair_rounds: 0, verify: ["go test ./..."], permission: { bash: "allow", verify: "allow" } } });
  const { p } = w;
  const frames = [];
  const frame = async (title) => frames.push({ title, png: await w.picture() });
  const terminal = async (command, shows) => {
    await p.page.locator(".terminal-wrapper.active .xterm-rows", { hasText: /[$#]/ }).waitFor();
    await p.page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus();
    await p.page.keyboard.type(`clear; ${command}\n`);
    await p.page.locator(".terminal-wrapper.active .xterm-rows", { hasText: shows }).waitFor();
  };
  await p.bench.openFile("price.go");
  await p.bench.command("Terminal: Create New Terminal");
  await terminal("PS1='$ '; git status --short --branch", "##");
  const panel = await p.panel();
  const end = gate();
  await panel.input.fill("rename Load to Price, run the generator, make the tests pass");
  await frame("You ask, and go on with your own work.");
  steps.length = 0;
  steps.push({ tool: "bash", input: { command: "sed -i 's/\\bLoad\\b/Price/g' *.go", description: "Rename Load to Price" } },
    { tool: "bash", input: { command: "go generate && go test ./...", description: "Run the generator and the tests" } },
    end.step({ tool: "bash", input: { command: "cat names.txt", description: "Look at the list" } }),
    "`Load` is `Price` everywhere, the list of names is generated anew, and the tests pass.");
  await panel.input.press("Enter");
  await end.reached;
  await terminal("git status --short --branch; grep '^func' *.go", "func Load");
  await frame("It renames, generates and tests in a draft. Your files have not changed.");
  end.open();
  const card = panel.frame.locator(".dock .permission");
  await card.getByText(/Write the draft to \d files\?/).waitFor();
  await card.getByRole("button", { name: /^Review \d+ hunks/ }).click();
  await p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: /Accept all \d files/ }).locator("visible=true").first().waitFor();
  await p.bench.command("View: Hide Panel");
  await frame("One review of all that has changed, with its evidence.");
  await p.bench.command("Pillion: Accept All");
  await p.onDisk("names.txt", "Price\nTotal\n");
  await panel.idle();
  await p.bench.command("Terminal: Focus Terminal");
  await terminal("git status --short --branch; grep '^func' *.go", "func Price");
  await frame("What you have accepted is written.");
  await strip(`film-${theme}`, frames);
  await w.end();
}

/** Another maker's agent in the same panel: the menu, its turn, the review. */
async function agents(theme) {
  const settings = { model: "scripted/m", autoupdate: false, share: "disabled", snapshot: false, lsp: false, small_model: "scripted/m",
    provider: { scripted: { npm: "@ai-sdk/openai-compatible", name: "Scripted", options: { baseURL: model.url, apiKey: "none" }, models: { m: { name: "m", tool_call: true, limit: { context: 1e6, output: 1e4 } } } } } };
  const w = await world(theme, {
    model: "openai/scripted", files: shop,
    env: { PATH: `${join(root, ".cache/peers/node_modules/.bin")}:${join(root, ".cache/bin")}:${process.env.PATH}`, OPENCODE_CONFIG_CONTENT: JSON.stringify(settings), ...goenv, OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", NO_PROXY: "*" },
    config: { agents: { opencode: { keys: ["OPENCODE_CONFIG_CONTENT"] } }, repair_rounds: 0, verify: ["go test ./..."], permission: { verify: "allow" } },
  });
  const { p } = w;
  await p.bench.openFile("price.go");
  const panel = await p.panel();
  // so that the agent's name has room beside its options
  const bar = await p.page.locator(".part.sidebar").boundingBox();
  await p.page.mouse.move(bar.x + bar.width, 450);
  await p.page.mouse.down();
  await p.page.mouse.move(bar.x + bar.width + 110, 450, { steps: 5 });
  await p.page.mouse.up();
  await panel.frame.locator(".picker.p-model").click();
  const row = panel.frame.locator(".menu .menu-item", { hasText: "OpenCode" }).first();
  await row.waitFor();
  await row.scrollIntoViewIfNeeded();
  await w.shot("agents-menu");
  await row.click();
  await panel.frame.locator(".picker.p-model", { hasText: "OpenCode" }).waitFor();
  const end = gate();
  steps.length = 0;
  await panel.say("rename Load to Price, run the generator, make the tests pass", [
    { tool: "read", input: { filePath: join(p.folder, "price.go") } },
    { tool: "edit", input: { filePath: join(p.folder, "price.go"), oldString: "Load", newString: "Price", replaceAll: true } },
    { tool: "bash", input: { command: "sed -i 's/\\bLoad\\b/Price/g' total.go total_test.go", description: "Rename the uses" } },
    { tool: "bash", input: { command: "go generate && go test ./...", description: "Run the generator and the tests" } },
    end.step({ tool: "bash", input: { command: "cat names.txt", description: "Look at the list" } }),
    "`Load` is `Price` everywhere, the list of names is generated anew, and the tests pass."]);
  await end.reached;
  await w.shot("agents-turn");
  end.open();
  const card = panel.frame.locator(".dock .permission");
  await card.getByText(/Write the draft to \d files\?/).waitFor();
  await card.getByRole("button", { name: /^Review \d+ hunks/ }).click();
  await p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: /Accept all \d files/ }).locator("visible=true").first().waitFor();
  await w.shot("agents-review");
  await w.end();
}

/** The review of a proposal, in the whole theme behind the walkthrough. */
async function review(theme) {
  const w = await world(theme, { model: "builtin/quickfix" });
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
}

/** Changes that are written at once. */
async function follow(theme) {
  const w = await world(theme, { model: "openai/scripted", follow: true });
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
}

/** A proposal of several files. */
async function several(theme) {
  const w = await world(theme, { model: "openai/scripted", config: { tools: { apply_patch: true } } });
  steps.push({ tool: "lsp", input: { operation: "diagnostics" } }, read("shop/money.go"), read("store/store.go"), { tool: "apply_patch", input: { patchText: patch } }, "Done.");
  await w.p.bench.command("Pillion: Open Panel");
  await w.p.say("say in the comments what is owed and what is stored");
  await w.p.accept(0).waitFor();
  await w.p.tab("Pillion proposes").click();
  await w.p.bench.command("Pillion: Review All Files Together");
  await w.p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: "Accept all 2 files" }).locator("visible=true").first().waitFor();
  await w.shot("several");
  await w.end();
}

/** The proposal of a draft. */
async function draft(theme) {
  const verify = ["gofmt -l shop store", "go vet ./store"];
  const w = await world(theme, { model: "openai/scripted", config: { review: "draft", repair_rounds: 0, verify, permission: { bash: "allow", verify: "allow" } } });
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

for (const theme of wanted) {
  if (takes("panels")) await panelPictures(browser, theme, (name, png) => save(`${name}-${theme}`, png));
  if (takes("review") || takes("walkthrough")) await review(theme);
  if (theme !== whole) continue;
  if (takes("follow")) await follow(theme);
  if (takes("several")) await several(theme);
  if (takes("draft")) await draft(theme);
  if (takes("film")) await film(theme);
  if (takes("agents")) await agents(theme);
}
await browser.close();
model.close();
rmSync(scratch, { recursive: true, force: true });
