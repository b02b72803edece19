/** The commands that were run on a draft before it was proposed, checked and limited so that they can be shown. */
import { list, number, text, tree, word } from "./narrow";
import type { EvidenceView, TestView } from "./view";

/** The limits of a card; for a larger test suite the person reads its own output. */
const mostCommands = 20;
const mostTests = 5000;
/** Characters of output that are kept of a command or a test: the end, where the failure is. */
const mostOutput = 8 << 10;

const statuses = ["passed", "failed", "notRun", "skipped"] as const;

/** An unknown status counts as "not run", so that it never looks like a success. */
export function readEvidence(raw: unknown): EvidenceView[] {
  return list(Array.isArray(raw) ? raw : tree(raw)?.["checks"]).slice(0, mostCommands).flatMap((x): EvidenceView[] => {
    const e = tree(x);
    const command = text(e?.["command"]);
    if (!e || command === undefined) return [];
    return [{
      command,
      status: word(e["status"], statuses, "notRun"),
      exitCode: number(e["exitCode"]),
      seconds: number(e["seconds"]),
      reason: text(e["reason"]),
      output: end(text(e["output"])),
      stale: e["stale"] === true,
      tests: list(e["tests"]).slice(0, mostTests).flatMap(test),
    }];
  });
}

function test(raw: unknown): TestView[] {
  const t = tree(raw);
  const name = text(t?.["name"]);
  if (!t || name === undefined) return [];
  const before = text(t["before"]);
  return [{
    name,
    suite: text(t["suite"]) ?? "",
    status: word(t["status"], statuses, "notRun"),
    seconds: number(t["seconds"]),
    output: end(text(t["output"])),
    before: before === undefined ? undefined : word(before, statuses, "notRun"),
  }];
}

function end(output: string | undefined): string | undefined {
  const s = output?.replace(/\n*<bash_metadata>\n[\s\S]*$/, ""); // notes for the model: the card shows the exit code already
  if (s === undefined || s.length <= mostOutput) return s;
  return `…${s.slice(s.indexOf("\n", s.length - mostOutput))}`;
}

/** How many tests have each status, the worst first: "1 failed, 13 passed". */
export function countTests(tests: readonly TestView[]): string {
  const n = (status: TestView["status"], word: string) => {
    const count = tests.filter((t) => t.status === status).length;
    return count > 0 ? [`${String(count)} ${word}`] : [];
  };
  return [...n("failed", "failed"), ...n("passed", "passed"), ...n("skipped", "skipped"), ...n("notRun", "not run")].join(", ");
}

/** A summary in a few words, for lenses and screen readers. "" if there was nothing to run. */
export function evidenceSummary(all: readonly EvidenceView[]): string {
  if (all.length === 0) return "";
  const tests = all.flatMap((e) => e.tests);
  const stale = all.some((e) => e.stale) ? " (before the last change)" : "";
  const bad = all.filter((e) => e.status === "failed");
  const idle = all.filter((e) => e.status !== "failed" && e.status !== "passed");
  if (tests.length > 0 && idle.length === 0) return `Tests: ${countTests(tests)}${bad.length > 0 && !tests.some((t) => t.status === "failed") ? ", and a check failed" : ""}${stale}`;
  const words = [
    ...(bad.length > 0 ? [`${String(bad.length)} failed`] : []),
    ...(all.length - bad.length - idle.length > 0 ? [`${String(all.length - bad.length - idle.length)} passed`] : []),
    ...(idle.length > 0 ? [`${String(idle.length)} not run`] : []),
  ];
  return `Checks: ${words.join(", ")}${stale}`;
}
