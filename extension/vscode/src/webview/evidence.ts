/**
 * The commands that were run on a draft before it was proposed, as a tree: commands, their packages or files, tests,
 * the end of the output of failures. The keys are those of any tree in the workbench.
 */
import { countTests } from "../common/evidence";
import type { EvidenceNote, EvidenceView, TestView } from "../common/view";
import { duration, h, icon, plural, setChildren, type Icon } from "./dom";
import { plain, visible } from "./visible";

/** Rows below one row; the others are only counted: people do not read a thousand passed tests. */
const mostRows = 200;

interface Row {
  key: string;
  label: string;
  status: EvidenceNote["status"];
  /** The outcome as a word, announced with the label. */
  said: string;
  output?: string;
  rows: Row[];
}

const icons: Record<EvidenceNote["status"], Icon> = { passed: "pass-filled", failed: "error", notRun: "circle-slash", skipped: "circle-slash", info: "info" };
const words: Record<EvidenceView["status"], string> = { passed: "passed", failed: "failed", notRun: "not run", skipped: "skipped" };

export class EvidenceTree {
  readonly el = h("div", { class: "evidence", role: "tree", aria: { label: "What is known of this change" } });
  private readonly rows: Row[];
  private readonly open = new Set<string>();
  /** The row that Tab reaches. */
  private at: string | undefined;

  constructor(list: readonly EvidenceView[], notes: readonly EvidenceNote[] = []) {
    this.rows = [...list.map((e, i) => commandRow(e, String(i))), ...notes.map((n, i) => noteRow(n, `note${String(i)}`))];
    this.at = this.rows[0]?.key;
    const unfold = (r: Row) => {
      if (r.status !== "failed") return;
      this.open.add(r.key); // failures are unfolded
      r.rows.forEach(unfold);
    };
    this.rows.forEach(unfold);
    this.el.addEventListener("keydown", (e) => this.key(e));
    this.draw();
  }

  private draw(): void {
    const had = this.el.contains(document.activeElement);
    const out: HTMLElement[] = [];
    const add = (r: Row, level: number, at: number, of: number) => {
      const unfolds = r.rows.length > 0 || r.output !== undefined;
      const open = this.open.has(r.key);
      out.push(h("div", {
        class: `evidence-row ${r.status}`, role: "treeitem", tab: r.key === this.at ? 0 : -1, data: { key: r.key },
        aria: { level: String(level), posinset: String(at + 1), setsize: String(of), expanded: unfolds ? String(open) : undefined, label: plain(r.said ? `${r.label}, ${r.said}` : r.label) },
        click: () => this.press(r, unfolds),
      }, icon("chevron-right", unfolds ? `twist${open ? " open" : ""}` : "twist none"), icon(icons[r.status], "kind"), h("span", { class: "evidence-label", title: plain(r.label) }, ...visible(r.label)), h("span", { class: "muted evidence-said" }, ...visible(r.said))));
      out.at(-1)!.style.setProperty("--level", String(level - 1));
      if (!open) return;
      const shown = r.rows.slice(0, mostRows);
      shown.forEach((k, i) => add(k, level + 1, i, shown.length));
      if (r.rows.length > shown.length) out.push(h("div", { class: "muted more" }, `and ${plural(r.rows.length - shown.length, "more test")}`));
      if (r.output !== undefined) out.push(h("pre", { class: "output evidence-output", tab: 0, aria: { label: plain(`Output of ${r.label}`) } }, ...visible(r.output)));
    };
    this.rows.forEach((r, i) => add(r, 1, i, this.rows.length));
    setChildren(this.el, out);
    if (had) this.row(this.at)?.focus();
  }

  private row(key: string | undefined): HTMLElement | undefined {
    return [...this.el.querySelectorAll<HTMLElement>("[role=treeitem]")].find((x) => x.dataset["key"] === key);
  }

  private press(r: Row, unfolds: boolean): void {
    this.at = r.key;
    if (unfolds && !this.open.delete(r.key)) this.open.add(r.key);
    this.draw();
    this.row(r.key)?.focus();
  }

  private key(e: KeyboardEvent): void {
    const all = [...this.el.querySelectorAll<HTMLElement>("[role=treeitem]")];
    const here = all.indexOf(document.activeElement as HTMLElement);
    const el = all[here];
    const key = el?.dataset["key"];
    if (!el || key === undefined) return;
    const expanded = el.getAttribute("aria-expanded");
    const go = (to: HTMLElement | undefined) => {
      if (!to) return;
      this.at = to.dataset["key"];
      for (const x of all) x.tabIndex = x === to ? 0 : -1;
      to.focus();
    };
    switch (e.key) {
      case "ArrowDown": go(all[here + 1]); break;
      case "ArrowUp": go(all[here - 1]); break;
      case "Home": go(all[0]); break;
      case "End": go(all.at(-1)); break;
      case "ArrowRight":
        if (expanded === "false") el.click();
        else if (expanded === "true") go(all[here + 1]);
        break;
      case "ArrowLeft":
        if (expanded === "true") el.click();
        else go(all.slice(0, here).reverse().find((x) => Number(x.getAttribute("aria-level")) < Number(el.getAttribute("aria-level"))));
        break;
      case "Enter":
      case " ":
        el.click();
        break;
      default:
        return;
    }
    e.preventDefault();
  }
}

function commandRow(e: EvidenceView, key: string): Row {
  const said = [
    e.tests.length > 0 ? countTests(e.tests) : words[e.status],
    e.status === "failed" && e.exitCode !== undefined ? `exit ${String(e.exitCode)}` : "",
    e.reason ?? "",
    e.seconds !== undefined ? duration(e.seconds * 1000) : "",
    e.stale ? "before the last change" : "",
  ].filter(Boolean).join(" · ");
  const suites = [...new Set(e.tests.map((t) => t.suite))];
  const rows = suites.length > 1
    ? gravest(suites.map((suite): Row => {
      const tests = e.tests.filter((t) => t.suite === suite);
      return { key: `${key}/${suite}`, label: suite || "Other tests", status: tests.some((t) => t.status === "failed") ? "failed" : tests.some((t) => t.status === "passed") ? "passed" : "skipped", said: countTests(tests), rows: testRows(tests, `${key}/${suite}`) };
    }))
    : testRows(e.tests, key);
  // tests have their own output; for a command without tests its output is all there is
  return { key, label: e.command, status: e.status, said, rows, output: e.tests.some((t) => t.status === "failed") || !e.output ? undefined : e.output };
}

function noteRow(n: EvidenceNote, key: string): Row {
  return { key, label: n.label, status: n.status, said: n.said, rows: n.rows.map((place, i): Row => ({ key: `${key}/${String(i)}`, label: place, status: "info", said: "", rows: [] })) };
}

function testRows(tests: readonly TestView[], key: string): Row[] {
  return gravest(tests.map((t, i): Row => ({
    key: `${key}/${String(i)}`, label: t.name, status: t.status, rows: [], output: t.output || undefined,
    said: [words[t.status], t.status === "failed" && t.before === "failed" ? "failed before too" : t.status === "passed" && t.before === "failed" ? "failed before" : "", t.seconds !== undefined && t.seconds >= 0.1 ? duration(t.seconds * 1000) : ""].filter(Boolean).join(" · "),
  })));
}

/** Failures come first; the others keep their order. */
function gravest(rows: Row[]): Row[] {
  return [...rows.filter((r) => r.status === "failed"), ...rows.filter((r) => r.status !== "failed")];
}
