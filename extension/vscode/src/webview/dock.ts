/**
 * Pending approval requests and questions. The dock is between the transcript and the composer, where no text of a
 * model is ever drawn, and takes no focus. Only its own buttons decide; keys typed elsewhere never do.
 */
import { evidenceSummary } from "../common/evidence";
import { countVerdict, verdictHeadline } from "../common/verdict";
import type { Approval, Detail, ProblemView } from "../common/view";
import type { Bus } from "./bus";
import { diffView } from "./diffview";
import { button, h, icon, iconButton, plural, setChildren, setText, shortPath, type Icon } from "./dom";
import { EvidenceTree } from "./evidence";
import { Menu } from "./menu";
import { questionForm } from "./question";
import { fileRow } from "./tool";
import { plain, visible } from "./visible";

/** Files that a card lists; the list scrolls. */
const mostFiles = 100;

/** A new card cannot be pressed for this time: the click was meant for what was there before. */
const settle = 300;

export class Dock {
  readonly el = h("section", { class: "dock", aria: { label: "Waiting for you" } });
  private shown = "";
  /** What is shown of the first card, except the parts that change while it is pending. */
  private frame = "";
  private verdict = h("div", { class: "verdict" });
  private progress = h("span", { class: "muted" });
  private at = 0;
  private card: HTMLElement | undefined;
  private diffs: HTMLElement | undefined;
  private unfolded: string | undefined;

  constructor(private readonly bus: Bus) {
    this.el.hidden = true;
  }

  update(): void {
    const { approvals, questions } = this.bus.head();
    const count = approvals.length + questions.length;
    this.el.hidden = count === 0;
    this.at = Math.min(this.at, Math.max(0, count - 1));
    const approval = approvals[this.at];
    const question = questions[this.at - approvals.length];
    const key = JSON.stringify([approval ?? question, this.at, count]);
    if (key === this.shown) return;
    const frame = JSON.stringify([approval ? { ...approval, problems: undefined, decided: undefined } : question, this.at, count]);
    if (approval && frame === this.frame) {
      this.shown = key;
      return this.refresh(approval);
    }
    this.frame = frame;
    const same = this.card?.dataset["request"] === (approval ?? question)?.requestId;
    const had = this.el.contains(document.activeElement);
    this.shown = key;
    if (!same) this.unfold(undefined);
    const pager = count > 1 && h("span", { class: "pager" },
      iconButton("chevron-up", "Previous", () => this.page(-1)), `${String(this.at + 1)} of ${String(count)}`, iconButton("chevron-down", "Next", () => this.page(1)));
    this.card = approval ? this.permission(approval, pager) : question ? questionForm(question, this.bus, pager) : undefined;
    if (this.card) this.card.dataset["request"] = (approval ?? question)?.requestId;
    setChildren(this.el, this.card ? [this.card] : []);
    if (!this.card) return;
    // a list that scrolls must be reachable by keys
    for (const box of this.card.querySelectorAll<HTMLElement>(".card-body, .files")) if (box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    if (same) {
      if (had) this.focus();
      return;
    }
    this.guard(this.card);
    this.bus.say(approval ? [`Permission needed: ${plain(approval.title)}`, evidenceSummary(approval.evidence)].filter(Boolean).join(". ") : `Question: ${question?.message ?? ""}`);
  }

  focus(): boolean {
    const first = this.el.querySelector<HTMLElement>(".decide button, input, textarea");
    first?.focus();
    return first !== null && first !== undefined;
  }

  detail(id: string, d: Detail): void {
    if (id !== this.unfolded || !this.diffs) return;
    setChildren(this.diffs, d.files.map((f) => diffView(f, this.bus, d.files.length > 1)));
  }

  private page(step: number): void {
    const { approvals, questions } = this.bus.head();
    const n = approvals.length + questions.length;
    this.at = (this.at + step + n) % n;
    this.update();
  }

  private guard(card: HTMLElement): void {
    const buttons = card.querySelectorAll<HTMLButtonElement>(".decide button");
    for (const b of buttons) b.disabled = true;
    setTimeout(() => {
      for (const b of buttons) b.disabled = false;
    }, settle);
  }

  private unfold(id: string | undefined): void {
    if (this.unfolded !== undefined && this.unfolded !== id) this.bus.post({ type: "unfold", id: `dock:${this.unfolded}`, on: false });
    this.unfolded = id;
    if (id !== undefined) this.bus.post({ type: "unfold", id: `dock:${id}`, on: true });
  }

  private permission(a: Approval, pager: HTMLElement | false): HTMLElement {
    const edit = a.files.length > 0;
    const cwd = this.bus.head().cwd;
    this.diffs = h("div", { class: "dock-diffs", hidden: true });
    this.verdict = h("div", { class: "verdict" });
    this.progress = h("span", { class: "muted" }, progressOf(a));
    setChildren(this.verdict, this.problems(a));
    // The verdict will come while the person reads: its lines get their room now, so that nothing above them moves then.
    if (a.problems?.certainty === "pending") this.verdict.classList.add("awaited");
    return h("div", { class: "card permission", role: "group", aria: { label: `Permission needed: ${plain(a.title)}` } },
      h("div", { class: "card-head" }, icon("shield"), h("strong", { class: "card-title" }, asks(a), this.progress), pager),
      h("div", { class: "card-body" },
        a.agent && h("div", { class: "muted" }, `Asked by the ${a.agent} agent`),
        a.command !== undefined ? h("div", { class: "command" }, h("span", { class: "prompt", aria: { hidden: "true" } }, "$ "), h("code", {}, ...visible(a.command))) : !edit && h("div", { class: "what" }, ...visible(a.title)),
        a.evidence.length + (a.notes?.length ?? 0) > 0 && new EvidenceTree(a.evidence, a.notes).el,
        edit && h("div", { class: "files" }, ...a.files.slice(0, mostFiles).map((f) => fileRow(f, this.bus, () => this.bus.post({ type: "review", requestId: a.requestId, path: f.path }))), a.files.length > mostFiles && h("div", { class: "muted more" }, `and ${plural(a.files.length - mostFiles, "more file")}`)),
        this.verdict,
        a.outside.length > 0 && fact("warning", "outside", h("span", {}, ...visible(`Outside the project: ${a.outside.map((p) => shortPath(p, cwd)).join(", ")}`))),
        a.why && fact("info", "why", h("span", {}, ...visible(`Asked because ${a.why}`))),
        a.always.length > 0 && fact("layers", "always", h("span", {}, "“Always” would allow ", ...a.always.flatMap((p, i) => [i > 0 ? ", " : "", p === "*" ? rule(a, p) : h("code", {}, ...visible(rule(a, p)))]))),
        this.diffs),
      this.decisions(a, edit));
  }

  /**
   * There is a new verdict, or a hunk was decided in the editor. Only these parts are drawn again: the focus, the text
   * beside "Reject", and the place of the buttons under the pointer do not change.
   */
  private refresh(a: Approval): void {
    const was = this.verdict.textContent;
    setChildren(this.verdict, this.problems(a));
    const now = this.verdict.firstElementChild?.textContent ?? "";
    if (this.verdict.scrollHeight > this.verdict.clientHeight) this.verdict.tabIndex = 0; // a list that scrolls must be reachable by keys
    if (this.verdict.textContent !== was && now !== "") this.bus.say(now);
    setText(this.progress, progressOf(a));
  }

  private problems(a: Approval): HTMLElement[] {
    const p = a.problems;
    if (!p) return [];
    if (p.certainty === "pending" || p.certainty === "unavailable") return [fact("question", "", `${p.certainty === "pending" ? "Checking problems" : "Problems cannot be checked"}${p.reason ? `: ${p.reason}` : p.certainty === "pending" ? "…" : ""}`)];
    const part = p.certainty === "partial" ? ` (checked in part${p.reason ? `: ${p.reason}` : ""})` : "";
    const line = (x: ProblemView) => h("button", { class: "problem", click: () => this.bus.post({ type: "open", path: x.path, line: x.line }) }, icon(x.severity === "error" ? "error" : "warning", x.severity), h("span", {}, x.message, h("span", { class: "muted" }, ` ${shortPath(x.path, this.bus.head().cwd)}:${String(x.line)}`)));
    const { fixed, introduced } = countVerdict(p);
    return [h("div", { class: "problems" },
      fact(introduced > 0 ? "warning" : fixed > 0 ? "pass-filled" : "check", introduced > 0 ? "bad" : "good", `${verdictHeadline(p)}${part}`),
      ...p.introduced.slice(0, 5).map(line), p.introduced.length > 5 && h("div", { class: "muted more" }, `and ${String(p.introduced.length - 5)} more`))];
  }

  private decisions(a: Approval, edit: boolean): HTMLElement {
    const decide = (optionId: string, comment?: string) => this.bus.post({ type: "decide", requestId: a.requestId, optionId, ...(comment === undefined ? {} : { comment }) });
    const row = h("div", { class: "decide", role: "toolbar", aria: { label: "Decide" } });
    const word = h("input", { class: "field", aria: { label: "What to do instead" } });
    word.placeholder = "What to do instead; Enter rejects";
    const reject = a.options.find((o) => o.kind === "reject_once") ?? a.options.find((o) => o.kind === "reject_always");
    const say = h("div", { class: "reject-with", hidden: true }, word);
    const no = (id: string) => decide(id, (!say.hidden && word.value.trim()) || undefined);
    word.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && !e.isComposing && reject) no(reject.id);
      if (e.key === "Escape") {
        say.hidden = true;
        row.querySelector<HTMLElement>(".rejecter")?.focus();
      }
    });
    const once = a.options.filter((o) => o.kind === "allow_once");
    const always = a.options.filter((o) => o.kind === "allow_always");
    const press = (e: MouseEvent, act: () => void) => {
      if (e.detail !== 0 || !this.repeating) act(); // a key that is held down decides nothing
    };
    for (const [i, o] of once.entries()) row.append(button(optionLabel(o, edit), i === 0 && once.length === 1 ? "primary" : "secondary", (e) => press(e, () => decide(o.id)), undefined, { title: o.label }));
    if (a.hunks > 0) row.append(button(`Review ${plural(a.hunks, "hunk")}`, "secondary", () => this.bus.post({ type: "review", requestId: a.requestId }), "git-compare"));
    if (reject) row.append(button("Reject", "secondary rejecter", (e) => press(e, () => no(reject.id))));
    if (always.length > 0) row.append(this.always(a, always, decide));
    if (edit) row.append(iconButton("diff", "Show the change here", () => this.toggleDiffs(a)));
    if (reject) {
      row.append(iconButton("comment-discussion", "Reject with a message", () => {
        say.hidden = !say.hidden;
        if (!say.hidden) word.focus();
      }));
    }
    row.addEventListener("keydown", (e) => this.rove(e, row));
    return h("div", { class: "card-foot" }, row, say);
  }

  private repeating = false;

  /** Grants: the choice says for how long and for what. */
  private always(a: Approval, options: Approval["options"], decide: (id: string) => void): HTMLElement {
    const what = a.always.map((p) => rule(a, p)).join(", ");
    const b = button("Always…", "secondary", () => Menu.open(b, {
      label: "Always allow", note: plain(what),
      items: options.map((o) => ({ id: o.id, label: scopes[o.id] ?? o.label, icon: icons[o.id] ?? "folder" })),
      pick: decide,
    }), undefined, { aria: { haspopup: "listbox", expanded: "false" } });
    return b;
  }

  private rove(e: KeyboardEvent, row: HTMLElement): void {
    this.repeating = e.repeat;
    const all = [...row.querySelectorAll<HTMLElement>("button")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || at < 0) return;
    e.preventDefault();
    all[(at + step + all.length) % all.length]?.focus();
  }

  private toggleDiffs(a: Approval): void {
    if (!this.diffs) return;
    this.diffs.hidden = !this.diffs.hidden;
    this.unfold(this.diffs.hidden ? undefined : a.toolCallId);
  }
}

/** The progress of the review. It is in the card's head, where a longer text moves no button. */
function progressOf(a: Approval): string {
  return a.decided ? ` · ${String(a.decided)} of ${plural(a.hunks, "hunk")} decided` : "";
}

function fact(i: Icon, cls: string, what: string | Node): HTMLElement {
  return h("div", { class: `fact ${cls}` }, icon(i), h("span", {}, what));
}

function asks(a: Approval): string {
  if (a.draft && a.files.length > 0) return `Write the draft to ${plural(a.files.length, "file")}?`;
  if (a.files.length > 0) return `Change ${plural(a.files.length, "file")}?`;
  switch (a.permission) {
    case "bash":
      return "Run this command?";
    case "bash_input":
      return "Type into this command?";
    case "webfetch":
    case "websearch":
      return "Use the network?";
    case "external_directory":
      return "Access files outside the project?";
    case "read":
      return "Read this?";
  }
  return a.options.filter((o) => o.kind === "allow_once").length > 1 ? "A question" : "Allow this?";
}

const scopes: Record<string, string> = { "always-session": "In this session", "always-project": "In this project", "always-everywhere": "In every project" };
const icons: Record<string, Icon> = { "always-session": "comment-discussion", "always-project": "folder", "always-everywhere": "globe" };

/** What * allows, for permissions whose name does not say it well. */
const everything: Record<string, string> = {
  edit: "changes to any file", read: "reading any file", bash: "any command", bash_input: "typing into any command", external_directory: "any folder outside the project",
  webfetch: "any page of the web", websearch: "any search of the web", task: "any sub-agent", skill: "any skill",
};

/** A pattern of "always" as a text. */
function rule(a: Approval, pattern: string): string {
  if (pattern === "*") return everything[a.permission ?? ""] ?? `any use of ${a.permission ?? "this"}`;
  return `${a.permission ?? ""} ${pattern}`.trim();
}

function optionLabel(o: Approval["options"][number], edit: boolean): string {
  return o.id === "once" ? (edit ? "Accept" : "Allow once") : o.label;
}
