// Runs the workbench tests in one process, so that they share one browser and one server of a kind: e2e.mjs [FILE…]
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = fileURLToPath(new URL("./e2e", import.meta.url));
const files = process.argv.length > 2 ? process.argv.slice(2).map((f) => resolve(f)) : readdirSync(folder).filter((f) => f.endsWith(".test.mjs")).sort().map((f) => join(folder, f));
for (const file of files) await import(pathToFileURL(file).href);
