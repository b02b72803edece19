// Writes themes.json: the theme colours that the panel uses, as a real workbench has them. Run it when the style sheet asks
// for a colour that is not there: node extension/vscode/test/webview/themes.mjs
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installation, launchBrowser, startServer, Workbench } from "../e2e/workbench.mjs";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const source = join(root, "extension/vscode/src/webview");
const text = readdirSync(source).map((f) => readFileSync(join(source, f), "utf8")).join("\n");
const colours = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];
const names = [...new Set([...text.match(/--vscode-[A-Za-z-]+/g), "--vscode-sideBar-background", ...colours.flatMap((c) => [`--vscode-terminal-ansi${c}`, `--vscode-terminal-ansiBright${c}`])])];
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const browser = await launchBrowser({ executablePath: at.chromium });
const folder = mkdtempSync(join(tmpdir(), "themes-"));
const out = {};
for (const [key, theme, file] of [["dark", "Dark Modern", "dark_modern"], ["light", "Light Modern", "light_modern"], ["hc", "Default High Contrast", "hc_black"], ["hcLight", "Default High Contrast Light", "hc_light"]]) {
  const server = await startServer({ ...at, settings: { "workbench.colorTheme": theme } });
  const bench = await Workbench.open(browser, server, folder);
  await bench.page.locator(`.monaco-workbench[class*="${file}"]`).waitFor();
  out[key] = await bench.page.evaluate((list) => {
    const style = getComputedStyle(document.querySelector(".monaco-workbench"));
    return Object.fromEntries(list.map((n) => [n, style.getPropertyValue(n).trim()]).filter(([, v]) => v !== ""));
  }, names);
  await bench.close();
  await server.stop();
}
await browser.close();
writeFileSync(fileURLToPath(new URL("./themes.json", import.meta.url)), `${JSON.stringify(out, null, 1)}\n`);
