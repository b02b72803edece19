/** Draws one entry of the transcript. */
import type { Entry, NoticeEntry, ThoughtEntry, TurnEntry } from "../common/view";
import type { Bus } from "./bus";
import { button, duration, h, icon, setText } from "./dom";
import { Markdown } from "./markdown";
import type { Store } from "./store";
import { ToolView } from "./tool";
import { UserView } from "./user";
import type { View } from "./entryview";

export function createView(e: Entry, store: Store, bus: Bus): View {
  switch (e.kind) {
    case "user":
      return new UserView(e, bus);
    case "text":
      return new TextView(e.text, bus);
    case "thought":
      return new ThoughtView(e, bus);
    case "tool":
      return new ToolView(e, store, bus, createView);
    case "notice":
      return new NoticeView(e, bus);
    case "turn":
      return new TurnView(e, bus);
  }
}

/** The accessible name of an entry. */
export function labelOf(e: Entry): string {
  switch (e.kind) {
    case "user":
      return `You: ${e.text.slice(0, 200)}`;
    case "text":
      return "Pillion's answer";
    case "thought":
      return "Thinking";
    case "tool":
      return e.title;
    case "notice":
      return e.title;
    case "turn":
      return "End of turn";
  }
}

class TextView implements View {
  readonly el: HTMLElement;
  private readonly md: Markdown;

  constructor(text: string, bus: Bus) {
    this.md = new Markdown(bus);
    this.el = h("div", { class: "text" }, this.md.el);
    this.md.set(text);
  }

  update(e: Entry): void {
    if (e.kind !== "text") return;
    this.md.set(e.text);
    if (!e.open) this.md.close();
  }

  append(text: string): void {
    this.md.append(text);
  }
}

class ThoughtView implements View {
  readonly el: HTMLElement;
  private readonly label = h("span", { class: "label" });
  private readonly peek = h("span", { class: "peek" });
  private readonly head: HTMLButtonElement;
  private readonly body = h("div", { class: "body", hidden: true });
  private md: Markdown | undefined;
  private entry: ThoughtEntry;

  constructor(e: ThoughtEntry, private readonly bus: Bus) {
    this.entry = e;
    this.head = h("button", { class: "row", tab: -1, aria: { expanded: "false" }, click: () => this.toggle() }, icon("thinking", "kind"), this.label, this.peek, icon("chevron-right", "twist"));
    this.el = h("div", { class: "thought" }, this.head, this.body);
    this.update(e);
  }

  toggle(): void {
    const open = this.body.hidden;
    this.body.hidden = !open;
    this.head.setAttribute("aria-expanded", String(open));
    this.el.classList.toggle("open", open);
    if (open && !this.md) {
      this.md = new Markdown(this.bus);
      this.body.append(this.md.el);
    }
    if (open) this.md?.set(this.entry.text);
  }

  update(e: Entry): void {
    if (e.kind !== "thought") return;
    this.entry = e;
    const took = e.startedAt !== undefined && e.endedAt !== undefined ? ` for ${duration(e.endedAt - e.startedAt)}` : "";
    setText(this.label, e.open ? "Thinking" : `Thought${took}`);
    this.el.classList.toggle("busy", e.open === true);
    setText(this.peek, e.open ? lastLine(e.text) : "");
    if (!this.body.hidden) this.md?.set(e.text);
  }

  append(text: string): void {
    setText(this.peek, lastLine(this.entry.text));
    if (!this.body.hidden) this.md?.append(text);
  }
}

function lastLine(text: string): string {
  return text.slice(-400).trimEnd().split("\n").pop()?.replace(/[*_#`]/g, "").slice(-160) ?? "";
}

const severities = { info: "info", warning: "warning", error: "error" } as const;

class NoticeView implements View {
  readonly el = h("div");

  constructor(e: NoticeEntry, private readonly bus: Bus) {
    this.update(e);
  }

  update(e: Entry): void {
    if (e.kind !== "notice") return;
    const { cwd } = this.bus.head();
    const short = (text: string) => (cwd ? text.split(`${cwd}/`).join("") : text);
    this.el.className = `notice ${e.severity}`;
    this.el.replaceChildren(
      icon(e.busy ? "loading" : severities[e.severity], e.busy ? "spin" : ""),
      h("div", { class: "notice-body" },
        h("div", { class: "notice-title" }, short(e.title)),
        e.description && h("div", { class: "notice-text" }, short(e.description)),
        e.actions.length > 0 && h("div", { class: "actions" }, ...e.actions.map((a, i) => button(a.label, i === 0 ? "primary" : "secondary", () => this.bus.post({ type: "action", id: a.id, ...(a.about === undefined ? {} : { about: a.about }) }), undefined, { tab: -1 }))),
      ),
    );
  }
}

const ends: Record<TurnEntry["stop"], string> = {
  end_turn: "", cancelled: "Stopped", error: "Ended by an error", max_tokens: "The answer reached the model's length limit", max_turn_requests: "Stopped at the maximum number of steps", refusal: "The model refused",
};

class TurnView implements View {
  readonly el: HTMLElement;

  constructor(e: TurnEntry, bus: Bus) {
    const facts = [ends[e.stop], e.seconds !== undefined && e.seconds >= 1 ? duration(e.seconds * 1000) : "", e.cost ? money(e.cost) : ""].filter(Boolean);
    this.el = h("div", { class: `turn ${e.stop}` }, facts.length > 0 && h("span", { class: "turn-facts" }, facts.join(" · ")),
      (e.stop === "max_tokens" || e.stop === "max_turn_requests") && button("Continue", "secondary", () => bus.post({ type: "action", id: "continue" }), "play", { tab: -1 }));
  }

  update(): void {
    // a turn ends once
  }
}

export function money(amount: number, currency = "USD"): string {
  const sign = currency === "USD" ? "$" : `${currency} `;
  return `${sign}${amount >= 1 ? amount.toFixed(2) : amount >= 0.01 ? amount.toFixed(3) : amount.toFixed(4)}`;
}
