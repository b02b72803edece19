// Bundles the extension: host (CommonJS for the extension host) and webview (one script, one style sheet).
//
//   node extension/vscode/build.mjs [--watch] [--production] [--out FOLDER]
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";
import { notices } from "./notices.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const watch = process.argv.includes("--watch");
const out = process.argv.includes("--out") ? resolve(process.argv[process.argv.indexOf("--out") + 1]) : at("dist");
const production = process.argv.includes("--production");
const common = { bundle: true, minify: production, sourcemap: production ? false : "linked", logLevel: "warning", legalComments: "none", metafile: true };

/** The editor's own module as it is, asked for once. By default every file that imports it asks again and gets a copy of all its names, which is most of what starting costs. */
const plainVscode = {
  name: "plain-vscode",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => ({
      loader: "ts",
      contents: readFileSync(path, "utf8").replace(/^import \* as vscode from "vscode";$/m, ""),
    })),
};

const targets = [
  // what every window loads at its start, and what those load that use it
  ...["extension", "main"].map((name) => ({
    ...common, entryPoints: [at(`src/${name}.ts`)], outfile: join(out, `${name}.js`), platform: "node", format: "cjs", target: "node20", external: ["vscode", "./main.js"], supported: { "dynamic-import": false }, plugins: [plainVscode], banner: { js: 'const vscode = require("vscode");' },
  })),
  ...["main.ts", "style.css"]
    .map((name) => at(`src/webview/${name}`))
    .filter((path) => existsSync(path))
    .map((path) => ({ ...common, entryPoints: [path], outdir: join(out, "webview"), platform: "browser", format: "iife", target: ["chrome120"], loader: { ".ttf": "file" }, assetNames: "[name]" })),
];

if (watch) {
  for (const target of targets) await (await context(target)).watch();
} else {
  const built = await Promise.all(targets.map((target) => build(target)));
  writeFileSync(join(out, "THIRD-PARTY-NOTICES.txt"), notices(built.map((b) => b.metafile)));
}
