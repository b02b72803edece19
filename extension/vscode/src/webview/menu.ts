/** A list that opens above or below a button, for pickers and for the actions on a prompt. */
import { h, icon, isIcon, type Icon } from "./dom";

export interface MenuItem {
  id: string;
  label: string;
  detail?: string;
  icon?: Icon;
  current?: boolean;
  group?: string;
}

export interface MenuOptions {
  label: string;
  note?: string;
  /** Show a field to filter the list. */
  filter?: boolean;
  items: MenuItem[];
  pick(id: string): void;
}

export class Menu {
  private static now: Menu | undefined;

  static open(anchor: HTMLElement, o: MenuOptions): void {
    const again = Menu.now?.anchor === anchor;
    Menu.now?.close(false);
    if (!again) Menu.now = new Menu(anchor, o);
  }

  private readonly el: HTMLElement;
  private readonly list = h("div", { class: "menu-list", role: "listbox", tab: -1 });
  private readonly input: HTMLInputElement | undefined;
  private shown: MenuItem[] = [];
  private at = 0;
  private readonly away = (e: Event) => {
    if (!this.el.contains(e.target as Node) && !this.anchor.contains(e.target as Node)) this.close(false);
  };

  private constructor(private readonly anchor: HTMLElement, private readonly o: MenuOptions) {
    this.list.setAttribute("aria-label", o.label);
    this.list.id = "menu-list";
    if (o.filter) {
      this.input = h("input", { class: "menu-filter", role: "combobox", aria: { label: `${o.label}: filter`, controls: "menu-list", expanded: "true" } });
      this.input.placeholder = "Filter";
      this.input.addEventListener("input", () => this.draw());
    }
    this.el = h("div", { class: "menu", role: "dialog", aria: { label: o.label } }, h("div", { class: "menu-title" }, o.label, o.note && h("span", { class: "muted" }, ` ${o.note}`)), this.input, this.list);
    this.el.addEventListener("keydown", (e) => this.key(e));
    document.body.append(this.el);
    anchor.setAttribute("aria-expanded", "true");
    this.draw();
    this.at = Math.max(0, this.shown.findIndex((i) => i.current));
    this.mark();
    this.place();
    (this.input ?? this.list).focus();
    document.addEventListener("pointerdown", this.away, true);
    window.addEventListener("blur", this.blurred);
  }

  private readonly blurred = () => this.close(false);

  private close(refocus: boolean): void {
    document.removeEventListener("pointerdown", this.away, true);
    window.removeEventListener("blur", this.blurred);
    this.el.remove();
    this.anchor.setAttribute("aria-expanded", "false");
    if (Menu.now === this) Menu.now = undefined;
    if (refocus) this.anchor.focus();
  }

  private draw(): void {
    const words = (this.input?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.o.items.filter((i) => words.every((w) => `${i.label} ${i.id} ${i.detail ?? ""} ${i.group ?? ""}`.toLowerCase().includes(w)));
    this.at = 0;
    let group: string | undefined;
    this.list.replaceChildren(...this.shown.flatMap((item, n) => {
      const el = h("div", { class: "menu-item", role: "option", aria: { selected: String(item.current === true) }, click: () => this.take(n) },
        h("span", { class: "menu-mark" }, item.current ? icon("check") : item.icon && isIcon(item.icon) ? icon(item.icon) : undefined),
        h("span", { class: "menu-text" }, h("span", { class: "menu-label" }, item.label), item.detail && h("span", { class: "menu-detail" }, item.detail)));
      el.id = `menu-item-${String(n)}`;
      const head = item.group !== undefined && item.group !== group ? [h("div", { class: "menu-group", role: "presentation" }, item.group)] : [];
      group = item.group;
      return [...head, el];
    }));
    if (this.shown.length === 0) this.list.append(h("div", { class: "menu-none muted" }, "Nothing fits"));
    this.mark();
  }

  private mark(): void {
    const options = this.list.querySelectorAll(".menu-item");
    options.forEach((o, i) => o.classList.toggle("at", i === this.at));
    options[this.at]?.scrollIntoView({ block: "nearest" });
    (this.input ?? this.list).setAttribute("aria-activedescendant", this.shown.length > 0 ? `menu-item-${String(this.at)}` : "");
  }

  private key(e: KeyboardEvent): void {
    const n = this.shown.length;
    if (e.key === "ArrowDown") this.at = (this.at + 1) % Math.max(1, n);
    else if (e.key === "ArrowUp") this.at = (this.at + n - 1) % Math.max(1, n);
    else if (e.key === "Home" && !this.input) this.at = 0;
    else if (e.key === "End" && !this.input) this.at = Math.max(0, n - 1);
    else if (e.key === "Enter") this.take(this.at);
    else if (e.key === "Escape" || e.key === "Tab") this.close(true);
    else return;
    e.preventDefault();
    e.stopPropagation();
    if (this.el.isConnected) this.mark();
  }

  private take(n: number): void {
    const item = this.shown[n];
    if (!item) return;
    this.close(true);
    this.o.pick(item.id);
  }

  private place(): void {
    const a = this.anchor.getBoundingClientRect();
    const own = this.el.getBoundingClientRect();
    const left = Math.max(8, Math.min(a.left, window.innerWidth - own.width - 8));
    const up = a.top - 8 > window.innerHeight - a.bottom;
    this.el.style.left = `${String(left)}px`;
    this.el.style.maxHeight = `${String((up ? a.top : window.innerHeight - a.bottom) - 12)}px`;
    if (up) this.el.style.bottom = `${String(window.innerHeight - a.top + 4)}px`;
    else this.el.style.top = `${String(a.bottom + 4)}px`;
  }
}
