// Reads the events of `go test -json` and says what its result hides: gotest.mjs EVENTS.json SKIPS.txt SKIPPED.log UNRELIABLE.log
// SKIPPED.log gets the skipped tests with their reasons; a reason that no regular expression of SKIPS.txt matches fails.
// UNRELIABLE.log gets the tests that failed and then passed when run again, with the output of the first failure.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

const [eventsFile, skipsFile, skippedLog, unreliableLog] = process.argv.slice(2);
const expected = readFileSync(skipsFile, "utf8").split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => new RegExp(line));
const kept = 2000; // characters of a test's last output
const output = new Map(), skipped = new Map(), failed = new Map(), passedAgain = new Set();
for (const line of readFileSync(eventsFile, "utf8").split("\n")) {
  if (!line.startsWith("{")) continue;
  const e = JSON.parse(line);
  if (!e.Test) continue;
  const id = `${e.Package.replace("github.com/pillion-dev/pillion/", "")}.${e.Test}`;
  switch (e.Action) {
    case "run": output.set(id, ""); break;
    case "output": output.set(id, `${output.get(id) ?? ""}${e.Output}`.slice(-kept)); break;
    case "skip": {
      // A skip prints "    file_test.go:12: the reason" before its result.
      const reasons = [...(output.get(id) ?? "").matchAll(/^\s+\w+\.go:\d+: (.*)$/gm)].map((m) => m[1]);
      skipped.set(id, reasons.at(-1) ?? "");
      break;
    }
    case "fail": if (!failed.has(id)) failed.set(id, output.get(id) ?? ""); break;
    case "pass": if (failed.has(id)) passedAgain.add(id); break;
  }
}
let report = "", surprises = 0;
for (const [id, reason] of [...skipped].sort()) {
  const known = expected.some((r) => r.test(reason));
  if (!known) surprises++;
  report += `${id}: ${reason || "(no reason given)"}${known ? "" : "   <- not in test/skips.txt"}\n`;
}
writeFileSync(skippedLog, report);
for (const id of passedAgain) {
  if ([...passedAgain].some((other) => other.startsWith(`${id}/`))) continue; // its subtest says it
  appendFileSync(unreliableLog, `UNRELIABLE ${id}\n${failed.get(id).replace(/^/gm, "    ").trimEnd()}\n`);
}
if (surprises > 0) {
  process.stdout.write(report.split("\n").filter((line) => line.includes("<-")).join("\n") + `\n${surprises} skipped for a reason that test/skips.txt does not name: install what is missing, or add the reason\n`);
  process.exit(1);
}
