// Runs the workbench tests in one process, so that they share one browser and one server of a kind: e2e.mjs [FILE…]
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = fileURLToPath(new URL("./e2e", import.meta.url));
const files = process.argv.length > 2 ? process.argv.slice(2).map((f) => resolve(f)) : readdirSync(folder).filter((f) => f.endsWith(".test.mjs")).sort().map((f) => join(folder, f));
// The first test lasts until all files are loaded: with --test-force-exit the process ends as soon as the tests known so far are done, which is
// at once where the first file's are skipped.
let loaded;
test("every file of tests is loaded", () => new Promise((ok) => (loaded = ok)));
for (const file of files) await import(pathToFileURL(file).href);
loaded();
