// The panel's page in a headless Chromium, as VS Code would show it: the same page, policy, script and theme variables, with
// a host that a test plays. Every request that leaves the page is counted.
import { readFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const at = (p) => fileURLToPath(new URL(p, import.meta.url));
const origin = "http://panel.test";
const themes = JSON.parse(readFileSync(at("./themes.json"), "utf8"));
const common = {
  "--vscode-font-family": "system-ui, 'Ubuntu', 'DejaVu Sans', sans-serif", "--vscode-font-size": "13px", "--vscode-editor-font-family": "'DejaVu Sans Mono', monospace",
};
const git = {
  dark: { "--vscode-gitDecoration-addedResourceForeground": "#81b88b", "--vscode-gitDecoration-deletedResourceForeground": "#c74e39", "--vscode-gitDecoration-modifiedResourceForeground": "#e2c08d" },
  light: { "--vscode-gitDecoration-addedResourceForeground": "#587c0c", "--vscode-gitDecoration-deletedResourceForeground": "#ad0707", "--vscode-gitDecoration-modifiedResourceForeground": "#895503" },
};
const kinds = { dark: "vscode-dark", light: "vscode-light", hc: "vscode-high-contrast", hcLight: "vscode-high-contrast-light" };

/** Builds the webview (minified, as it ships) and the page's HTML; once for each test file. */
export async function buildPanel() {
  const out = mkdtempSync(path.join(tmpdir(), "panel-"));
  const web = ["main.ts", "style.css"].map((f) => at(`../../src/webview/${f}`));
  await build({ entryPoints: web, outdir: out, bundle: true, minify: true, platform: "browser", format: "iife", target: ["chrome120"], loader: { ".ttf": "file" }, assetNames: "[name]", logLevel: "warning" });
  await build({ entryPoints: [at("../../src/host/html.ts"), at("../../src/common/session.ts")], outdir: path.join(out, "lib"), outbase: at("../../src"), bundle: true, platform: "node", format: "esm", outExtension: { ".js": ".mjs" }, logLevel: "warning" });
  return { out, html: await import(path.join(out, "lib/host/html.mjs")), session: await import(path.join(out, "lib/common/session.mjs")) };
}

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
  });
}

/** Opens the panel. `sent` is what it told the host; `requests` what it fetched beside itself; `errors` what went wrong in it. */
export async function openPanel(browser, panel, o = {}) {
  const context = await browser.newContext({ viewport: { width: o.width ?? 420, height: o.height ?? 800 }, reducedMotion: o.motion ? "no-preference" : "reduce" });
  context.setDefaultTimeout(120_000); // a busy machine is slow, not wrong
  const page = await context.newPage();
  const sent = [];
  const requests = [];
  const errors = [];
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  page.on("request", (r) => requests.push(r.url()));
  await page.exposeFunction("hostHears", (m) => void sent.push(m));
  const theme = { ...common, ...themes[o.theme ?? "dark"], ...git[/light/i.test(o.theme ?? "dark") ? "light" : "dark"] };
  await page.addInitScript(({ theme, kind }) => {
    globalThis.acquireVsCodeApi = () => ({ postMessage: (m) => globalThis.hostHears(m) });
    document.addEventListener("DOMContentLoaded", () => {
      for (const [k, v] of Object.entries(theme)) document.documentElement.style.setProperty(k, v);
      document.body.className = kind;
      document.body.style.backgroundColor = "var(--vscode-sideBar-background)";
    });
  }, { theme, kind: kinds[o.theme ?? "dark"] });
  await context.route("**/*", (route) => {
    const url = new URL(route.request().url());
    if (url.origin !== origin) return route.abort();
    if (url.pathname === "/") return route.fulfill({ contentType: "text/html", body: panel.html.panelHtml({ script: `${origin}/main.js`, style: `${origin}/style.css`, source: origin, nonce: "abc123", place: "here" }) });
    return route.fulfill({ path: path.join(panel.out, path.basename(url.pathname)) });
  });
  if (process.env.PILLION_THROTTLE) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: Number(process.env.PILLION_THROTTLE) });
  await page.goto(`${origin}/`);
  await page.locator(".composer").waitFor();
  requests.splice(0);
  return {
    page, sent, requests, errors,
    /** Posts a message and waits until the page has taken it: posted messages wait behind what the browser is asked to do. */
    tell: (m) => page.evaluate((x) => new Promise((taken) => {
      window.addEventListener("message", () => taken(), { once: true });
      window.postMessage(x, "*");
    }), m),
    /** Waits until the panel said something of this type. */
    async heard(type, test = () => true) {
      for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((r) => setTimeout(r, 10))) {
        const m = sent.find((x) => x.type === type && test(x));
        if (m) return m;
      }
      throw new Error(`the panel never said ${type}; it said ${JSON.stringify(sent.slice(-8))}`);
    },
    /** Waits until the page has drawn what it was told: an entry a frame on a slow machine, and each one's size moves the next. */
    settle: () => page.evaluate(() => new Promise((done) => {
      let quiet = 0; // frames in which nothing changed or scrolled
      const changed = () => (quiet = 0);
      const changes = new MutationObserver(changed);
      changes.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      document.addEventListener("scroll", changed, { capture: true, passive: true });
      const frame = () => {
        if (++quiet <= 3) return void requestAnimationFrame(() => setTimeout(frame));
        changes.disconnect();
        document.removeEventListener("scroll", changed, { capture: true });
        done();
      };
      frame();
    })),
    close: () => context.close(),
  };
}
