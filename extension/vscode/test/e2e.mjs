// Runs the workbench tests in one process, so that they share one browser and one server of a kind: e2e.mjs [FILE…]
// PILLION_SHARD=1/2 takes the first half of the files and 2/2 the rest; both can run at the same time.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { part } from "./shard.mjs";

const folder = fileURLToPath(new URL("./e2e", import.meta.url));
const all = () => readdirSync(folder).filter((f) => f.endsWith(".test.mjs")).sort().map((f) => join(folder, f));
const tests = (file) => readFileSync(file, "utf8").match(/^ *(\w+\.)?test\(/gm)?.length ?? 0;
const files = process.argv.length > 2 ? process.argv.slice(2).map((f) => resolve(f)) : part(all().map((file) => [file, tests(file)]), process.env.PILLION_SHARD ?? "1/1");
for (const file of files) await import(pathToFileURL(file).href);
