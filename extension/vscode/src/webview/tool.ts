/** The card of a tool call: what it does, its status, and its unfolded result. */
import { outcomeOf } from "../common/tool";
import type { Detail, Entry, FileSummary, Place, ToolEntry } from "../common/view";
import type { Bus } from "./bus";
import { diffView } from "./diffview";
import { baseName, button, duration, h, icon, plural, setChildren, setText, shortPath, type Icon } from "./dom";
import type { CreateView, View } from "./entryview";
import { outputView } from "./output";
import type { Store } from "./store";
import { plain, visible } from "./visible";

const kindIcons: Record<ToolEntry["toolKind"], Icon> = {
  read: "file", edit: "edit", delete: "trash", move: "rename", search: "search", execute: "terminal", think: "lightbulb", fetch: "globe", switch_mode: "replace", other: "tools",
};

const words: Record<ReturnType<typeof outcomeOf>, string> = {
  waiting: "Waiting", running: "", done: "", failed: "Failed", rejected: "Rejected", denied: "Not allowed", cancelled: "Stopped", partly: "Partly applied", applied: "",
};

export class ToolView implements View {
  readonly el = h("div");
  private readonly head: HTMLButtonElement;
  private readonly kind = h("span", { class: "kind-slot" });
  private readonly title = h("span", { class: "title" });
  private readonly state = h("span", { class: "state" });
  private readonly files = h("div", { class: "files", hidden: true });
  private readonly body = h("div", { class: "body", hidden: true });
  private readonly kids = new Map<string, View>();
  private readonly nested = h("div", { class: "nested" });
  private detailNow: Detail | undefined;
  private open = false;
  /** Whether the person folded or unfolded it: then it stays so. */
  private chosen = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private entry: ToolEntry, private readonly store: Store, private readonly bus: Bus, private readonly createView: CreateView) {
    this.head = h("button", { class: "row", tab: -1, click: () => this.toggle() }, this.kind, this.title, this.state, icon("chevron-right", "twist"));
    this.head.type = "button";
    this.el.append(this.head, this.files, this.body);
    this.update(entry);
  }

  toggle(): void {
    this.chosen = true;
    this.fold(!this.open);
  }

  update(e: Entry): void {
    if (e.kind !== "tool") return;
    this.entry = e;
    const how = outcomeOf(e);
    const running = how === "running";
    const waits = this.waits();
    this.el.className = `tool ${how} k-${e.toolKind}${this.open ? " open" : ""}${waits ? " asks" : ""}`;
    setChildren(this.kind, [icon(running && !waits ? "loading" : how === "failed" || how === "denied" ? "error" : how === "rejected" || how === "cancelled" ? "circle-slash" : this.agent() ? "hubot" : kindIcons[e.toolKind], running && !waits ? "spin kind" : "kind")]);
    this.drawTitle(e);
    this.drawState();
    this.tick(running && !waits);
    this.drawFiles(e);
    const unfolds = e.detail || this.store.children(e.id).length > 0;
    this.head.classList.toggle("flat", !unfolds);
    if (unfolds) this.head.setAttribute("aria-expanded", String(this.open));
    else this.head.removeAttribute("aria-expanded");
    if (!this.chosen) this.fold(running && !waits && (e.toolKind === "execute" || this.agent()));
    else if (this.open) this.draw();
  }

  detail(id: string, detail: Detail): void {
    if (id !== this.entry.id) {
      for (const k of this.kids.values()) k.detail?.(id, detail);
      return;
    }
    this.detailNow = detail;
    if (this.open) this.draw();
  }

  dispose(): void {
    this.tick(false);
    if (this.open) this.bus.post({ type: "unfold", id: this.entry.id, on: false });
    for (const k of this.kids.values()) k.dispose?.();
  }

  private agent(): boolean {
    return this.entry.tool === "task" || this.store.children(this.entry.id).length > 0;
  }

  /** It is waiting for the person's decision. */
  private waits(): boolean {
    const { approvals, questions } = this.bus.head();
    return approvals.some((a) => a.toolCallId === this.entry.id) || (questions.length > 0 && this.entry.tool === "question" && this.entry.status === "in_progress");
  }

  private drawTitle(e: ToolEntry): void {
    const cwd = this.bus.head().cwd;
    const title = plain(cwd ? e.title.split(`${cwd}/`).join("") : e.title);
    const place = e.locations[0];
    const name = place && plain(baseName(place.path));
    const at = name ? title.indexOf(name) : -1;
    const placed = place !== undefined && name !== undefined && name !== "" && at >= 0 && e.files.length <= 1;
    this.title.classList.toggle("placed", placed);
    this.title.title = title;
    if (!placed) {
      setText(this.title, title);
      return;
    }
    const [before, after] = [title.slice(0, at), title.slice(at + name.length)];
    this.title.replaceChildren(...(before ? [h("span", { class: before.length > 8 ? "before long" : "before" }, before)] : []), this.place(place, name), ...(after ? [h("span", {}, after)] : []), ...(e.locations.length > 1 ? [h("span", { class: "muted" }, ` +${String(e.locations.length - 1)}`)] : []));
  }

  /** A link in a button would be two targets: a click on the name opens the file; by key it is reached in the
   * unfolded card. */
  private place(p: Place, text: string): HTMLElement {
    const el = h("span", { class: "place", title: `${shortPath(p.path, this.bus.head().cwd)}${p.line ? `:${String(p.line)}` : ""}` }, text);
    el.addEventListener("click", (ev) => {
      ev.stopPropagation();
      const changed = this.entry.files.find((f) => f.path === p.path);
      this.bus.post(changed ? { type: "showDiff", id: this.entry.id, path: p.path } : { type: "open", path: p.path, line: p.line });
    });
    return el;
  }

  private drawState(): void {
    const e = this.entry;
    const how = outcomeOf(e);
    const end = e.endedAt ?? (how === "running" ? Date.now() : undefined);
    const spent = e.startedAt !== undefined && end !== undefined ? end - e.startedAt - (e.waited ?? 0) : 0;
    const took = spent >= 500 ? duration(spent) : "";
    const exit = e.exitCode !== undefined && e.exitCode !== 0 ? `exit ${String(e.exitCode)}` : "";
    const word = how === "failed" && exit ? "" : words[how]; // the exit code says it
    const kids = this.store.children(e.id).filter((k) => k.kind === "tool").length;
    const said = this.waits() ? "Asks you" : [word, exit, kids > 0 ? plural(kids, "step") : "", took].filter(Boolean).join(" · ");
    const one = e.files.length === 1 ? e.files[0] : undefined;
    const key = `${said}|${one ? `${String(one.added)}|${String(one.removed)}` : ""}`;
    if (this.state.dataset["key"] === key) return;
    this.state.dataset["key"] = key;
    setChildren(this.state, [...(one ? [counts(one)] : []), ...(said ? [h("span", {}, said)] : [])]);
  }

  private tick(on: boolean): void {
    if (!on) clearInterval(this.timer);
    else if (this.timer === undefined || !this.el.isConnected) {
      clearInterval(this.timer);
      this.timer = setInterval(() => this.drawState(), 1000);
      return;
    } else return;
    this.timer = undefined;
  }

  private drawFiles(e: ToolEntry): void {
    this.files.hidden = e.files.length < 2;
    if (e.files.length < 2) return;
    const shown = e.files.slice(0, 8);
    this.files.replaceChildren(...shown.map((f) => fileRow(f, this.bus, () => this.bus.post({ type: "showDiff", id: e.id, path: f.path }))),
      ...(e.files.length > shown.length ? [h("div", { class: "muted more" }, `and ${plural(e.files.length - shown.length, "more file")}`)] : []));
  }

  private fold(open: boolean): void {
    if (open === this.open) {
      if (open) this.draw();
      return;
    }
    this.open = open;
    this.body.hidden = !open;
    this.el.classList.toggle("open", open);
    if (this.head.hasAttribute("aria-expanded")) this.head.setAttribute("aria-expanded", String(open));
    this.bus.post({ type: "unfold", id: this.entry.id, on: open });
    if (open) this.draw();
    else this.detailNow = undefined;
  }

  private draw(): void {
    const e = this.entry;
    const d = this.detailNow;
    const parts: Node[] = [];
    if (d?.command) parts.push(h("div", { class: "command" }, h("span", { class: "prompt", aria: { hidden: "true" } }, "$ "), h("code", {}, ...visible(d.command))));
    if (d?.error) parts.push(h("div", { class: "error-text" }, d.error));
    if (d) for (const f of d.files) parts.push(diffView(f, this.bus, d.files.length > 1));
    for (const i of d?.images ?? []) parts.push(image(i));
    const kids = this.store.children(e.id);
    const told = kids.some((k) => k.kind === "text"); // the last of its texts is the answer
    const answer = told ? "" : e.tool === "task" && d?.output ? /<task_result>\n?([\s\S]*?)\n?<\/task_result>/.exec(d.output)?.[1] : undefined;
    if (answer) parts.push(this.createView({ kind: "text", id: `${e.id} answer`, text: answer }, this.store, this.bus).el);
    else if (answer === undefined && d?.output !== undefined && !(d.files.length > 0 && outcomeOf(e) === "done")) parts.push(outputView(d, this.bus, e.id, outcomeOf(e) === "running"));
    else if (answer === undefined && d?.input && parts.length === 0 && !d.output) parts.push(h("pre", { class: "output", tab: -1 }, d.input));
    if (e.locations.length > 1 && e.files.length === 0) parts.push(this.placeList(e.locations));
    if (e.terminalId !== undefined && outcomeOf(e) === "running") parts.push(h("div", {}, button("Open in a terminal", "secondary small", () => this.bus.post({ type: "terminal", id: e.id }), "terminal", { tab: -1 })));
    if (kids.length > 0) {
      this.drawKids(kids);
      parts.unshift(this.nested);
    }
    setChildren(this.body, parts);
  }

  private placeList(list: Place[]): HTMLElement {
    const cwd = this.bus.head().cwd;
    return h("div", { class: "places" }, ...list.slice(0, 50).map((p) => h("button", { class: "link", tab: -1, click: () => this.bus.post({ type: "open", path: p.path, line: p.line }) }, `${shortPath(p.path, cwd)}${p.line ? `:${String(p.line)}` : ""}`)));
  }

  private drawKids(list: Entry[]): void {
    const seen = new Set<string>();
    for (const k of list) {
      seen.add(k.id);
      const view = this.kids.get(k.id);
      if (view) view.update(k);
      else this.kids.set(k.id, this.createView(k, this.store, this.bus));
    }
    for (const [id, view] of this.kids) {
      if (seen.has(id)) continue;
      view.dispose?.();
      this.kids.delete(id);
    }
    setChildren(this.nested, list.flatMap((k) => this.kids.get(k.id)?.el ?? []));
  }
}

const fileIcons: Record<FileSummary["kind"], string> = { edit: "M", create: "A", delete: "D", rename: "R" };
const fileWords: Record<FileSummary["kind"], string> = { edit: "changed", create: "new", delete: "deleted", rename: "renamed" };

/** The numbers of added and removed lines, in the colours of a diff. */
export function counts(f: Pick<FileSummary, "added" | "removed">): HTMLElement {
  return h("span", { class: "counts" }, f.added > 0 && h("span", { class: "plus" }, `+${String(f.added)}`), f.removed > 0 && h("span", { class: "minus" }, `−${String(f.removed)}`));
}

/** One changed file: name, place, number of lines. */
export function fileRow(f: FileSummary, bus: Bus, click: () => void): HTMLElement {
  const short = shortPath(f.path, bus.head().cwd);
  const dir = short.slice(0, short.length - baseName(short).length).replace(/[\\/]$/, "");
  const b = h("button", { class: `file ${f.kind}`, tab: -1, title: `Show the change to ${plain(short)}`, click },
    h("span", { class: "file-name" }, ...visible(baseName(short))), h("span", { class: "file-dir" }, ...visible(dir)),
    counts(f),
    h("span", { class: "letter", aria: { hidden: "true" } }, fileIcons[f.kind]), h("span", { class: "sr" }, fileWords[f.kind]));
  b.type = "button";
  return b;
}

function image(i: Detail["images"][number]): HTMLElement {
  const img = h("img", { class: "picture" });
  if (/^image\/(png|jpeg|gif|webp)$/.test(i.mime)) img.src = `data:${i.mime};base64,${i.data}`;
  img.alt = "Picture from the tool";
  return img;
}
