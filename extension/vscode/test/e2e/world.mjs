// A real workbench with the extension and the real binary in it; the model is scripted over HTTP. One server and one
// browser for a file of tests, one folder and one window for each test.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { startModel } from "../../../../test/e2e/model.mjs";
import { here, makeVsix } from "../../package.mjs";
import { root, stage } from "../../stage.mjs";
import { installation, launchBrowser, startServer, Workbench } from "./workbench.mjs";

export const binary = process.env.PILLION_BIN ?? join(root, "bin", "pillion");
/** How long anything may take: a busy machine is slow, not wrong. */
const patience = 60_000; // ms

export const shots = process.env.PILLION_SHOTS ?? "";

/** Sets the world up around a file's tests. `settings`, `machine` (settings of that scope) and `env` are the server's; `binary: false` packs none, `vsix: true` makes a package
 *  and installs that, `spy: true` writes down what the sidecar hears (w.heard), `trust: true` asks whether folders are trusted. */
export function world(o = {}) {
  const w = { steps: [], scratch: "", open, heard };
  let server, browser, model, at;

  before(async () => {
    at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
    if (o.binary !== false && !existsSync(binary)) throw new Error(`${binary} is missing; run "make build" first`);
    if (!existsSync(join(root, "extension/vscode/dist/extension.js"))) execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs")], { stdio: "inherit" });
    w.scratch = realpathSync(mkdtempSync(join(tmpdir(), "pillion-vscode-")));
    model = await startModel(w.steps);
    w.model = model;
    const staged = stage(join(w.scratch, "staged"), o.binary === false ? {} : { binary: o.binary ?? binary });
    [server, browser] = await Promise.all([
      startServer({
        ...at,
        ...(o.vsix ? { vsix: makeVsix({ target: here, binary, folder: w.scratch }) } : { extension: staged }),
        settings: { "editor.codeLens": true, ...o.settings },
        machine: { ...(o.spy ? { "pillion.binary.path": spy() } : {}), ...o.machine },
        trust: o.trust,
        env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "test", OPENAI_MODEL: "scripted", PILLION_MODEL: o.model ?? "openai/scripted", XDG_STATE_HOME: join(w.scratch, "state"), ...o.env },
      }),
      launchBrowser({ executablePath: at.chromium }),
    ]);
    w.server = server;
    w.browser = browser;
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    model?.close();
    if (w.scratch) rmSync(w.scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });

  /** Opens a window on a fresh folder with these files. */
  async function open(t, files = {}, options = {}) {
    const folder = options.folder ?? mkdtempSync(join(w.scratch, "project-"));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    w.steps.length = 0;
    const bench = await Workbench.open(browser, server, options.noFolder ? "" : folder, { ready: '.statusbar-item[id*="pillion"]', timeout: patience, ...options });
    const p = new Pillion(bench, folder, w);
    t.after(async () => {
      if (!t.passed || shots) await p.shot(t.name).catch(() => {});
      if (!t.passed) console.error(pillionLog(server.data), "\nthe model heard last:", JSON.stringify(model.seen.at(-1)?.messages?.at(-1))?.slice(0, 1000));
      await bench.close();
    });
    return p;
  }
  /** The binary behind a pipe that keeps what it hears. */
  function spy() {
    const path = join(w.scratch, "spy");
    writeFileSync(path, `#!/bin/sh\ntee -a '${join(w.scratch, "heard")}' | '${o.binary ?? binary}' "$@"\n`, { mode: 0o755 });
    return path;
  }

  /** The params of all messages of a method that a sidecar has heard; waits for the nth. */
  async function heard(method, nth = 1) {
    const end = Date.now() + patience;
    for (;;) {
      const text = existsSync(join(w.scratch, "heard")) ? readFileSync(join(w.scratch, "heard"), "utf8") : "";
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
  constructor(bench, folder, w) {
    this.bench = bench;
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
    await this.bench.command("Pillion: Fix Problems in This File");
  }

  /** The lens with this text in the proposal; nth when there are several. */
  lens(text, nth = 0) {
    return this.page.locator(".codelens-decoration a, .codelens-decoration > span:not(:has(a))", { hasText: text }).locator("visible=true").nth(nth);
  }

  /** The button of the nth hunk that can still be accepted. */
  accept(nth) {
    return this.page.locator(".codelens-decoration a", { hasText: /^\s*Accept$/ }).locator("visible=true").nth(nth);
  }

  reject(nth) {
    return this.page.locator(".codelens-decoration a", { hasText: /^\s*Reject$/ }).locator("visible=true").nth(nth);
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

  /** Waits until the window's own store, which outlives it, holds these words. */
  stored(words) {
    return this.page.waitForFunction(async (wanted) => {
      for (const { name } of await indexedDB.databases()) {
        const db = await new Promise((ok, bad) => {
          const r = indexedDB.open(name);
          r.onsuccess = () => ok(r.result);
          r.onerror = () => bad(r.error);
        });
        try {
          for (const store of db.objectStoreNames) {
            const all = await new Promise((ok, bad) => {
              const r = db.transaction(store).objectStore(store).getAll();
              r.onsuccess = () => ok(r.result);
              r.onerror = () => bad(r.error);
            });
            if (all.some((x) => typeof x === "string" && x.includes(wanted))) return true;
          }
        } finally {
          db.close();
        }
      }
      return false;
    }, words, { polling: 100 });
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
