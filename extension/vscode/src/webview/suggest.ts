/** The list above the composer for @ and /; the focus stays in the text. */
import { h, icon, isIcon, setChildren } from "./dom";

export interface Suggestion {
  icon: string;
  name: string;
  detail: string;
  /** UTF-16 offsets of the part of name to highlight. */
  hits: number[];
  take(): void;
}

export class Suggest {
  readonly el = h("div", { class: "suggest", role: "listbox", hidden: true, aria: { label: "Suggestions" } });
  private items: Suggestion[] = [];
  private at = 0;

  constructor(private readonly input: HTMLTextAreaElement) {
    this.el.id = "suggest";
    input.setAttribute("aria-controls", "suggest");
  }

  get open(): boolean {
    return !this.el.hidden;
  }

  show(items: Suggestion[], title: string): void {
    const was = this.items[this.at]?.name;
    this.items = items;
    this.at = Math.max(0, items.findIndex((i) => i.name === was));
    this.el.hidden = items.length === 0;
    this.el.setAttribute("aria-label", title);
    this.input.setAttribute("aria-expanded", String(this.open));
    setChildren(this.el, items.map((s, i) => {
      const el = h("div", { class: "menu-item", role: "option" },
        h("span", { class: "menu-mark" }, isIcon(s.icon) ? icon(s.icon) : undefined),
        h("span", { class: "menu-text one" }, h("span", { class: "menu-label" }, ...marked(s.name, s.hits)), h("span", { class: "menu-detail" }, s.detail)));
      el.id = `suggest-${String(i)}`;
      el.addEventListener("pointerdown", (e) => {
        e.preventDefault(); // the text keeps the focus
        s.take();
      });
      return el;
    }));
    this.mark();
  }

  hide(): void {
    this.show([], "");
  }

  /** Whether the list handled the key. */
  key(e: KeyboardEvent): boolean {
    if (!this.open) return false;
    const n = this.items.length;
    if (e.key === "ArrowDown") this.at = (this.at + 1) % n;
    else if (e.key === "ArrowUp") this.at = (this.at + n - 1) % n;
    else if (e.key === "PageDown") this.at = Math.min(n - 1, this.at + 8);
    else if (e.key === "PageUp") this.at = Math.max(0, this.at - 8);
    else if ((e.key === "Enter" && !e.shiftKey) || e.key === "Tab") this.items[this.at]?.take();
    else if (e.key === "Escape") this.hide();
    else return false;
    e.preventDefault();
    this.mark();
    return true;
  }

  private mark(): void {
    [...this.el.children].forEach((c, i) => {
      c.classList.toggle("at", i === this.at);
      c.setAttribute("aria-selected", String(i === this.at));
    });
    this.el.children[this.at]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", this.open ? `suggest-${String(this.at)}` : "");
  }
}

function marked(name: string, hits: number[]): (string | HTMLElement)[] {
  if (hits.length === 0) return [name];
  const hit = new Set(hits);
  const out: (string | HTMLElement)[] = [];
  for (let i = 0; i < name.length; ) {
    const on = hit.has(i);
    let j = i;
    while (j < name.length && hit.has(j) === on) j++;
    const part = name.slice(i, j);
    out.push(on ? h("b", {}, part) : part);
    i = j;
  }
  return out;
}
