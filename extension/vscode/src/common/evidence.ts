/** What was run on a draft before it was proposed, as it may be shown: of whatever came, what a person can read. */
import { list, number, text, tree, word } from "./narrow";
import type { EvidenceView, TestView } from "./view";

/** What a card can hold; a suite of more is read in its own output. */
const mostCommands = 20;
const mostTests = 5000;
/** Characters of output that are kept of a command or a test: its end, where the failure is. */
const mostOutput = 8 << 10;

const statuses = ["passed", "failed", "notRun", "skipped"] as const;

/** An unknown status is one that did not run: nothing unknown may read as a success. */
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
  const s = output?.replace(/\n*<bash_metadata>\n[\s\S]*$/, ""); // notes for the model: how it ended is said already
  if (s === undefined || s.length <= mostOutput) return s;
  return `…${s.slice(s.indexOf("\n", s.length - mostOutput))}`;
}

/** How many of each, the gravest first: "1 failed, 13 passed". */
export function countTests(tests: readonly TestView[]): string {
  const n = (status: TestView["status"], word: string) => {
    const count = tests.filter((t) => t.status === status).length;
    return count > 0 ? [`${String(count)} ${word}`] : [];
  };
  return [...n("failed", "failed"), ...n("passed", "passed"), ...n("skipped", "skipped"), ...n("notRun", "not run")].join(", ");
}

/** All of it in a few words: what a lens, and a screen reader, say first. "" where nothing was to be run. */
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
