/** The commands that were run on a draft before it was proposed, checked and limited so that they can be shown. */
import { list, number, text, tree, word } from "./narrow";
import type { EvidenceNote, EvidenceView, TestView } from "./view";

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

/** Uses, groups and claims that a card shows of each kind; the rest is counted. */
const mostNotes = 50;
const supports = ["run", "stale", "failed", "none"] as const;

/** The words are as careful as the sidecar's own: what may be affected need not break, and a claim without a run says so. */
export function readNotes(raw: unknown): EvidenceNote[] {
  const e = tree(raw);
  if (!e) return [];
  const of = (key: string, note: (x: Record<string, unknown>) => EvidenceNote | undefined): EvidenceNote[] => {
    const all = list(e[key]).flatMap((x) => note(tree(x) ?? {}) ?? []);
    const more = all.length - mostNotes;
    return more <= 0 ? all : [...all.slice(0, mostNotes), { label: `and ${String(more)} more`, said: "", status: "info", rows: [] }];
  };
  const attempts = number(e["attempts"]) ?? 0;
  const insists = text(e["insists"]);
  return [
    ...of("uses", use),
    ...of("groups", (g) => {
      const title = text(g["title"]);
      return title === undefined || g["verified"] !== true ? undefined : { label: title, said: "", status: "passed", rows: [] };
    }),
    ...of("claims", claim),
    ...list(e["merged"]).slice(0, mostNotes).flatMap((path) => typeof path === "string" ? [{ label: `${path} has changed since the agent read it; the change is to the file as it is now`, said: "", status: "info" as const, rows: [] }] : []),
    ...(attempts > 0 ? [{ label: attempts === 1 ? "1 earlier attempt went back to the agent" : `${String(attempts)} earlier attempts went back to the agent`, said: "", status: "info" as const, rows: [] }] : []),
    ...(insists ? [{ label: `The agent was told of the errors and proposes this all the same: “${insists}”`, said: "", status: "failed" as const, rows: [] }] : []),
  ];
}

function use(u: Record<string, unknown>): EvidenceNote | undefined {
  const name = text(u["name"]);
  if (name === undefined) return undefined;
  const what = u["what"] === "removed" ? "removed or renamed" : u["what"] === "signature" ? "declared differently" : "changed inside";
  const label = `${u["public"] === true ? "public " : ""}${text(u["kind"]) ?? ""} ${name}`.trim();
  const unknown = text(u["unknown"]);
  const [uses, files, inside] = [number(u["uses"]) ?? 0, number(u["files"]) ?? 0, number(u["inside"]) ?? 0];
  const counted = unknown ? `its uses are not known (${unknown})`
    : uses === 0 ? "no other use is known in this project"
      : `${String(uses)} ${uses === 1 ? "use" : "uses"} in ${String(files)} ${files === 1 ? "file" : "files"}, ${String(inside)} of them in this proposal${uses > inside ? `; ${String(uses - inside)} outside may be affected` : ""}`;
  const rows = list(u["others"]).flatMap((x) => {
    const at = tree(x);
    const path = text(at?.["path"]);
    return path === undefined ? [] : [`${path}:${String(number(at?.["line"]) ?? 1)}`];
  });
  return { label, said: `${what} · ${counted}`, status: unknown || (what !== "changed inside" && uses > inside) ? "notRun" : "info", rows };
}

function claim(c: Record<string, unknown>): EvidenceNote | undefined {
  const words = text(c["text"]);
  if (words === undefined) return undefined;
  const command = text(c["command"]) ?? "";
  const exit = String(number(c["exit"]) ?? 0);
  // An unknown support is none: nothing unknown may read as a success.
  const support = word(c["support"], supports, "none");
  const said = { run: `${command} ended with 0 on this version`, stale: `${command} ended with ${exit}, but on an earlier version`, failed: `not so: ${command} ended with ${exit}`, none: command ? `not known: ${command} ended with ${exit} and checks other things too` : "no run of that is known" }[support];
  // A sentence may have several claims; the sidecar of an earlier version names only their kind.
  const subject = text(c["subject"]) ?? text(c["about"]);
  return { label: `The agent says “${words}”`, said: subject ? `${subject}: ${said}` : said, status: support === "run" ? "passed" : support === "failed" ? "failed" : "notRun", rows: [] };
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
