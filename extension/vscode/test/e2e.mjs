// Runs the workbench tests, a file after the other: node e2e.mjs [FILE…]
// A real workbench in a real browser now and then misses a beat on a busy machine. A file that fails is run once more, and
// both runs are shown; one that fails twice fails the run.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "e2e");
const files = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(folder).filter((f) => f.endsWith(".test.mjs")).sort().map((f) => join(folder, f));

const run = (file) => spawnSync(process.execPath, ["--test", "--test-concurrency=1", "--test-reporter=spec", file], { stdio: "inherit" }).status === 0;

let passed = 0;
const again = [];
const failed = [];
for (const file of files) {
  if (run(file)) passed++;
  else again.push(file);
}
for (const file of again) {
  console.log(`\n--- once more: ${file}`);
  if (run(file)) {
    passed++;
    console.log(`--- passed at the second try: ${file}`);
  } else failed.push(file);
}
console.log(`${passed} passed, ${failed.length} failed`);
for (const file of failed) console.log(`FAIL ${file}`);
process.exit(failed.length > 0 ? 1 : 0);
