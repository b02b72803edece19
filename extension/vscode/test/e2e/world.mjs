// A real workbench with the extension and the real binary in it; the model is scripted over HTTP. One browser, and one server of
// a kind, for all tests of a process; one folder and one window for each test.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import nodeTest, { after } from "node:test";
import { startModel } from "../../../../test/e2e/model.mjs";
import { here, makeVsix } from "../../package.mjs";
import { root, stage } from "../../stage.mjs";
import { installation, launchBrowser, newContext, startServer, Workbench } from "./workbench.mjs";

export const binary = process.env.PILLION_BIN ?? join(root, "bin", "pillion");
/** How long anything may take: a busy machine is slow, not wrong. */
const patience = Number(process.env.PILLION_PATIENCE ?? 60_000); // ms
/** How often a test may be run until it passes: PILLION_ONCE is for finding out which ones need that. */
const tries = process.env.PILLION_ONCE ? 1 : 3;

export const shots = process.env.PILLION_SHOTS ?? "";

/** What all worlds share. */
let shared;
let ending = false;

async function start() {
  if (!existsSync(binary)) throw new Error(`${binary} is missing; run "make build" first`);
  if (!existsSync(join(root, "extension/vscode/dist/extension.js"))) execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs")], { stdio: "inherit" });
  const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "pillion-vscode-")));
  const steps = [];
  const [model, browser] = await Promise.all([startModel(steps), launchBrowser({ executablePath: at.chromium })]);
  return { at, scratch, steps, model, browser, servers: new Map() };
}

async function end() {
  const all = await shared?.catch(() => undefined); // its tests have said why
  if (!all) return;
  const { browser, servers, model, scratch } = all;
  const ends = [browser.close(), ...[...servers.values()].map(async (s) => (await s).server.stop()), model.close()];
  for (const e of await Promise.allSettled(ends)) if (e.status === "rejected") console.error("at the end:", e.reason);
  try {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch (error) {
    console.error("at the end:", error); // what a test found counts, not what a language server writes while it is ended
  }
}

/** Notes a test that passed only when it was run again, with its first failure, for scripts/verdict.sh. */
function unreliable(name, failure) {
  const cache = join(root, ".cache");
  mkdirSync(cache, { recursive: true });
  appendFileSync(join(cache, "unreliable.log"), `UNRELIABLE vscode: ${name}\n${failure.split("\n").slice(0, 8).map((l) => `    ${l}\n`).join("")}`);
}

/** A server of a kind. `vsix: true` makes a package and installs that; `trust: true` asks whether folders are trusted; `driver: true` lets a test run code in the extension host (`host` of open). */
async function serverOf({ vsix = false, trust = false, driver = false }) {
  const { at, scratch, model } = await shared;
  const server = await startServer({
    ...at,
    ...(vsix ? { vsix: makeVsix({ target: here, binary, folder: scratch }) } : { extension: stage(join(scratch, "staged"), { binary }) }),
    settings: { "editor.codeLens": true, "terminal.integrated.gpuAcceleration": "off", ...(trust ? { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" } : {}) },
    trust,
    args: driver ? ["--vscode-option", "enable-smoke-test-driver"] : [],
    env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "test", OPENAI_MODEL: "scripted", XDG_STATE_HOME: join(scratch, "state"), PATH: withoutPillion(process.env.PATH) },
  });
  return { server };
}

/** A profile for the windows of one server. */
async function contextIn(browser, { driver = false }) {
  const context = await newContext(browser);
  if (driver) for (const name of ["codeAutomationLog", "codeAutomationExit"]) await context.exposeFunction(name, () => {});
  return context;
}

/** The browser; one that ended by itself is followed by another. */
async function browserOf(s) {
  if (!s.browser.isConnected()) {
    console.error("the browser ended by itself; another one is started");
    s.next ??= launchBrowser({ executablePath: s.at.chromium }).then((b) => (s.browser = b)).finally(() => (s.next = undefined));
    await s.next;
  }
  return s.browser;
}

/** A Pillion that is installed here is none of these tests' business. */
function withoutPillion(path) {
  return (path ?? "").split(":").filter((f) => !existsSync(join(f, "pillion"))).join(":");
}

/**
 * The world that a file's tests are in. `w.test` declares a test; one that fails is run again in a window of its own, and
 * said. `limit` is how long one try may take, in ms. `machine` are settings of that scope, `settings` those of the folder; `spy: true` writes down what the sidecar hears (w.heard).
 */
export function world(o = {}) {
  if (!ending) after(end);
  ending = true;
  const w = { open, heard, test, before, steps: undefined, model: undefined, scratch: "", server: undefined, browser: undefined };
  let context, windows = 0;

  function test(name, ...rest) {
    const run = rest.pop();
    const { limit = 120_000, ...options } = rest.pop() ?? {};
    nodeTest(name, { timeout: tries * limit + 60_000, ...options }, async (t) => {
      const once = async (n) => {
        await before();
        const cleanup = [];
        const own = { name: n > 1 ? `${name} (again)` : name, passed: false, after: (f) => cleanup.push(f) };
        let timer;
        const late = new Promise((_, bad) => { timer = setTimeout(() => bad(new Error(`not done within ${limit / 1000} s`)), limit); });
        try {
          await Promise.race([run(own), late]); // a try that is late fails for good when its window is closed
          own.passed = true;
        } finally {
          clearTimeout(timer);
          for (const f of cleanup.reverse()) await f();
        }
      };
      let first = "";
      for (let n = 1; ; n++) {
        try {
          await once(n);
          if (n === 1) return;
          unreliable(name, first);
          return t.diagnostic(`passed at try ${n}`);
        } catch (error) {
          const said = error instanceof Error ? error.stack : String(error);
          first ||= said;
          console.error(`--- try ${n} of ${name}: ${said}`);
          if (n === tries) throw error;
        }
      }
    });
  }

  async function before() {
    const over = w.server?.ended();
    if (w.server && !over && w.browser.isConnected()) return;
    shared ??= start();
    const s = await shared;
    const kind = JSON.stringify({ vsix: o.vsix, trust: o.trust, driver: o.driver });
    // nor one that ended by itself; another world may have begun the next one already
    if (over && (await s.servers.get(kind))?.server === w.server) {
      console.error(over);
      s.servers.delete(kind);
      await w.server.stop();
    }
    // one that did not start (on a busy machine code-server gives up by itself) must not fail all tests after it
    if (!s.servers.has(kind)) s.servers.set(kind, serverOf(o).catch((error) => (s.servers.delete(kind), Promise.reject(error))));
    const own = await s.servers.get(kind);
    const browser = await browserOf(s);
    if (own.browser !== browser) Object.assign(own, { browser, context: contextIn(browser, o) });
    context = await own.context;
    Object.assign(w, { server: own.server, browser, model: s.model, steps: s.steps, scratch: s.scratch });
  }

  /** Opens a window on a fresh folder with these files. */
  async function open(t, files = {}, options = {}) {
    const folder = options.folder ?? mkdtempSync(join(w.scratch, "project-"));
    const settings = { ...o.settings, ...options.settings };
    if (Object.keys(settings).length > 0) files = { ...files, ".vscode/settings.json": JSON.stringify(settings) };
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const spied = join(w.scratch, `heard-${++windows}-${Date.now()}`);
    if (o.spy) w.spied = spied;
    writeFileSync(join(w.server.data, "Machine", "settings.json"), JSON.stringify({ "pillion.model": "openai/scripted", ...(o.spy ? { "pillion.binary.path": spy(spied) } : {}), ...o.machine, ...options.machine }));
    if (options.host) {
      const remote = (path) => `vscode-remote://${new URL(w.server.url).host}${path}`;
      options.payload = [["extensionDevelopmentPath", remote(join(w.scratch, "staged"))], ["extensionTestsPath", remote(join(folder, options.host))]];
    }
    w.steps.length = 0;
    const old = new Set(sidecars());
    const bench = await Workbench.open(w.browser, w.server, options.noFolder ? "" : folder, { context, ready: '.statusbar-item[id*="pillion"]', timeout: patience, ...options });
    const p = new Pillion(bench, folder, w, () => sidecars().filter((pid) => !old.has(pid)));
    t.after(async () => {
      if (!t.passed || shots) await p.shot(t.name).catch(() => {});
      if (!t.passed) console.error(pillionLog(w.server.data), "\nthe model heard last:", JSON.stringify(w.model.seen.at(-1)?.messages?.at(-1))?.slice(0, 1000));
      await bench.close();
    });
    return p;
  }

  /** The binary behind a pipe that keeps what it hears. */
  function spy(heard) {
    const path = `${heard}.sh`;
    writeFileSync(path, `#!/bin/sh\ntee -a '${heard}' | '${binary}' "$@"\n`, { mode: 0o755 });
    return path;
  }

  /** The sidecars of this server: found by their path, which is in the server's own home. */
  function sidecars() {
    const own = join(w.server.home, "extensions");
    return readdirSync("/proc").filter((n) => /^\d+$/.test(n)).filter((n) => {
      try {
        return readFileSync(`/proc/${n}/cmdline`, "utf8").startsWith(own);
      } catch {
        return false; // it ended while we looked
      }
    }).map(Number);
  }
  w.sidecars = sidecars;

  /** The params of all messages of a method that the sidecars of the last window have heard; waits for the nth. */
  async function heard(method, nth = 1) {
    const end = Date.now() + patience;
    for (;;) {
      const text = existsSync(w.spied) ? readFileSync(w.spied, "utf8") : "";
      const all = text.split("\n").filter((l) => l.endsWith("}") && l.includes(`"${method}"`)).map((l) => JSON.parse(l)).filter((m) => m.method === method).map((m) => m.params);
      if (all.length >= nth) return all;
      if (Date.now() > end) throw new Error(`the sidecar has heard ${method} ${all.length} times, wanted ${nth}`);
      await new Promise((ok) => setTimeout(ok, 50)); // the disk tells nobody
    }
  }
  return w;
}

/** What the extension logged, for a test that failed. */
function pillionLog(data) {
  const logs = readdirSync(join(data, "logs"), { recursive: true })
    .filter((f) => /Pillion\.log$|exthost\.log$/.test(f))
    .map((f) => [statSync(join(data, "logs", f)).mtimeMs, f])
    .sort(([a], [b]) => b - a)
    .slice(0, 2)
    .map(([, f]) => f);
  return logs.map((f) => `== ${f}\n${readFileSync(join(data, "logs", f), "utf8").split("\n").filter((l) => /illion|rror/.test(l)).slice(-30).join("\n")}`).join("\n");
}

/** A window, with the words of the tests. */
export class Pillion {
  constructor(bench, folder, w, sidecars) {
    this.bench = bench;
    /** The sidecars that this window started. */
    this.sidecars = sidecars;
    this.page = bench.page;
    this.folder = folder;
    this.world = w;
  }

  read(name) {
    return readFileSync(join(this.folder, name), "utf8");
  }

  /** Asks through a command that needs no panel; the scripted model does not read it. */
  async ask(steps) {
    this.world.steps.push(...steps);
    const ask = () => this.bench.command("Pillion: Fix Problems in This File");
    await ask();
    // On a very busy machine the palette may close without running what was clicked; the command opens the panel.
    await this.page.locator('iframe.webview[src*="extensionId=pillion-dev.pillion"]').first().waitFor({ state: "attached", timeout: 40_000 }).catch(ask);
    await this.bench.webview("pillion-dev.pillion").locator("textarea.input:focus").waitFor({ timeout: 15_000 }).catch(() => {}); // it takes the focus when it is there, and keys that are pressed later stay where they belong; on a busy machine the proposal may have taken it already
  }

  /** The lens with this text in the proposal, its letters as they are: "Rejected" is not "If rejected". `nth` when there are several. */
  lens(text, nth = 0) {
    const hasText = typeof text === "string" ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/ +/g, "\\s+")) : text;
    return this.page.locator(".codelens-decoration a, .codelens-decoration > span:not(:has(a))", { hasText }).locator("visible=true").nth(nth);
  }

  /** The button of the nth hunk that can still be accepted. */
  accept(nth) {
    return this.page.locator(".codelens-decoration a", { hasText: /^\s*Accept$/ }).locator("visible=true").nth(nth);
  }

  reject(nth) {
    return this.page.locator(".codelens-decoration a", { hasText: /^\s*Reject$/ }).locator("visible=true").nth(nth);
  }

  /** Waits until the keys of a review work: the proposal has the focus, and the extension knows. */
  async keys() {
    await this.page.locator(".editor.modified .monaco-editor.focused, .modified-in-monaco-diff-editor.focused, .editor.modified .focused").first().waitFor();
    await this.page.locator('.editor-actions .action-label[aria-label^="Accept File"]').first().waitFor();
  }

  /** Waits until a text editor outside of proposals has the focus. */
  async typing() {
    await this.page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
  }

  /** Repeats what checks a state that tells nobody when it changes, until it holds. */
  async holds(check) {
    for (const end = Date.now() + patience; ; await this.page.waitForTimeout(50)) {
      try {
        return await check();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  }

  /** Opens the panel. `say` writes a message and sends it with Enter; `told` is what the model heard of it in all. */
  async panel() {
    await this.bench.command("Pillion: Open Panel");
    const frame = this.bench.webview("pillion-dev.pillion");
    const input = frame.locator("textarea.input");
    await input.waitFor();
    await frame.locator(".picker.p-model").waitFor();
    const { steps, model } = this.world;
    return {
      frame, input,
      async say(text, then = []) {
        steps.push(...then);
        await input.fill(text);
        await input.press("Enter");
      },
      idle: () => frame.locator(".send").waitFor(),
      answer: (text) => frame.locator(".md", { hasText: text }).first().waitFor(),
      /** What the last request holds. */
      told: () => JSON.stringify(model.seen.at(-1).messages),
      /** Pastes a file into the composer. */
      paste: (name, type, base64) => input.evaluate((el, f) => {
        const files = new DataTransfer();
        files.items.add(new File([Uint8Array.from(atob(f.base64), (x) => x.charCodeAt(0))], f.name, { type: f.type }));
        el.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true }));
      }, { name, type, base64 }),
      /** Chooses what @ finds. */
      async mention(query, name) {
        await input.pressSequentially(query);
        await frame.locator(".suggest .menu-item", { has: frame.getByText(name, { exact: true }) }).first().click();
      },
    };
  }

  /** Waits until a draft with these words is on the disk. */
  async stored(words) {
    const folder = join(this.world.server.data, "User", "workspaceStorage");
    for (const end = Date.now() + patience; Date.now() < end; await this.page.waitForTimeout(50)) { // the disk tells nobody
      const drafts = existsSync(folder) ? readdirSync(folder).map((f) => join(folder, f, "pillion-dev.pillion", "draft.json")) : [];
      if (drafts.some((f) => existsSync(f) && readFileSync(f, "utf8").includes(words))) return;
    }
    throw new Error(`no draft holds "${words}"`);
  }

  /** Types into the panel's composer and sends it. */
  async say(text) {
    const panel = this.bench.webview("pillion-dev.pillion");
    const box = panel.locator("textarea").first();
    await box.waitFor();
    await panel.locator("button", { hasText: /quick fix|scripted/i }).first().waitFor(); // the session is there, and with it its draft
    await box.fill(text);
    await box.press("Enter");
  }

  /** Loads the window again, as "Reload Window" does. */
  async reload() {
    await this.page.reload();
    await this.page.locator('.statusbar-item[id*="pillion"]').waitFor();
  }

  status(text) {
    return this.page.locator(".statusbar-item", { hasText: text }).first();
  }

  tab(text) {
    return this.page.locator(".tab", { hasText: text }).first();
  }

  /** Waits until a file's text on disk is what it should be. */
  async onDisk(name, wanted, timeout = patience) {
    const end = Date.now() + timeout;
    let text;
    do {
      text = existsSync(join(this.folder, name)) ? this.read(name) : undefined;
      if (typeof wanted === "function" ? wanted(text) : text === wanted) return text;
      await this.page.waitForTimeout(50); // the disk tells nobody
    } while (Date.now() < end);
    throw new Error(`${name} is ${JSON.stringify(text)}, wanted ${wanted}`);
  }

  async shot(name) {
    const folder = shots || join(root, ".scratch", "shots");
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name.replace(/[^\w-]+/g, "-").slice(0, 80)}.png`) });
  }
}
