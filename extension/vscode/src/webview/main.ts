/** The panel: draws what the host sends and sends it what the person does. All state is in the host, so the panel
 * can be created again at any time. */
import type { Op, ToHost, ToView } from "../common/messages";
import type { Head } from "../common/view";
import { Announcer } from "./announce";
import type { Bus } from "./bus";
import { Composer } from "./composer";
import { Dock } from "./dock";
import { duration, h, icon, setText } from "./dom";
import { Empty } from "./empty";
import { Kept } from "./kept";
import { Store } from "./store";
import { changesStrip, connectionStrip, planStrip, queueStrip, revertedStrip } from "./strips";
import { Transcript } from "./transcript";

declare function acquireVsCodeApi(): { postMessage(message: ToHost): void };

class Panel {
  private readonly store = new Store();
  private readonly announcer = new Announcer();
  private readonly busy = h("div", { class: "busy", hidden: true });
  private readonly busyText = h("span");
  private readonly bus: Bus;
  private readonly transcript: Transcript;
  private readonly dock: Dock;
  private readonly composer: Composer;
  private readonly empty: Empty;
  private readonly strips: { update(head: Head): void }[];
  private epoch = -1;

  constructor(root: HTMLElement, post: (m: ToHost) => void) {
    this.bus = { post, say: (text) => this.announcer.say(text), head: () => this.store.head };
    this.busy.append(icon("loading", "spin"), this.busyText);
    this.composer = new Composer(this.bus, new Kept(root.dataset["place"] ?? ""));
    this.empty = new Empty(this.bus, (text) => this.composer.sendText(text));
    this.transcript = new Transcript(this.store, this.bus, this.busy);
    this.dock = new Dock(this.bus);
    const [connection, plan, changes, reverted, queue] = [connectionStrip(this.bus), planStrip(this.bus), changesStrip(this.bus), revertedStrip(this.bus), queueStrip(this.bus)];
    this.strips = [connection, plan, changes, reverted, queue];
    this.transcript.jump.append(icon("arrow-down"));
    root.replaceChildren(
      connection.el,
      h("main", { class: "middle" }, this.transcript.el, this.empty.el, this.transcript.jump),
      h("div", { class: "foot" }, plan.el, changes.el, reverted.el, this.dock.el, queue.el, this.composer.el),
      this.announcer.el,
    );
    document.addEventListener("keydown", (e) => this.key(e));
    this.followFocus();
    setInterval(() => this.drawBusy(), 1000);
    this.drawHead();
  }

  take(m: ToView): void {
    switch (m.type) {
      case "snapshot":
        this.epoch = m.epoch;
        this.store.head = m.head;
        this.store.reset(m.entries);
        this.composer.begin(m.draft);
        this.drawHead();
        this.transcript.reset();
        this.heard();
        break;
      case "ops":
        if (m.epoch !== this.epoch) break; // of the session that was shown before
        for (const op of m.ops) {
          // One after the other: an entry must not yet contain what the next op adds to it.
          this.store.apply([op]);
          this.transcript.changed([op]);
          this.announce(op);
        }
        this.empty.update(this.store.head, this.store.order.length > 0);
        break;
      case "head":
        this.takeHead(m.head, m.gone ?? []);
        break;
      case "detail":
        if (m.id.startsWith("dock:")) this.dock.detail(m.id.slice(5), m.detail);
        else this.transcript.detail(m.id, m.detail);
        break;
      case "found":
        this.composer.found(m.request, m.items);
        break;
      case "draft":
        this.composer.set(m.draft, m.mode);
        this.composer.focus();
        break;
      case "attach":
        this.composer.addAttachments(m.attachments, true);
        break;
      case "focus":
        if (m.what === "composer" || (m.what === "approval" && !this.dock.focus())) this.composer.focus();
        else if (m.what === "transcript") this.transcript.focus();
        break;
      case "tell":
        this.composer.complain(m.severity === "error" ? m.text : "");
        if (m.severity === "info") this.announcer.say(m.text);
    }
  }

  /** Announces news for screen readers: the running answer, errors, and the end. */
  private announce(op: Op): void {
    const e = op.op === "put" ? op.entry : op.op === "append" || op.op === "close" ? this.store.entries.get(op.id) : undefined;
    if (!e || e.parent !== undefined) return;
    if (e.kind === "text" && this.store.head.running) {
      if (op.op === "close") this.announcer.flush(true);
      else this.announcer.stream(e.id, e.text);
    }
    if (e.kind === "notice") this.announcer.say([e.title, e.description].filter(Boolean).map((s) => (/[.!?…:]$/.test(s ?? "") ? s : `${s ?? ""}.`)).join(" "));
    if (e.kind === "turn" && e.stop !== "end_turn") this.announcer.say("Turn finished");
  }

  /** The content of a snapshot is not new: only what follows is announced. */
  private heard(): void {
    const last = [...this.store.order].reverse().find((id) => this.store.entries.get(id)?.kind === "text");
    this.announcer.begin(last, this.store.text(last).length);
  }

  private takeHead(head: Partial<Head>, gone: (keyof Head)[]): void {
    const was = this.store.head;
    const next: Head = { ...was, ...head };
    for (const k of gone) Object.assign(next, { [k]: undefined });
    this.store.head = next;
    if (was.running && !next.running) {
      this.announcer.flush(true);
      this.announcer.say("Pillion is done");
    }
    const asked = (h2: Head) => [...h2.approvals.map((a) => a.toolCallId), h2.questions.length].join();
    if (asked(was) !== asked(next)) {
      const ids = new Set([...was.approvals, ...next.approvals].map((a) => a.toolCallId));
      this.transcript.changed([...this.store.entries.values()].filter((e) => ids.has(e.id) || (e.kind === "tool" && e.tool === "question" && e.status === "in_progress")).map((entry) => ({ op: "put", entry })));
    }
    this.drawHead();
  }

  /** A person who comes by key or command wants to write; one who clicks wants what they clicked. */
  private followFocus(): void {
    let clicked = 0;
    const write = () => {
      if (document.activeElement === document.body && Date.now() - clicked > 500) this.composer.focus();
    };
    document.addEventListener("pointerdown", () => (clicked = Date.now()), true);
    window.addEventListener("focus", () => setTimeout(write, 60));
    for (const on of [true, false]) window.addEventListener(on ? "focus" : "blur", () => this.bus.post({ type: "focused", on }));
    if (document.hasFocus()) this.bus.post({ type: "focused", on: true });
    if (document.hasFocus()) write();
  }

  private drawHead(): void {
    const head = this.store.head;
    for (const s of this.strips) s.update(head);
    this.dock.update();
    this.composer.update(head);
    this.empty.update(head, this.store.order.length > 0);
    this.drawBusy();
  }

  private drawBusy(): void {
    const head = this.store.head;
    const waits = head.approvals.length + head.questions.length > 0;
    this.busy.hidden = !(head.running && !waits) && head.busy === undefined;
    if (this.busy.hidden) return;
    const since = head.runningSince === undefined ? 0 : Date.now() - head.runningSince;
    setText(this.busyText, head.busy ?? (since >= 1000 ? `Working · ${duration(Math.floor(since / 1000) * 1000)}` : "Working"));
  }

  private key(e: KeyboardEvent): void {
    if (e.defaultPrevented) return;
    const target = e.target as Element;
    if (target.closest(".composer, .menu")) return;
    if (e.key === "Escape" && (e.ctrlKey || e.metaKey) && this.store.head.running) {
      this.bus.post({ type: "stop" }); // the key of the workbench does this too, after it has learned that the panel has the focus
      return;
    }
    // Typed text belongs to the composer, wherever the focus is: a letter without another meaning is inserted there.
    const letter = e.key.length === 1 && e.key !== " " && !e.ctrlKey && !e.metaKey && !e.altKey && !target.closest("input, textarea, select");
    if (e.key === "Escape" || letter) this.composer.focus();
  }
}

const vscode = acquireVsCodeApi();
const panel = new Panel(document.getElementById("root") ?? document.body, (m) => vscode.postMessage(m));
window.addEventListener("message", (e: MessageEvent<ToView>) => panel.take(e.data));
vscode.postMessage({ type: "ready" });
