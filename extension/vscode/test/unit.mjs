// Bundles every test/unit/*.test.ts and runs them with node's own test runner. Tests of the pure parts: no DOM, and of vscode what unit/vscode.ts plays.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL("./unit", import.meta.url));
const out = fileURLToPath(new URL("../dist/test", import.meta.url));
const wanted = process.argv.slice(2);
const entryPoints = readdirSync(here)
  .filter((name) => /\.test\.(ts|mjs)$/.test(name) && (wanted.length === 0 || wanted.some((w) => name.includes(w))))
  .map((name) => join(here, name));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({ entryPoints, outdir: out, bundle: true, platform: "node", format: "esm", outExtension: { ".js": ".mjs" }, sourcemap: "inline", logLevel: "warning", logOverride: { "import-is-undefined": "silent" }, packages: "external", alias: { vscode: join(here, "vscode.ts") } });
const files = readdirSync(out).filter((name) => name.endsWith(".test.mjs")).map((name) => join(out, name));
const child = spawn(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
child.on("exit", (code) => (process.exitCode = code ?? 1));
